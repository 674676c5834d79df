"""The scheduler when the server refuses, fails, or is full, and the link's threads."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, cast

import pytest
from conftest import Server, Stub, problem
from scrapy import Request
from site_of_tests import Site
from test_scrapy import REACTORS, scrapy, stats

from frontier_client import Client, Ended, Lease, NotLeased, Outcome
from frontier_client.scrapy import _link


@pytest.fixture
def site() -> Iterator[Site]:
    s = Site(hosts=1, pages=1)
    yield s
    s.close()


@pytest.mark.parametrize("reactor", REACTORS)
@pytest.mark.parametrize("slow", [False, True])
def test_a_refusal_ends_the_process_with_an_error(server: Server, site: Site, reactor: str, slow: bool) -> None:
    with Stub(lambda _, __: (401, problem("unauthorized", 401))) as s:
        server.url = s.url
        p = scrapy(server, site, slow=slow, **REACTORS[reactor])
        out, _ = p.communicate(timeout=30)
    assert p.returncode == 1
    got = json.loads(out.splitlines()[-1])
    assert got["finish_reason"] == "frontier_error"
    log = (server.folder / "scrapy.log").read_text()
    assert log.count("the frontier cannot be used") == 1 and "Traceback" not in log


def test_a_certificate_of_ones_own(server: Server, site: Site) -> None:
    cert = server.with_tls()
    assert stats(scrapy(server, site, FRONTIER_CA=cert, ROBOTSTXT_OBEY=False, CLOSESPIDER_PAGECOUNT=1))["scheduler/frontier/done"]


def test_what_is_to_be_sent_again_is_and_no_more(server: Server, site: Site) -> None:
    server.delay(0.05)
    site.pages = 5
    got = stats(scrapy(server, site, spider="again", ROBOTSTXT_OBEY=False, CLOSESPIDER_PAGECOUNT=40))
    assert got["finish_reason"] == "finished"
    noted = {k.removeprefix("noted/"): n for k, n in got.items() if k.startswith("noted/")}
    each = {f"{what}{i}": 1 for what in ("own", "other") for i in range(3)}
    assert noted == {**each, "equal": 3, "inherited": 1, "own": 1}
    host = site.hosts[0].removeprefix("http://").split(":")[0]
    assert {p: site.counts[host + p] for p in ("/0", "/1", "/2", "/3", "/busy")} == {"/0": 4, "/1": 3, "/2": 3, "/3": 2, "/busy": 2}
    assert "scheduler/frontier/late" not in got and "scheduler/frontier/refused" not in got


def test_a_page_waits_for_the_delay_after_robots(server: Server, site: Site) -> None:
    server.delay(1.5)
    stats(scrapy(server, site, CLOSESPIDER_PAGECOUNT=1))
    assert [p for _, p, _, _ in site.log[:2]] == ["/robots.txt", "/0"]
    assert site.early(1.5) == []


def test_a_timeout_is_told_as_one(server: Server, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def late(path: str, tries: int) -> tuple[int, dict[str, str], bytes]:
        time.sleep(2 if tries == 1 else 0)
        return 200, {}, b""

    ends = []
    monkeypatch.setattr(site, "answer", late)
    server.delay(0.05)
    with Stub(lambda path, body: ends.append(body) if path == "/v1/done" else None, server) as s:
        server.url = s.url
        p = scrapy(server, site, ROBOTSTXT_OBEY=False, DOWNLOAD_TIMEOUT=0.5)
        until = time.monotonic() + 30
        while not ends and time.monotonic() < until:
            time.sleep(0.01)
        p.terminate()
        p.communicate()
    assert b'"failure":"timeout"' in ends[0]


@pytest.mark.parametrize("reactor", REACTORS)
@pytest.mark.parametrize("back", [False, True])
def test_a_connection_is_cut_when_its_lease_ends(server: Server, site: Site, reactor: str, back: bool) -> None:
    server.delay(0.05)
    with socket.create_server(("127.0.0.1", 0)) as web:
        site.hosts = [f"http://127.0.0.1:{web.getsockname()[1]}"]
        p = scrapy(server, site, ROBOTSTXT_OBEY=False, FRONTIER_LEASE_S=3, **REACTORS[reactor])
        try:
            web.settimeout(30)
            first, _ = web.accept()
            server.kill()
            if back:
                server.start()
            first.settimeout(8)
            with first, suppress(ConnectionResetError):
                while first.recv(4096):  # the request; nothing is answered
                    pass
            if not back:
                server.start()
            again, _ = web.accept()
            again.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
            again.close()
            assert stats(p)["finish_reason"] == "finished"
        finally:
            p.kill()


@pytest.mark.parametrize("reactor", REACTORS)
def test_a_robots_txt_is_cut_when_the_leases_of_its_host_end(server: Server, site: Site, reactor: str) -> None:
    server.delay(0.05)
    with socket.create_server(("127.0.0.1", 0)) as web:
        site.hosts = [f"http://127.0.0.1:{web.getsockname()[1]}"]
        p = scrapy(server, site, FRONTIER_LEASE_S=3, **REACTORS[reactor])
        asked = []
        try:
            web.settimeout(30)
            first, _ = web.accept()
            server.kill()
            first.settimeout(8)
            with first, suppress(ConnectionResetError):
                while data := first.recv(4096):  # nothing is answered
                    asked.append(data.split()[1])
            server.start()
            again, _ = web.accept()  # its rules are not taken for none
            with again:
                asked.append(again.recv(4096).split()[1])
                again.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nUser-agent: *\nDisallow: /\n")
            got = stats(p)
            assert got["finish_reason"] == "finished" and got["robotstxt/forbidden"] == 1
            assert asked == [b"/robots.txt", b"/robots.txt"]
        finally:
            p.kill()


def test_leases_are_kept_while_the_server_is_full(server: Server, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    full_from, asked = [0.0], [0]

    def answer(path: str, body: bytes) -> tuple[int, bytes] | None:
        if path == "/v1/leases" and full_from[0]:
            asked[0] += time.monotonic() < full_from[0] + 3
        if path != "/v1/urls":
            return None
        if b"/1\"" not in body:  # the start URLs
            return None
        full_from[0] = full_from[0] or time.monotonic()
        return (507, problem("full", 507)) if time.monotonic() < full_from[0] + 4 else None

    server.delay(0.05)
    page = 200, {"Content-Type": "text/html"}, b'<a href="/1">x</a>'
    monkeypatch.setattr(site, "answer", lambda path, tries: page)
    with Stub(answer, server) as s, Client(server.url) as c:
        server.url = s.url
        got = stats(scrapy(server, site, FRONTIER_LEASE_S=1.5, ROBOTSTXT_OBEY=False))
        assert c.stats()["expired"] == 0
    assert "scheduler/frontier/late" not in got
    assert site.counts["127.0.1.1/0"] == 1
    assert asked[0] <= 2, "what is taken cannot be ended"


class Fake:
    """A client whose server has a fast host, and slow ones; it ends no lease at first."""

    def __init__(self) -> None:
        self.ends: list[list[str]] = []
        self.sent: dict[str, str] = {}

    def contact(self, host: str, *, wait_s: float, lease_s: float) -> Lease | None:
        time.sleep(0 if host == "fast" else 0.2)
        return Lease("x", host=host) if host == "fast" else None

    def done_many(self, ends: Any) -> list[Ended]:
        pairs = list(ends)
        self.ends.append([lease for lease, _ in pairs])
        kinds = {"full": "full" if len(self.ends) == 1 else None, "late": "not-leased", "odd": "bad-request", "good": None}
        self.sent.update((lease, out.result) for lease, out in pairs)
        return [Ended(lease, error=kinds[lease], type=kinds[lease]) for lease, _ in pairs]

    def extend(self, lease: str, lease_s: float) -> Lease:
        raise NotLeased("not leased")


def a_link(came: list[Any], told: list[str]) -> _link.Link:
    return _link.Link(
        cast(Client, Fake()), crawl=None, limit=1, lease_s=60, came=came.append, told=lambda what, _: told.append(what),
        failed=lambda e: told.append(str(e)),
    )


def test_ends_that_fail_are_told_apart() -> None:
    told: list[str] = []
    link = a_link([], told)
    link._end({k: Outcome("visited") for k in ("full", "late", "odd", "good")})
    server = cast(Fake, link._client)
    assert server.ends == [["full", "late", "odd", "good"], ["full", "odd"]]
    assert server.sent == {"full": "visited", "late": "visited", "odd": "put_off", "good": "visited"}
    assert told == ["late", "refused", "refused"]


def test_a_host_that_is_slow_holds_up_no_other() -> None:
    came: list[Any] = []
    link = a_link(came, [])
    link._pool.start()
    for i in range(5):
        link.contact(f"slow{i}", Request("http://slow.test/"))
    link.contact("fast", Request("http://fast.test/"))
    until = time.monotonic() + 10
    while not came and time.monotonic() < until:
        time.sleep(0.01)
    assert [le.host for le, _ in came] == ["fast"]
    threads = [t for t in threading.enumerate() if t.name.startswith("frontier-")]
    assert threads and all(t.daemon for t in threads), "Python waits for the others at its end"
    with link._changed:
        link._stop_at = 0.0
    link._pool.shutdown()
