"""The command line: `tallybayes mail train | score | filter | learn | unlearn`, in the manner of bogofilter.

Exit codes of the mail commands: 0 spam (or done), 1 ham, 2 unsure, 3 error. `filter` exits 0 whatever the answer, and
75 ("try again later") on an error, after the message has gone through unchanged.

Nothing but click is imported before a command runs, so that help and completion are quick.
"""

from __future__ import annotations

import io
import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import click

from .errors import TallybayesError

if TYPE_CHECKING:
    from .mail.filter import Verdict

ANSWERS = {"spam": 0, "ham": 1, "unsure": 2}
ERROR = 3
BAD_INPUT = 2  # of commands other than mail, as click has it; 1 if they could not finish
TRY_AGAIN = 75  # EX_TEMPFAIL of sysexits.h: mail programs keep the message and try again
HEADER = b"X-Tallybayes: "

_STATE = click.argument("state", type=click.Path(dir_okay=False))
_MESSAGE = click.argument("message", type=click.Path(), default="-")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="tallybayes")
def tallybayes() -> None:
    """Naive Bayes by exact counting."""


@tallybayes.group()
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
def train(state: str, places: Sequence[str], spam: Sequence[str], ham: Sequence[str], **settings: Any) -> None:
    """Learn many messages. A PLACE is a folder with the folders spam and ham in it."""
    from .mail.boxes import read_mail
    from .mail.filter import Filter

    if not (places or spam or ham):
        raise click.UsageError("nothing to learn from: give a PLACE, --spam PLACE or --ham PLACE")

    def messages() -> Iterator[tuple[str | None, bytes, str]]:
        for place in places:
            yield from read_mail(place)
        for label, given in (("spam", spam), ("ham", ham)):
            for place in given:
                yield from ((label, raw, where) for _, raw, where in read_mail(place))

    with Filter(state, _new_settings(state, settings)) as box:
        done = box.train(_counted_aloud(messages()))
        learnt = ", ".join(f"{n} {label}" for label, n in box.learnt.items())
    _say(f"{done.new} learnt, {done.moved} moved to the other class, {done.known} known already; in all {learnt}")


@mail.command()
@_STATE
@_MESSAGE
@click.option("--explain", is_flag=True, help="Also print the reasons: natural log-odds, above 0 for spam.")
def score(state: str, message: str, explain: bool) -> None:
    """Print the answer about one message: spam (exit code 0), ham (1) or unsure (2)."""
    verdict = _verdict(state, _read(message))
    _say(f"{verdict}  ({verdict.reason})")
    if explain:
        for line in _reasons(verdict):
            _say(line)
    sys.stdout.flush()
    sys.exit(ANSWERS[verdict.answer])


@mail.command("filter")
@_STATE
def filter_(state: str) -> None:
    """Pass the message on standard input through, with the answer in a header: for procmail and the like."""
    raw = _read("-")
    try:
        out, code = with_header(raw, f"{_verdict(state, raw)}"), 0
    except BaseException as error:  # whatever happens, the message must come out
        out, code = raw, TRY_AGAIN
        _complain(error)
    _write(out)
    sys.exit(code)


@mail.command()
@_STATE
@_MESSAGE
@click.option("--spam", "label", flag_value="spam", help="The message is spam.")
@click.option("--ham", "label", flag_value="ham", help="The message is wanted.")
def learn(state: str, message: str, label: str | None) -> None:
    """Learn one message. If it was learnt with the other label, that is forgotten first."""
    from .mail.filter import Filter

    if label is None:
        raise click.UsageError("say which it is: --spam or --ham")
    raw = _read(message)
    with Filter(state) as box:
        _say(f"learnt as {label}" if box.learn(raw, label) else f"known as {label} already; nothing changed")


@mail.command()
@_STATE
@_MESSAGE
def unlearn(state: str, message: str) -> None:
    """Forget a learnt message, as if it had never come."""
    from .mail.filter import Filter

    raw = _read(message)
    with Filter(state, create=False) as box:
        _say(f"forgotten; it had been learnt as {box.unlearn(raw)}")


def with_header(raw: bytes, answer: str) -> bytes:
    """The message with one header before all others, every other byte as it was.

    A first line "From …", which mailboxes put before the headers, stays first.

    >>> with_header(b"Subject: hi\\r\\n\\r\\nho", "ham, probability=0.0100")
    b'X-Tallybayes: ham, probability=0.0100\\r\\nSubject: hi\\r\\n\\r\\nho'
    """
    first = raw.find(b"\n") + 1
    end = b"\r\n" if raw[:first].endswith(b"\r\n") else b"\n"
    start = first if raw.startswith((b"From ", b">From ")) else 0
    return raw[:start] + HEADER + answer.encode("ascii") + end + raw[start:]


# ---- what the commands share


def _verdict(state: str, raw: bytes) -> Verdict:
    from .mail.filter import Filter

    with Filter(state, create=False) as box:
        return box.score(raw)


def _new_settings(state: str, given: dict[str, Any]) -> Any:
    """The settings of a new state file; None to take those of an existing one, which refuses others."""
    from .mail.filter import FilterSettings
    from .mail.settings import MailSettings

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
    from .canon import printable

    lines = [(printable(f"{c}: {v}" if v else c), odds) for c, v, odds in verdict.reasons()]
    width = max((len(text) for text, _ in lines), default=0)
    yield from (f"  {text:<{width}}  {odds:+9.4f}" for text, odds in lines)
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


def _read(message: str) -> bytes:
    if message == "-":
        return sys.stdin.buffer.read()
    with open(message, "rb") as file:
        return file.read()


def _write(out: bytes) -> None:
    sys.stdout.buffer.write(out)
    sys.stdout.buffer.flush()


def _say(line: str, *, error: bool = False) -> None:
    """One line to the terminal, without the control characters that hostile mail may hold."""
    from .canon import printable

    click.echo(printable(line, 500), err=error)


def _complain(error: BaseException) -> None:
    """An error in plain words on standard error, where whoever called can read them."""
    text = str(error) if isinstance(error, (TallybayesError, OSError)) else f"{type(error).__name__}: {error}"
    if isinstance(error, click.ClickException):
        context = getattr(error, "ctx", None)
        text = error.format_message()
        text += f"\n{context.get_usage()}" if context and "Usage:" not in text else ""
    for line in f"tallybayes: {text}".split("\n"):
        if line:
            _say(line, error=True)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command and exit with its code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal without UTF-8 sees escapes
    warnings.showwarning = lambda message, *_, **__: _say(f"tallybayes: {message}", error=True)
    try:
        tallybayes.main(given, prog_name="tallybayes", standalone_mode=False)
        sys.stdout.flush()
    except BaseException as error:
        if isinstance(error, SystemExit):
            raise
        sys.exit(_failed(error, given))
    sys.exit(0)


def _failed(error: BaseException, given: Sequence[str]) -> int:
    """Say what went wrong; the exit code. A traceback would exit with 1, which says ham."""
    _complain(error)
    in_filter = list(given[:2]) == ["mail", "filter"]
    try:
        if in_filter and isinstance(error, click.UsageError):
            _write(_read("-"))  # even a wrong call loses no message
        sys.stdout.flush()
    except (OSError, ValueError, AttributeError):  # nobody reads, or the disk is full: do not try again on the way out
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if given[:1] == ["mail"]:
        return TRY_AGAIN if in_filter else ERROR
    return BAD_INPUT if isinstance(error, (click.ClickException, TallybayesError)) else 1
