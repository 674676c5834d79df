"""Memory of a Scrapy process while a million requests wait: memory.py SERVER-URL|memory|disk [N].

Requests to 10,000 hosts are enqueued, and the scheduler's process is measured:
with a server (its memory is not counted; see the server's stats), with
Scrapy's queue in memory, and with Scrapy's queue on disk.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import scrapy
from scrapy.core.engine import ExecutionEngine
from scrapy.crawler import Crawler
from scrapy.utils.misc import build_from_crawler, load_object


def resident() -> int:
    """Resident memory of this process in bytes."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) << 10


class Walk(scrapy.Spider):
    """A spider that fetches nothing."""

    name = "walk"


def main() -> None:
    """Enqueue and measure."""
    where, n = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000
    settings: dict[str, Any] = {"TWISTED_REACTOR_ENABLED": True}
    if where == "disk":
        settings["JOBDIR"] = tempfile.mkdtemp()
    elif where != "memory":
        settings |= {"SCHEDULER": "frontier_client.scrapy.Scheduler", "FRONTIER_URL": where}
    crawler = Crawler(Walk, settings, init_reactor=True)
    crawler.spider = spider = Walk()
    crawler._apply_settings()
    crawler.engine = ExecutionEngine(crawler, lambda _: None)
    scheduler = build_from_crawler(load_object(crawler.settings["SCHEDULER"]), crawler)
    if where not in ("memory", "disk"):
        from twisted.internet import reactor

        # Nothing is taken: only what waits is of interest.
        scheduler._limit = 0
        reactor.callFromThread = lambda f, *a: f(*a)
    scheduler.open(spider)
    before, began = resident(), time.monotonic()
    most = 0
    for i in range(n):
        request = scrapy.Request(f"http://host-{i % 10_000}.test/a/path/of/usual/length/{i}.html", meta={"depth": 3})
        scheduler.enqueue_request(request)
        if i % 1000 == 0 and (link := getattr(scheduler, "_link", None)) is not None:
            while link._unsent > 10_000:  # as a crawl's own pace would
                time.sleep(0.001)
        if i % 10_000 == 0:
            most = max(most, resident())
    if (link := getattr(scheduler, "_link", None)) is not None:
        while link._unsent:
            time.sleep(0.01)
    took = time.monotonic() - began
    most = max(most, resident())
    print(f"{where}: {n} requests in {took:.0f} s ({n / took:.0f}/s), {(most - before) >> 20} MiB more than before ({before >> 20} MiB)")
    sys.stdout.flush()
    import os

    os._exit(0)


if __name__ == "__main__":
    main()
