"""How results are shown: figures truly rounded, infinite ones as ∞, and pages drawn as text, as HTML and by rich.

A `Page` is a title above a table of texts; what is `Shown` says which page it is. Whatever comes from the data is made
safe here: without control characters as text, escaped in HTML, and never markup for rich.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from .arrays import Floats
from .canon import printable
from .errors import SettingsError

A = TypeVar("A")
FEWEST, MOST = 4, 9  # digits after the point
_PATIENCE, _PAUSE = 1.0, 0.1  # seconds before a line of progress is worth looking at, and between two of them
_BAR = 24  # characters
_BETWEEN = 3  # characters between columns of a terminal's table
_LABELS = 30  # characters that labels need before they are cut into lines
_WIDEST, _WIDEST_TITLE = 200, 2000  # characters of a cell, of a title
_NUMBERS = "The numbers"
_INKS = {"for": "green", "against": "red", "soft": "dim", "strong": "bold"}
_CLASS_INKS = ("blue", "yellow", "green", "magenta", "cyan", "red")


def running(parts: Floats, digits: int) -> tuple[Floats, Floats, str]:
    """Terms and running totals (lines × columns), each rounded for itself, and a remark where a printed sum is off.

    >>> terms, totals, remark = running(np.array([[0.26], [0.26], [0.26]]), 1)
    >>> terms.ravel().tolist(), totals.ravel().tolist(), remark
    ([0.3, 0.3, 0.3], [0.3, 0.5, 0.8], 'rounded, so that the last digits of a sum may differ')
    """
    with np.errstate(invalid="ignore"):  # of infinities of both signs, which have no sum
        totals = np.asarray(np.round(np.cumsum(parts, axis=0), digits) + 0.0, dtype=np.float64)
        terms = np.asarray(np.round(parts, digits) + 0.0, dtype=np.float64)
        printed = np.round(np.cumsum(terms, axis=0), digits)
    known = np.isfinite(totals) & np.isfinite(printed)
    off = bool(np.any(np.abs(printed[known] - totals[known]) > 0.5 * 10.0**-digits))
    return terms, totals, "rounded, so that the last digits of a sum may differ" if off else ""


def softmax(scores: Floats) -> Floats:
    """exp(s) / Σ exp(s); even shares where every score is −inf, or of those that are +inf."""
    top = np.max(scores)
    p = np.exp(scores - top) if np.isfinite(top) else (scores == top).astype(np.float64)
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
    """The number with its sign; "+∞" and "-∞" where it has no end, "–" where there is none.

    >>> signed(0.5, 2), signed(-np.inf, 2), signed(np.nan, 2)
    ('+0.50', '-∞', '–')
    """
    if np.isnan(value):
        return "–"
    return f"{'+' if value > 0 else '-'}∞" if np.isinf(value) else f"{value:+.{digits}f}"


def times(log_odds: float) -> str:
    """A log-odds as the factor it stands for, "× times more likely", to four figures.

    >>> times(np.log(12)), times(-np.inf), times(800.0)
    ('×12', '×0', '×2.726e+347')
    """
    if np.isnan(log_odds):
        return "–"
    if np.isinf(log_odds):
        return "×∞" if log_odds > 0 else "×0"
    if abs(log_odds) < 700:
        return f"×{np.exp(log_odds):.4g}"
    exponent, rest = divmod(log_odds / np.log(10), 1)
    return f"×{10**rest:.4g}e{exponent:+.0f}"


def strongest(lines: Sequence[A], strengths: Sequence[float], most: int) -> tuple[list[A], list[A]]:
    """The `most` strongest lines in the order they have, and the rest, which is none or more than one.

    >>> strongest("abcd", [1, 3, 2, 4], 2), strongest("abc", [1, 3, 2], 2)
    ((['b', 'd'], ['a', 'c']), (['a', 'b', 'c'], []))
    """
    if len(lines) <= most + 1:  # a rest of one would take the room of the line itself
        return list(lines), []
    kept = set(np.argsort(-np.asarray(strengths), kind="stable")[:most].tolist())
    return [a for i, a in enumerate(lines) if i in kept], [a for i, a in enumerate(lines) if i not in kept]


@dataclass(eq=False, repr=False)  # every cold start meets it
class Page:
    """A title above a table of texts. The first line is the head; a line of fewer cells is a remark across the table.

    >>> print(Page("Days", [["sky", "rows"], ["sunny", "12"], ["… 3 more"]]))
    Days
    sky    rows
    sunny    12
    … 3 more
    """

    title: str
    lines: Sequence[Sequence[str]] = ()
    left: int | Collection[int] = 1  # columns that are flush left: the first so many, or these
    sums: int = 0  # how many of the last lines sum up those above
    indent: int = 0  # characters before the lines of text
    foot: str = ""  # a remark below the table
    head: Sequence[str] = ()  # above the lines, where they have none of their own; texts do without

    def __str__(self) -> str:
        head, rows = self._cells()
        widths = [
            max(map(width, column)) for column in zip(*(row for row in rows if len(row) == len(head)), strict=True)
        ]
        drawn = [
            "  ".join(self._padded(t, i, w) for i, (t, w) in enumerate(zip(row, widths, strict=False))) for row in rows
        ]
        title = [printable(self.title, _WIDEST_TITLE)] if self.title else []
        foot = [printable(self.foot, _WIDEST_TITLE)] if self.foot else []
        return "\n".join([*title, *((" " * self.indent + line).rstrip() for line in drawn), *foot])

    def html(self) -> str:
        """The page as HTML, every text escaped; texts that are flush left keep their direction of writing within them.

        >>> Page("a < b", [["a"], ["<b>"]], left=0).html()
        '<p>a &lt; b</p><table><tr><th>a</th></tr><tr><td>&lt;b&gt;</td></tr></table>'
        """
        from html import escape  # its table of entities is not needed for an answer

        head, rows = self._cells(self.head)
        drawn = []
        for tag, row in zip(["th", *["td"] * len(rows)], rows, strict=False):
            span = "" if len(row) == len(head) else f' colspan="{len(head)}"'
            cells = [
                f'<{tag}{span} style="text-align:left"><bdi>{escape(text)}</bdi></{tag}>'
                if self._is_left(i)
                else f"<{tag}>{escape(text)}</{tag}>"
                for i, text in enumerate(row)
            ]
            drawn.append(f"<tr>{''.join(cells)}</tr>")
        title = f"<p>{escape(printable(self.title, _WIDEST_TITLE))}</p>" if self.title else ""
        foot = f"<p>{escape(printable(self.foot, _WIDEST_TITLE))}</p>" if self.foot else ""
        return title + (f"<table>{''.join(drawn)}</table>" if drawn else "") + foot

    def rich(self) -> Any:
        """The page for a rich console, the sums set off. Texts are only text, whatever markup they hold."""
        from rich import box
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        title = Text(printable(self.title, _WIDEST_TITLE), style="bold" if self.lines else "")
        if not self.lines:
            return title
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        head, rows = self._cells(self.head)
        for i, text in enumerate(head):
            flush = self._is_left(i)
            table.add_column(Text(text), justify="left" if flush else "right", no_wrap=not flush)
        for to_go, row in zip(range(len(rows) - 2, -1, -1), rows[1:], strict=True):
            styles = [
                "bold" if to_go < self.sums else "" if self._is_left(i) else _colour(t) for i, t in enumerate(row)
            ]
            cells = [Text(text, style=style) for text, style in zip(row, styles, strict=True)]
            table.add_row(*cells, end_section=to_go == self.sums)
        foot = [Text(printable(self.foot, _WIDEST_TITLE), style="dim")] if self.foot else []
        return Group(*([title, Text()] if self.title else []), table, *foot)

    def _cells(self, head: Sequence[str] = ()) -> tuple[list[str], list[list[str]]]:
        """The head, and all lines with it, safe to show."""
        lines = [head, *self.lines] if head else self.lines
        rows = [[printable(text, _WIDEST) for text in line] for line in lines]
        return rows[0] if rows else [], rows

    def _padded(self, text: str, column: int, wide: int) -> str:
        spaces = " " * (wide - width(text))
        return text + spaces if self._is_left(column) else spaces + text

    def needs(self, remarks: bool = False) -> int:
        """How many columns of a terminal the table takes where texts that are flush left are cut into short lines.

        The last column is not if it has `remarks`.
        """
        columns = zip(*(row for row in self._cells()[1] if len(row) == len(self.lines[0])), strict=True)
        wide = [max(map(width, column)) for column in columns]
        cut = [self._is_left(i) and not (remarks and i == len(wide) - 1) for i in range(len(wide))]
        shown = (min(w, _LABELS) if is_cut else w for w, is_cut in zip(wide, cut, strict=True))
        return sum(shown) + _BETWEEN * (len(wide) - 1)

    def _is_left(self, column: int) -> bool:
        return column < self.left if isinstance(self.left, int) else column in self.left


def first_that_fits(pages: Iterable[Page], columns: int, *, remarks: bool = False) -> Page:
    """The first page that a terminal of so many columns has room for; the last where it has for none.

    With `remarks` the last column is one of short remarks, which are not cut into lines.
    """
    for page in pages:
        if page.needs(remarks) <= columns:
            break
    return page


def width(text: str) -> int:
    """How many columns of a terminal a text takes: Chinese characters two, marks upon others none.

    >>> width("ab"), width("温度"), width("e\u0301")
    (2, 4, 1)
    """
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(2 if east_asian_width(ch) in "WF" else 0 if combining(ch) else 1 for ch in text)


def _colour(figure: str) -> str:
    """Green for what speaks for a class, red for what speaks against it."""
    if figure[:1] not in ("+", "-") or not figure.strip("+-0."):
        return ""
    return "green" if figure[0] == "+" else "red"


def coloured(pieces: Sequence[tuple[str, str]]) -> Any:
    """One line for a rich console: texts, each with the name of its ink or the number of its class."""
    from rich.text import Text

    line = Text(no_wrap=True, overflow="crop")
    for text, ink in pieces:
        line.append(text, style=_CLASS_INKS[int(ink) % len(_CLASS_INKS)] if ink.isdigit() else _INKS.get(ink, ""))
    return line


class Shown:
    """What is shown as a page: printed, in a notebook, and on a rich console."""

    def _page(self) -> Page:
        raise NotImplementedError

    def __str__(self) -> str:
        return str(self._page())

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """The page as a notebook shows it; below a picture it is folded."""
        from .view import fold, note, scrolled, view

        page, picture = self._page(), self._picture()
        bare = scrolled(Page("", page.lines, page.left, head=page.head).html()) if page.lines else ""
        numbers = bare + note(page.foot)
        return view(page.title, picture, fold(_NUMBERS, numbers) if picture else numbers, *self._folds())

    def _picture(self) -> str:
        """What a notebook shows above the page, as HTML that is safe; nothing by default."""
        return ""

    def _folds(self) -> Iterable[str]:
        """What a notebook shows below the page, as HTML that is safe."""
        return ()

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        yield self._page().rich()


# ---- progress


@contextmanager
def progress_line(progress: bool | Callable[[str, float], None] | None) -> Iterator[Callable[[str, float], None]]:
    """What is told of a long work, as `progress=` asks for it: (what is being done, which share of the whole is done).

    None, or True, draws one line on standard error where a person watches, after a second, and erases it at the end,
    however that comes. False says nothing. A function is told every step.

    >>> with progress_line(lambda what, done: print(f"{what} {done:.0%}")) as tell:
    ...     tell("counting", 0.5)
    counting 50%
    """
    if progress is not None and not isinstance(progress, bool) and not callable(progress):
        raise SettingsError(
            f"progress={progress!r}", hint="take None, False, or a function of two: progress=lambda what, done: …"
        )
    if callable(progress):
        yield progress
        return
    draw = None if progress is False else _drawing(sys.stderr)
    if draw is None:
        yield lambda what, done: None
        return
    begun, last, drawn = time.monotonic(), 0.0, False

    def tell(what: str, done: float) -> None:
        nonlocal last, drawn
        now = time.monotonic()
        if now - begun < _PATIENCE or now - last < _PAUSE:
            return
        full = round(_BAR * done)
        draw(f"{'█' * full}{'░' * (_BAR - full)} {done:4.0%}  {printable(what, 40)}")
        last, drawn = now, True

    try:
        yield tell
    finally:
        if drawn:
            draw("")


def _drawing(stream: Any) -> Callable[[str], None] | None:
    """How a line takes the place of the one before, where a person watches: in a notebook's cell, or in a terminal.

    A notebook keeps what is written to standard error as a coloured stripe, erased or not; what is displayed goes.
    """
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if type(shell).__name__ == "ZMQInteractiveShell":
        return _in_a_cell(sys.modules["IPython.display"].display)
    if stream is None or getattr(stream, "closed", False) or not stream.isatty():
        return None
    width = 0

    def draw(line: str) -> None:
        nonlocal width
        stream.write(f"\r{line:<{width}}" if line else f"\r{'':<{width}}\r")
        stream.flush()
        width = max(width, len(line))

    return draw


def _in_a_cell(display: Callable[..., Any]) -> Callable[[str], None]:
    """A display of a notebook's cell that is drawn once and changed from then on."""
    from html import escape

    shown: Any = None

    def draw(line: str) -> None:
        nonlocal shown
        html = f"<code>{escape(line)}</code>" if line else ""
        bundle = {"text/plain": line, "text/html": html}
        if shown is None:
            shown = display(bundle, raw=True, display_id=True)
        else:
            shown.update(bundle, raw=True)

    return draw
