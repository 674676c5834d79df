"""A process of Scrapy: spider.py SERVER-URL SETTINGS-AS-JSON START-URL..."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any

import scrapy
from scrapy.crawler import AsyncCrawlerProcess, CrawlerProcess
from scrapy.http import Response
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


def main() -> None:
    server, settings, *urls = sys.argv[1:]
    wanted = json.loads(settings)
    spider = {"walk": Walk, "odd": Odd}[wanted.pop("spider", "walk")]
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


if __name__ == "__main__":
    main()
