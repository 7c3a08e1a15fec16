"""A table of texts as a terminal and a notebook show it; the first line is the head."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

from .canon import printable

Lines = Sequence[Sequence[str]]
_WIDEST = 200  # characters of a cell


def text_table(lines: Lines, left: int) -> str:
    """The lines in columns, the first `left` of them flush left, the others flush right.

    >>> print(text_table([["sky", "rows"], ["sunny", "12"]], left=1))
    sky    rows
    sunny    12
    """
    cells = [[printable(text, _WIDEST) for text in line] for line in lines]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    sides = ["<" if i < left else ">" for i in range(len(widths))]
    return "\n".join(
        "  ".join(f"{t:{side}{w}}" for t, side, w in zip(line, sides, widths, strict=True)).rstrip() for line in cells
    )


def html_table(lines: Lines, left: int = 0) -> str:
    """The lines as an HTML table, every text escaped; nothing where there are none.

    The first `left` cells of a line are flush left and names: their own direction of writing stays within them.

    >>> html_table([["a"], ["<b>"]])
    '<table><tr><th>a</th></tr><tr><td>&lt;b&gt;</td></tr></table>'
    """
    tags = ["th", *["td"] * len(lines)]
    rows = [
        "<tr>" + "".join(_cell(tag, text, i < left) for i, text in enumerate(line)) + "</tr>"
        for tag, line in zip(tags, lines, strict=False)
    ]
    return f"<table>{''.join(rows)}</table>" if rows else ""


def _cell(tag: str, text: str, is_name: bool) -> str:
    inside = html.escape(printable(text, _WIDEST))
    return f'<{tag} style="text-align:left"><bdi>{inside}</bdi></{tag}>' if is_name else f"<{tag}>{inside}</{tag}>"


def rich_table(title: str, lines: Lines, left: int, *, foot: int = 0) -> Any:
    """The lines as a rich table under a title that is as long as it needs to be; the last `foot` lines are set off.

    Texts are only text, whatever markup they hold.
    """
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for i, head in enumerate(lines[0]):
        table.add_column(Text(printable(head, _WIDEST)), justify="left" if i < left else "right", no_wrap=i >= left)
    for number, line in enumerate(lines[1:], start=1):
        last = number >= len(lines) - foot
        cells = [
            Text(printable(text, _WIDEST), style="bold" if last else _style(text, i < left))
            for i, text in enumerate(line)
        ]
        table.add_row(*cells, end_section=number == len(lines) - foot - 1)
    return Group(Text(printable(title, _WIDEST), style="bold"), Text(), table)


def _style(text: str, is_name: bool) -> str:
    """Green for what speaks for a class, red for what speaks against it."""
    if is_name or text[:1] not in ("+", "-") or not text.strip("+-0."):
        return ""
    return "green" if text[0] == "+" else "red"
