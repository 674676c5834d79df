"""A process of Scrapy that crawls real sites as wget -r does: walk.py SERVER-URL HOST,HOST... START-URL...

crawler/realweb/run starts several, and kills them. The sites are behind the proxy
in http_proxy.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from urllib.parse import urljoin, urldefrag

import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.http import HtmlResponse, Response
from scrapy.link import Link
from scrapy.linkextractors import LinkExtractor
from scrapy.utils.response import get_base_url, get_meta_refresh

AGENT = "realweb-test/1.0 (+http://contact.example/)"


class Walk(scrapy.Spider):
    name = "walk"
    custom_settings = {"HTTPERROR_ALLOW_ALL": True, "METAREFRESH_ENABLED": False, "RETRY_TIMES": 2}

    def __init__(self, hosts: list[str], start_urls: list[str]) -> None:
        super().__init__(start_urls=start_urls)
        self.allowed_domains = hosts
        self.hosts = set(hosts)
        self.links = LinkExtractor(
            tags=("a", "area", "frame", "iframe"), attrs=("href", "src"), deny_extensions=(), allow_domains=hosts, unique=True
        )

    def parse(self, response: Response) -> Iterator[scrapy.Request]:
        if not isinstance(response, HtmlResponse):
            return
        urls = [x.url for x in self.extracted(response)]
        _, refresh = get_meta_refresh(response, ignore_tags=())
        if refresh:
            urls.append(urljoin(get_base_url(response), refresh))
        for url in urls:
            yield response.follow(urldefrag(url).url, self.parse)

    def extracted(self, response: HtmlResponse) -> list[Link]:
        try:
            return self.links.extract_links(response)
        except ValueError as e:
            self.logger.warning("links of %s: %s", response.url, e)
            return []


def main() -> None:
    server, hosts, *urls = sys.argv[1:]
    process = CrawlerProcess(
        {
            "SCHEDULER": "frontier_client.scrapy.Scheduler",
            "DOWNLOADER_MIDDLEWARES": {"frontier_client.scrapy.RobotsGap": 950},
            "FRONTIER_URL": server,
            "FRONTIER_LEASE_S": 10,
            "DOWNLOAD_DELAY": 0,
            "ROBOTSTXT_OBEY": True,
            "TELNETCONSOLE_ENABLED": False,
            "USER_AGENT": AGENT,
            "LOG_LEVEL": "WARNING",
        }
    )
    logging.getLogger("py.warnings").setLevel(logging.ERROR)
    crawler = process.create_crawler(Walk)
    process.crawl(crawler, hosts=hosts.split(","), start_urls=urls)
    process.start()
    assert crawler.stats is not None
    stats = crawler.stats.get_stats()
    kept = ("finish_reason", "response_received_count", "scheduler/frontier/done", "scheduler/frontier/added/new", "scheduler/frontier/late")
    print(json.dumps({k.removeprefix("scheduler/frontier/"): stats.get(k, 0) for k in kept}))
    if stats.get("finish_reason") != "finished":
        sys.exit(1)


if __name__ == "__main__":
    main()
