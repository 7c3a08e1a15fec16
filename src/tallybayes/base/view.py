"""What a notebook shows: a title, a picture, tables, and folds with the numbers behind them.

A view has no script, asks for nothing from elsewhere, and takes its letters' colour from the page that it stands on, so
that it is read on light and dark pages alike. Its style is about its own classes alone. Texts are escaped here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import numpy as np

from .arrays import Floats
from .wording import printable

FOR, AGAINST, EVEN = "#3b82d0", "#d9792b", "#808890"  # are seen on white and on black, and told apart by most eyes
_LONGEST = 200  # characters of a cell
_LONGEST_TITLE = 2000
_BAR, _TALL = 180, 12  # pixels of a bar
_SQUARE, _EDGE = 190, 26  # pixels of a square picture, and of its edge with the numbers

STYLE = (
    ".tbv{font-size:13px;line-height:1.4;max-width:64em}"
    ".tbv .tbv-t{font-weight:600;margin:.3em 0;overflow-wrap:anywhere}"
    ".tbv .tbv-n{margin:.3em 0;opacity:.75;overflow-wrap:anywhere}"
    ".tbv .tbv-s{overflow-x:auto;max-width:100%}"
    ".tbv table{border-collapse:collapse;border:0;margin:.3em 0;font-size:12px;font-variant-numeric:tabular-nums}"
    ".tbv th,.tbv td{padding:.15em .7em .15em 0;text-align:right;vertical-align:top;white-space:nowrap;color:inherit;"
    "background:none;border:0;border-bottom:1px solid rgba(128,128,128,.3);max-width:none}"
    ".tbv th{font-weight:600;opacity:.75}"
    ".tbv .tbv-l{text-align:left;white-space:normal;overflow-wrap:break-word;max-width:34em}"
    ".tbv .tbv-w{white-space:nowrap}"
    ".tbv tr.tbv-e td{font-weight:600}"
    ".tbv td.tbv-h{text-align:center;padding:.2em .7em}"
    ".tbv details{margin:.3em 0}"
    ".tbv summary{cursor:pointer;opacity:.85}"
    ".tbv .tbv-g{display:inline-block;vertical-align:middle;overflow:visible}"
    ".tbv .tbv-g text{fill:currentColor;font-size:10px}"
    ".tbv .tbv-r{display:flex;flex-wrap:wrap;gap:.3em 2.5em;align-items:flex-start}"
)


class SafeHtml(str):
    """HTML in which whatever came from outside is escaped already."""


def text(value: object, most: int = _LONGEST) -> SafeHtml:
    """A text from outside, short and escaped; its direction of writing stays within it.

    >>> text("a < b")
    '<bdi>a &lt; b</bdi>'
    """
    return SafeHtml(f"<bdi>{escape(printable(value, most))}</bdi>")


def view(title: str, *parts: str) -> str:
    """A view: its title, and its parts, which are safe already."""
    head = f'<div class="tbv-t">{text(title, _LONGEST_TITLE)}</div>' if title else ""
    return f'<div class="tbv"><style>{STYLE}</style>{head}{"".join(parts)}</div>'


def note(said: str) -> SafeHtml:
    """A remark."""
    return SafeHtml(f'<div class="tbv-n">{text(said, _LONGEST_TITLE)}</div>' if said else "")


def fold(summary: str, inside: str, *, is_open: bool = False) -> SafeHtml:
    """What is opened by whoever wants it."""
    state = ' open="open"' if is_open else ""
    return SafeHtml(f"<details{state}><summary>{text(summary)}</summary>{inside}</details>")


def together(*parts: str) -> SafeHtml:
    """Parts that are never cut into two lines."""
    return SafeHtml(f'<span class="tbv-w">{" ".join(parts)}</span>')


def below(*parts: str) -> SafeHtml:
    """Texts below each other, none of them cut into two lines."""
    return SafeHtml("<br/>".join(together(text(part)) for part in parts))


def side_by_side(*parts: str) -> SafeHtml:
    """Parts beside each other where there is room, else below each other."""
    return SafeHtml(f'<div class="tbv-r">{"".join(f"<div>{part}</div>" for part in parts if part)}</div>')


def scrolled(inside: str) -> SafeHtml:
    """What may be wider than the page."""
    return SafeHtml(f'<div class="tbv-s">{inside}</div>')


def table(head: Sequence[str], rows: Iterable[Sequence[str]], left: Iterable[int] = (0,), sums: int = 0) -> SafeHtml:
    """A table; columns `left` are flush left, the last `sums` lines stand out. Cells of `SafeHtml` stay as they are.

    >>> table([""], [["<b>"]])
    '<div class="tbv-s"><table><tr><td class="tbv-l"><bdi>&lt;b&gt;</bdi></td></tr></table></div>'
    """
    flush = set(left)

    def line(tag: str, cells: Sequence[str], kind: str = "") -> str:
        drawn = "".join(_cell(tag, cell, i in flush) for i, cell in enumerate(cells))
        return f"<tr{kind}>{drawn}</tr>"

    lines = list(rows)
    body = [line("td", cells, ' class="tbv-e"' if i >= len(lines) - sums else "") for i, cells in enumerate(lines)]
    return scrolled(f"<table>{line('th', head) if any(head) else ''}{''.join(body)}</table>")


def _cell(tag: str, cell: str, is_left: bool) -> str:
    inside = cell if isinstance(cell, SafeHtml) else text(cell) if is_left else escape(printable(cell, _LONGEST))
    return f'<{tag} class="tbv-l">{inside}</{tag}>' if is_left else f"<{tag}>{inside}</{tag}>"


# ---- pictures


def _svg(wide: float, tall: float, inside: str, said: str) -> SafeHtml:
    return SafeHtml(
        f'<svg class="tbv-g" viewBox="0 0 {wide:g} {tall:g}" width="{wide:g}" height="{tall:g}" role="img" '
        f'aria-label="{escape(printable(said))}">{inside}</svg>'
    )


def _line(x1: float, y1: float, x2: float, y2: float, look: str) -> str:
    return f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" {look}/>'


def _place(share: float, wide: float) -> float:
    return round(float(np.clip(np.nan_to_num(share, nan=0.0, posinf=1.0, neginf=0.0), 0, 1)) * wide, 1)


def floating(low: float, high: float, zero: float, said: str) -> SafeHtml:
    """A bar between two shares of the room, by the order of which it speaks for something or against it."""
    a, b, at = (_place(v, _BAR) for v in (low, high, zero))
    ink, left, wide = FOR if b >= a else AGAINST, min(a, b), max(abs(b - a), 1.0)
    bar = f'<rect x="{left:g}" y="2" width="{wide:g}" height="{_TALL - 4}" fill="{ink}"/>'
    line = _line(at, 0, at, _TALL, f'stroke="{EVEN}"')
    return _svg(_BAR, _TALL, line + bar, said)


def bar(share: float, said: str, wide: int = 60) -> SafeHtml:
    """A bar of this share of its room."""
    drawn = f'<rect x="0" y="2" width="{_place(share, wide):g}" height="{_TALL - 4}" fill="{FOR}"/>'
    return _svg(wide, _TALL, drawn, said)


def span(low: float, value: float, high: float, said: str) -> SafeHtml:
    """A figure on a scale, with its interval: all are shares of the room."""
    middle, room = _TALL / 2, _BAR - 8
    drawn = _line(0, middle, _BAR, middle, f'stroke="{EVEN}" stroke-opacity=".3"')
    if np.isfinite(low) and np.isfinite(high):
        ends = 4 + _place(low, room), 4 + _place(high, room)
        drawn += _line(ends[0], middle, ends[1], middle, f'stroke="{FOR}" stroke-width="2"')
    if np.isfinite(value):
        drawn += f'<circle cx="{4 + _place(value, room):g}" cy="{middle:g}" r="3.5" fill="{FOR}"/>'
    return _svg(_BAR, _TALL, drawn, said)


def square(points: Sequence[tuple[Floats, Floats]], x: str, y: str, said: str, bounds: Any = None) -> SafeHtml:
    """Curves in the unit square, with the diagonal; of `bounds` (x, low, high) each is an interval around a point."""
    room = _SQUARE - 2 * _EDGE

    def at(share: Any, up: bool) -> float:
        place = _place(float(share), room)
        return round(_EDGE + (room - place if up else place), 1)

    zero, one = at(0, False), at(1, False)
    top, base = at(1, True), at(0, True)
    frame = f'fill="none" stroke="{EVEN}" stroke-opacity=".5"'
    drawn = f'<rect x="{zero:g}" y="{top:g}" width="{room}" height="{room}" {frame}/>'
    drawn += _line(zero, base, one, top, f'stroke="{EVEN}" stroke-dasharray="2 3"')
    for place, low, high in zip(*bounds, strict=True) if bounds is not None else ():
        drawn += _line(
            at(place, False), at(low, True), at(place, False), at(high, True), f'stroke="{FOR}" stroke-opacity=".6"'
        )
    for across, up in points:
        line = " ".join(f"{at(a, False):g},{at(b, True):g}" for a, b in zip(across, up, strict=True))
        drawn += f'<polyline points="{line}" fill="none" stroke="{FOR}" stroke-width="1.5"/>'
    if bounds is not None:
        across, up = points[0]
        drawn += "".join(
            f'<circle cx="{at(a, False):g}" cy="{at(b, True):g}" r="2.5" fill="{FOR}"/>'
            for a, b in zip(across, up, strict=True)
        )
    for share in (0, 1):
        drawn += f'<text x="{at(share, False):g}" y="{base + 11:g}" text-anchor="middle">{share}</text>'
        drawn += f'<text x="{zero - 5:g}" y="{at(share, True) + 3:g}" text-anchor="end">{share}</text>'
    middle = _EDGE + room / 2
    drawn += f'<text x="{middle:g}" y="{_SQUARE - 2}" text-anchor="middle">{escape(printable(x, 40))}</text>'
    turned = f'transform="rotate(-90 10 {middle:g})"'
    drawn += f'<text x="10" y="{middle:g}" text-anchor="middle" {turned}>{escape(printable(y, 40))}</text>'
    return _svg(_SQUARE, _SQUARE, drawn, said)


def shaded(counts: Floats, names: Sequence[object]) -> SafeHtml:
    """How often each class (a line) was taken for each (a column), darker where it is a larger share of its line."""
    total = counts.sum(axis=1, keepdims=True)
    share = np.divide(counts, total, out=np.zeros_like(counts), where=total > 0)
    head = "".join(f'<th class="tbv-h">{text(name, 24)}</th>' for name in names)
    lines = []
    for name, line, shares in zip(names, counts, share, strict=True):
        cells = "".join(
            f'<td class="tbv-h" style="background:rgba(59,130,208,{0.65 * p:.2f})">{n:,.10g}</td>'
            for n, p in zip(line, shares, strict=True)
        )
        lines.append(f'<tr><th class="tbv-l">{text(name, 24)}</th>{cells}</tr>')
    corner = '<th class="tbv-l">is ↓ answered →</th>'
    return scrolled(f"<table><tr>{corner}{head}</tr>{''.join(lines)}</table>")
