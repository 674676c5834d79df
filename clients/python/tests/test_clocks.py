"""Gaps are right whatever the clock of the client's machine says, and whenever it is set."""

from __future__ import annotations

import json
import os
import random
import re
import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from conftest import Server, Stub

from frontier_client import Client, Entry, Lease, Outcome

CONTACTS = 1000 if os.environ.get("FRONTIER_LONG") else 100
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

    def answer(path: str, body: bytes) -> tuple[int, bytes]:
        accept = "application/x-ndjson" if path in ("/v1/urls", "/v1/done") else "application/json"
        head = {"Content-Type": accept, "Accept": accept}
        try:
            with urlopen(Request(server.url + path, moved(body, ahead()) or None, head)) as a:
                return a.status, moved(a.read(), -ahead())
        except HTTPError as e:
            return e.code, e.read()

    def end(client: Client, lease: Lease) -> None:
        began, ended = web.fetch(lease.host)
        client.done(lease, Outcome("visited", ended=ended, duration_s=ended - began))

    with Stub(answer) as proxy, Client(proxy.url) as client:
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


def test_a_lease_ends_by_the_spans_of_its_answer() -> None:
    asked = time.monotonic()
    lease = {"lease": "x", "lease_s": 30.0, "sent_s": 5.0}
    assert 29 < Lease.from_members(lease, asked - 5).left_s <= 30
    # The answer was under way, or unread, for ten seconds.
    assert 19 < Lease.from_members(lease, asked - 15).left_s <= 20
    # It cannot have been sent after it came.
    assert 29 < Lease.from_members(lease, asked).left_s <= 30
    assert Lease.from_members(json.loads('{"lease":"x","lease_s":0,"sent_s":0}'), asked).left_s == 0
