"""What a client may take its time over: the limits of connections, which uvicorn leaves to a proxy.

    nothing sent, or half a head     some seconds; then 408, or silence to who has said nothing
    a body after the answer          a moment, so that the answer is read: who sends a gigabyte is told, not drained
    an answer that nobody takes      until all such answers together are too much to hold
    an end that is not taken         some seconds
    too many at once                 whoever has been silent longest gives way

A look at each connection once a second does it; a request costs nothing. How long a body and an answer may take is the
guard's. Apart from `app`, since only who listens needs uvicorn.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from .problems import ApiProblem

MOST_CLIENTS = 256  # connected at once
MOST_UNTAKEN = 256_000_000  # bytes of answers, of all clients
_LOOK = 1.0  # seconds from one look to the next
_PATIENCE = {"silent": 10.0, "leftover": 2.0, "taking": 60.0, "ending": 5.0}
_LARGE = 1_000_000  # bytes of an answer


class Connection(H11Protocol):
    """A client of the server, whose patience has an end."""

    _state: tuple[str, Any] = ("", None)
    _since = 0.0
    _next_look: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Let a client in; where there are too many, the one that has been silent longest goes."""
        super().connection_made(transport)
        self._note(self.loop.time())
        if len(self.connections) > MOST_CLIENTS:
            silent = [each for each in self._others() if each is not self and each._doing()[0] != "asking"]
            min(silent, key=lambda each: each._since, default=self).transport.abort()
        self._next_look = self.loop.call_later(_LOOK, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has gone."""
        if self._next_look is not None:
            self._next_look.cancel()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP, or has too long a head."""
        self._refuse(ApiProblem("not-http", "the request is not HTTP, or its head is too long", "send a shorter one."))

    def _refuse(self, problem: ApiProblem) -> None:
        status, headers, body = problem.answer
        told = [*headers.items(), ("content-length", str(len(body))), ("connection", "close")]
        start = h11.Response(status_code=status, headers=told, reason=HTTPStatus(status).phrase.encode())
        try:
            for event in (start, h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event))
        except h11.LocalProtocolError:  # an answer is on its way already
            pass
        self.transport.close()

    def _doing(self) -> tuple[str, Any]:
        """What the client is doing, and of which request."""
        answered = self.cycle is None or self.cycle.response_complete
        if self.transport.is_closing():
            return "ending", None
        if not answered:
            return "asking", self.cycle
        if self.transport.get_write_buffer_size():
            return "taking", self.cycle
        return ("leftover" if self.conn.their_state is h11.SEND_BODY else "silent"), self.cycle

    def _note(self, now: float) -> None:
        state = self._doing()
        if state != self._state:
            self._state, self._since = state, now

    def _look(self) -> None:
        now = self.loop.time()
        self._note(now)
        doing = self._state[0]
        late = now - self._since > _PATIENCE.get(doing, float("inf"))
        if late and doing == "silent" and self.conn.trailing_data[0]:
            self._refuse(ApiProblem("slow-body", "the head of the request was not there in time", "send it at once."))
        elif late or self._is_too_much():
            self.transport.abort()
            return
        self._next_look = self.loop.call_later(_LOOK, self._look)

    def _is_too_much(self) -> bool:
        """Whether its answer is a large one that is not taken, and all of them together are too much."""
        if self.transport.get_write_buffer_size() < _LARGE:
            return False
        untaken: int = sum(each.transport.get_write_buffer_size() for each in self._others())
        return untaken > MOST_UNTAKEN

    def _others(self) -> list[Connection]:
        """All clients, itself included."""
        return [each for each in self.connections if isinstance(each, Connection)]
