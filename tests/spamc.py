"""A mail server in this process, and a client that asks it as spamc does."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tallybayes.mail.serve import MailServer


@contextlib.contextmanager
def served(state: Path, **more: Any) -> Iterator[str]:
    """The address of a server in this process."""
    address, wrong = str(state.with_name("socket")), more.pop("wrong", [])
    with MailServer(str(state), address, report=wrong.append, **more) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield address
        finally:
            server.shutdown()
            thread.join()


def ask(address: str, sent: bytes, *, close: bool = True) -> tuple[bytes, dict[bytes, bytes], bytes]:
    """The first line of the answer, its headers and its body."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(20)
        client.connect(address)
        with contextlib.suppress(BrokenPipeError):  # refused before all of it was read
            client.sendall(sent)
        if close:
            client.shutdown(socket.SHUT_WR)
        out = b""
        with contextlib.suppress(ConnectionResetError):
            while piece := client.recv(1 << 16):
                out += piece
    head, _, body = out.partition(b"\r\n\r\n")
    first, *lines = head.split(b"\r\n")
    return first, dict(line.split(b": ", 1) for line in lines if line), body


def request(command: str, raw: bytes, *headers: str, length: int | None = None) -> bytes:
    lines = [f"{command} SPAMC/1.5", f"Content-length: {len(raw) if length is None else length}", *headers, "", ""]
    return "\r\n".join(lines).encode() + raw
