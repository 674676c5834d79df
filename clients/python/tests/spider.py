"""A process of Scrapy: spider.py SERVER-URL SETTINGS-AS-JSON START-URL..."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any

import scrapy
from scrapy.crawler import AsyncCrawlerProcess, CrawlerProcess
from scrapy.http import Response
from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure


def elsewhere(response: Response) -> None:
    """A callback that is no method of the spider: it cannot be stored."""


class Walk(scrapy.Spider):
    name = "walk"
    start: Any

    def parse(self, response: Response) -> Iterator[Any]:
        for href in response.css("a::attr(href)").getall():
            yield response.follow(
                href, self.page, errback=self.trouble, meta={"from": response.url}, cb_kwargs={"path": [1, ("a", b"b")]}
            )

    def page(self, response: Response, path: list[Any]) -> Iterator[Any]:
        assert path == [1, ("a", b"b")], path
        assert response.meta["from"]
        yield {"url": response.url, "status": response.status}
        yield from self.parse(response)

    def trouble(self, failure: Failure) -> None:
        print("errback", failure.value, file=sys.stderr)


class Odd(Walk):
    """Requests that are no plain GETs."""

    name = "odd"

    async def start(self) -> AsyncIterator[Any]:
        (url,) = self.urls  # type: ignore[attr-defined]
        yield scrapy.Request(url + "/3", self.page, method="POST", body=b"\xff\x00", cb_kwargs={"path": [1, ("a", b"b")]}, meta={"from": "x"})
        yield scrapy.Request(url + "/3", self.page, method="POST", body=b"\xff\x00", cb_kwargs={"path": [1, ("a", b"b")]}, meta={"from": "x"})
        yield scrapy.Request(url + "/3", self.page, method="POST", body=b"other", cb_kwargs={"path": [1, ("a", b"b")]}, meta={"from": "x"})
        for _ in range(2):
            yield scrapy.Request(url + "/4", elsewhere)

    def parse(self, response: Response) -> Iterator[Any]:
        yield from ()


class Again(scrapy.Spider):
    """Requests that are to be sent again, and others that are not."""

    name = "again"
    start: Any

    def parse(self, response: Response) -> Iterator[Any]:
        url = response.url.removesuffix("/0")
        for i in range(3):
            yield response.follow("/0", self.note, dont_filter=True, cb_kwargs={"what": f"own{i}"})
            yield response.follow("/1", self.note, dont_filter=True, cb_kwargs={"what": f"other{i}"})
            yield response.follow("/2", self.note, dont_filter=True, cb_kwargs={"what": "equal"})
        yield response.follow("/3", self.inherit, meta=response.meta)
        yield response.follow(url + "/busy", self.own)

    def note(self, response: Response, what: str) -> None:
        self.crawler.stats.inc_value(f"noted/{what}")

    def inherit(self, response: Response) -> Iterator[Any]:
        yield response.follow("/3", self.note, meta=response.meta, dont_filter=True, cb_kwargs={"what": "inherited"})

    def own(self, response: Response) -> Iterator[Any]:
        """A page that was retried, and links to itself."""
        self.crawler.stats.inc_value("noted/own")
        yield response.follow(response.url, self.own, meta=response.meta)


class Slow:
    """A pipeline that opens after a second."""

    async def open_spider(self) -> None:
        d: Deferred[None] = Deferred()
        call_later(1, d.callback, None)
        await maybe_deferred_to_future(d)


def main() -> None:
    server, settings, *urls = sys.argv[1:]
    wanted = json.loads(settings)
    spider = {"walk": Walk, "odd": Odd, "again": Again}[wanted.pop("spider", "walk")]
    if wanted.pop("slow", False):
        wanted["ITEM_PIPELINES"] = {Slow: 1}
    kind = CrawlerProcess if wanted.get("TWISTED_REACTOR_ENABLED", True) else AsyncCrawlerProcess
    process = kind(
        {
            "SCHEDULER": "frontier_client.scrapy.Scheduler",
            "DOWNLOADER_MIDDLEWARES": {"frontier_client.scrapy.RobotsGap": 950},
            "FRONTIER_URL": server,
            "DOWNLOAD_DELAY": 0,
            "ROBOTSTXT_OBEY": True,
            "TELNETCONSOLE_ENABLED": False,
            "LOG_LEVEL": "INFO",
            **wanted,
        }
    )
    crawler = process.create_crawler(spider)
    process.crawl(crawler, start_urls=urls, urls=urls)
    process.start()
    assert crawler.stats is not None
    print(json.dumps(crawler.stats.get_stats(), default=str))
    sys.exit(process.bootstrap_failed)  # as the command scrapy does


if __name__ == "__main__":
    main()
