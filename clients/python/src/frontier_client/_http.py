"""HTTP/1.1 with one kept connection for each thread."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

from ._errors import Unavailable, from_answer

NDJSON = "application/x-ndjson"


class Transport:
    """Sends requests to one server."""

    def __init__(self, url: str, token: str | None, timeout_s: float, context: ssl.SSLContext | None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise ValueError(f"{url!r} is not the http or https URL of a server")
        self._secure = parts.scheme == "https"
        self._host, self._port = parts.hostname, parts.port
        self._prefix = parts.path.rstrip("/")
        self._timeout = timeout_s
        self._context = context
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._local = threading.local()
        self._lock = threading.Lock()
        self._open: set[http.client.HTTPConnection] = set()

    def connection(self, timeout_s: float | None = None) -> http.client.HTTPConnection:
        """A new connection, not yet opened."""
        timeout = self._timeout if timeout_s is None else timeout_s
        if self._secure:
            return http.client.HTTPSConnection(self._host, self._port, timeout=timeout, context=self._context)
        return http.client.HTTPConnection(self._host, self._port, timeout=timeout)

    def _kept(self) -> tuple[http.client.HTTPConnection, bool]:
        conn: http.client.HTTPConnection | None = getattr(self._local, "conn", None)
        if conn is not None and conn.sock is not None:
            return conn, True
        conn = self.connection()
        self._local.conn = conn
        with self._lock:
            self._open.add(conn)
        return conn, False

    def forget(self, conn: http.client.HTTPConnection) -> None:
        """Close a connection for good."""
        conn.close()
        with self._lock:
            self._open.discard(conn)

    def close(self) -> None:
        """Close the connections of all threads."""
        with self._lock:
            conns, self._open = self._open, set()
        for c in conns:
            c.close()

    def path(self, path: str, query: Mapping[str, Any] | None) -> str:
        """The request target."""
        q = {k: v for k, v in (query or {}).items() if v is not None and v is not False}
        return self._prefix + path + ("?" + urlencode({k: "true" if v is True else v for k, v in q.items()}) if q else "")

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: bytes | None = None,
        content: str = "application/json",
        accept: str = "application/json",
        extra_s: float = 0,
    ) -> bytes:
        """The body of an answer with status 2xx. A kept connection that the server
        closed meanwhile is opened once more: each request of this client may be
        sent twice. extra_s is how long the server may wait before it answers."""
        headers = {"Accept": accept, **self._headers}
        if body is not None:
            headers["Content-Type"] = content
        while True:
            conn, reused = self._kept()
            try:
                if conn.sock is None:
                    conn.connect()
                conn.sock.settimeout(self._timeout + extra_s)
                conn.request(method, self.path(path, query), body, headers)
                answer = conn.getresponse()
                data = answer.read()
            except (OSError, http.client.HTTPException) as e:
                self.forget(conn)
                if reused and isinstance(e, (http.client.RemoteDisconnected, ConnectionError)):
                    continue
                raise Unavailable(f"{method} {path}: {e or type(e).__name__}") from e
            if answer.will_close:
                self.forget(conn)
            if not 200 <= answer.status < 300:
                raise from_answer(answer.status, data, answer.getheader("Retry-After"))
            return data

    def lines(
        self, method: str, path: str, *, query: Mapping[str, Any] | None = None, idle_s: float | None = None
    ) -> Iterator[bytes]:
        """The lines of an answer as they come, on a connection that is closed at
        the end. Empty lines come, too. idle_s: the longest silence."""
        conn = self.connection(idle_s)
        try:
            conn.request(method, self.path(path, query), None, {"Accept": NDJSON, **self._headers})
            answer = conn.getresponse()
            if not 200 <= answer.status < 300:
                raise from_answer(answer.status, answer.read(), answer.getheader("Retry-After"))
            while line := answer.readline():
                yield line.strip()
        except (OSError, http.client.HTTPException) as e:
            raise Unavailable(f"{method} {path}: {e or type(e).__name__}") from e
        finally:
            conn.close()


def encode(value: object) -> bytes:
    """Compact JSON."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def decode_lines(data: bytes) -> list[Any]:
    """The values of NDJSON."""
    return [json.loads(line) for line in data.splitlines() if line.strip()]
