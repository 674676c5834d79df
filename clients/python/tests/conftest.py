"""A real server on loopback, built from this repository."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

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
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with open(self.folder / "log", "ab") as log:
            args = [self.command, "serve", "-dir", str(self.folder / "state"), "-http", self.address, "-grpc", "off"]
            self.process = subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        with Client(self.url) as c:
            for _ in range(600):
                try:
                    c.stats()
                    return
                except Unavailable:
                    if self.process.poll() is not None:
                        break
                    time.sleep(0.1)
        raise RuntimeError("the server does not start: " + (self.folder / "log").read_text()[-2000:])

    def kill(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def delay(self, seconds: float) -> None:
        with Client(self.url) as c:
            c.do("delay", "*", delay={"fixed": f"{round(seconds * 1000)}ms"})


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
