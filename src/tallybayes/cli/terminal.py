"""What a person at a terminal sees: lines, tables and errors, never a raw control character."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import click

from ..base.errors import TallybayesError
from .hints import for_commands

_WIDE = 100  # columns of a page that no terminal bounds
_MOST = 500  # characters of one line of a message


def say(line: str, *, error: bool = False) -> None:
    """One line of text, without the control characters that names, values and mail may hold."""
    from ..base.canon import printable

    click.echo(printable(line, _MOST), err=error)


def complain(error: BaseException) -> None:
    """An error in plain words on standard error, where whoever called can read them."""
    if isinstance(error, (click.Abort, KeyboardInterrupt)):
        text = "stopped; no file was changed"
    elif isinstance(error, click.ClickException):
        context = getattr(error, "ctx", None)
        text = error.format_message()
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
        click.echo("\n".join(lines if terminal else (line.rstrip() for line in lines)), nl=False)


def clean(text: Any, most: int = _MOST, style: str = "") -> Any:
    """A text for rich, made safe to show."""
    from rich.text import Text

    from ..base.canon import printable

    if isinstance(text, Text):
        return text
    return Text("\n".join(printable(line, most) for line in str(text).split("\n")), style=style)


def show_json(value: Any) -> None:
    """A value as JSON on standard output; what is no number is null."""
    import json

    click.echo(json.dumps(_plain(value), ensure_ascii=False, indent=1, allow_nan=False, default=str))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return None if isinstance(value, float) and not abs(value) < float("inf") else value


def heading(text: str) -> Any:
    """The heading of a part of a page."""
    from rich.text import Text

    return Text.assemble("\n", clean(text, style="bold"))


def grid(heads: Sequence[str], rows: Iterable[Sequence[Any]], left: int = 1, *, fold: int | None = None) -> Any:
    """A table: the first `left` columns flush left; the column number `fold` takes what room there is and wraps."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="dim")
    for i, head in enumerate(heads):
        table.add_column(
            clean(head, 40),
            justify="left" if i < left else "right",
            no_wrap=fold is not None and i != fold,
            overflow="fold" if i == fold else "ellipsis",
            ratio=1 if i == fold else None,
        )
    for row in rows:
        table.add_row(*(clean(cell, 300) for cell in row))
    return table
