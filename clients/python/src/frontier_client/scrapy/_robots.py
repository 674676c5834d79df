"""Politeness between robots.txt and the page it was fetched for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from weakref import WeakKeyDictionary

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import maybe_deferred_to_future
from scrapy.utils.httpobj import urlparse_cached
from twisted.internet.defer import Deferred


@dataclass(slots=True)
class Held:
    """The lease of a request."""

    gap_s: float
    """What must lie between two contacts with its host."""
    confirm: Callable[[], Deferred[bool]]
    """Asks the server whether the lease is still out."""


held: WeakKeyDictionary[Request, Held] = WeakKeyDictionary()
"""The requests that are leased."""


class RobotsGap:
    """A downloader middleware, for ``ROBOTSTXT_OBEY``.

    Scrapy fetches a host's robots.txt past the scheduler, while the page that
    needs it waits, so both belong to one lease. This middleware lets the page
    wait for the host's delay after it, and asks whether the lease is still out:
    a server that was restarted gives the host to another process. It must stand behind RobotsTxtMiddleware:
    950 is a good place.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._ended: dict[str, float] = {}
        crawler.signals.connect(self._left, signals.request_left_downloader)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> RobotsGap:
        """Called by Scrapy."""
        return cls(crawler)

    def _left(self, request: Request) -> None:
        if request not in held:  # it came past the scheduler
            self._ended[urlparse_cached(request).hostname or ""] = monotonic()

    async def process_request(self, request: Request) -> None:
        """Wait, if the host was contacted past the scheduler just now."""
        lease = held.get(request)
        ended = self._ended.get(urlparse_cached(request).hostname or "")
        if lease is None or ended is None:
            return
        if (wait := ended + lease.gap_s - monotonic()) <= 0:
            return
        d: Deferred[None] = Deferred()
        call_later(wait, d.callback, None)
        await maybe_deferred_to_future(d)
        if not await maybe_deferred_to_future(lease.confirm()):
            raise IgnoreRequest("the lease ended before the request was sent; it comes again")
