"""The examples in examples/serve."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from conftest import REPOSITORY, Relay, Server
from site_of_tests import Site

from frontier_client import Client

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


needs_crawlee = pytest.mark.skipif(
    not (CRAWLEE / "node_modules").exists() and os.environ.get("CI") != "true",
    reason="needs npm install in examples/serve/crawlee",
)


@needs_crawlee
def test_crawlee(server: Server, site: Site) -> None:
    crawl(server, site, "node", str(CRAWLEE / "crawl.mjs"))


class Odd(Site):
    """A page with links that few take, during whose fetch the server is started again."""

    def __init__(self, server: Server) -> None:
        super().__init__(hosts=1, pages=0)
        self.frontier = server

    def answer(self, path: str, tries: int) -> tuple[int, dict[str, str], bytes]:
        if path != "/0":
            return 200, {}, b""
        if tries == 1:
            self.frontier.kill()
            self.frontier.start()
        return 200, {}, '<a href="http://[x">x</a><a href="/a b">x</a><a href="/é">x</a>'.encode()


@pytest.mark.parametrize(
    "crawler",
    [
        [sys.executable, str(EXAMPLES / "client.py")],
        pytest.param(["node", str(CRAWLEE / "crawl.mjs")], marks=needs_crawlee),
    ],
    ids=["client.py", "crawlee"],
)
def test_odd_links_and_a_restart(server: Server, crawler: list[str]) -> None:
    server.delay(0.1)
    site = Odd(server)
    try:
        subprocess.run([*crawler, server.url, site.hosts[0] + "/0"], check=True, timeout=60, stdout=subprocess.DEVNULL)
    finally:
        site.close()
    assert site.asked() == {"127.0.1.1": {"/0", "/a%20b", "/%C3%A9"}}


QUEUE = """
import {FrontierQueue} from './queue.mjs';
import {Request} from '@crawlee/basic';
import assert from 'node:assert/strict';
const [, server] = process.argv;
const known = async (requests) => (await queue.addRequests(requests)).processedRequests.map((r) => r.wasAlreadyPresent);
const stats = async () => (await fetch(server + '/v1/stats')).json();
let queue = new FrontierQueue(server, {prefetch: 3});
queue.requestLockSecs = 2;

assert.deepEqual(await known(['http://l1.test/', {url: 'http://l2.test/'}, new Request({url: 'http://l3.test/'}), 'no url']), [false, false, false]);
const request = await queue.fetchNextRequest();
await new Promise((r) => setTimeout(r, 3000));
assert.equal((await stats()).expired, 0, 'what is fetched ahead is kept, too');

const there = globalThis.fetch;
const once = (status, body) => { globalThis.fetch = async () => { globalThis.fetch = there; return new Response(body, {status}); }; };
once(400, '{"type":"x/bad-request","title":"bad"}');
await assert.rejects(queue.markRequestHandled(request));
assert.ok(await queue.markRequestHandled(request), 'it is still out');
once(503, '{"type":"x/busy","title":"busy","status":503}');
assert.deepEqual(await known(['http://l1.test/']), [true]);
once(200, '{"status":"new"}\\n{"type":"x/busy","title":"busy","status":503}');
assert.deepEqual(await known(['http://l1.test/', 'http://l2.test/']), [true, true]);

const u = 'http://u.test/', post = (payload) => ({url: u, method: 'POST', payload});
assert.deepEqual(await known([u, {url: u, uniqueKey: 'a'}, {url: u, uniqueKey: 'b'}, {url: u, uniqueKey: 'b'}]), [false, false, false, true]);
assert.deepEqual(await known([post('a'), post('b'), post('b')]), [false, false, true]);
assert.equal((await stats()).leased, 2);
"""


@needs_crawlee
def test_the_queue_of_crawlee(server: Server, client: Client) -> None:
    args = ["node", "--input-type=module", "-e", QUEUE, server.url]
    done = subprocess.run(args, cwd=CRAWLEE, timeout=60, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert client.stats()["leased"] == 0, "it gives back what it fetched ahead"


CUT = """
import {FrontierQueue} from './queue.mjs';
import assert from 'node:assert/strict';
const [, server, page] = process.argv;
const queue = new FrontierQueue(server, {prefetch: 1});
queue.requestLockSecs = 4;
await queue.addRequests([page]);
const request = await queue.fetchNextRequest();
await assert.rejects(fetch(page, {signal: queue.signal(request)}), /has ended/);
"""


@needs_crawlee
@pytest.mark.parametrize("back", [False, True])
def test_what_crawlee_fetches_is_cut_when_its_lease_ends(server: Server, back: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as web:
        args = ["node", "--input-type=module", "-e", CUT, server.url, f"http://127.0.0.1:{web.getsockname()[1]}/"]
        with subprocess.Popen(args, cwd=CRAWLEE) as p:
            try:
                web.settimeout(30)
                first, _ = web.accept()
                began = time.monotonic()
                server.kill()
                if back:
                    server.start()
                first.settimeout(8)
                with first, suppress(ConnectionResetError):
                    while first.recv(4096):
                        pass
                assert time.monotonic() - began < 4
                assert p.wait(8) == 0
            finally:
                p.kill()


SERVERS = """
import {FrontierQueue} from './queue.mjs';
import assert from 'node:assert/strict';
const [, first, second] = process.argv;
for (const [wrong, says] of [['b:2', /b:2 is not/], ['', /an empty address is not/], [first + '/', /is there twice/]]) {
  assert.throws(() => new FrontierQueue(`${first}, ${wrong}`), says);
}
let asked = [], gone = [];
const there = globalThis.fetch;
globalThis.fetch = async (url, how) => {
  const at = [first, second].find((s) => url.startsWith(s + '/'));
  asked.push(at);
  if (gone.includes(at)) throw new Error('gone');
  return there(url, how);
};
const queue = new FrontierQueue(`${first} , ${second}/`, {prefetch: 1});
await queue.addRequests(['http://l1.test/']);
const request = await queue.fetchNextRequest();
gone = [first];
asked = [];
assert.ok(await queue.markRequestHandled(request), 'a lease ends where it did not begin');
await queue.addRequests(['http://l2.test/']);
assert.deepEqual(asked, [first, second, second]);
gone = [second];
await queue.addRequests(['http://l3.test/']);
gone = [first, second];
queue.patienceSecs = 0;
await assert.rejects(queue.addRequests(['http://l4.test/']), {message: `${first}: frontier: gone; ${second}: frontier: gone`});
gone = [];
"""


@needs_crawlee
def test_the_servers_of_crawlee(server: Server, client: Client) -> None:
    other = Relay(server)
    args = ["node", "--input-type=module", "-e", SERVERS, server.url, other.url]
    done = subprocess.run(args, cwd=CRAWLEE, timeout=60, capture_output=True, text=True)
    other.kill()
    assert done.returncode == 0, done.stderr
    assert (client.stats()["known"], client.stats()["done"]["visited"]) == (3, 1)
