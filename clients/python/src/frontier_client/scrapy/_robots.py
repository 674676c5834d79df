"""Politeness between robots.txt and the page it was fetched for."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from weakref import WeakKeyDictionary

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.exceptions import IgnoreRequest
from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import maybe_deferred_to_future
from scrapy.utils.httpobj import urlparse_cached
from twisted.internet.defer import Deferred


held: WeakKeyDictionary[Request, Callable[[], Deferred[float | None]]] = WeakKeyDictionary()
"""The requests that are leased. A call extends the lease; its answer is what must
lie between two contacts with the host, in seconds; None: the lease has ended."""


class RobotsGap:
    """A downloader middleware, for ``ROBOTSTXT_OBEY``.

    Scrapy fetches a host's robots.txt past the scheduler, while the page that
    needs it waits, so both belong to one lease. This middleware lets the page
    wait for the host's delay after it, and asks whether the lease is still out:
    a server that was restarted gives the host to another process. It must stand behind RobotsTxtMiddleware:
    950 is a good place.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._ended: dict[str, tuple[float, float | None]] = {}  # when, and the host's gap if it was asked for
        crawler.signals.connect(self._left, signals.request_left_downloader)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> RobotsGap:
        """Called by Scrapy."""
        return cls(crawler)

    def _left(self, request: Request) -> None:
        if request not in held:  # it came past the scheduler
            self._ended[urlparse_cached(request).hostname or ""] = monotonic(), None

    async def process_request(self, request: Request) -> None:
        """Wait, if the host was contacted past the scheduler just now."""
        host = urlparse_cached(request).hostname or ""
        if request not in held or host not in self._ended:
            return
        ended, gap_s = self._ended[host]
        if gap_s is None:
            gap_s = await self._ask(request)
            if self._ended[host][0] == ended:
                self._ended[host] = ended, gap_s
        if (wait := ended + gap_s - monotonic()) <= 0:
            return
        d: Deferred[None] = Deferred()
        call_later(wait, d.callback, None)
        await maybe_deferred_to_future(d)
        await self._ask(request)

    async def _ask(self, request: Request) -> float:
        gap_s = await maybe_deferred_to_future(held[request]())
        if gap_s is None:
            self._fetch_robots_again(urlparse_cached(request).netloc)
            raise IgnoreRequest("the lease ended before the request was sent; it comes again")
        return gap_s

    def _fetch_robots_again(self, netloc: str) -> None:
        """If the fetch was cut with the lease: Scrapy would take it for a host without rules, for good."""
        rules = self._crawler.get_downloader_middleware(RobotsTxtMiddleware)
        parsers = getattr(rules, "_parsers", {})
        if parsers.get(netloc, rules) is None:
            del parsers[netloc]
