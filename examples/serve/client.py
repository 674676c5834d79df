"""A small crawler: client.py SERVER-URL SEED... The server decides what comes when."""
import http.client
import json
import re
import sys
import time
import urllib.error
import urllib.request
from urllib.parse import quote, urljoin, urlsplit, urlunsplit


def ask(path, body=None):
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(server + path, data) as answer:
        return json.load(answer)


class Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args):  # another contact: it needs a lease
        return None


def link(base, href):
    """The URL of a link, or None."""
    try:
        to = urlsplit(urljoin(base, href.strip()))
        path, query = (quote(x, safe="%/:;=@&?!$'()*+,~[]") for x in (to.path, to.query))
        return urlunsplit((to.scheme, to.netloc, path, query, "")) if to.netloc in hosts else None
    except ValueError:  # such as http://[x
        return None


fetch = urllib.request.build_opener(Stay).open
server, seeds = sys.argv[1], sys.argv[2:]
hosts = {urlsplit(seed).netloc for seed in seeds}
for bad in ask("/v1/urls", [{"url": link(seed, "") or seed} for seed in seeds])["bad"]:
    print("bad", bad, file=sys.stderr)
while True:
    # One at a time: a second lease would run out while the first page is fetched.
    got = ask("/v1/leases", {"lease_s": 120, "wait_s": 2})
    if got.get("exhausted"):
        break
    for lease in got["leases"]:
        began, links, result = time.monotonic(), [], {"result": "visited"}
        try:
            with fetch(lease["url"], timeout=20) as page:
                links = [link(page.url, h) for h in re.findall(r'href="([^"]+)"', page.read().decode(errors="replace"))]
        except urllib.error.HTTPError as e:
            result = {"result": "gone" if e.code in (404, 410) else "visited"}
            links = [link(lease["url"], e.headers["Location"])] if "Location" in e.headers else []
        except (http.client.InvalidURL, ValueError):  # it never can be fetched
            result = {"result": "gone", "uncontacted": True}
        except (OSError, http.client.HTTPException):  # it comes again; a crawler for longer would give up at some lease["attempt"]
            result = {"result": "failed", "failure": "connect"}
        add = [{"url": u} for u in dict.fromkeys(links) if u]
        try:
            done = ask(f"/v1/leases/{lease['lease']}/done", {**result, "duration_s": time.monotonic() - began, "add": add})
        except urllib.error.HTTPError as e:
            if e.code != 409:  # the lease had ended: the URL comes again
                raise
            print("late", lease["url"], file=sys.stderr)
            continue
        for u, verdict in zip(add, done.get("add", [])):
            if verdict["status"] in ("bad", "refused"):
                print(verdict["status"], u["url"], verdict.get("error"), file=sys.stderr)
        print(result["result"], lease["url"])
