"""The threads between Scrapy and the server.

One takes leases, one writes: adds first, then the ends of leases, so that a
request is done on the server only when the links it led to are there. Both ask
again for as long as the server cannot be reached.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
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
_THREADS = 4
_BUSY = ("busy", "full", "no-space")

T = TypeVar("T")
Ready = tuple[Lease, Request | None]


class Stopped(Exception):
    """The link ends before the server could be reached."""


class _Pool:
    """Threads that Python does not wait for at its end, as it does for an executor's."""

    def __init__(self, name: str) -> None:
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._threads = [
            threading.Thread(target=self._run, name=f"{name}-{i}", daemon=True) for i in range(_THREADS)
        ]

    def start(self) -> None:
        for t in self._threads:
            t.start()

    def submit(self, work: Callable[[], None]) -> None:
        self._work.put(work)

    def shutdown(self) -> None:
        """Wait for all that was submitted."""
        for _ in self._threads:
            self._work.put(None)
        for t in self._threads:
            t.join()

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            try:
                work()
            except Exception:
                logger.exception("a thread that asks the frontier goes on")


def in_an_hour() -> Outcome:
    """The end of what this process cannot deal with."""
    return Outcome("put_off", next_s=3600)


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
        self._ending: set[str] = set()  # their ends are not sent yet
        self._ends: dict[str, float] = {}  # when those end that are out, by time.monotonic()
        self._extend_at = monotonic() + lease_s / 3
        self._stuck = False
        self._unsent = 0
        self._adds = 0
        self._exhausted = False
        self._contacts = 0
        self._stop_at: float | None = None
        self._queue: SimpleQueue[Entry | tuple[str, Outcome] | None] = SimpleQueue()
        self._pool = _Pool("frontier-contact")
        self._asking = _Pool("frontier-confirm")
        self._threads = [
            threading.Thread(target=self._guard, args=(f,), name=f"frontier-{n}", daemon=True)
            for n, f in (("take", self._take), ("write", self._write))
        ]

    def start(self) -> None:
        """Begin to take leases."""
        self._pool.start()
        self._asking.start()
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
            self._ends.pop(lease, None)
            self._ending.add(lease)
            self._changed.notify_all()
        self._queue.put((lease, outcome))

    def contact(self, host: str, request: Request) -> None:
        """Ask for a contact with a host, for a request that cannot be stored."""
        with self._changed:
            self._contacts += 1
        self._pool.submit(lambda: self._contact(host, request))

    def confirm(self, lease: str, answer: Callable[[float | None], None]) -> None:
        """Extend a lease. The answer is what must lie between two contacts with
        its host, in seconds; None: it has ended."""

        def ask() -> None:
            gap_s = None
            try:
                gap_s = self._insist(lambda: self._keep(lease), to_the_end=False).gap_s
            except (FrontierError, Stopped):
                pass
            finally:
                answer(gap_s)

        self._asking.submit(ask)

    def left_s(self, lease: str) -> float:
        """For how long a host may be contacted under a lease; nothing once it has ended."""
        with self._changed:
            return self._ends.get(lease, 0.0) - min(1.0, self._lease_s / 10) - monotonic()

    def _keep(self, lease: str) -> Lease:
        try:
            got = self._client.extend(lease, self._lease_s)
        except NotLeased:
            with self._changed:
                self._ends.pop(lease, None)
            raise
        with self._changed:
            if lease in self._ends:
                self._ends[lease] = got.ends
        return got

    def pending(self) -> bool:
        """Whether anything is left to do, here or on the server."""
        with self._changed:
            return bool(self._unsent or self._contacts or self._out or not self._exhausted)

    def halt(self, lost: int) -> None:
        """Take no more leases. It waits for the answers under way. lost requests
        were in memory only, and had their host's turn."""
        with self._changed:
            self._stop_at = monotonic() + _CLOSE_S
            lost += self._contacts
            self._changed.notify_all()
        if lost:
            logger.warning("%d requests that could not be stored on the server are lost", lost)
        self._pool.shutdown()
        self._asking.shutdown()
        self._threads[0].join()

    def finish(self) -> None:
        """Write what is under way and end. It waits for that."""
        self._queue.put(None)
        self._threads[1].join()
        with self._changed:
            if self._unsent:
                logger.error("%d requests and ends are not stored on the server", self._unsent)
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
        _CLOSE_S more if to_the_end, which is for the thread that writes: meanwhile
        it keeps the leases, and no more are taken."""
        pause, said = 0.1, False
        while True:
            try:
                got = ask()
            except (Unavailable, Busy) as e:
                if not said:
                    logger.warning("the frontier does not answer, trying on: %s", e)
                    said = True
                if to_the_end:
                    self._extend()
                with self._changed:
                    self._stuck |= to_the_end
                    until = self._stop_at
                    if until is not None and (not to_the_end or monotonic() > until):
                        raise Stopped from e
                    self._changed.wait_for(lambda: self._stop_at is not until, timeout=pause)
                pause = min(2 * pause, 2.0, self._lease_s / 6)
            else:
                if to_the_end and self._stuck:
                    with self._changed:
                        self._stuck = False
                        self._changed.notify_all()
                if said:
                    logger.info("the frontier answers again")
                return got

    def _take(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(
                    lambda: self._stop_at is not None or (len(self._out) < self._limit and not self._stuck)
                )
                if self._stop_at is not None:
                    return
                n, adds = self._limit - len(self._out), self._adds
            got, over = self._insist(lambda: self._ask(n), to_the_end=False)
            with self._changed:
                self._out.update(le.lease for le in got.leases)
                self._ends.update((le.lease, le.ends) for le in got.leases)
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
        return got, got.exhausted and not got.leases

    def _contact(self, host: str, request: Request) -> None:
        with self._changed:
            if self._stop_at is not None:
                return
            wait_s = _POLL_S if self._contacts <= _THREADS else _POLL_S / 5
        try:
            le = self._insist(
                lambda: self._client.contact(host, wait_s=wait_s, lease_s=self._lease_s), to_the_end=False
            )
        except Stopped:
            return
        except FrontierError as e:
            self._failed(e)
            return
        if le is None:  # the host's turn has not come; another's may have
            self._pool.submit(lambda: self._contact(host, request))
            return
        with self._changed:
            self._contacts -= 1
            if not (stopped := self._stop_at is not None):
                self._out.add(le.lease)
                self._ends[le.lease] = le.ends
        if stopped:
            self.done(le.lease, Outcome("requeue", uncontacted=True))
        else:
            self._came((le, request))

    def _write(self) -> None:
        last = False
        while not last:
            adds: list[Entry] = []
            ends: list[tuple[str, Outcome]] = []
            try:
                item = self._queue.get(timeout=max(0.0, self._extend_at - monotonic()))
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
                self._end(dict(ends))
                self._told("done", len(ends))
            with self._changed:
                self._unsent -= len(adds) + len(ends)
                self._ending.difference_update(lease for lease, _ in ends)
            self._extend()

    def _end(self, left: dict[str, Outcome]) -> None:
        """End leases. What the server has no room for is sent again."""
        put_off = set()

        def ask() -> None:
            busy = None
            for a in self._client.done_many(left.items()):
                if a.type in _BUSY:
                    busy = a.error
                    continue
                del left[a.lease]
                if a.type == "not-leased":
                    logger.warning("a request's end came too late, it is crawled again: %s", a.error)
                    self._told("late", 1)
                elif a.error:
                    logger.error("the frontier refused a request's end, it is put off for an hour: %s", a.error)
                    self._told("refused", 1)
                    if a.lease not in put_off:  # else the lease runs out
                        put_off.add(a.lease)
                        left[a.lease] = in_an_hour()
            if busy:
                raise Busy(busy)

        while left:
            self._insist(ask, to_the_end=True)

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
        if monotonic() < self._extend_at:
            return
        with self._changed:
            out = [*self._out, *self._ending]
        self._extend_at = monotonic() + min(1.0, self._lease_s / 6)
        for lease in out:
            try:
                self._keep(lease)
            except NotLeased:
                pass  # it ended meanwhile: its done says so
            except (Unavailable, Busy):
                return  # in time, perhaps, the next time
        self._extend_at = monotonic() + self._lease_s / 3
