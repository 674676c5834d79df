"""A scheduler for Scrapy whose queue is a frontier server::

    SCHEDULER = "frontier_client.scrapy.Scheduler"
    DOWNLOADER_MIDDLEWARES = {"frontier_client.scrapy.RobotsGap": 950}
    DOWNLOAD_DELAY = 0
    FRONTIER_URL = "http://127.0.0.1:8348"

The requests are durable and shared: processes with the same spider and the same
``FRONTIER_CRAWL`` crawl together, and the server holds each host's delay for all
of them. See the README for the settings.
"""

from ._robots import RobotsGap
from ._scheduler import Scheduler

__all__ = ["RobotsGap", "Scheduler"]
