"""Requests to an ASGI application without a server and without a client."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes
    cookies: Sequence[str] = ()

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def ask(
    app: Any, method: str, address: str, body: Any = None, *, pieces: Sequence[bytes] | None = None, gap: float = 0,
    **headers: str,
) -> Answer:  # fmt: skip
    """The answer to one request; `pieces` are the bytes of a body that comes in parts, `gap` seconds apart."""
    sent = list(pieces) if pieces is not None else [b"" if body is None else json.dumps(body).encode()]
    return asyncio.run(asked(app, method, address, *sent, gap=gap, **headers))


async def asked(app: Any, method: str, address: str, *pieces: bytes, gap: float = 0, **headers: str) -> Answer:
    """The same beside others."""
    path, _, query = address.partition("?")
    named = {"host": "127.0.0.1:8000", "content-type": "application/json"}
    named |= {name.replace("_", "-"): value for name, value in headers.items()}
    scope = {
        "type": "http", "http_version": "1.1", "method": method, "scheme": "http", "path": path, "root_path": "",
        "raw_path": path.encode(), "query_string": query.encode(), "server": ("127.0.0.1", 8000),
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in named.items()],
    }  # fmt: skip
    left = list(pieces)
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        if not left:
            await asyncio.sleep(3600)
        await asyncio.sleep(gap)
        piece = left.pop(0)
        return {"type": "http.request", "body": piece, "more_body": bool(left)}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    start, *rest = sent
    told = {name.decode(): value.decode("latin-1") for name, value in start["headers"]}
    cookies = [value.decode("latin-1") for name, value in start["headers"] if name == b"set-cookie"]
    return Answer(start["status"], told, b"".join(each.get("body", b"") for each in rest), cookies)


def page_at(app: Any, address: str) -> str:
    """A page as it must be: there, with the one script that is ours and no style of its own."""
    found = ask(app, "GET", address)
    assert found.status == 200
    said = found.body.decode()
    assert said.count("<script") == 1
    assert " style=" not in said
    return said
