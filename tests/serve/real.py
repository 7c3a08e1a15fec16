"""The real server as a process of its own, asked by plain sockets: what a browser would never send can be sent."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class RealServer:
    port: int
    process: subprocess.Popen[str]

    def ask(self, path: str, body: Any = None, **headers: str) -> Any:
        """The answer to a good request."""
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        named = {"Content-Type": "application/json"} | {n.replace("_", "-"): v for n, v in headers.items()}
        sent = None if body is None else json.dumps(body)
        try:
            link.request("GET" if body is None else "POST", path, sent, named)
            found = link.getresponse()
            told = json.load(found)
        finally:
            link.close()
        assert found.status == 200, told
        return told

    def connect(self, timeout: float = 30) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=timeout)

    def raw(self, *pieces: bytes, timeout: float = 30) -> bytes:
        """All that comes back for some bytes until the server hangs up; a server that hangs up early is no error."""
        out = b""
        with self.connect(timeout) as link:
            with contextlib.suppress(ConnectionError):
                for each in pieces:
                    link.sendall(each)
            with contextlib.suppress(ConnectionError):
                while got := link.recv(1 << 16):
                    out += got
        return out

    def memory(self) -> int:
        """Bytes of memory that it takes."""
        found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8"))
        assert found is not None
        return int(found[1]) * 1024


@contextlib.contextmanager
def serving(model: Path, *words: str) -> Iterator[RealServer]:
    """The server of a model, until it is told to end; or until somebody kills it."""
    command = [sys.executable, "-m", "tallybayes", "serve", str(model), "--port", "0", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            line = process.stdout.readline()
            found = re.search(r"127\.0\.0\.1:(\d+)", line)
            assert found is not None, line + process.stderr.read()
            yield RealServer(int(found[1]), process)
        finally:
            process.kill()


def one_answer(link: socket.socket) -> bytes:
    """The first answer on a wire, whole; what there is of it where the server hangs up."""
    out = b""
    while got := link.recv(1 << 16):
        out += got
        head, end, body = out.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: (\d+)", head)
        if end and length and len(body) >= int(length[1]):
            break
    return out


def statuses(raw: bytes) -> list[int]:
    """The statuses of all answers in some bytes."""
    return [int(each) for each in re.findall(rb"HTTP/1\.1 (\d{3}) ", raw)]
