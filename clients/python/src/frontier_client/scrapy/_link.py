"""The threads between Scrapy and the server.

One takes leases, one writes: adds first, then the ends of leases, so that a
request is done on the server only when the links it led to are there. Both ask
again for as long as the server cannot be reached.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from queue import Empty, SimpleQueue
from time import monotonic
from typing import TypeVar

from scrapy import Request

from .._client import Client
from .._errors import Busy, FrontierError, NotLeased, Unavailable
from .._types import Entry, Lease, Leases, Outcome, Verdict

logger = logging.getLogger("frontier_client.scrapy")

_POLL_S = 5.0
_BATCH = 1000
_CLOSE_S = 30.0

T = TypeVar("T")
Ready = tuple[Lease, Request | None]


class Stopped(Exception):
    """The link ends before the server could be reached."""


class Link:
    """What a scheduler has under way at the server.

    The callbacks are called from the link's threads: came(lease, request) for
    each lease, with the request whose contact it is for, if it is no URL's;
    told(what, n) for the statistics; failed(e) when the server refuses to work
    with this client.
    """

    def __init__(
        self,
        client: Client,
        *,
        crawl: str | None,
        limit: int,
        lease_s: float,
        came: Callable[[Ready], None],
        told: Callable[[str, int], None],
        failed: Callable[[FrontierError], None],
    ) -> None:
        self._client = client
        self._crawl = crawl
        self._limit = limit
        self._lease_s = lease_s
        self._came, self._told, self._failed = came, told, failed
        self._changed = threading.Condition()
        self._out: set[str] = set()
        self._unsent = 0
        self._adds = 0
        self._exhausted = False
        self._contacts = 0
        self._stop_at: float | None = None
        self._queue: SimpleQueue[Entry | tuple[str, Outcome] | None] = SimpleQueue()
        self._pool = ThreadPoolExecutor(4, "frontier-contact")
        self._asking = ThreadPoolExecutor(4, "frontier-confirm")
        self._threads = [
            threading.Thread(target=self._guard, args=(f,), name=f"frontier-{n}", daemon=True)
            for n, f in (("take", self._take), ("write", self._write))
        ]

    def start(self) -> None:
        """Begin to take leases."""
        for t in self._threads:
            t.start()

    def add(self, entry: Entry) -> None:
        """Store a request. It does not wait."""
        with self._changed:
            self._unsent += 1
            self._adds += 1
            self._exhausted = False
        self._queue.put(entry)

    def done(self, lease: str, outcome: Outcome) -> None:
        """End a lease after all that was added before is stored. It does not wait."""
        with self._changed:
            self._unsent += 1
            self._out.discard(lease)
            self._changed.notify_all()
        self._queue.put((lease, outcome))

    def contact(self, host: str, request: Request) -> None:
        """Ask for a contact with a host, for a request that cannot be stored."""
        with self._changed:
            self._contacts += 1
        self._pool.submit(self._contact, host, request)

    def confirm(self, lease: str, answer: Callable[[bool], None]) -> None:
        """Ask whether a lease is still out, and extend it."""

        def ask() -> None:
            try:
                self._insist(lambda: self._client.extend(lease, self._lease_s), to_the_end=False)
            except (FrontierError, Stopped):
                answer(False)
            else:
                answer(True)

        self._asking.submit(ask)

    def pending(self) -> bool:
        """Whether anything is left to do, here or on the server."""
        with self._changed:
            return bool(self._unsent or self._contacts or self._out or not self._exhausted)

    def halt(self) -> None:
        """Take no more leases. It waits for the answers under way."""
        with self._changed:
            self._stop_at = monotonic() + _CLOSE_S
            contacts = self._contacts
            self._changed.notify_all()
        if contacts:
            logger.warning("%d requests that could not be stored on the server are lost", contacts)
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._asking.shutdown(wait=True)
        self._threads[0].join()

    def finish(self) -> None:
        """Write what is under way and end. It waits for that."""
        self._queue.put(None)
        self._threads[1].join()
        with self._changed:
            if self._unsent:
                logger.error("the server could not be reached: %d requests and ends are not stored", self._unsent)
        self._client.close()

    def _guard(self, run: Callable[[], None]) -> None:
        try:
            run()
        except Stopped:
            pass
        except FrontierError as e:
            self._failed(e)
        except Exception as e:
            logger.exception("the thread that asks the frontier ends")
            self._failed(FrontierError(str(e)))

    def _insist(self, ask: Callable[[], T], *, to_the_end: bool) -> T:
        """What ask returns, once the server can be reached. After halt it tries for
        _CLOSE_S more if to_the_end."""
        pause, said = 0.1, False
        while True:
            try:
                got = ask()
            except (Unavailable, Busy) as e:
                if not said:
                    logger.warning("the frontier does not answer, trying on: %s", e)
                    said = True
                with self._changed:
                    until = self._stop_at
                    if until is not None and (not to_the_end or monotonic() > until):
                        raise Stopped from e
                    self._changed.wait_for(lambda: self._stop_at is not until, timeout=pause)
                pause = min(2 * pause, 2.0)
            else:
                if said:
                    logger.info("the frontier answers again")
                return got

    def _take(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._stop_at is not None or len(self._out) < self._limit)
                if self._stop_at is not None:
                    return
                n, adds = self._limit - len(self._out), self._adds
            got, over = self._insist(lambda: self._ask(n), to_the_end=False)
            with self._changed:
                self._out.update(le.lease for le in got.leases)
                if over and adds == self._adds and not self._unsent and not self._out:
                    self._exhausted = True
                elif got.leases:
                    self._exhausted = False
            for le in got.leases:
                self._came((le, None))
            if not got.leases:
                self._told("polls", 1)
                with self._changed:
                    if over:  # the answer came at once
                        self._changed.wait_for(lambda: self._stop_at is not None or self._adds != adds, timeout=1)

    def _ask(self, n: int) -> tuple[Leases, bool]:
        """Leases, and whether the crawl is over."""
        crawls = None if self._crawl is None else [self._crawl]
        got = self._client.leases(hosts=n, max=n, crawls=crawls, lease_s=self._lease_s, wait_s=_POLL_S)
        if got.leases or got.next is not None or got.exhausted:
            return got, got.exhausted and not got.leases
        # A server that waits for more does not say that it is exhausted.
        left = self._client.stats() if self._crawl is None else self._client.crawl(self._crawl)
        return got, not any(left.get(k) for k in ("waiting", "scheduled", "leased"))

    def _contact(self, host: str, request: Request) -> None:
        while True:
            with self._changed:
                if self._stop_at is not None:
                    return
            try:
                le = self._insist(
                    lambda: self._client.contact(host, wait_s=_POLL_S, lease_s=self._lease_s), to_the_end=False
                )
            except Stopped:
                return
            except FrontierError as e:
                self._failed(e)
                return
            if le is None:  # the host's turn has not come
                continue
            with self._changed:
                self._out.add(le.lease)
                self._contacts -= 1
            self._came((le, request))
            return

    def _write(self) -> None:
        extend_at = monotonic() + self._lease_s / 3
        last = False
        while not last:
            adds: list[Entry] = []
            ends: list[tuple[str, Outcome]] = []
            try:
                item = self._queue.get(timeout=max(0.0, extend_at - monotonic()))
                while True:
                    if item is None:
                        last = True
                    elif isinstance(item, Entry):
                        adds.append(item)
                    else:
                        ends.append(item)
                    if last or len(adds) >= _BATCH or len(ends) >= _BATCH:
                        break
                    item = self._queue.get_nowait()
            except Empty:
                pass
            if adds:
                self._verdicts(adds, self._insist(lambda: self._client.add(adds), to_the_end=True))
            if ends:
                answers = self._insist(lambda: self._client.done_many(ends), to_the_end=True)
                for a in answers:
                    if a.error:
                        logger.warning("a request's end came too late, it is crawled again: %s", a.error)
                        self._told("late", 1)
                self._told("done", len(answers))
            with self._changed:
                self._unsent -= len(adds) + len(ends)
            if monotonic() >= extend_at:
                self._extend()
                extend_at = monotonic() + self._lease_s / 3

    def _verdicts(self, adds: list[Entry], verdicts: list[Verdict]) -> None:
        counts: dict[str, int] = {}
        for entry, v in zip(adds, verdicts, strict=True):
            counts[v.status] = counts.get(v.status, 0) + 1
            if v.status in ("bad", "refused"):
                logger.error("the frontier refused %s: %s", entry.url, v.error or v.status)
        for status, n in counts.items():
            self._told(f"added/{status}", n)

    def _extend(self) -> None:
        """Keep what is under way for longer than a lease lasts."""
        with self._changed:
            out = list(self._out)
        for lease in out:
            try:
                self._client.extend(lease, self._lease_s)
            except NotLeased:
                pass  # it ended meanwhile: its done says so
            except (Unavailable, Busy):
                return  # in time, perhaps, the next time
