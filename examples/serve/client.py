"""A small crawler: client.py SERVER-URL SEED... The server decides what comes when."""
import json
import re
import sys
import time
import urllib.error
import urllib.request
from urllib.parse import urljoin, urlsplit


def ask(path, body=None):
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(server + path, data) as answer:
        return json.load(answer)


class Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args):  # another contact: it needs a lease
        return None


fetch = urllib.request.build_opener(Stay).open
server, seeds = sys.argv[1], sys.argv[2:]
hosts = {urlsplit(seed).netloc for seed in seeds}
ask("/v1/urls", [{"url": seed} for seed in seeds])
while True:
    leases = ask("/v1/leases", {"hosts": 10, "wait_s": 2})["leases"]
    if not leases and not any(ask("/v1/stats")[k] for k in ("waiting", "scheduled", "leased")):
        break
    for lease in leases:
        began, links, result = time.monotonic(), [], {"result": "visited"}
        try:
            with fetch(lease["url"], timeout=20) as page:
                links = [urljoin(page.url, h).split("#")[0] for h in re.findall(r'href="([^"]+)"', page.read().decode(errors="replace"))]
        except urllib.error.HTTPError as e:
            result = {"result": "gone" if e.code in (404, 410) else "visited"}
            links = [urljoin(lease["url"], e.headers["Location"])] if "Location" in e.headers else []
        except OSError:  # it comes again; a crawler for longer would give up at some lease["attempt"]
            result = {"result": "failed", "failure": "connect"}
        add = [{"url": u} for u in dict.fromkeys(links) if urlsplit(u).netloc in hosts]
        ask(f"/v1/leases/{lease['lease']}/done", {**result, "duration_s": time.monotonic() - began, "add": add})
        print(result["result"], lease["url"])
