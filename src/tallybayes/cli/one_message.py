"""`tallybayes mail score` and `mail filter` on their plain way: what a mail server starts for every message.

Nothing here loads click, NumPy or what comes with them: that takes longer than the answer. The commands of `mail` run
the same functions, and read what `plain` does not: options, help, and wrong calls.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from .terminal import complain, say

if TYPE_CHECKING:
    from ..mail.answers import Verdict

ANSWERS = {"spam": 0, "ham": 1, "unsure": 2}
ERROR = 3
TRY_AGAIN = 75  # EX_TEMPFAIL of sysexits.h: mail programs keep the message and try again


def plain(given: Sequence[str]) -> Callable[[], int] | None:
    """What to run for a command that needs no click, to its exit code; None for any other."""
    verb, paths = tuple(given[:2]), list(given[2:])
    if any(path.startswith("-") and path != "-" for path in paths) or not all(map(_may_be_file, paths)):
        return None
    if verb == ("mail", "score") and len(paths) in (1, 2) and paths[0] != "-":
        return partial(score_message, *paths)
    if verb == ("mail", "filter") and len(paths) == 1 and paths[0] != "-":
        return partial(filter_message, *paths)
    return None


def _may_be_file(path: str) -> bool:
    """Whether click would not refuse this path: the errors about others are click's."""
    return not os.path.exists(path) or (os.path.isfile(path) and os.access(path, os.R_OK))


def score_message(state: str, message: str = "-") -> int:
    """Print the answer about one message; its exit code."""
    verdict = verdict_of(state, one_message(message))
    say(f"{verdict}  ({verdict.reason})")
    return ANSWERS[verdict.answer]


def filter_message(state: str) -> int:
    """Pass the message on standard input through, with the answer in a header; the exit code."""
    raw = sys.stdin.buffer.read()
    try:
        from ..mail.message import with_header

        out, code = with_header(raw, f"{verdict_of(state, raw)}"), 0
    except BaseException as error:  # whatever happens, the message must come out
        out, code = raw, TRY_AGAIN
        complain(error)
    pass_on(out)
    return code


def verdict_of(state: str, raw: bytes) -> Verdict:
    """The answer of a state file, by what the message has; by all that was learnt where that has to be read."""
    from ..mail.answers import Scorer
    from ..mail.state import LongWay, State

    with State(state) as opened:
        try:
            return Scorer(opened).score(raw)
        except LongWay:
            pass
    from ..mail.filter import Filter

    with Filter(state, create=False) as box:
        return box.score(raw)


def one_message(message: str) -> bytes:
    """The bytes of a message, from a file or standard input; one that cannot be read, or holds nothing, is refused."""
    from ..base.errors import DataError
    from ..base.wording import printable

    if message == "-":
        where, raw = "standard input", sys.stdin.buffer.read()
    else:
        where = repr(printable(message, 200))
        try:
            with open(message, "rb") as file:
                raw = file.read()
        except OSError as error:
            raise DataError(
                f"{where} cannot be read: {error.strerror}",
                hint="name a file with one message, or pipe the message in; `mail train` reads folders.",
            ) from None
    if not raw.strip():
        raise DataError(f"{where} holds no message: it is empty", hint="give a message with its headers.")
    return raw


def pass_on(out: bytes) -> None:
    """Bytes to standard output."""
    sys.stdout.buffer.write(out)
    sys.stdout.buffer.flush()
