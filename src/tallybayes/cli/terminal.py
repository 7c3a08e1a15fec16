"""What a person at a terminal sees: lines, tables, errors and a progress bar, never a raw control character.

Hints of the library are put into the words of the command line: `tb.read(path, encoding='cp1252')` is
`--encoding cp1252`. Colours, wrapping and the bar are for a terminal; a pipe gets plain lines, and no bar.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

from ..base.errors import TallybayesError
from ..base.wording import printable

_WIDE = 100  # columns of a page that no terminal bounds
_LONGEST = 500  # characters of one line of a message
_PATIENCE = 1.0  # seconds before a bar is worth looking at
_WORDS = {"target='…'": "--target COLUMN", "model.save(path)": "tallybayes fit -o MODEL"}
Tell = Callable[..., None]  # (rows read, share done or None, and what is being done)
_OPTIONS = ("keep", "delimiter", "encoding", "decimal", "bad_lines", "memory_limit", "table", "query", "new_classes")


def say(line: str, *, error: bool = False) -> None:
    """One line of text, without the control characters that names, values and mail may hold."""
    echo(printable(line, _LONGEST) + "\n", error=error)


def echo(text: str, *, error: bool = False) -> None:
    """A text as it is, written at once: whoever reads the other end may wait for it."""
    stream = sys.stderr if error else sys.stdout
    if stream is not None:  # a program without a console has none
        stream.write(text)
        stream.flush()


def from_click(error: BaseException, name: str) -> bool:
    """Whether an error is of this class of click, which need not be loaded to tell."""
    return any(kind.__name__ == name and kind.__module__.startswith("click.") for kind in type(error).__mro__)


def complain(error: BaseException) -> None:
    """An error in plain words on standard error, where whoever called can read them."""
    if isinstance(error, KeyboardInterrupt) or from_click(error, "Abort"):
        text = "stopped; no file was changed"
    elif from_click(error, "ClickException"):
        context = getattr(error, "ctx", None)
        text = error.format_message()  # type: ignore[attr-defined]
        text += f"\n{context.get_usage()}" if context and "Usage:" not in text else ""
    elif isinstance(error, (TallybayesError, OSError)):
        text = for_commands(str(error))
    else:
        text = f"{type(error).__name__}: {error}"
    for line in f"tallybayes: {text}".split("\n"):
        if line:
            say(line, error=True)


def show(*pieces: Any) -> None:
    """Each piece on standard output: a rich table, or a text, taken as it is. Colours on a terminal only.

    Pages are as wide as the terminal; where there is none, as COLUMNS says, or 100.
    """
    from rich.console import Console

    terminal = sys.stdout.isatty()
    width = None if terminal or os.environ.get("COLUMNS", "").isdigit() else _WIDE
    out = Console(file=sys.stdout, highlight=False, markup=False, emoji=False, width=width)
    for piece in pieces:
        with out.capture() as drawn:
            out.print(
                clean(piece) if isinstance(piece, str) else piece, soft_wrap=isinstance(piece, str) and not terminal
            )
        lines = drawn.get().split("\n")
        echo("\n".join(lines if terminal else (line.rstrip() for line in lines)))


def clean(text: Any, most: int = _LONGEST, style: str = "") -> Any:
    """A text for rich, made safe to show."""
    from rich.text import Text

    if isinstance(text, Text):
        return text
    return Text("\n".join(printable(line, most) for line in str(text).split("\n")), style=style)


def show_json(value: Any) -> None:
    """A value as JSON on standard output; what is no number is null, what has no end "Infinity" or "-Infinity"."""
    import json

    from ..base.wording import jsonable

    echo(json.dumps(jsonable(value), ensure_ascii=False, indent=1, allow_nan=False, default=str) + "\n")


def heading(text: str) -> Any:
    """The heading of a part of a page."""
    from rich.text import Text

    return Text.assemble("\n", clean(text, style="bold"))


def grid(
    heads: Sequence[str], rows: Iterable[Sequence[Any]], left: int | Collection[int] = 1, *, fold: int | None = None
) -> Any:
    """A table: the first `left` columns, or these, flush left; the column `fold` takes what room there is and wraps."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="dim")
    for i, head in enumerate(heads):
        table.add_column(
            clean(head, 40),
            justify="left" if (i < left if isinstance(left, int) else i in left) else "right",
            no_wrap=fold is not None and i != fold,
            overflow="fold" if i == fold else "ellipsis",
            ratio=1 if i == fold else None,
        )
    for row in rows:
        table.add_row(*(clean(cell, 300) for cell in row))
    return table


def for_commands(text: str) -> str:
    """The text with Python calls that an option stands for replaced by that option.

    >>> for_commands("say it: tb.read(path, encoding='latin-1').")
    'say it: --encoding latin-1.'
    >>> for_commands("count it with schema.with_column('my boat', kind='category').")
    "count it with --set 'my boat=category'."
    """
    for words, ours in _WORDS.items():
        text = text.replace(words, ours)
    text = re.sub(r"tb\.read\([^()=]*?, (\w+)=(['\"])(.*?)\2\)", lambda m: _option(m[1], m[3]), text)
    text = re.sub(r"\b(" + "|".join(_OPTIONS) + r")=(['\"])(.*?)\2", lambda m: _option(m[1], m[3]), text)
    return re.sub(
        r"schema\.with_column\((['\"])(.*?)\1, kind=(['\"])(\w+)\3\)",
        lambda m: f"--set {shlex.quote(f'{m[2]}={m[4]}')}",
        text,
    )


def _option(name: str, value: str) -> str:
    name = "read-as" if name == "format" else name.replace("_", "-")
    return f"--{name} {shlex.quote(value)}"


@contextlib.contextmanager
def bar(what: str = "reading", stream: Any = None, hidden: bool = False) -> Iterator[Tell | None]:
    """A callback for `tb.read(…, progress=…)` that draws a bar on standard error, or None where nobody watches.

    The bar appears after a second and leaves no trace. Reading again, as `fit` does, starts it again.

    >>> import io
    >>> with bar("counting", io.StringIO()) as tell:
    ...     print(tell)
    None
    """
    stream = sys.stderr if stream is None else stream
    if hidden or not stream.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[rows]:,} rows"))
    shown = Progress(*columns, TimeRemainingColumn(), console=Console(file=stream), transient=True)
    task = shown.add_task(what, total=None, rows=0)
    begun = time.monotonic()
    before = 0

    def tell(rows: int, share: float | None, now: str = what) -> None:
        nonlocal before
        if rows < before:
            shown.reset(task, rows=0)
        before = rows
        if not shown.live.is_started and time.monotonic() - begun > _PATIENCE:
            shown.start()
        total = None if share is None else 1.0
        shown.update(task, total=total, completed=share or 0.0, rows=rows, description=now)

    try:
        yield tell
    finally:
        if shown.live.is_started:
            shown.stop()
