"""`tallybayes mail score` and `mail filter` on their plain way: what a mail server starts for every message.

Nothing here loads click, NumPy or what comes with them: that takes longer than the answer. The commands of `mail` run
the same functions, and read what `plain` does not: options, help, and wrong calls.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
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
    raw = one_message(message)
    with scoring(state) as score:
        verdict = score(raw)
    say(f"{verdict}  ({verdict.reason})")
    return ANSWERS[verdict.answer]


def filter_message(state: str) -> int:
    """Pass the message on standard input through, with the answer in a header; the exit code."""
    raw = sys.stdin.buffer.read()
    try:
        from ..mail.message import with_header

        with scoring(state) as score:
            out, code = with_header(raw, f"{score(raw)}"), 0
    except BaseException as error:  # whatever happens, the message must come out
        out, code = raw, TRY_AGAIN
        complain(error)
    pass_on(out)
    return code


def score_each(state: str, places: Sequence[str]) -> int:
    """Print the answer about every message of some places, and where it is; the exit code."""
    from ..mail.boxes import read_mail

    with scoring(state) as score:
        for place in places:
            for _, raw, where in read_mail(place):
                say(f"{score(raw)}  {where}")
    return 0


@contextlib.contextmanager
def scoring(state: str) -> Iterator[Callable[[bytes], Verdict]]:
    """The answers of a state file, by what a message has; by all that was learnt where that has to be read."""
    from ..mail.answers import Scorer
    from ..mail.state import LongWay, State

    with contextlib.ExitStack() as stack:
        opened = stack.enter_context(State(state))
        ways: list[Callable[[bytes], Verdict]] = []

        def score(raw: bytes) -> Verdict:
            try:
                ways[:] = ways or [Scorer(opened).score]
                return ways[0](raw)
            except LongWay:
                from ..mail.filter import Filter

                ways[:] = [stack.enter_context(Filter(state, create=False)).score]
                return ways[0](raw)

        yield score


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
