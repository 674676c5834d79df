"""The client."""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from time import monotonic
from types import TracebackType
from typing import Any
from urllib.parse import quote

from ._errors import BadRequest, Unavailable, kind_of
from ._http import Servers, decode, encode
from ._types import Ended, Entry, Lease, Leases, Outcome, Verdict, entry_members, several, verdict

_ADD_BATCH = 1000


def _id(lease: Lease | str) -> str:
    if not isinstance(lease, (str, Lease)):
        raise TypeError(f"lease is {lease!r}; want a Lease, or its id")
    return lease if isinstance(lease, str) else lease.lease


def _part(text: str) -> str:
    """A part of a path."""
    try:
        return quote(text, safe="")
    except UnicodeEncodeError as e:
        raise BadRequest(str(e)) from e


class Client:
    """A frontier server's client. It may be used by several threads: each has a
    connection of its own. ``url`` may be several of one frontier, such as those of
    a server and its stand-by, with commas between them: a call that one does not
    answer asks the next, each once.

    ``token`` is sent as a bearer token. ``context`` says whom to trust, for https
    with a certificate of one's own. ``timeout_s`` bounds each wait for the
    server, beyond what a call itself asks it to wait. Calls raise a
    :class:`FrontierError`: :class:`Unavailable` if the server cannot be reached,
    or the answer is cut short, else what it answered.
    """

    def __init__(
        self, url: str, *, token: str | None = None, timeout_s: float = 60, context: ssl.SSLContext | None = None
    ) -> None:
        self._http = Servers(url, token, timeout_s, context)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections. Leases stay out."""
        self._http.close()

    def _json(self, method: str, path: str, value: object = None, *, extra_s: float = 0, **query: Any) -> Any:
        body = None if value is None else encode(value)
        data = self._http.request(method, path, query=query, body=body, extra_s=extra_s)
        return decode(data) if data.strip() else {}

    # Adding.

    def add(self, entries: Iterable[Entry | str]) -> list[Verdict]:
        """Add URLs. They are on disk when it returns: one verdict each, in order.
        A URL that is bad or refused does not raise; its verdict says so."""
        return list(self.add_iter(entries))

    def add_iter(self, entries: Iterable[Entry | str]) -> Iterator[Verdict]:
        """Add URLs from an iterator of any length, a thousand at a time. The
        verdicts come once their entries are on disk; adding goes on only while
        they are read."""
        it = enumerate(several("entries", entries))
        while batch := list(islice(it, _ADD_BATCH)):
            yield from map(verdict, self._http.values("/v1/urls", (encode(entry_members(e, i)) for i, e in batch)))

    # Leases.

    def leases(
        self,
        *,
        hosts: int | None = None,
        per_host: int | None = None,
        max: int | None = None,
        crawls: Sequence[str] | None = None,
        host: str | None = None,
        lease_s: float | None = None,
        wait_s: float = 0,
    ) -> Leases:
        """What can be had now, or as soon as something can be had within
        ``wait_s`` (at most 60)."""
        ask = {
            "hosts": hosts,
            "per_host": per_host,
            "max": max,
            "crawls": several("crawls", crawls),
            "host": host,
            "lease_s": lease_s,
            "wait_s": wait_s,
        }
        asked = monotonic()
        got = self._json("POST", "/v1/leases", {k: v for k, v in ask.items() if v is not None}, extra_s=wait_s)
        return Leases(
            [Lease.from_members(m, asked) for m in got.get("leases") or []],
            got.get("next_s"),
            bool(got.get("exhausted")),
            got.get("held") or 0,
        )

    def stream(
        self, *, max: int = 64, crawls: Sequence[str] | None = None, lease_s: float | None = None
    ) -> Iterator[Lease]:
        """Leases for as long as the caller iterates, at most ``max`` of them out
        at once: done of one lets the next come. When nothing is left it waits for
        more. Leases that are out at the end stay out. A server that ends it raises :class:`Unavailable`."""
        ask = {"max": max, "crawls": several("crawls", crawls), "lease_s": lease_s}
        body = encode({k: v for k, v in ask.items() if v is not None})
        asked = monotonic()
        for line in self._http.lines("POST", "/v1/stream", body=body):
            if line:
                yield Lease.from_members(decode(line), asked)
        raise Unavailable("the server ended the stream")

    def done(self, lease: Lease | str, outcome: Outcome) -> Ended:
        """End a lease. The outcome's ``add`` is stored in the same commit. It may
        be sent twice; a lease that has ended otherwise raises :class:`NotLeased`."""
        if not isinstance(outcome, Outcome):
            raise TypeError(f"outcome is {outcome!r}; want an Outcome")
        got = self._json("POST", f"/v1/leases/{_part(_id(lease))}/done", outcome.members())
        return Ended(_id(lease), got.get("added", 0), [verdict(v) for v in got.get("add") or []])

    def done_many(self, ends: Iterable[tuple[Lease | str, Outcome]]) -> list[Ended]:
        """End many leases with one request. An end that failed has ``error``; it
        does not raise."""
        pairs = list(ends)
        if not pairs:
            return []
        got = self._http.values("/v1/done", (encode({"lease": _id(le), **out.members()}) for le, out in pairs))
        answers = []
        for (lease, _), m in zip(pairs, got, strict=True):
            error, kind = m.get("error"), None
            if isinstance(error, dict):  # a problem
                kind = kind_of(error)
                error = error.get("detail") or error.get("title") or "failed"
            answers.append(Ended(_id(lease), m.get("added", 0), [verdict(v) for v in m.get("add") or []], error, kind))
        return answers

    def extend(self, lease: Lease | str, lease_s: float) -> Lease:
        """Keep a lease for ``lease_s`` from now."""
        path, asked = f"/v1/leases/{_part(_id(lease))}/extend", monotonic()
        return Lease.from_members(self._json("POST", path, {"lease_s": lease_s}), asked)

    def hand_back(self, lease: Lease | str) -> Lease:
        """Give the URL back before it was fetched, after a contact with its host
        for something else. The answer is a lease for that contact, to be done."""
        asked = monotonic()
        return Lease.from_members(self._json("POST", f"/v1/leases/{_part(_id(lease))}/handback", {}), asked)

    def contact(self, host: str, *, wait_s: float = 20, lease_s: float | None = None) -> Lease | None:
        """A lease for one contact with a host, without a URL; None if the host's
        turn does not come within ``wait_s``."""
        ask = {"wait_s": wait_s} if lease_s is None else {"wait_s": wait_s, "lease_s": lease_s}
        asked = monotonic()
        got = self._json("POST", f"/v1/hosts/{_part(host)}/contact", ask, extra_s=wait_s)
        return Lease.from_members(got, asked) if "lease" in got else None

    # Looking and removing.

    def status(self, url: str, *, crawl: str | None = None, host: str | None = None) -> dict[str, Any]:
        """What the server knows about one URL."""
        got: dict[str, Any] = self._json("GET", "/v1/urls", url=url, crawl=crawl, host=host)
        return got

    def delete_host(self, host: str, *, crawl: str | None = None, forget: bool = False) -> int:
        """Remove the URLs of a host, of one crawl or of all, and return how many
        were found at once. ``forget``: they may be added again as new."""
        got = self._json("DELETE", f"/v1/hosts/{_part(host)}/urls", crawl=crawl, forget=forget)
        return int(got["deleted"])

    def crawls(self) -> list[dict[str, Any]]:
        """The crawls with their settings and counts."""
        got = self._json("GET", "/v1/crawls")
        return list(got["crawls"])

    def crawl(self, name: str) -> dict[str, Any]:
        """One crawl's settings and counts."""
        got: dict[str, Any] = self._json("GET", f"/v1/crawls/{_part(name)}")
        return got

    def delete_crawl(self, name: str, *, forget: bool = False) -> None:
        """Remove a crawl's URLs. ``forget``: they may be added again as new."""
        self._json("DELETE", f"/v1/crawls/{_part(name)}", forget=forget)

    def stats(self) -> dict[str, Any]:
        """The counters of the server."""
        got: dict[str, Any] = self._json("GET", "/v1/stats")
        return got

    # Controls. A scope is a host, a domain ("*.example.org") or "*", as on the status page.

    def do(self, action: str, scope: str | None = None, **members: Any) -> dict[str, Any]:
        """Carry out an action of the status page, such as ``delete`` or ``block``."""
        ask = {"do": action, **members} if scope is None else {"do": action, "scope": scope, **members}
        got: dict[str, Any] = self._json("POST", "/v1/do", ask)
        return got

    def pause(self, scope: str) -> None:
        """Hand out nothing of a scope until it is resumed. It is durable."""
        self.do("pause", scope)

    def resume(self, scope: str) -> None:
        """End a pause."""
        self.do("resume", scope)

    def set_standing(self, host: str, levels: int) -> None:
        """Move the URLs of a host up by levels, or down if negative; 0 moves them back. It is durable."""
        self.do("standing", host, n=levels)

    def rules(self) -> Any:
        """The rules that are set, as JSON."""
        return self._json("GET", "/v1/rules")

    def rule(self, scope: str) -> dict[str, Any]:
        """The rule set for one scope."""
        got: dict[str, Any] = self._json("GET", f"/v1/rules/{_part(scope)}")
        return got

    def set_rule(self, scope: str, rule: dict[str, Any]) -> None:
        """Replace the rule of a scope."""
        self._json("PUT", f"/v1/rules/{_part(scope)}", rule)

    def clear_rule(self, scope: str) -> None:
        """Set nothing for a scope any more."""
        self._json("DELETE", f"/v1/rules/{_part(scope)}")

    # Listings.

    def list(
        self,
        *,
        crawl: str | None = None,
        host: str | None = None,
        finished: bool | None = None,
        n: int = 0,
    ) -> Iterator[dict[str, Any]]:
        """URLs as of one moment, the first ``n`` of them; 0 gives all."""
        query = {"crawl": crawl, "host": host, "finished": None if finished is None else str(finished).lower(), "n": n}
        for line in self._http.lines("GET", "/v1/list", query=query):
            if line:
                yield decode(line)

    def queues(self, crawl: str, *, after: str | None = None, n: int = 0) -> Iterator[dict[str, Any]]:
        """The hosts with URLs of a crawl, behind the host ``after``, and how many:
        ``waiting``, ``scheduled``, ``leased``, ``finished``. A number that is missing is 0."""
        path = f"/v1/crawls/{_part(crawl)}/queues"
        for line in self._http.lines("GET", path, query={"after": after, "n": n}):
            if line:
                yield decode(line)

    def export(self) -> Iterator[bytes]:
        """The lines of an export: what the server's import takes. If the last is
        missing it raises :class:`Unavailable`: what came is no whole export."""
        line = b""
        for line in filter(None, self._http.lines("GET", "/v1/export")):
            yield line
        if not line.startswith(b'{"end":'):
            raise Unavailable("the export ended before its last line")
