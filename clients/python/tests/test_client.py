from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from conftest import Server, Stub, problem

from frontier_client import BadRequest, Busy, Client, Entry, FrontierError, NotFound, NotLeased, Outcome, Unavailable


def test_adds_have_a_verdict_each(client: Client) -> None:
    got = client.add(["http://a.test/1", "http://a.test/1", Entry("http://b.test/", id="x"), "no url"])
    assert [v.status for v in got] == ["new", "known", "new", "bad"]
    assert got[2].id == "x"
    assert got[3].error


def test_an_iterator_of_any_length(client: Client) -> None:
    n = 2500
    assert sum(v.status == "new" for v in client.add_iter(f"http://h{i % 50}.test/{i}" for i in range(n))) == n
    assert client.stats()["waiting"] == n


def test_a_lease_carries_what_was_added(client: Client) -> None:
    client.add([Entry("http://a.test/1", crawl="news", depth=3, priority=9, meta={"k": ["v", "ü"]})])
    (lease,) = client.leases(max=1, wait_s=10).leases
    assert (lease.url, lease.host, lease.crawl, lease.depth) == ("http://a.test/1", "a.test", "news", 3)
    assert lease.meta == {"k": ["v", "ü"]}
    assert 0 < lease.left_s <= 30


def test_done_adds_links_and_may_be_sent_twice(client: Client) -> None:
    client.add(["http://a.test/1"])
    (lease,) = client.leases(wait_s=10).leases
    out = Outcome("visited", duration_s=0.1, add=["http://b.test/", Entry("http://c.test/", depth=1)])
    first = client.done(lease, out)
    assert first.added == 2
    assert client.done(lease, out) == first
    with pytest.raises(NotLeased):
        client.done(lease, Outcome("gone"))
    assert sorted(le.url for le in client.leases(hosts=2, max=2, wait_s=10).leases) == ["http://b.test/", "http://c.test/"]


def test_listings_and_deletions(client: Client) -> None:
    client.add([Entry(f"http://{h}.test/{i}", crawl="news", finished=i == 2) for h in "ab" for i in range(3)] + ["http://a.test/"])
    assert len(list(client.list())) == 7
    assert len(list(client.list(n=2))) == 2
    assert [u["url"] for u in client.list(crawl="news", host="a.test", finished=True)] == ["http://a.test/2"]
    assert len(list(client.list(host="a.test", finished=False))) == 3
    assert list(client.queues("news")) == [{"host": f"{h}.test", "waiting": 2, "finished": 1} for h in "ab"]
    assert [q["host"] for q in client.queues("news", after="a.test")] == ["b.test"]
    assert client.delete_host("a.test", crawl="news", forget=True) == 3
    assert [v.status for v in client.add([Entry("http://a.test/1", crawl="news")])] == ["new"]
    assert client.delete_host("b.test") == 3
    assert [v.status for v in client.add([Entry("http://b.test/1", crawl="news")])] == ["known"]
    with pytest.raises(NotFound):
        list(client.queues("odd"))


def test_many_ends_each_with_its_error(client: Client) -> None:
    client.add(["http://a.test/", "http://b.test/"])
    leases = client.leases(hosts=2, max=2, wait_s=10).leases
    got = client.done_many([(leases[0], Outcome("visited")), ("nonsense", Outcome("gone")), (leases[1], Outcome("gone"))])
    assert [bool(e.error) for e in got] == [False, True, False]
    assert client.done_many([]) == []


def test_the_next_date_while_the_host_pauses(server: Server, client: Client) -> None:
    server.delay(3600)
    client.add(["http://a.test/1", "http://a.test/2"])
    (lease,) = client.leases(wait_s=10).leases
    client.done(lease, Outcome("visited", duration_s=0.1))
    got = client.leases()
    assert got.leases == [] and got.next_s is not None and got.next_s > 3000


def test_extend_and_hand_back(client: Client) -> None:
    client.add(["http://a.test/1"])
    (lease,) = client.leases(wait_s=10).leases
    longer = client.extend(lease, 3000)
    assert longer.left_s > lease.left_s + 1000
    contact = client.hand_back(longer)
    client.done(contact, Outcome("visited", duration_s=0.01))
    (again,) = client.leases(wait_s=10).leases
    assert again.url == lease.url


def test_contact_waits_for_the_host(server: Server, client: Client) -> None:
    server.delay(3600)
    contact = client.contact("a.test")
    assert contact is not None and contact.host == "a.test"
    assert client.contact("a.test", wait_s=0.01) is None
    client.done(contact, Outcome("visited", duration_s=0.01))


def test_a_long_poll_ends_with_an_add(server: Server, client: Client) -> None:
    got = []
    with Client(server.url) as other:
        t = threading.Thread(target=lambda: got.extend(other.leases(wait_s=50).leases))
        t.start()
        client.add(["http://a.test/"])
        t.join()
    assert [le.url for le in got] == ["http://a.test/"]


def test_a_stream_has_no_more_out_than_asked(client: Client) -> None:
    client.add([f"http://h{i}.test/" for i in range(10)])
    seen = set()
    for lease in client.stream(max=2):
        seen.add(lease.url)
        client.done(lease, Outcome("visited"))
        if len(seen) == 10:
            break
    assert len(seen) == 10


def test_status_pause_and_rules(client: Client) -> None:
    client.add(["http://a.test/1"])
    assert client.status("http://a.test/1")["state"] == "waiting"
    with pytest.raises(NotFound):
        client.status("http://a.test/2")
    client.pause("a.test")
    assert client.leases().leases == []
    client.resume("a.test")
    client.set_standing("a.test", -3)
    (lease,) = client.leases(wait_s=10).leases
    assert lease.priority == 1
    with pytest.raises(BadRequest):
        client.set_standing("a.test", -99)
    for wrong in ({}, {"url": "http://a.test/"}, Entry(None), None):  # type: ignore[arg-type]
        with pytest.raises(BadRequest, match="entry 1 is .*; want a URL, or an Entry with a url"):
            client.add(["http://a.test/1", wrong])  # type: ignore[list-item]
        with pytest.raises(BadRequest, match="entry 0 is "):
            Outcome("visited", add=[wrong]).members()  # type: ignore[list-item]
    with pytest.raises(BadRequest) as e:
        client.do("fly", "*")
    assert e.value.status == 400 and e.value.problem["title"]
    assert client.rules() is not None
    assert [c["name"] for c in client.crawls()] == ["DEFAULT"]


def test_an_export_has_what_waits(client: Client) -> None:
    client.add(["http://a.test/1"])
    assert any(b"http://a.test/1" in line for line in client.export())


def test_no_server() -> None:
    with Client("http://127.0.0.1:9") as c, pytest.raises(Unavailable):
        c.stats()
    with pytest.raises(ValueError, match="not the http or https URL"):
        Client("127.0.0.1:8348")


def test_a_server_that_was_restarted(server: Server, client: Client) -> None:
    client.add(["http://a.test/1"])
    (lease,) = client.leases(wait_s=10).leases
    server.kill()
    with pytest.raises(Unavailable):
        client.stats()
    server.start()
    with pytest.raises(NotLeased):
        client.done(lease, Outcome("visited"))
    (again,) = client.leases(wait_s=30).leases
    assert again.url == lease.url


def test_a_time_needs_a_zone(client: Client) -> None:
    with pytest.raises(ValueError, match="no time zone"):
        client.add([Entry("http://a.test/", not_before=datetime(2030, 1, 1))])


def test_a_text_is_no_list(client: Client) -> None:
    one: list[Callable[[Any], Any]] = [
        client.add,
        lambda x: list(client.add_iter(x)),
        lambda x: client.leases(crawls=x),
        lambda x: list(client.stream(crawls=x)),
        lambda x: Outcome("visited", add=x),
    ]
    for ask in one:
        for text in ("http://a.test/", b"http://a.test/"):
            with pytest.raises(TypeError, match="want a list"):
                ask(text)
    assert client.stats()["known"] == 0


def test_an_outcome_ends_by_the_clock_that_is_never_set() -> None:
    with pytest.raises(ValueError, match="monotonic"):
        Outcome("visited", ended=time.time())
    Outcome("visited", ended=time.monotonic())


def test_a_mistake_is_named(client: Client) -> None:
    with pytest.raises(TypeError, match="want a URL"):
        Client(None)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="want an Outcome"):
        client.done("x", "visited")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="want a Lease"):
        client.done(None, Outcome("visited"))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="want a list"):
        client.add(None)  # type: ignore[arg-type]


def test_an_outcome_has_words_of_the_server() -> None:
    wrong: Any = "ok"
    with pytest.raises(ValueError, match="'ok'; want one of"):
        Outcome(wrong)
    with pytest.raises(ValueError, match="'ok'; want one of"):
        Outcome("failed", failure=wrong)


def test_what_an_operator_holds_is_told() -> None:
    with Stub(lambda _, __: (200, b'{"leases":[],"held":3}')) as s, Client(s.url) as c:
        got = c.leases()
    assert (got.held, got.exhausted) == (3, False)


LISTINGS: list[Callable[[Client], Any]] = [
    lambda c: list(c.list()),
    lambda c: list(c.queues("news")),
    lambda c: list(c.stream()),
    lambda c: list(c.export()),
]
TWO = ["http://a.test/", "http://b.test/"]


@pytest.mark.parametrize("ask", [*LISTINGS, lambda c: c.add(TWO), lambda c: c.done_many((u, Outcome("visited")) for u in TWO)])
def test_a_problem_that_ends_an_answer_is_raised(ask: Callable[[Client], Any]) -> None:
    with Stub(lambda _, __: (200, b'{"lease":"a","status":"new"}\n' + problem("full", 507))) as s, Client(s.url) as c:
        with pytest.raises(Busy) as e:
            ask(c)
    assert e.value.status == 507


def test_an_answer_has_a_line_for_each(client: Client) -> None:
    with Stub(lambda _, __: (200, b'{"status":"new"}\n')) as s, Client(s.url) as c, pytest.raises(Unavailable):
        c.add(TWO)


@pytest.mark.parametrize("ask", LISTINGS)
def test_an_answer_that_is_cut_is_no_whole_one(ask: Callable[[Client], Any]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as s:

        def answer() -> None:
            conn, _ = s.accept()
            with conn:
                conn.recv(65536)
                conn.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b'e\r\n{"lease":"a"}\n\r\n')

        t = threading.Thread(target=answer)
        t.start()
        with Client(f"http://127.0.0.1:{s.getsockname()[1]}") as c, pytest.raises(Unavailable):
            ask(c)
        t.join()


def test_an_export_has_its_last_line(client: Client) -> None:
    client.add(TWO)
    lines = list(client.export())
    assert lines[-1].startswith(b'{"end":')
    with Stub(lambda _, __: (200, b"\n".join(lines[:-1]))) as s, Client(s.url) as c, pytest.raises(Unavailable):
        list(c.export())


def test_what_cannot_be_sent_is_a_bad_request(server: Server, client: Client) -> None:
    bad: list[Callable[[], Any]] = [
        lambda: client.add(["http://a.test/\ud83d"]),
        lambda: client.add([Entry("http://a.test/", weight=float("nan"))]),
        lambda: client.crawl("\ud83d"),
        lambda: client.status("\ud83d"),
    ]
    for ask in bad:
        with pytest.raises(BadRequest):
            ask()
    with Client(server.url, token="from a file\n") as c:
        c.stats()
    with pytest.raises(ValueError, match="token"):
        Client(server.url, token="a\nb")
    with Stub(lambda _, __: (200, b"<html>")) as s, Client(s.url) as c, pytest.raises(FrontierError):
        c.stats()


def test_a_wrong_certificate_is_no_outage(server: Server) -> None:
    server.with_tls()
    with Client(server.url, context=server.context) as c:
        c.stats()
    with Client(server.url) as c, pytest.raises(FrontierError, match="certificate") as e:
        c.stats()
    assert not isinstance(e.value, Unavailable)
    with Stub(lambda _, __: (200, b"{}")) as s, Client(s.url.replace("http:", "https:")) as c:
        with pytest.raises(FrontierError) as e:
            c.stats()
    assert not isinstance(e.value, Unavailable)
