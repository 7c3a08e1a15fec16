"""A file on its way into the folder: piece by piece to the disk, and there under its name when all of it has come."""

from __future__ import annotations

import contextlib
import os
import sys

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request

from ...base.disk import file_errors, replacing
from ..problems import ApiProblem
from ..tables import TABLES, is_table, note_upload
from .frame import Frame

_PIECE = 1 << 20  # bytes that go to the disk at once


async def receive(frame: Frame, request: Request) -> str:
    """Keep the body of a request as a file of the folder; its name, which has a number where the name was taken.

    Whatever goes wrong on the way, nothing is left of it.
    """
    frame.check(request.headers.get("x-form-token", ""))
    name = request.query_params.get("name", "").strip()
    if not is_table(name):
        hint = f"a table is a file whose name ends in {', '.join(TABLES)}; a model is put into the folder by hand."
        raise ApiProblem("data", f"{name[:120]!r} is no table by its name", hint)
    with contextlib.ExitStack() as held:
        path = held.enter_context(frame.place.coming(name))
        file = await run_in_threadpool(_Arriving, path)
        try:
            await _fill(file, request)
            await run_in_threadpool(file.end)
        except BaseException:  # also that the client has gone, or the time is up
            file.drop()
            raise
        await run_in_threadpool(note_upload, path)
    return os.path.basename(path)


async def _fill(file: _Arriving, request: Request) -> None:
    waiting = bytearray()
    try:
        async for piece in request.stream():
            waiting += piece
            if len(waiting) >= _PIECE:
                await run_in_threadpool(file.write, bytes(waiting))
                waiting.clear()
    except ClientDisconnect:
        raise ApiProblem("slow-body", "the client has gone before all was there", "send it again.") from None
    await run_in_threadpool(file.write, bytes(waiting))
    if not file.size:
        raise ApiProblem("data", "the file is empty", "send one with a line of names and at least one row.")


class _Arriving:
    """A file that has no name until it has come."""

    def __init__(self, path: str) -> None:
        self.path, self.size = path, 0
        self._held = contextlib.ExitStack()
        self._file = self._held.enter_context(replacing(path, private=True))

    def write(self, piece: bytes) -> None:
        """Add some bytes."""
        view = memoryview(piece)
        with file_errors(self.path, "written"):
            while len(view):
                written = os.write(self._file, view)
                view, self.size = view[written:], self.size + written

    def end(self) -> None:
        """All of it has come."""
        self._held.close()

    def drop(self) -> None:
        """Leave nothing of it; called where an error is being handled."""
        with contextlib.suppress(BaseException):
            self._held.__exit__(*sys.exc_info())
