"""The command line for tests: a command in this process, or as a process of its own."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import NamedTuple

import pytest

from tallybayes.cli import main

# What no message on the command line names, since it is Python: calls of the library, True and False, lists, dicts
PYTHON = re.compile(
    r"(?<![\w.])tb\.[a-zA-Z]|\b[a-z_]+=(?:True|False|None|\[|\{|['\"]|…)|\b(?:model|schema|tally|data)\.[a-z_]+\(|\bdata\[|\[\('"
)
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
    done = Done(int(end.value.code or 0), *(stream.buffer.getvalue() for stream in streams[1:]))
    said = [found[0] for line in done.err.splitlines() if (found := PYTHON.search(line)) and "Python" not in line]
    assert not said, f"a person at the command line is told of {said[0]!r}:\n{done.err}"
    return done


def start(*arguments: object, given: bytes = b"", **more: object) -> Done:
    """The same as a process of its own."""
    done = subprocess.run([COMMAND, *map(str, arguments)], input=given, capture_output=True, timeout=120, **more)
    return Done(done.returncode, done.stdout, done.stderr)
