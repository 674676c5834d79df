"""Several addresses of one frontier."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from conftest import Relay, Server, Stub, problem
from site_of_tests import Site
from test_scrapy import GAP, SPIDER, complete, stats

from frontier_client import Busy, Client, Outcome, Unavailable


@pytest.fixture
def relays(server: Server) -> Iterator[list[Relay]]:
    all_of_them = [Relay(server) for _ in range(3)]
    yield all_of_them
    for r in all_of_them:
        r.kill()


def urls(servers: list[Any]) -> str:
    return " , ".join(s.url for s in servers)


@pytest.mark.parametrize("n", [2, 3])
def test_a_crawl_goes_on_where_servers_are_killed(server: Server, relays: list[Relay], n: int) -> None:
    pages, fetched, killed = 60, Counter[str](), 0
    with Client(urls(relays[:n])) as c:
        c.add(f"http://h{i}.test/" for i in range(pages))
        while len(fetched) < pages:
            (lease,) = c.leases(wait_s=10).leases
            fetched[lease.url] += 1
            if len(fetched) % 10 == 0:  # a lease is ended at another address than it came from
                relays[killed % n].kill()
                relays[(killed - 1) % n].start()
                killed += 1
            longer = c.extend(lease, 60)
            assert c.done(longer, Outcome("visited", duration_s=0.01, add=[f"{lease.url}2"])).added == 1
    assert set(fetched.values()) == {1}
    assert all(r.asked for r in relays[:n])
    with Client(server.url) as c:
        left = c.stats()
        assert (left["known"], left["done"]["visited"], left["leased"]) == (2 * pages, pages, 0)


def test_a_wait_moves_over(server: Server, relays: list[Relay]) -> None:
    got = []
    with Client(urls(relays)) as c, Client(server.url) as other:
        t = threading.Thread(target=lambda: got.extend(c.leases(wait_s=50).leases))
        t.start()
        while not relays[0].asked:
            time.sleep(0.01)
        relays[0].kill()
        while not relays[1].asked and t.is_alive():
            time.sleep(0.01)
        other.add(["http://a.test/"])
        t.join()
    assert [le.url for le in got] == ["http://a.test/"]


def test_an_error_names_each_address(relays: list[Relay]) -> None:
    with Stub(lambda _, __: (503, problem("busy", 503))) as busy, Client(urls([relays[0], busy, relays[1]])) as c:
        for r in relays:
            r.kill()
        with pytest.raises(Unavailable) as e:
            c.stats()
        a, b, d = str(e.value).split("; ")
        assert a.startswith(relays[0].url + ": GET /v1/stats: ") and d.startswith(relays[1].url)
        assert b == f"{busy.url}: 503: as a test wants"
        assert "\n" not in str(e.value)


ASK: list[Callable[[Client], Any]] = [
    lambda c: c.stats(),
    lambda c: c.add(["http://a.test/"]),
    lambda c: c.done_many([("x", Outcome("gone"))]),
    lambda c: list(c.list()),
    lambda c: list(c.export()),
]


@pytest.mark.parametrize(("status", "ask"), [*((503, ask) for ask in ASK), *((200, ask) for ask in ASK[1:])])
def test_a_busy_server_is_left(server: Server, status: int, ask: Callable[[Client], Any]) -> None:
    asked: list[str] = []

    def busy(path: str, _: bytes) -> tuple[int, bytes]:
        asked.append(path)
        return status, problem("busy", 503)  # 200: the problem is the answer's last line

    with Stub(busy) as s, Client(f"{s.url},{server.url}") as c:
        ask(c)
        ask(c)
    assert len(asked) == 1, "the other answered last"


def test_a_machine_that_is_off_has_its_part_of_the_time(server: Server) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as s:
        waiting = [socket.socket() for _ in range(2)]
        for w in waiting:  # no more are let in
            w.setblocking(False)
            w.connect_ex(s.getsockname())
        began = time.monotonic()
        with Client(f"http://127.0.0.1:{s.getsockname()[1]},{server.url}", timeout_s=6) as c:
            c.stats()
            assert list(c.list()) == []
        assert 2.9 < time.monotonic() - began < 5
        for w in waiting:
            w.close()


def test_a_full_frontier_is_full_everywhere(server: Server) -> None:
    with Stub(lambda _, __: (507, problem("full", 507))) as s, Client(f"{s.url},{server.url}") as c, pytest.raises(Busy) as e:
        c.add(["http://a.test/"])
    assert e.value.status == 507


@pytest.mark.parametrize("ask", [lambda c: list(c.list()), lambda c: list(c.stream()), lambda c: list(c.export())])
def test_what_has_begun_is_not_begun_again(server: Server, ask: Callable[[Client], Any]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as s:

        def answer() -> None:
            conn, _ = s.accept()
            with conn:
                conn.recv(65536)
                conn.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b'e\r\n{"lease":"a"}\n\r\n')

        t = threading.Thread(target=answer)
        t.start()
        with Client(f"http://127.0.0.1:{s.getsockname()[1]},{server.url}") as c, pytest.raises(Unavailable):
            ask(c)
        t.join()


def test_an_address_that_is_wrong_is_named() -> None:
    for wrong, says in {
        "http://a:1,b:2": "'b:2' is not the http or https URL",
        "http://a:1,": "'' is not the http or https URL",
        "http://a:1, http://a:1/": "'http://a:1/' is there twice",
    }.items():
        with pytest.raises(ValueError, match=says):
            Client(wrong)


def test_scrapy_goes_on_where_servers_are_killed(server: Server, relays: list[Relay]) -> None:
    server.delay(GAP)
    site = Site(hosts=6, pages=12)
    settings = {"FRONTIER_LEASE_S": 5}
    args = [sys.executable, str(SPIDER), urls(relays[:2]), json.dumps(settings), *(h + "/0" for h in site.hosts)]
    with open(server.folder / "scrapy.log", "a") as log:
        p = subprocess.Popen(args, stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        for i, mark in enumerate((10, 25, 40, 55)):  # requests that the site has answered
            until = time.monotonic() + 60
            while len(site.log) < mark and time.monotonic() < until:
                time.sleep(0.01)
            assert len(site.log) >= mark, "it goes on while the last is away"
            relays[i % 2].kill()
            relays[1 - i % 2].start()
        assert stats(p)["finish_reason"] == "finished"
        complete(site)
    finally:
        p.kill()
        site.close()
