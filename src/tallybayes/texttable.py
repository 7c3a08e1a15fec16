"""A table of texts as a terminal and a notebook show it; the first line is the head."""

from __future__ import annotations

import html
from collections.abc import Sequence

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


def html_table(lines: Lines) -> str:
    """The lines as an HTML table, every text escaped; nothing where there are none.

    >>> html_table([["a"], ["<b>"]])
    '<table><tr><th>a</th></tr><tr><td>&lt;b&gt;</td></tr></table>'
    """
    tags = ["th", *["td"] * len(lines)]
    rows = [
        "<tr>" + "".join(f"<{tag}>{html.escape(printable(t, _WIDEST))}</{tag}>" for t in line) + "</tr>"
        for tag, line in zip(tags, lines, strict=False)
    ]
    return f"<table>{''.join(rows)}</table>" if rows else ""
