"""Tables as a terminal and a notebook show them, and sums as printed: rounded, and adding up to the last digit."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

import numpy as np

from .arrays import Floats
from .canon import printable

FEWEST, MOST = 4, 9  # digits after the point


def cascade(parts: Floats, digits: int) -> tuple[Floats, Floats]:
    """Terms and running totals (lines × columns), rounded so that each printed total is the sum of the printed terms.

    The totals are rounded, and a term is the difference of two of them: a total is at most half a unit of the last
    digit from the truth, a term less than one. Where a total is infinite the term is rounded alone.

    >>> terms, totals = cascade(np.array([[0.26], [0.26], [0.26]]), 1)
    >>> terms.ravel().tolist(), totals.ravel().tolist()
    ([0.3, 0.2, 0.3], [0.3, 0.5, 0.8])
    """
    with np.errstate(invalid="ignore"):
        totals = np.asarray(np.round(np.cumsum(parts, axis=0), digits) + 0.0, dtype=np.float64)
        terms = np.asarray(np.round(np.diff(totals, axis=0, prepend=0.0), digits) + 0.0)
    return np.where(np.isfinite(terms), terms, np.round(parts, digits) + 0.0), totals


def softmax(scores: Floats) -> Floats:
    """exp(s) / Σ exp(s); even shares where every score is −inf."""
    top = np.max(scores)
    p = np.exp(scores - top) if np.isfinite(top) else np.ones(len(scores))
    out: Floats = p / p.sum()
    return out


def digits_for(totals: Floats, unit: float, probabilities: Floats, shown: int = 4) -> int:
    """How many digits of the totals give the printed probabilities back: at least four, at most nine.

    A reader who takes the printed totals (in logs of `unit`) to their power and divides by the sum finds each
    probability to the `shown` digits that stand below them.

    >>> digits_for(np.array([0.0, np.log(3)]), 1.0, np.array([0.25, 0.75]))
    4
    """
    wanted = np.round(probabilities, shown)
    for digits in range(FEWEST, MOST):
        if np.array_equal(np.round(softmax(np.round(totals, digits) * unit), shown), wanted):
            return digits
    return MOST


def signed(value: float, digits: int) -> str:
    """The number with its sign; "+∞" and "−∞" where it has no end.

    >>> signed(0.5, 2), signed(-np.inf, 2)
    ('+0.50', '-∞')
    """
    return f"{'+' if value > 0 else '-'}∞" if np.isinf(value) else f"{value:+.{digits}f}"


def times(log_odds: float) -> str:
    """A log-odds as the factor it stands for, "× times more likely", to four figures.

    >>> times(np.log(12)), times(-np.inf), times(800.0)
    ('×12', '×0', '×2.726e+347')
    """
    if np.isinf(log_odds):
        return "×∞" if log_odds > 0 else "×0"
    if abs(log_odds) < 700:
        return f"×{np.exp(log_odds):.4g}"
    exponent, rest = divmod(log_odds / np.log(10), 1)
    return f"×{10**rest:.4g}e{exponent:+.0f}"


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
