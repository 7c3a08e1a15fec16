"""`tallybayes mail train | score | filter | learn | unlearn | serve`, in the manner of bogofilter.

Exit codes: 0 spam (or done), 1 ham, 2 unsure, 3 error. `filter` exits 0 whatever the answer, and 75 ("try again
later") on an error, after the message has gone through unchanged.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from .one_message import ANSWERS, filter_message, one_message, score_each, score_message
from .terminal import complain, say

if TYPE_CHECKING:
    from ..mail.answers import Verdict

_STATE = click.argument("state", type=click.Path(dir_okay=False))
_MESSAGE = click.argument("message", type=click.Path(), default="-")


@click.group()
def mail() -> None:
    """Learn which mail is spam, and tell.

    STATE is one file that holds all that was learnt. A MESSAGE is a file, or - for standard input.
    """


@mail.command()
@_STATE
@click.argument("places", nargs=-1, type=click.Path())
@click.option("--spam", multiple=True, metavar="PLACE", help="A file, mbox, Maildir or folder of spam.")
@click.option("--ham", multiple=True, metavar="PLACE", help="The same of wanted mail.")
@click.option(
    "--owner", help="Your names, with commas between; a greeting with one of them is evidence. New files only."
)
@click.option("--spam-from", type=float, help="The answer is spam from this probability upwards (0.9). New files only.")
@click.option("--ham-to", type=float, help="The answer is ham up to this probability (0.1). New files only.")
@click.option(
    "--kind",
    type=click.Choice(["auto", "message", "mbox", "maildir", "folder"]),
    default="auto",
    metavar="KIND",
    help="message, mbox, maildir or folder, where a look at the places does not tell.",
)
def train(
    state: str, places: Sequence[str], spam: Sequence[str], ham: Sequence[str], kind: str, **settings: Any
) -> None:
    """Learn many messages. A PLACE is a folder with the folders spam and ham in it."""
    from ..mail.boxes import read_mail
    from ..mail.filter import Filter

    if not (places or spam or ham):
        raise click.UsageError("nothing to learn from: give a PLACE, --spam PLACE or --ham PLACE")

    def messages() -> Iterator[tuple[str | None, bytes, str]]:
        for place in places:
            yield from read_mail(place, kind=kind)
        for label, given in (("spam", spam), ("ham", ham)):
            for place in given:
                yield from (_labelled(label, *found) for found in read_mail(place, kind=kind))

    with Filter(state, _new_settings(state, settings)) as box:
        done = box.train(_counted_aloud(messages()))
        learnt = ", ".join(f"{n} {label}" for label, n in box.learnt.items())
    say(f"{done.new} learnt, {done.moved} moved to the other class, {done.known} known already; in all {learnt}")


@mail.command()
@_STATE
@_MESSAGE
@click.option("--explain", is_flag=True, help="Also print the reasons: natural log-odds, above 0 for spam.")
@click.option("--each", multiple=True, metavar="PLACE", help="All messages of an mbox, Maildir or folder; exit code 0.")
def score(state: str, message: str, explain: bool, each: Sequence[str]) -> None:
    """Print the answer about one message: spam (exit code 0), ham (1) or unsure (2)."""
    if each and (explain or message != "-"):
        raise click.UsageError("--each PLACE stands alone: give neither a MESSAGE nor --explain")
    if not explain:
        sys.exit(score_each(state, each) if each else score_message(state, message))
    from ..mail.filter import Filter

    raw = one_message(message)
    with Filter(state, create=False) as box:
        verdict = box.score(raw)
        say(f"{verdict}  ({verdict.reason})")
        for line in _reasons(verdict):
            say(line)
    sys.exit(ANSWERS[verdict.answer])


@mail.command("filter")
@_STATE
def filter_(state: str) -> None:
    """Pass the message on standard input through, with the answer in a header: for procmail and the like."""
    sys.exit(filter_message(state))


@mail.command()
@_STATE
@_MESSAGE
@click.option("--spam", is_flag=True, help="The message is spam.")
@click.option("--ham", is_flag=True, help="The message is wanted.")
def learn(state: str, message: str, spam: bool, ham: bool) -> None:
    """Learn one message. If it was learnt with the other label, that is forgotten first."""
    from ..mail.filter import Filter

    if spam == ham:
        raise click.UsageError("say which it is: --spam or --ham" + ", not both" * spam)
    label = "spam" if spam else "ham"
    raw = one_message(message)
    with Filter(state) as box:
        say(f"learnt as {label}" if box.learn(raw, label) else f"known as {label} already; nothing changed")


@mail.command()
@_STATE
@_MESSAGE
def unlearn(state: str, message: str) -> None:
    """Forget a learnt message, as if it had never come."""
    from ..mail.filter import Filter

    raw = one_message(message)
    with Filter(state, create=False) as box:
        say(f"forgotten; it had been learnt as {box.unlearn(raw)}")


@mail.command()
@_STATE
@click.argument("socket", type=click.Path())
@click.option("--allow-tell", is_flag=True, help="Let clients learn and forget, too (the command TELL).")
@click.option("--max-size", type=click.IntRange(1), default=10_000_000, metavar="BYTES", help="Refuse more (10000000).")
@click.option("--timeout", type=click.FloatRange(0.1, 86_400), default=30.0, metavar="SECONDS", help="Per client (30).")
@click.option("--mode", default="600", metavar="OCTAL", help="Who may use the socket, as chmod says it (600: you).")
def serve(state: str, socket: str, allow_tell: bool, max_size: int, timeout: float, mode: str) -> None:
    """Answer the clients of SpamAssassin (spamc and others) on a Unix SOCKET, until SIGTERM or Ctrl-C."""
    from ..mail.serve import Limits, MailServer

    if not re.fullmatch("0?[0-7]{3}", mode):
        raise click.UsageError(f"--mode {mode}: write three octal digits, such as 600 or 660")
    limits = Limits(max_size, timeout)
    with MailServer(state, socket, tell=allow_tell, limits=limits, mode=int(mode, 8), report=complain) as server:
        say(f"serving {state} on {socket}; spamc -U {socket} asks")
        with contextlib.suppress(KeyboardInterrupt):  # SIGTERM, too
            server.serve_forever()


# ---- what they share


def _new_settings(state: str, given: dict[str, Any]) -> Any:
    """The settings of a new state file; None to take those of an existing one, which refuses others."""
    from ..mail.answers import FilterSettings
    from ..mail.parts import MailSettings

    wanted = {name: value for name, value in given.items() if value is not None}
    if not wanted:
        return None
    if os.path.exists(state) and os.path.getsize(state):
        raise click.UsageError(f"{state} is there already and keeps its settings: " + ", ".join(sorted(wanted)))
    standard = FilterSettings()
    return FilterSettings(
        spam=wanted.get("spam_from", standard.spam),
        ham=wanted.get("ham_to", standard.ham),
        mail=MailSettings(owner=wanted.get("owner", "")),
    )


def _reasons(verdict: Verdict) -> Iterator[str]:
    from ..base.canon import printable
    from ..base.show import Page

    lines = [(printable(f"{c}: {v}" if v else c), f"{odds:+9.4f}") for c, v, odds in verdict.reasons()]
    yield from str(Page("", lines, indent=2)).splitlines()
    yield from (f"  note: {note}" for note in verdict.notes)


def _counted_aloud(messages: Iterable[Any], every: int = 1000) -> Iterator[Any]:
    """The same messages; a person at a terminal sees them counted."""
    shown = sys.stderr.isatty()
    for number, message in enumerate(messages):
        if shown and number and number % every == 0:
            print(f"\r{number:,} messages", end="", file=sys.stderr, flush=True)
        yield message
    if shown:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _labelled(label: str, found: str | None, raw: bytes, where: str) -> tuple[str, bytes, str]:
    """A message with the label that was given for its place, unless its folder is named after the other one."""
    from ..base.canon import printable
    from ..base.errors import DataError

    if found in ("spam", "ham") and found != label:
        raise DataError(
            f"{printable(where, 200)} is in a folder called {found}, given as --{label}",
            hint="give the place without --spam and --ham to learn each folder as it is called.",
        )
    return label, raw, where
