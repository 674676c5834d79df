"""HTTP/1.1 with one kept connection for each thread and server."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar
from urllib.parse import urlencode, urlsplit

from ._errors import BadRequest, Busy, FrontierError, Unavailable, from_answer

NDJSON = "application/x-ndjson"

T = TypeVar("T")


class Servers:
    """Sends requests to one of several servers of the same frontier: to the one
    that answered last, and where it cannot be reached or is busy, to the next.
    A request is sent to each once; those that got it before may have done it."""

    def __init__(self, urls: str, token: str | None, timeout_s: float, context: ssl.SSLContext | None) -> None:
        if not isinstance(urls, str):
            raise TypeError(f"url is {urls!r}; want a URL as in 'http://127.0.0.1:8348'")
        names = [url.strip() for url in urls.split(",")]
        for i, name in enumerate(names):
            if name.rstrip("/") in (other.rstrip("/") for other in names[:i]):
                raise ValueError(f"{name!r} is there twice")
        self._all = [Transport(name, token, timeout_s, context, timeout_s / len(names)) for name in names]
        self._at = 0

    def close(self) -> None:
        """Close the connections of all threads."""
        for server in self._all:
            server.close()

    def _each(self, ask: Callable[[Transport], T]) -> T:
        """What ask returns for the first that answers. An error says what each said."""
        first, said = self._at, []
        for i in range(len(self._all)):
            at = (first + i) % len(self._all)
            server = self._all[at]
            try:
                got = ask(server)
            except (Unavailable, Busy) as e:
                if e.status == 507:  # no room: that is the frontier's, not the server's
                    raise
                said.append(f"{server.url}: {e}")
                failure = e
            else:
                self._at = at
                return got
        failure.args = ("; ".join(said),)
        raise failure

    def request(self, method: str, path: str, **how: Any) -> bytes:
        """The body of an answer with status 2xx."""
        return self._each(lambda server: server.request(method, path, **how))

    def values(self, path: str, lines: Iterable[bytes]) -> list[Any]:
        """The values of an answer to lines, one for each."""
        sent = list(lines)
        body = b"\n".join(sent) + b"\n"
        how: dict[str, Any] = {"body": body, "content": NDJSON, "accept": NDJSON}
        return self._each(lambda server: decode_lines(server.request("POST", path, **how), len(sent)))

    def lines(self, method: str, path: str, **how: Any) -> Iterator[bytes]:
        """The lines of an answer as they come. Once there is one, its server is not left."""

        def begin(server: Transport) -> tuple[bytes | None, Iterator[bytes]]:
            lines = server.lines(method, path, **how)
            return next(lines, None), lines

        line, rest = self._each(begin)
        if line is not None:
            yield line
            yield from rest


class Transport:
    """Sends requests to one server, to be connected in connect_s."""

    def __init__(
        self, url: str, token: str | None, timeout_s: float, context: ssl.SSLContext | None, connect_s: float
    ) -> None:
        self.url = url
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise ValueError(f"{url!r} is not the http or https URL of a server")
        self._secure = parts.scheme == "https"
        self._host, self._port = parts.hostname, parts.port
        self._prefix = parts.path.rstrip("/")
        self._timeout, self._connect = timeout_s, connect_s
        self._context = context
        token = (token or "").strip()
        if not token.isascii() or not token.isprintable():
            raise ValueError("the token has characters that cannot be sent")
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._local = threading.local()
        self._lock = threading.Lock()
        self._open: set[http.client.HTTPConnection] = set()

    def connection(self) -> http.client.HTTPConnection:
        """A new connection, not yet opened."""
        if self._secure:
            return http.client.HTTPSConnection(self._host, self._port, timeout=self._connect, context=self._context)
        return http.client.HTTPConnection(self._host, self._port, timeout=self._connect)

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
        try:
            text = urlencode({k: "true" if v is True else v for k, v in q.items()})
        except UnicodeEncodeError as e:
            raise BadRequest(str(e)) from e
        return self._prefix + path + ("?" + text if text else "")

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
        target = self.path(path, query)
        while True:
            conn, reused = self._kept()
            try:
                if conn.sock is None:
                    conn.connect()
                conn.sock.settimeout(self._timeout + extra_s)
                conn.request(method, target, body, headers)
                answer = conn.getresponse()
                data = answer.read()
            except (OSError, http.client.HTTPException) as e:
                self.forget(conn)
                if reused and isinstance(e, (http.client.RemoteDisconnected, ConnectionError)):
                    continue
                raise _failure(method, path, e) from e
            if answer.will_close:
                self.forget(conn)
            if not 200 <= answer.status < 300:
                raise from_answer(answer.status, data, answer.getheader("Retry-After"))
            return data

    def lines(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: bytes | None = None,
    ) -> Iterator[bytes]:
        """The lines of an answer as they come, on a connection that is closed at
        the end. Empty lines come, too."""
        target = self.path(path, query)
        conn = self.connection()
        try:
            conn.connect()
            conn.sock.settimeout(self._timeout)
            content = {} if body is None else {"Content-Type": "application/json"}
            conn.request(method, target, body, {"Accept": NDJSON, **content, **self._headers})
            answer = conn.getresponse()
            if not 200 <= answer.status < 300:
                raise from_answer(answer.status, answer.read(), answer.getheader("Retry-After"))
            rest = b""
            while block := answer.read1(1 << 16):  # readline takes a cut answer for a whole one
                *lines, rest = (rest + block).split(b"\n")
                for line in lines:
                    yield _checked(line.strip())
            if answer.length:
                raise http.client.IncompleteRead(b"", answer.length)
            if rest:
                yield _checked(rest.strip())
        except (OSError, http.client.HTTPException) as e:
            raise _failure(method, path, e) from e
        finally:
            conn.close()


def _failure(method: str, path: str, e: Exception) -> FrontierError:
    """The exception for a request that broke. A bad certificate, or a server without TLS, stays so."""
    final = isinstance(e, ssl.SSLError) and any(w in (e.reason or "") for w in ("CERTIFICATE", "WRONG_VERSION"))
    return (FrontierError if final else Unavailable)(f"{method} {path}: {e or type(e).__name__}")


def _checked(line: bytes) -> bytes:
    """The line, unless it is the problem that ends an answer."""
    if b'"type"' in line and b'"title"' in line:
        _raise_problem(decode(line))
    return line


def _raise_problem(value: Any) -> None:
    if isinstance(value, dict) and "type" in value and "title" in value:
        raise from_answer(int(value.get("status") or 0), encode(value))


def encode(value: object) -> bytes:
    """Compact JSON."""
    try:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, TypeError) as e:
        raise BadRequest(str(e)) from e


def decode(data: bytes) -> Any:
    """A value of an answer."""
    try:
        return json.loads(data)
    except ValueError as e:
        raise FrontierError(f"the answer is no JSON: {data[:200]!r}") from e


def decode_lines(data: bytes, n: int) -> list[Any]:
    """The n values of an answer. A problem in its last line is raised."""
    got = [decode(line) for line in data.splitlines() if line.strip()]
    if got:
        _raise_problem(got[-1])
    if len(got) != n:
        raise Unavailable(f"the answer has {len(got)} lines; want {n}")
    return got
