"""Gaps are right whatever the clock of the client's machine says, and whenever it is set."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from conftest import Server, Stub
from site_of_tests import Site
from test_examples import CRAWLEE, EXAMPLES, needs_crawlee
from test_scrapy import SPIDER

from frontier_client import Client, Entry, Lease, Outcome

LONG = bool(os.environ.get("FRONTIER_LONG"))
CONTACTS = 1000 if LONG else 100
HOSTS = 20
DELAY_S = 0.25

CLOCKS: dict[str, Callable[[], float]] = {
    "1.5 s behind": lambda: -1.5,
    "60 s ahead": lambda: 60,
    "an hour ahead": lambda: 3600,
    "set all the time": lambda: random.uniform(-2, 2),
}
_DATE = re.compile(rb'"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3})Z"')


def moved(body: bytes, by: float) -> bytes:
    """The dates of a body, as a machine has them whose clock is off."""

    def move(m: re.Match[bytes]) -> bytes:
        t = datetime.fromisoformat(m.group(1).decode()) + timedelta(seconds=by)
        return b'"%sZ"' % t.isoformat(timespec="milliseconds").encode()

    return _DATE.sub(move, body)


def behind(server: Server, ahead: Callable[[], float]) -> Stub:
    """The server, as a machine has it whose clock is ahead of the server's."""
    return Stub(lambda path, body: None, server, lambda b: moved(b, ahead()), lambda b: moved(b, -ahead()))


class Web:
    """It notes when its hosts are contacted."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.ended: dict[str, float | None] = {}
        self.contacts = self.early = 0

    def fetch(self, host: str) -> tuple[float, float]:
        with self.lock:
            began = time.monotonic()
            last = self.ended.get(host, 0.0)
            self.contacts += 1
            self.early += last is None or began - last < DELAY_S
            self.ended[host] = None
        time.sleep(random.uniform(0, 0.1))
        with self.lock:
            ended = self.ended[host] = time.monotonic()
        time.sleep(random.uniform(0, 0.1))  # the page is parsed
        return began, ended


@pytest.mark.parametrize("clock", CLOCKS)
def test_the_clocks_of_two_machines(server: Server, clock: str) -> None:
    server.delay(DELAY_S)
    ahead, web = CLOCKS[clock], Web()

    def end(client: Client, lease: Lease) -> None:
        began, ended = web.fetch(lease.host)
        client.done(lease, Outcome("visited", ended=ended, duration_s=ended - began))

    with behind(server, ahead) as proxy, Client(proxy.url) as client:
        client.add([Entry(f"http://h{i % HOSTS}.test/{i}", not_before_s=0.1) for i in range(CONTACTS)])

        def work() -> None:
            while web.contacts < CONTACTS:
                for lease in client.leases(wait_s=2, lease_s=10).leases:
                    assert 0 < lease.left_s <= 10
                    end(client, lease)

        workers = [threading.Thread(target=work) for _ in range(HOSTS)]
        for w in workers:
            w.start()
        for w in workers:
            w.join()
    assert (web.contacts, web.early) == (CONTACTS, 0)


@pytest.mark.parametrize("clock", CLOCKS if LONG else ["1.5 s behind", "60 s ahead"])
@pytest.mark.parametrize(
    "crawler",
    [
        [sys.executable, str(SPIDER), "{}"],
        [sys.executable, str(EXAMPLES / "client.py")],
        pytest.param(["node", str(CRAWLEE / "crawl.mjs")], marks=needs_crawlee),
    ],
    ids=["scrapy", "client.py", "crawlee"],
)
def test_crawlers_on_other_machines(server: Server, clock: str, crawler: list[str]) -> None:
    """The log of the sites decides."""
    server.delay(DELAY_S)
    web = Site(hosts=HOSTS, pages=48) if LONG else Site(hosts=4, pages=8)
    with behind(server, CLOCKS[clock]) as proxy:
        done = subprocess.run(
            [*crawler[:2], proxy.url, *crawler[2:], *(h + "/0" for h in web.hosts)], capture_output=True, text=True, timeout=240
        )
    web.close()
    assert done.returncode == 0, done.stderr[-2000:]
    assert [web.wanted() - paths for paths in web.asked().values()] == [set()] * len(web.hosts)
    assert len(web.log) > (1000 if LONG else 4 * 10)
    assert web.early(DELAY_S) == []


def test_a_lease_ends_by_the_spans_of_its_answer() -> None:
    asked = time.monotonic()
    lease = {"lease": "x", "lease_s": 30.0, "sent_s": 5.0}
    assert 29 < Lease.from_members(lease, asked - 5).left_s <= 30
    # The answer was under way, or unread, for ten seconds.
    assert 19 < Lease.from_members(lease, asked - 15).left_s <= 20
    # It cannot have been sent after it came.
    assert 29 < Lease.from_members(lease, asked).left_s <= 30
    assert Lease.from_members(json.loads('{"lease":"x","lease_s":0,"sent_s":0}'), asked).left_s == 0
