"""A real server on loopback, built from this repository."""

from __future__ import annotations

import os
import signal
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from frontier_client import Client, Unavailable

REPOSITORY = Path(__file__).resolve().parents[3]


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port: int = s.getsockname()[1]
        return port


class Server:
    def __init__(self, command: str, folder: Path) -> None:
        self.command, self.folder = command, folder
        self.address = f"127.0.0.1:{free_port()}"
        self.url = f"http://{self.address}"
        self.options: list[str] = []
        self.context: ssl.SSLContext | None = None
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with open(self.folder / "log", "ab") as log:
            args = [self.command, "serve", "-dir", str(self.folder / "state"), "-http", self.address, "-grpc", "off", *self.options]
            self.process = subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        with Client(self.url, context=self.context) as c:
            for _ in range(600):
                try:
                    c.stats()
                    return
                except Unavailable:
                    if self.process.poll() is not None:
                        break
                    time.sleep(0.1)
        raise RuntimeError("the server does not start: " + (self.folder / "log").read_text()[-2000:])

    def with_tls(self) -> str:
        """Start again with TLS, and return the file of the certificate."""
        cert, key = str(self.folder / "cert"), str(self.folder / "key")
        make = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=test -addext subjectAltName=IP:127.0.0.1"
        subprocess.run([*make.split(), "-keyout", key, "-out", cert], check=True, capture_output=True)
        self.kill()
        self.url = f"https://{self.address}"
        self.options = ["-tls-cert", cert, "-tls-key", key]
        self.context = ssl.create_default_context(cafile=cert)
        self.start()
        return cert

    def kill(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def delay(self, seconds: float) -> None:
        with Client(self.url) as c:
            c.do("delay", "*", delay={"fixed": f"{round(seconds * 1000)}ms"})


Answer = tuple[int, bytes]


class Stub:
    """An HTTP server that answers by a function of path and body, or passes a
    request on to a real server where that returns None: as forth changes its body, and the answer as
    back changes that."""

    def __init__(
        self,
        answer: Callable[[str, bytes], Answer | None],
        server: Server | None = None,
        forth: Callable[[bytes], bytes] = bytes,
        back: Callable[[bytes], bytes] = bytes,
    ) -> None:
        behind = "" if server is None else server.url

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                got = answer(self.path, body)
                if got is None:
                    kept = {k: v for k, v in self.headers.items() if k.title() in ("Content-Type", "Accept")}
                    try:
                        with urlopen(Request(behind + self.path, forth(body) or None, kept, method=self.command)) as a:
                            got = a.status, back(a.read())
                    except HTTPError as e:
                        got = e.code, e.read()
                self.send_response(got[0])
                self.send_header("Content-Length", str(len(got[1])))
                self.end_headers()
                self.wfile.write(got[1])

            do_POST = do_PUT = do_DELETE = do_GET

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"
        threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def __enter__(self) -> Stub:
        return self

    def __exit__(self, *_: object) -> None:
        self.http.shutdown()
        self.http.server_close()


class Relay:
    """Another address of a server, which can be killed and started again."""

    def __init__(self, server: Server) -> None:
        self._to = ("127.0.0.1", int(server.address.rpartition(":")[2]))
        self._port = free_port()
        self._listener: socket.socket | None = None
        self._open: list[socket.socket] = []
        self._lock = threading.Lock()
        self.url = f"http://127.0.0.1:{self._port}"
        self.asked = 0
        self.start()

    def start(self) -> None:
        if self._listener is None:
            self._listener = socket.create_server(("127.0.0.1", self._port))
            threading.Thread(target=self._run, args=(self._listener,), daemon=True).start()

    def kill(self) -> None:
        with self._lock:
            gone, self._open = self._open, []
            if self._listener is not None:
                gone.append(self._listener)
                self._listener = None
        for s in gone:
            try:
                s.shutdown(socket.SHUT_RDWR)  # wakes the thread that reads it
            except OSError:
                pass
            s.close()

    def _run(self, listener: socket.socket) -> None:
        while True:
            try:
                ends = listener.accept()[0], socket.create_connection(self._to)
            except OSError:
                return
            with self._lock:
                self._open += ends
            for a, b in (ends, ends[::-1]):
                threading.Thread(target=self._pass, args=(a, b), daemon=True).start()

    def _pass(self, a: socket.socket, b: socket.socket) -> None:
        try:
            while block := a.recv(1 << 16):
                self.asked += 1
                b.sendall(block)
            b.shutdown(socket.SHUT_WR)
        except OSError:
            pass


def problem(kind: str, status: int) -> bytes:
    return b'{"type":"/problems/%s","title":"%s","status":%d,"detail":"as a test wants"}\n' % (kind.encode(), kind.encode(), status)


@pytest.fixture(scope="session")
def command(tmp_path_factory: pytest.TempPathFactory) -> str:
    if built := os.environ.get("FRONTIER"):
        return built
    out = tmp_path_factory.mktemp("bin") / "frontier"
    subprocess.run(["go", "build", "-o", str(out), "./cmd/frontier"], cwd=REPOSITORY, check=True)
    return str(out)


@pytest.fixture
def server(command: str, tmp_path: Path) -> Iterator[Server]:
    s = Server(command, tmp_path)
    s.start()
    yield s
    if s.process is not None and s.process.poll() is None:
        s.kill()


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    with Client(server.url) as c:
        yield c
