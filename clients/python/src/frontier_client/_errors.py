"""Exceptions, made from the server's ``application/problem+json``."""

from __future__ import annotations

import json
from typing import Any


class FrontierError(Exception):
    """The server refused a request, or could not be asked.

    ``problem`` is the server's problem document (RFC 9457), ``status`` the
    HTTP status; both are empty where no answer came.
    """

    def __init__(self, message: str, status: int = 0, problem: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.problem: dict[str, Any] = problem or {}


class Unavailable(FrontierError):
    """No connection, or it broke before the answer was complete."""


class BadRequest(FrontierError, ValueError):
    """The request is malformed: status 400, 413 or 422, or it could not even be sent."""


class Unauthorized(FrontierError):
    """The token is missing or unknown."""


class Forbidden(FrontierError):
    """The token's role does not allow the request."""


class NotFound(FrontierError):
    """The URL, host or crawl is unknown."""


class Conflict(FrontierError):
    """The request does not fit what the server holds."""


class NotLeased(Conflict):
    """The lease has ended: by its deadline, by done, or as the server was restarted."""


class Busy(FrontierError):
    """The server cannot take more now; ``retry_after_s`` says when to ask again."""

    retry_after_s: float = 1.0


_BY_STATUS: dict[int, type[FrontierError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    413: BadRequest,
    422: BadRequest,
    429: Busy,
    503: Busy,
    507: Busy,
}


def kind_of(problem: dict[str, Any]) -> str:
    """The last part of a problem's type, such as not-leased."""
    return str(problem.get("type", "")).rpartition("/")[2]


def from_answer(status: int, body: bytes, retry_after: str | None = None) -> FrontierError:
    """The exception for an answer whose status is not 2xx, or for the problem that ends one."""
    problem: dict[str, Any] = {}
    try:
        got = json.loads(body)
        if isinstance(got, dict):
            problem = got
    except ValueError:
        pass
    kind = _BY_STATUS.get(status, FrontierError)
    if kind_of(problem) == "not-leased":
        kind = NotLeased
    text = problem.get("detail") or problem.get("title") or body[:200].decode("utf-8", "replace").strip()
    err = kind(f"{status}: {text}", status, problem)
    if isinstance(err, Busy) and retry_after is not None:
        try:
            err.retry_after_s = float(retry_after)
        except ValueError:
            pass  # a date: the default is as good
    return err
