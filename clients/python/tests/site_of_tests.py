"""A site on loopback with several hosts, and a log of who asked when."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Site:
    """Hosts 127.0.1.1 and so on, each with pages /0 to /n-1 that link to each other."""

    def __init__(self, hosts: int, pages: int) -> None:
        self.pages = pages
        self.log: list[tuple[str, str, float, float]] = []
        self.lock = threading.Lock()
        self.counts: dict[str, int] = defaultdict(int)
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                began = time.monotonic()
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                host = self.headers["Host"].split(":")[0]
                with site.lock:
                    site.counts[host + self.path] += 1
                    tries = site.counts[host + self.path]
                status, headers, body = site.answer(self.path, tries)
                site.counts["answered"] += 1
                with site.lock:
                    site.log.append((host, self.path, began, time.monotonic()))
                self.send_response(status)
                for k, v in headers.items():
                    self.send_header(k, v)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_POST = do_GET

            def log_message(self, format: str, *args: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

        self.server = Server(("0.0.0.0", 0), Handler)
        port = self.server.server_address[1]
        self.hosts = [f"http://127.0.1.{i + 1}:{port}" for i in range(hosts)]
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self.thread.start()

    def answer(self, path: str, tries: int) -> tuple[int, dict[str, str], bytes]:
        if path == "/robots.txt":
            return 200, {"Content-Type": "text/plain"}, b"User-agent: *\nDisallow: /private\n"
        if path == "/moved":
            return 302, {"Location": "/1"}, b""
        if path == "/flaky" and tries == 1:
            return 503, {"Retry-After": "1"}, b""
        if path == "/busy" and tries == 1:
            return 429, {}, b""
        if path == "/gone":
            return 404, {}, b""
        at = int(path[1:]) if path[1:].isdigit() else 0
        links = [f'<a href="/{i}">x</a>' for i in (at + 1, 2 * at + 1, 2 * at + 2) if i < self.pages]
        if at == 0:
            links += [f'<a href="{p}">x</a>' for p in ("/moved", "/gone", "/private")]
        if at == self.pages - 1:  # last, as it makes the server back off
            links.append('<a href="/flaky">x</a>')
        return 200, {"Content-Type": "text/html"}, ("<html>" + "".join(links)).encode()

    def wanted(self) -> set[str]:
        return {f"/{i}" for i in range(self.pages)} | {"/moved", "/flaky", "/gone"}

    def asked(self) -> dict[str, set[str]]:
        out: dict[str, set[str]] = defaultdict(set)
        for host, path, _, _ in self.log:
            out[host].add(path)
        return out

    def early(self, gap: float) -> list[str]:
        """Contacts with a host that began less than gap after the one before ended."""
        out, last = [], {}  # type: ignore[var-annotated]
        for host, path, began, ended in sorted(self.log, key=lambda r: r[2]):
            if host in last and began - last[host][1] < gap:
                out.append(f"{host}{path} {began - last[host][1]:.3f} s after {last[host][0]}")
            last[host] = (path, ended)
        return out

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
