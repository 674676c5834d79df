"""Client of a frontier server (``frontier serve``), over HTTP and JSON.

The server keeps the URLs of a crawl, decides which comes next, and holds the
delay of each host for all crawlers that share it::

    from frontier_client import Client, Outcome

    with Client("http://127.0.0.1:8348") as frontier:
        bad = [v for v in frontier.add(["https://a.example/"]) if v.error]
        for lease in frontier.leases(max=10, wait_s=20).leases:
            ...  # fetch lease.url
            frontier.done(lease, Outcome("visited", duration_s=0.2, add=["https://a.example/b"]))

Only the standard library is imported. ``frontier_client.scrapy`` has a
scheduler for Scrapy.
"""

from ._client import Client
from ._errors import (
    BadRequest,
    Busy,
    Conflict,
    Forbidden,
    FrontierError,
    NotFound,
    NotLeased,
    Unauthorized,
    Unavailable,
)
from ._types import Ended, Entry, Lease, Leases, Outcome, Verdict

__all__ = [
    "BadRequest",
    "Busy",
    "Client",
    "Conflict",
    "Ended",
    "Entry",
    "Forbidden",
    "FrontierError",
    "Lease",
    "Leases",
    "NotFound",
    "NotLeased",
    "Outcome",
    "Unauthorized",
    "Unavailable",
    "Verdict",
]
