"""What goes over the wire, as dataclasses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime, timezone
from time import monotonic
from typing import Any, Literal, TypeVar, get_args

from ._errors import BadRequest

Status = Literal["new", "known", "forced", "hinted", "refused", "bad"]
Result = Literal["visited", "changed", "unchanged", "gone", "failed", "denied", "requeue", "put_off"]
Failure = Literal["other", "dns", "connect", "timeout", "server", "unavailable", "too_many_requests"]
Meta = Mapping[str, Sequence[str]]

T = TypeVar("T")


def several(name: str, values: T) -> T:
    """The values, unless they are one text: its characters would be taken for them."""
    if isinstance(values, (str, bytes)) or name == "entries" and values is None:
        raise TypeError(f"{name} is {values!r}; want a list")
    return values


def time_text(t: datetime) -> str:
    """RFC 3339 in UTC with milliseconds. A time without a zone is refused."""
    if t.tzinfo is None:
        raise BadRequest(f"{t!r} has no time zone")
    return t.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _members(value: object) -> dict[str, Any]:
    """The fields that differ from their defaults, as JSON members."""
    out: dict[str, Any] = {}
    for f in fields(value):  # type: ignore[arg-type]
        v = getattr(value, f.name)
        if v is None or v is False or (isinstance(v, (list, tuple, dict)) and not v):
            continue
        out[f.name] = time_text(v) if isinstance(v, datetime) else v
    return out


@dataclass(slots=True)
class Entry:
    """A URL to add. What is None is left to the server."""

    url: str
    crawl: str | None = None
    """A link of a page (Outcome.add) without one belongs to its page's crawl, and one
    without a depth has its page's and 1 more."""
    host: str | None = None
    """Whom politeness is owed to, instead of the URL's host; the URL is then not parsed."""
    depth: int | None = None
    weight: float | None = None
    priority: int | None = None
    not_before: datetime | None = None
    """A date, by the server's clock. For a wait set not_before_s."""
    not_before_s: float | None = None
    """How long from now the URL waits, in seconds."""
    meta: Meta | None = None
    force: bool = False
    """A known URL is crawled again."""
    hint: bool = False
    """A known URL may have changed."""
    finished: bool = False
    """The URL counts as crawled; it is not handed out."""
    id: str | None = None

    def members(self) -> dict[str, Any]:
        """The entry as JSON members."""
        return _members(self)


@dataclass(slots=True, frozen=True)
class Verdict:
    """What became of one added entry."""

    status: Status
    id: str | None = None
    error: str | None = None


@dataclass(slots=True, frozen=True)
class Lease:
    """A URL that is this client's to fetch while ``left_s`` is positive, or until done."""

    lease: str
    """The id. It may be stored, and ended by another process."""
    url: str = ""
    host: str = ""
    group: str | None = None
    crawl: str = ""
    depth: int = 0
    weight: float = 0.0
    priority: int = 0
    attempt: int = 0
    meta: Meta = field(default_factory=dict)
    history: Mapping[str, Any] = field(default_factory=dict)
    ends: float = 0.0
    """When it ends, as a value of time.monotonic() of this process."""
    late_s: float | None = None
    """How much earlier the host could have been contacted, in seconds, if that is known."""
    gap_s: float = 0.0
    """What must lie between two contacts with the host, in seconds. Of leases that
    were asked for together, only those of a host with several have it."""

    @property
    def left_s(self) -> float:
        """For how many seconds from now it lasts. The clock of the machine may be set meanwhile."""
        return max(0.0, self.ends - monotonic())

    @classmethod
    def from_members(cls, m: Mapping[str, Any], asked: float) -> Lease:
        """The lease of an answer to a request that was sent at ``asked``, by
        time.monotonic(). Members that a newer server adds are ignored."""
        got = {f.name: m[f.name] for f in fields(cls) if m.get(f.name) is not None}
        # The server answered sent_s after it had the request, which was not before asked.
        got["ends"] = min(monotonic(), asked + m.get("sent_s", 0.0)) + m.get("lease_s", 0.0)
        return cls(**got)


@dataclass(slots=True, frozen=True)
class Leases:
    """An answer to a request for leases."""

    leases: list[Lease]
    next_s: float | None = None
    """In how many seconds the next lease may be had, where none came and that is known."""
    exhausted: bool = False
    """Nothing of the crawls that were asked for waits, is scheduled, or is leased."""
    held: int = 0
    """If nothing else is left: how many URLs an operator's rules hold back."""


@dataclass(slots=True)
class Outcome:
    """How a contact ended."""

    result: Result
    failure: Failure | None = None
    uncontacted: bool = False
    ended: float | None = None
    """When the contact ended, as a value of time.monotonic(); None: now."""
    duration_s: float | None = None
    retry_after_s: float | None = None
    crawl_delay_s: float | None = None
    modified: datetime | None = None
    """The page's Last-Modified."""
    bytes: int | None = None
    next: datetime | None = None
    """When the URL is to be fetched again: a date, by the server's clock. For a wait set next_s."""
    next_s: float | None = None
    """In how many seconds it is to be fetched again."""
    meta: Meta | None = None
    add: Sequence[Entry | str] = ()

    def __post_init__(self) -> None:
        if self.result not in get_args(Result):
            raise ValueError(f"result is {self.result!r}; want one of {get_args(Result)}")
        if self.failure is not None and self.failure not in get_args(Failure):
            raise ValueError(f"failure is {self.failure!r}; want one of {get_args(Failure)}")
        if self.ended is not None and self.ended > monotonic():
            raise ValueError(f"ended is {self.ended!r}, which is to come; want a value of time.monotonic()")
        several("add", self.add)

    def members(self) -> dict[str, Any]:
        """The outcome as JSON members."""
        out = _members(self)
        if (ended := out.pop("ended", None)) is not None:
            out["ended_ago_s"] = max(0.0, monotonic() - ended)
        if self.add:
            out["add"] = [entry_members(e, i) for i, e in enumerate(self.add)]
        return out


@dataclass(slots=True, frozen=True)
class Ended:
    """The answer to one done: ``error`` is empty if the lease ended by it."""

    lease: str
    added: int = 0
    add: list[Verdict] = field(default_factory=list)
    error: str | None = None
    type: str | None = None
    """The last part of the problem's type, such as ``not-leased``."""


def entry_members(e: Entry | str, number: int) -> dict[str, Any]:
    """An entry, or a bare URL, as JSON members. Errors have its number in the list."""
    if isinstance(e, str):
        return {"url": e}
    if not isinstance(e, Entry) or not isinstance(e.url, str):
        raise BadRequest(f"entry {number} is {e!r}; want a URL, or an Entry with a url")
    return e.members()


def verdict(m: Mapping[str, Any]) -> Verdict:
    """The verdict of an answer's line."""
    return Verdict(m["status"], m.get("id"), m.get("error"))
