"""Pictures made of characters, for where a terminal is all there is: bars, intervals, heights, curves.

A `Drawing` is drawn when it is shown, for the `Room` there is: so many columns, and blocks and braille dots or plain
ASCII. Every kind of ink has a shape of its own, so that nothing is lost without colours.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from .arrays import Floats
from .canon import printable
from .show import coloured, width

Piece = tuple[str, str]  # a text, and the ink it is in: "", "for", "against", "soft", "strong" or the number of a class
Drawn = list[Piece]

_NARROWEST, _WIDEST = 30, 120  # columns that are drawn for
_LEAST_BARS, _MOST_BARS = 8, 72
_PLAIN = str.maketrans(
    {"←": "<", "→": ">", "…": "~", "×": "x", "–": "-", "−": "-", "∞": "inf", "·": ".", "₁": "1", "₀": "0", "Σ": "S"}
)
_BLOCKS = " ▁▂▃▄▅▆▇█"
_FILLS = "█▓▒░▚▞"
_ASCII_FILLS = "#=-+%o"
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # of a braille character, by row and column


@dataclass(frozen=True)
class Room:
    """How much room there is, and whether for plain ASCII alone."""

    columns: int = 80
    ascii: bool = False

    @classmethod
    def here(cls, columns: int | None = None, ascii: bool | None = None) -> Room:
        """That of the terminal, unless it is said; lines that no terminal bounds have 80 columns."""
        wide = shutil.get_terminal_size((80, 24)).columns if columns is None else columns
        return cls(min(max(wide, _NARROWEST), _WIDEST), is_plain(sys.stdout) if ascii is None else ascii)

    def fill(self, ink: str) -> str:
        """The character that fills a bar of this ink."""
        at = {"for": 0, "against": 2}.get(ink, int(ink) % len(_FILLS) if ink.isdigit() else 0)
        return (_ASCII_FILLS if self.ascii else _FILLS)[at]

    def mark(self, unicode: str, ascii: str) -> str:
        """One character or the other."""
        return ascii if self.ascii else unicode


def is_plain(stream: Any) -> bool:
    """Whether a stream has room for ASCII alone: it says so, or its terminal knows nothing."""
    encoding = str(getattr(stream, "encoding", None) or "utf-8").lower().replace("-", "").replace("_", "")
    return not encoding.startswith(("utf", "cp65001")) or os.environ.get("TERM", "") in ("dumb", "unknown")


class Drawing:
    """A picture made of characters: print it, or `text(columns)`; a rich console shows it in colours.

    >>> def two(room):
    ...     rows = LabelledLines(room, ["sun", "rain"], ["3", "1"])
    ...     return [rows.line(i, [(rows.bar(share, "0"), "0")]) for i, share in enumerate((1.0, 1 / 3))]
    >>> print(Drawing(two).text(30, ascii=True))
    sun   #####################  3
    rain  #######                1
    """

    def __init__(self, draw: Callable[[Room], list[Drawn]]) -> None:
        self._draw = draw

    def text(self, columns: int | None = None, *, ascii: bool | None = None) -> str:
        """The picture for a terminal of so many columns, without colours."""
        room = Room.here(columns, ascii)
        lines = ("".join(text for text, _ in line).rstrip() for line in self._draw(room))
        return "\n".join(line.translate(_PLAIN) if room.ascii else line for line in lines)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return f'<pre style="line-height:1.15">{escape(self.text(100, ascii=False))}</pre>'

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        room = Room.here(options.max_width, options.ascii_only or is_plain(sys.stdout))
        for line in self._draw(room):
            yield coloured([(text.translate(_PLAIN) if room.ascii else text, ink) for text, ink in line])


def fitted(text: object, columns: int, *, right: bool = False) -> str:
    """A text that takes so many columns: cut, or filled up with spaces.

    >>> fitted("temperature", 5), fitted("温度", 5), fitted("7", 3, right=True)
    ('temp…', '温度 ', '  7')
    """
    shown = printable(text, 200)
    if width(shown) > columns:
        while shown and width(shown) > columns - 1:
            shown = shown[:-1]
        shown += "…"
    spaces = " " * (columns - width(shown))
    return spaces + shown if right else shown + spaces


class LabelledLines:
    """Lines with a label on the left, a figure on the right, and room between them for what is drawn."""

    def __init__(self, room: Room, labels: Sequence[str], figures: Sequence[str]) -> None:
        self.room = room
        self.labels, self.figures = labels, figures
        self._figure = max([width(printable(f, 40)) for f in figures], default=0)
        most = max(room.columns * 2 // 5, 8)
        self._label = min(max([width(printable(text, 200)) for text in labels], default=0), most)
        self.wide = max(min(room.columns - self._label - self._figure - 4, _MOST_BARS), _LEAST_BARS)

    def line(self, at: int, pieces: Drawn, ink: str = "") -> Drawn:
        """The line of a label and its figure, with what is drawn between them."""
        drawn = sum(width(text) for text, _ in pieces)
        gap = " " * max(self.wide - drawn, 0)
        figure = fitted(self.figures[at], self._figure, right=True) if self._figure else ""
        return [(fitted(self.labels[at], self._label), ink), ("  ", ""), *pieces, (gap + "  ", ""), (figure, ink)]

    def under(self, text: str, ink: str = "soft") -> Drawn:
        """A line of text below what is drawn, cut to its room; the ends of a scale by `ends`."""
        return [(" " * (self._label + 2), ""), (fitted(text, self.wide), ink)]

    def ends(self, left: str, right: str, middle: str = "") -> Drawn:
        """What stands at both ends of a scale, and in its middle if there is room."""
        return self.under(ends(self.wide, left, right, middle))

    def bar(self, share: float, ink: str) -> str:
        """A bar of this share of the room; what is more than nothing is seen."""
        cells = min(max(share, 0.0), 1.0) * self.wide if np.isfinite(share) else float(self.wide)
        if self.room.ascii or self.room.fill(ink) != _FILLS[0]:
            return self.room.fill(ink) * max(round(cells), 1 if share > 0 else 0)
        eighths = max(round(cells * 8), 1 if share > 0 else 0)
        return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()

    def floating(self, low: float, high: float, zero: float, ink: str) -> Drawn:
        """A bar from one share of the room to another, at least one character wide, and the line of `zero`."""
        start, end = (min(max(round(v * self.wide), 0), self.wide) for v in (low, high))
        if start == end:
            start, end = (start, end + 1) if start < self.wide else (start - 1, end)
        at = min(max(round(zero * self.wide), 0), self.wide - 1)
        cells = [(" ", "")] * self.wide
        cells[at] = (self.room.mark("│", "|"), "soft")
        cells[start:end] = [(self.room.fill(ink), ink)] * (end - start)
        return joined(cells)

    def span(
        self, low: float, value: float, high: float, mark: float | None, ink: str = "0", *, filled: bool = False
    ) -> Drawn:
        """An interval with its figure, and a mark where it should be: all shares of the room; `filled` as a bar is."""

        def at(share: float) -> int:
            return min(max(round(share * (self.wide - 1)), 0), self.wide - 1)

        cells = [(" ", "")] * self.wide
        if np.isfinite(low) and np.isfinite(high):
            line = self.room.fill(ink) if filled else self.room.mark("─", "-")
            cells[at(low) : at(high) + 1] = [(line, ink)] * (at(high) - at(low) + 1)
        if mark is not None:
            cells[at(mark)] = (self.room.mark("│", "|"), "soft")
        if np.isfinite(value):
            cells[at(value)] = (self.room.mark("●", "o"), ink)
        return joined(cells)


def joined(cells: Sequence[Piece]) -> Drawn:
    """Characters of the same ink as one piece."""
    out: Drawn = []
    for text, ink in cells:
        if out and out[-1][1] == ink:
            out[-1] = (out[-1][0] + text, ink)
        else:
            out.append((text, ink))
    return out


def ends(columns: int, left: str, right: str, middle: str = "") -> str:
    """Two texts at the ends of so many columns, and a third in their middle if there is room."""
    room = columns - width(left) - width(right)
    if room < 1:
        return fitted(left, columns)
    if not middle or width(middle) + 2 > room:
        return left + " " * room + right
    before = (room - width(middle)) // 2
    return left + " " * before + middle + " " * (room - width(middle) - before) + right


def heights(room: Room, values: Floats, tall: int, top: float, ink: str) -> list[Drawn]:
    """Columns of these heights, `top` being all of the lines."""
    shares = np.clip(np.nan_to_num(values / top if top > 0 else values * 0.0), 0, 1)
    steps = 1 if room.ascii else len(_BLOCKS) - 1
    units = np.where(shares > 0, np.maximum(np.rint(shares * tall * steps), 1), 0).astype(int)
    out = []
    for row in range(tall - 1, -1, -1):
        filled = np.clip(units - row * steps, 0, steps)
        out.append([("".join((room.fill(ink) if f else " ") if room.ascii else _BLOCKS[f] for f in filled), ink)])
    return out


def curve(room: Room, x: Floats, y: Floats, columns: int, tall: int) -> list[str]:
    """A line through points of the unit square: braille dots, or stars."""
    across, down = (1, 1) if room.ascii else (2, 4)
    wide, high = columns * across, tall * down
    dots = np.zeros((high, wide), dtype=bool)
    for x0, y0, x1, y1 in zip(x[:-1], y[:-1], x[1:], y[1:], strict=True):
        steps = int(max(abs(x1 - x0) * wide, abs(y1 - y0) * high)) * 2 + 2
        along = np.linspace(0, 1, steps)
        column = np.clip(np.rint((x0 + (x1 - x0) * along) * (wide - 1)), 0, wide - 1).astype(int)
        row = np.clip(np.rint((1 - (y0 + (y1 - y0) * along)) * (high - 1)), 0, high - 1).astype(int)
        dots[row, column] = True
    if room.ascii:
        return ["".join("*" if dot else " " for dot in line) for line in dots]
    cells = dots.reshape(tall, down, columns, across)
    weights = np.array(_DOTS)
    bits = (cells * weights[None, :, None, :]).sum(axis=(1, 3))
    return ["".join(chr(0x2800 + int(b)) if b else " " for b in line) for line in bits]
