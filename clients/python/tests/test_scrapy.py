from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Server
from scrapy import Request, Spider
from scrapy.http import JsonRequest, Response
from site_of_tests import Site
from twisted.python.failure import Failure

from frontier_client import Client
from frontier_client.scrapy import _codec
from frontier_client.scrapy._scheduler import retry_after

GAP = 0.1
SPIDER = Path(__file__).with_name("spider.py")
REACTORS: dict[str, dict[str, Any]] = {
    "asyncio": {},
    "select": {"TWISTED_REACTOR": "twisted.internet.selectreactor.SelectReactor"},
    "none": {"TWISTED_REACTOR_ENABLED": False},
}


@pytest.fixture
def site() -> Iterator[Site]:
    s = Site(hosts=6, pages=12)
    yield s
    s.close()


def scrapy(server: Server, site: Site, **settings: Any) -> subprocess.Popen[str]:
    args = [sys.executable, str(SPIDER), server.url, json.dumps(settings), *(h + "/0" for h in site.hosts)]
    with open(server.folder / "scrapy.log", "a") as log:
        return subprocess.Popen(args, stdout=subprocess.PIPE, stderr=log, text=True)


def stats(p: subprocess.Popen[str]) -> dict[str, Any]:
    out, _ = p.communicate(timeout=240)
    assert p.returncode == 0, f"{p.returncode}: {out}"
    got: dict[str, Any] = json.loads(out.splitlines()[-1])
    return got


def complete(site: Site, gap: float = GAP) -> None:
    for host, paths in site.asked().items():
        assert paths - {"/robots.txt"} == site.wanted(), host
    assert len(site.asked()) == len(site.hosts)
    assert site.early(gap) == []


@pytest.mark.parametrize("reactor", REACTORS)
def test_a_crawl_is_complete_and_polite(server: Server, site: Site, reactor: str) -> None:
    server.delay(GAP)
    got = stats(scrapy(server, site, **REACTORS[reactor]))
    assert got["finish_reason"] == "finished"
    complete(site)
    asked = Counter((host, path) for host, path, _, _ in site.log)
    assert {n for (_, path), n in asked.items() if path != "/flaky"} == {1}
    assert got["retry/count"] == len(site.hosts)
    assert got["robotstxt/forbidden"] == len(site.hosts)
    assert got.get("spider_exceptions/count", 0) == 0
    assert got["scheduler/frontier/added/known"] > 0
    assert "log_count/ERROR" not in got
    with Client(server.url) as c:
        left = c.stats()
        assert (left["waiting"], left["scheduled"], left["leased"]) == (0, 0, 0)
        assert left["expired"] == 0


def test_what_is_done_is_not_crawled_again(server: Server, site: Site) -> None:
    server.delay(GAP)
    stats(scrapy(server, site))
    before = len(site.log)
    got = stats(scrapy(server, site))
    assert len(site.log) == before
    assert got["scheduler/frontier/added/known"] == len(site.hosts)


def test_processes_share_a_crawl(server: Server, site: Site) -> None:
    server.delay(GAP)
    processes = [scrapy(server, site) for _ in range(3)]
    for p in processes:
        stats(p)
    complete(site)
    asked = Counter((h, p) for h, p, _, _ in site.log if p not in ("/flaky", "/robots.txt"))
    assert {page: n for page, n in asked.items() if n > 1} == {}, (server.folder / "scrapy.log").read_text()[-8000:]


def test_kills_lose_nothing(server: Server, site: Site) -> None:
    server.delay(GAP)
    settings = {"FRONTIER_LEASE_S": 2}
    processes = [scrapy(server, site, **settings) for _ in range(2)]
    choose = random.Random(7)
    killed = 0
    for mark in (10, 25, 40, 55):  # requests that the site has answered
        until = time.monotonic() + 60
        while len(site.log) < mark and time.monotonic() < until:
            time.sleep(0.01)
        if killed % 2:
            server.kill()
            server.start()
        else:
            i = choose.randrange(len(processes))
            processes[i].send_signal(signal.SIGKILL)
            processes[i].communicate()
            processes[i] = scrapy(server, site, **settings)
        killed += 1
    for p in processes:
        stats(p)
    assert killed == 4
    complete(site)


def test_other_requests_than_plain_ones(server: Server, site: Site) -> None:
    site.hosts = site.hosts[:1]
    args = [sys.executable, str(SPIDER), server.url, json.dumps({"spider": "odd", "ROBOTSTXT_OBEY": False}), *site.hosts]
    with open(server.folder / "scrapy.log", "a") as log:
        got = stats(subprocess.Popen(args, stdout=subprocess.PIPE, stderr=log, text=True))
    assert Counter(p for _, p, _, _ in site.log) == {"/3": 2, "/4": 1}, "equal bodies are one request"
    assert got["scheduler/frontier/unserializable"] == 1
    assert "is kept in memory, not on the server" in (server.folder / "scrapy.log").read_text()
    assert site.early(0.9) == []


class Nothing(Spider):
    name = "nothing"

    def page(self, response: Response) -> None:
        pass

    def trouble(self, failure: Failure) -> None:
        pass


def elsewhere(response: Response) -> None:
    pass


def test_requests_come_back_as_they_were() -> None:
    spider = Nothing()
    meta = {"a": (1, [b"\x00", {"x"}]), "b": {1: None}, "depth": 2, "f": 1.5}
    r = Request(
        "http://a.test/?b=1&a=2#f", spider.page, "PUT", {"X": ["1", "2"]}, b"\xff", {"c": "d"}, meta, "latin-1", -3, True,
        spider.trouble, ["flag"], {"k": frozenset({1})},
    )
    for x in (r, JsonRequest("http://a.test/", data={"k": 1}), Request("http://a.test/")):
        again = _codec.load(_codec.dump(x, spider), spider)
        assert type(again) is type(x)
        assert again.to_dict(spider=spider) == x.to_dict(spider=spider)


@pytest.mark.parametrize("bad", [object(), Request, {"x": [lambda: 1]}])
def test_what_has_no_json_form_is_refused(bad: Any) -> None:
    with pytest.raises(_codec.Unstorable, match="is no JSON value"):
        _codec.dump(Request("http://a.test/", meta={"bad": bad}), Nothing())


def test_what_cannot_be_stored_is_refused() -> None:
    with pytest.raises(_codec.Unstorable, match="can be stored"):
        _codec.dump(Request("http://a.test/", meta={"big": "x" * (64 << 10)}), Nothing())
    with pytest.raises(_codec.Unstorable, match="not an instance method|is not"):
        _codec.dump(Request("http://a.test/", callback=elsewhere), Nothing())
    circle: list[Any] = []
    circle.append(circle)
    with pytest.raises(_codec.Unstorable, match="contains itself"):
        _codec.dump(Request("http://a.test/", meta={"c": circle}), Nothing())


def test_retry_after_has_seconds_or_a_date() -> None:
    assert retry_after(b"120") == 120
    assert retry_after(b"Fri, 31 Dec 1999 23:59:59 GMT") is None
    assert retry_after(b"soon") is None and retry_after(None) is None
    assert (retry_after(b"Fri, 31 Dec 2100 23:59:59 GMT") or 0) > 1e9
    # The site's clock may be another than ours.
    assert retry_after(b"Fri, 31 Dec 1999 23:59:59 GMT", b"Fri, 31 Dec 1999 23:59:00 GMT") == 59
    assert (retry_after(b"Fri, 31 Dec 2100 23:59:59 GMT", b"no date") or 0) > 1e9
