"""The command line for tests: a command in this process, or as a process of its own."""

from __future__ import annotations

import io
import subprocess
import sys
import warnings
from pathlib import Path
from typing import NamedTuple

import pytest

from tallybayes.cli import main

COMMAND = str(Path(sys.executable).parent / "tallybayes")


class Done(NamedTuple):
    returncode: int
    stdout: bytes
    stderr: bytes

    @property
    def out(self) -> str:
        return self.stdout.decode()

    @property
    def err(self) -> str:
        return self.stderr.decode()


def run(*arguments: object, given: bytes = b"", together: bool = False) -> Done:
    """A command, in this process: starting one takes half a second. `together`: both streams as a terminal has them."""
    streams = [io.TextIOWrapper(io.BytesIO(content), encoding="utf-8", newline="") for content in (given, b"", b"")]
    if together:
        streams[2] = streams[1]
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("default")
        for name, stream in zip(("stdin", "stdout", "stderr"), streams, strict=True):
            patch.setattr(sys, name, stream)
        with pytest.raises(SystemExit) as end:
            main([str(a) for a in arguments])
        for stream in streams:
            stream.flush()
    return Done(int(end.value.code or 0), *(stream.buffer.getvalue() for stream in streams[1:]))


def start(*arguments: object, given: bytes = b"", **more: object) -> Done:
    """The same as a process of its own."""
    done = subprocess.run([COMMAND, *map(str, arguments)], input=given, capture_output=True, timeout=120, **more)
    return Done(done.returncode, done.stdout, done.stderr)
