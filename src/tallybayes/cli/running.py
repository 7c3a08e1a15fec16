"""From arguments to an exit code: the command that is meant, and whatever goes wrong in plain words.

Exit codes: 0 done, 1 could not finish (disk, interrupt), 2 bad input or usage, 143 ended by SIGTERM; `mail` has its
own, see there. Whatever goes wrong is said on standard error, never as a traceback. click is loaded for commands that
`one_message` does not run by itself.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from ..base.errors import FileError, TallybayesError
from .one_message import ERROR, TRY_AGAIN, pass_on, plain
from .terminal import complain, for_commands, from_click, say

DONE, NOT_FINISHED, BAD_INPUT, TERMINATED = 0, 1, 2, 128 + signal.SIGTERM


class NobodyReads(Exception):
    """A broken pipe by a name that click does not know: it would exit with 1, which of mail says ham."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command and exit with its code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal without UTF-8 sees escapes
    warnings.showwarning = lambda message, *_, **__: say(f"tallybayes: {for_commands(str(message))}", error=True)
    with _ending_on_sigterm() as told:
        try:
            quick = plain(given)
            if quick is not None:
                code = quick()
                sys.stdout.flush()
                sys.exit(code)
            from .program import tallybayes

            tallybayes.main(given, prog_name="tallybayes", standalone_mode=False)
            sys.stdout.flush()
        except BaseException as error:
            if isinstance(error, SystemExit):
                raise
            if isinstance(error, NobodyReads):
                error = BrokenPipeError(*error.args)
            code = _failed(KeyboardInterrupt() if told else error, given)
            sys.exit(TERMINATED if told and code == NOT_FINISHED else code)
    sys.exit(DONE)


@contextlib.contextmanager
def _ending_on_sigterm() -> Iterator[list[int]]:
    """Take SIGTERM for Ctrl-C, so that files in the making go away; the list gets the signal if it comes."""
    told: list[int] = []

    def end(number: int, frame: Any) -> None:
        told.append(number)
        raise KeyboardInterrupt

    try:
        before = signal.signal(signal.SIGTERM, end)
    except ValueError:  # not the main thread: somebody else's program, and their signals
        yield told
        return
    try:
        yield told
    finally:
        signal.signal(signal.SIGTERM, before)


def _failed(error: BaseException, given: Sequence[str]) -> int:
    """Say what went wrong; the exit code. A traceback would exit with 1, which of mail says ham."""
    in_mail, in_filter = given[:1] == ["mail"], list(given[:2]) == ["mail", "filter"]
    if (in_mail and "--each" not in given) or not isinstance(
        error, BrokenPipeError
    ):  # whoever closed it has seen enough
        complain(error)
    try:
        if in_filter and from_click(error, "UsageError"):
            pass_on(sys.stdin.buffer.read())  # even a wrong call loses no message
        sys.stdout.flush()
    except (OSError, ValueError, AttributeError):  # nobody reads, or the disk is full: do not try again on the way out
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if in_mail:
        return TRY_AGAIN if in_filter else ERROR
    ours = (isinstance(error, TallybayesError) or from_click(error, "ClickException")) and not isinstance(
        error, FileError
    )
    return BAD_INPUT if ours else NOT_FINISHED
