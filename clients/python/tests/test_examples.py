"""The examples in examples/serve, run by two processes each."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import REPOSITORY, Server
from site_of_tests import Site

EXAMPLES = REPOSITORY / "examples" / "serve"
CRAWLEE = Path(os.environ.get("CRAWLEE", EXAMPLES / "crawlee"))  # a copy, where npm install ran


@pytest.fixture
def site() -> Iterator[Site]:
    s = Site(hosts=3, pages=8)
    yield s
    s.close()


def crawl(server: Server, site: Site, *command: str) -> None:
    server.delay(0.1)
    seeds = [h + "/0" for h in site.hosts]
    processes = [subprocess.Popen([*command, server.url, *seeds], stdout=subprocess.DEVNULL) for _ in range(2)]
    assert [p.wait(120) for p in processes] == [0, 0]
    assert [paths for paths in site.asked().values()] == [site.wanted() | {"/private"}] * 3
    assert site.early(0.1) == []


def test_the_client_of_the_standard_library(server: Server, site: Site) -> None:
    crawl(server, site, sys.executable, str(EXAMPLES / "client.py"))


@pytest.mark.skipif(
    not (CRAWLEE / "node_modules").exists() and os.environ.get("CI") != "true",
    reason="needs npm install in examples/serve/crawlee",
)
def test_crawlee(server: Server, site: Site) -> None:
    crawl(server, site, "node", str(CRAWLEE / "crawl.mjs"))
