"""The scheduler."""

from __future__ import annotations

import asyncio
import logging
import ssl
import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from time import monotonic
from typing import Any

from scrapy import Request, Spider, signals
from scrapy.core.scheduler import BaseScheduler
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.utils.asyncio import call_later, is_asyncio_available
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from scrapy.utils.httpobj import urlparse_cached
from scrapy.utils.reactor import is_reactor_installed
from twisted.internet.defer import Deferred

from .._client import Client
from .._errors import FrontierError
from .._types import Entry, Failure, Lease, Outcome
from . import _codec
from ._link import Link, Ready, in_an_hour
from ._robots import held

logger = logging.getLogger("frontier_client.scrapy")

_MEMBER = "scrapy"
_PRIORITIES = 16
_REMEMBERED = 10_000
_FAILURES: dict[int, Failure] = {429: "too_many_requests", 503: "unavailable"}


@dataclass(slots=True, eq=False)
class _Contact:
    """A lease whose request the engine has."""

    lease: Lease
    since: float
    retries: int = 0
    local: bool = False
    began: float = 0.0
    ended: float = 0.0
    status: int = 0
    received: bool = False
    over: bool = False  # the lease ended before the answer came
    retry_after_s: float | None = None
    again: Request | None = None
    key: str = ""


class Scheduler(BaseScheduler):
    """Scrapy's scheduler, with a frontier server as its queue.

    Requests are stored on the server and taken from it as leases. A lease ends
    when Scrapy has dealt with its request, callbacks and pipelines included, and
    what they yielded is stored. So a request that is under way when Scrapy is
    killed comes again when its lease has ended, and no link is lost.

    The server drops what it knows, instead of Scrapy's dupefilter. A retry
    replaces its request, and comes again when the host may be asked. Any other
    request with dont_filter is added under a key of its own.
    """

    def __init__(self, crawler: Crawler) -> None:
        s = crawler.settings
        if not s.get("FRONTIER_URL"):
            raise ValueError("the setting FRONTIER_URL is missing, such as http://127.0.0.1:8348")
        self._crawler = crawler
        context = ssl.create_default_context(cafile=s["FRONTIER_CA"]) if s.get("FRONTIER_CA") else None
        self._client = Client(s["FRONTIER_URL"], token=s.get("FRONTIER_TOKEN"), context=context)
        self._crawl: str | None = s.get("FRONTIER_CRAWL")
        self._limit = s.getint("CONCURRENT_REQUESTS") or 100
        self._lease_s = s.getfloat("FRONTIER_LEASE_S", 60)
        self._keep_open = s.getbool("FRONTIER_KEEP_OPEN")
        self._start_again = s.getbool("FRONTIER_START_AGAIN")
        self._plain = s["REQUEST_FINGERPRINTER_CLASS"] == "scrapy.utils.request.RequestFingerprinter"
        self._ready: deque[Ready] = deque()
        self._contacts: dict[Request, _Contact] = {}
        self._by_key: dict[str, _Contact] = {}
        self._forced: OrderedDict[str, None] = OrderedDict()  # keys that wait, of requests with dont_filter
        self._local_seen: set[str] = set()
        self._past: dict[str, float] = {}

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Scheduler:
        """Called by Scrapy."""
        return cls(crawler)

    def open(self, spider: Spider) -> Deferred[None] | None:
        """Begin to take leases."""
        self._spider = spider
        if is_reactor_installed() or not is_asyncio_available():
            from twisted.internet import reactor

            self._call: Callable[..., Any] = reactor.callFromThread
        else:
            self._call = asyncio.get_running_loop().call_soon_threadsafe
        connect = self._crawler.signals.connect
        connect(self._reached, signals.request_reached_downloader)
        connect(self._downloaded, signals.response_downloaded)
        connect(self._left, signals.request_left_downloader)
        connect(self._received, signals.response_received)
        if (engine := self._crawler.engine) is not None:
            self._send = engine.downloader.handlers.download_request_async
            engine.downloader.handlers.download_request_async = self._download  # type: ignore[method-assign]
        self._link = Link(
            self._client,
            crawl=self._crawl,
            limit=self._limit,
            lease_s=self._lease_s,
            came=lambda r: self._call(self._came, r),
            told=lambda what, n: self._call(self._count, what, n),
            failed=lambda e: self._call(self._fail, e),
        )
        self._link.start()
        return None

    def close(self, reason: str) -> Deferred[None] | None:
        """Store what is under way, and give back what was not begun."""
        self._settle()
        self._closing = True
        lost = sum(request is not None for _, request in self._ready)
        while self._ready:
            self._give_back(self._ready.popleft()[0])
        closed: Deferred[None] = Deferred()

        def stop() -> None:
            self._link.halt(lost)
            came = threading.Event()
            self._call(came.set)  # behind the last _came
            came.wait()
            self._link.finish()
            self._call(closed.callback, None)

        threading.Thread(target=stop, name="frontier-close", daemon=True).start()
        return closed

    _closing = False
    _failing = False

    # The engine's calls.

    def has_pending_requests(self) -> bool:
        """Whether the crawl goes on: here, or at another process on the server."""
        self._settle()
        return bool(self._keep_open or self._ready or self._contacts or self._link.pending())

    def enqueue_request(self, request: Request) -> bool:
        """Store a request. The server drops it if it knows it and it may be filtered."""
        url, depth = self._key(request), max(0, int(request.meta.get("depth", 0)))
        host = urlparse_cached(request).hostname
        try:
            if host is None:
                raise _codec.Unstorable("its URL has no host")
            text = _codec.dump(request, self._spider)
        except _codec.Unstorable as e:
            return self._keep_here(request, host, url, e)
        under_way = self._by_key.get(url)
        if request.dont_filter and under_way is not None and under_way.again is None and _retries(request) > under_way.retries:
            under_way.again = request
            return True
        # meta is inherited, by redirects and by the requests of callbacks
        start = request.meta.get("is_start_request") and not request.meta.get("redirect_times") and not depth
        if request.dont_filter and not (start and _codec.bare(text)):
            url = f"{url}#{_codec.digest(text)}"
            if not start:
                url = self._unlike(url)
        self._count("enqueued", 1)
        self._link.add(
            Entry(
                url,
                crawl=self._crawl,
                depth=depth,
                priority=min(_PRIORITIES, max(1, _PRIORITIES // 2 + request.priority)),
                meta={_MEMBER: [text]},
                force=request.dont_filter and (self._start_again or not start),
            )
        )
        return True

    def _key(self, request: Request) -> str:
        fingerprinter = self._crawler.request_fingerprinter
        assert fingerprinter is not None
        return _codec.key(request, fingerprinter, self._plain)

    def _unlike(self, url: str) -> str:
        """The key, made unlike those of equal requests that wait."""
        key, n = url, 1
        while key in self._forced:
            n += 1
            key = f"{url}-{n}"
        self._forced[key] = None
        if len(self._forced) > _REMEMBERED:
            self._forced.popitem(last=False)
        return key

    def next_request(self) -> Request | None:
        """A request whose host may be contacted now. It does not wait."""
        self._settle()
        while self._ready:
            lease, request = self._ready.popleft()
            local = request is not None
            if request is None and (request := self._load(lease)) is None:
                continue
            contact = _Contact(lease, monotonic(), _retries(request), local)
            self._contacts[request] = contact
            if not local:
                self._forced.pop(lease.url, None)
                contact.key = self._key(request)
                self._by_key[contact.key] = contact
            if lease.lease:
                held[request] = lambda: self._confirm(contact)
            self._count("dequeued", 1)
            return request
        return None

    def _load(self, lease: Lease) -> Request | None:
        text = lease.meta.get(_MEMBER)
        if not text:  # another program added it
            return Request(lease.url, meta={"depth": lease.depth})
        try:
            return _codec.load(text[0], self._spider)
        except Exception:
            logger.exception("%s cannot be made a request again; it is put off for an hour", lease.url)
            self._count("unreadable", 1)
            self._link.done(lease.lease, in_an_hour())
            return None

    def _keep_here(self, request: Request, host: str | None, url: str, why: Exception) -> bool:
        """The request waits in memory for its host's turn."""
        if not request.dont_filter:
            if url in self._local_seen:
                return False
            self._local_seen.add(url)
        if not self._count("unserializable", 1):
            logger.warning(
                "%s is kept in memory, not on the server: %s - no more such requests will be logged", request, why
            )
        if host is None:
            self._ready.append((Lease(""), request))
        else:
            self._link.contact(host, request)
        return True

    # The ends.

    def _settle(self) -> None:
        """End the leases of the requests that the engine has dealt with."""
        engine = self._crawler.engine
        if engine is None or not self._contacts:
            return
        scraping = engine.scraper.slot
        for request, contact in list(self._contacts.items()):
            if request in engine.downloader.active:
                continue
            if scraping is not None and (
                request in scraping.active or any(request is waiting for _, waiting, _ in scraping.queue)
            ):
                continue
            del self._contacts[request]
            held.pop(request, None)
            if self._by_key.get(contact.key) is contact:
                del self._by_key[contact.key]
            if contact.lease.lease:
                self._link.done(contact.lease.lease, self._outcome(request, contact))

    def _outcome(self, request: Request, c: _Contact) -> Outcome:
        out = Outcome("visited")
        host = urlparse_cached(request).hostname or ""
        if c.over:
            out.result = "requeue"
            out.uncontacted = not c.began and self._past.get(host, 0.0) < c.since
        elif not c.began and not c.received:  # a middleware ignored it: robots.txt, offsite
            out.result = "denied"
            out.uncontacted = self._past.get(host, 0.0) < c.since
        elif c.status == 304:
            out.result = "unchanged"
        elif c.status in (404, 410):
            out.result = "gone"
        if c.began:
            out.duration_s = round(max(c.ended - c.began, 0.001), 6)
            out.retry_after_s = c.retry_after_s
        if c.again is not None:
            out.meta = {_MEMBER: [_codec.dump(c.again, self._spider)]}
            if c.began and (c.status == 0 or c.status == 429 or c.status >= 500):
                out.result = "failed"
                out.failure = _FAILURES.get(c.status, "server" if c.status else "connect")
                if not c.status and c.ended - c.began >= request.meta.get("download_timeout", 180):
                    out.failure = "timeout"
            else:
                out.result, out.uncontacted = "visited", False
                out.next_s = 0
        return out

    def _give_back(self, lease: Lease) -> None:
        if lease.lease:
            self._link.done(lease.lease, Outcome("requeue", uncontacted=True))

    def _confirm(self, contact: _Contact) -> Deferred[float | None]:
        answer: Deferred[float | None] = Deferred()

        def told(gap_s: float | None) -> None:
            contact.over = gap_s is None
            answer.callback(gap_s)

        self._link.confirm(contact.lease.lease, lambda gap_s: self._call(told, gap_s))
        return answer

    async def _download(self, request: Request) -> Response:
        """Send a request, and cut the connection when its lease ends: another process has the host then.

        A robots.txt, which comes past the scheduler, goes by the leases of its host's pages.
        """
        contact = self._contacts.get(request)
        host = urlparse_cached(request).hostname
        contacts = [contact] if contact else [c for r, c in self._contacts.items() if urlparse_cached(r).hostname == host]
        leases = [c for c in contacts if c.lease.lease]
        if not leases:
            return await self._send(request)
        sent: Deferred[Response] | None = None
        timer: Any = None
        over = False

        def watch() -> None:
            nonlocal timer, over
            if (left_s := max(self._link.left_s(c.lease.lease) for c in leases)) > 0:
                timer = call_later(min(left_s, 1), watch)
                return
            over = True
            for c in leases:
                c.over = True
            if sent is not None:
                sent.cancel()

        try:
            watch()
            if not over:
                sent = deferred_from_coro(self._send(request))
                return await maybe_deferred_to_future(sent)
        except BaseException:  # canceled, whatever a handler makes of that
            if not over:
                raise
        finally:
            if timer is not None:
                timer.cancel()
        # What is in memory only comes again by Scrapy's retries.
        raise (TimeoutError if contact and contact.local else IgnoreRequest)("the lease ended before the answer came")

    # The downloader's signals.

    def _reached(self, request: Request) -> None:
        contact = self._contacts.get(request)
        if contact is None:
            self._past[urlparse_cached(request).hostname or ""] = monotonic()
        elif not contact.began:
            contact.began = monotonic()

    def _downloaded(self, request: Request, response: Response) -> None:
        if contact := self._contacts.get(request):
            contact.status = response.status
            contact.retry_after_s = retry_after(response.headers.get("Retry-After"), response.headers.get("Date"))

    def _left(self, request: Request) -> None:
        if contact := self._contacts.get(request):
            contact.ended = monotonic()

    def _received(self, response: Response, request: Request) -> None:
        if contact := self._contacts.get(request):
            contact.received = True

    # Called by the link's threads, in the thread of the engine.

    def _came(self, ready: Ready) -> None:
        if self._closing:
            self._give_back(ready[0])
            if ready[1] is not None:
                logger.warning("%s could not be stored on the server, and is lost", ready[1])
            return
        self._ready.append(ready)
        self._wake()

    def _wake(self) -> None:
        slot = getattr(self._crawler.engine, "_slot", None)
        if slot is not None:
            slot.nextcall.schedule()

    def _count(self, what: str, n: int) -> int:
        """Count, and return what was counted before."""
        stats, name = self._crawler.stats, f"scheduler/frontier/{what}"
        assert stats is not None
        before: int = stats.get_value(name, 0)
        stats.set_value(name, before + n)
        if what in ("polls", "done"):
            self._wake()  # the crawl may be over
        return before

    def _fail(self, e: FrontierError) -> None:
        if self._failing:
            return
        self._failing = True
        logger.error("the frontier cannot be used: %s", e)
        self._crawler.signals.connect(self._ended_in_failure, signals.engine_stopped)
        self._stop()

    def _stop(self) -> None:
        engine = self._crawler.engine
        if self._closing or not self._crawler.crawling:
            return
        if engine is None or not engine.running:  # what it has begun to open must be closed
            call_later(0.1, self._stop)
            return
        deferred_from_coro(engine.close_spider_async(reason="frontier_error"))

    def _ended_in_failure(self) -> None:
        self._crawler.spider = None  # the command scrapy then exits with status 1


def _retries(request: Request) -> int:
    return int(request.meta.get("retry_times") or 0)


def retry_after(value: bytes | None, date: bytes | None = None) -> float | None:
    """Seconds of a Retry-After header, which has seconds or a date. A date is of the
    site's clock, and so is the header Date of the same answer."""
    if not value:
        return None
    text = value.decode("latin-1").strip()
    if text.isdigit():
        return float(text) or None
    try:
        until = parsedate_to_datetime(text)
        try:
            now = parsedate_to_datetime((date or b"").decode("latin-1"))
        except (ValueError, TypeError):
            now = datetime.now(timezone.utc)
        s = (until - now).total_seconds()
    except (ValueError, TypeError):
        return None
    return s if s > 0 else None
