"""What every picture stands on: matplotlib if it is there, colours for light and dark pages, and safe texts."""

from __future__ import annotations

import io
import re
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ...base.canon import printable
from ...base.errors import MissingExtra

INK, GRID = "#010203", "#020304"  # of pictures for a page: put in place of these are the page's own colours
COLOURS = ("#3a86c8", "#e0762f", "#3d9a5f", "#cf4a5b", "#8a66cf", "#a8763e", "#d06aa8", "#7d8590", "#a9a52f", "#2aa5b5")
FOR, AGAINST, EVEN = "#3d9a5f", "#cf4a5b", "#7d8590"
_DRAWING = threading.Lock()  # matplotlib's settings are those of the whole process
_ALONE = (  # a picture that is a file of its own has no page to take colours from
    "<style>svg{color:#1c2128;--grid:#d8dee4}"
    "@media (prefers-color-scheme:dark){svg{color:#e6e8eb;--grid:#3a4049}}</style>"
)


def matplotlib() -> Any:
    """The package, or an error that names the command to install it."""
    try:
        import matplotlib as found
    except ImportError:
        raise MissingExtra("plots need matplotlib", hint="pip install matplotlib") from None
    return found


def axes(ax: Any, width: float, height: float) -> Any:
    """The axes to draw on: those given, or new ones of this size in inches."""
    matplotlib()
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def label(text: object, most: int = 28) -> str:
    """A text that matplotlib shows as it is: short, printable, and no formula whatever dollars it holds.

    >>> label("cost in $")
    'cost in \\\\$'
    """
    clean = printable(text, most).replace("$", r"\$")
    return f" {clean}" if clean.startswith("_") else clean  # matplotlib leaves names that begin so out of legends


def colour(number: int) -> str:
    """The colour of a class."""
    return COLOURS[number % len(COLOURS)]


def class_colours(shown: Sequence[int], classes: int) -> list[str]:
    """A colour for each class that is shown: its own in every picture, or one by one where there are too many."""
    return [colour(i if classes > len(COLOURS) else c) for i, c in enumerate(shown)]


def bare(ax: Any, *, grid: str | None = None) -> None:
    """No frame where none is needed, and a faint grid."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    if grid:
        ax.grid(axis=grid, linewidth=0.6, alpha=0.6)
        ax.set_axisbelow(True)


def legend_above(ax: Any, title: str = "") -> None:
    """The legend over the picture, where it hides nothing, in as many columns as there is room for."""
    place = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "borderaxespad": 0.2, "columnspacing": 1.2}
    names = min(len(ax.get_legend_handles_labels()[0]), 4)
    if names == 0:
        return
    room = _room(ax)
    for columns in range(names, 0, -1):
        made = ax.legend(
            ncols=columns, title=title or None, title_fontsize=8, alignment="left", handlelength=1.3, **place
        )
        if made.get_window_extent().width <= room:
            return
    made.set_loc("lower right")  # wider than the axes: over what stands left of them
    made.set_bbox_to_anchor((1.0, 1.0), transform=ax.transAxes)


def width(ax: Any) -> float:
    """How many inches of the figure belong to these axes and what stands beside them."""
    place = ax.get_subplotspec()
    return float(ax.figure.bbox.width / ax.figure.dpi) / (1 if place is None else place.get_gridspec().ncols)


def _room(ax: Any) -> float:
    """How wide the axes can be beside what stands left of them, in dots."""
    beside = max(ax.bbox.x0 - ax.get_tightbbox().x0, 0.0)
    return float(width(ax) * ax.figure.dpi - beside - 8)


def below(ax: Any, text: str) -> None:
    """A text below the axes: in their middle, or to the left of their end where they are narrower than it is."""
    made = ax.set_xlabel(text)
    if made.get_window_extent().width > _room(ax):
        ax.set_xlabel(text, loc="right")


def letters(ax: Any, share: float) -> int:
    """How many letters have room in a share of the width."""
    size = matplotlib().rcParams["font.size"]
    return max(int(share * width(ax) * 72 / (0.6 * size)), 8)


@contextmanager
def page_style() -> Iterator[None]:
    """Settings for pictures in a page: its own ink and letters, nothing behind them."""
    style: dict[str, Any] = {
        "svg.fonttype": "none",
        "svg.hashsalt": "tallybayes",
        "font.size": 10,
        "axes.linewidth": 0.8,
        "legend.frameon": False,
        "legend.fontsize": 9,
        "grid.color": GRID,
    }
    style |= dict.fromkeys(
        ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color", "axes.titlecolor"), INK
    )
    style |= dict.fromkeys(("figure.facecolor", "axes.facecolor", "savefig.facecolor"), "none")
    with matplotlib().rc_context(style):
        yield


def svg(display: Any, name: str, title: str) -> str:
    """A display drawn as an SVG element to stand in a page; `name` keeps its ids apart from those of others."""
    return _embedded(_drawn(display), name, title)


def svg_file(display: Any, title: str) -> str:
    """A display drawn as a file of its own, in light and dark, as an element `img` shows it."""
    text = _drawn(display)
    head = text[text.index("<svg") :]
    sizes = " ".join(re.findall(r'\s((?:width|height)="[^"]*")', head[: head.index(">")]))
    out = _embedded(text, "p", title).replace("<svg", f"<svg {sizes}", 1)
    return out.replace(">", f">{_ALONE}", 1)


def _drawn(display: Any) -> str:
    with _DRAWING, page_style(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # the reader's browser has the letters
        from matplotlib.figure import Figure

        figure = Figure(figsize=display.size, layout="constrained")
        display.plot(figure.subplots())
        out = io.StringIO()
        figure.savefig(
            out, format="svg", transparent=True, metadata={"Date": None, "Creator": None, "Format": None, "Type": None}
        )
    return out.getvalue()


def _embedded(text: str, name: str, title: str) -> str:
    """The picture without its prologue, in the colours of the page, with ids that no other picture has."""
    from html import escape

    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.S)
    text = re.sub(r'(\bid=")', rf"\g<1>{name}-", text)
    text = re.sub(r"url\(#", f"url(#{name}-", text)
    text = re.sub(r'(xlink:href="#)', rf"\g<1>{name}-", text)
    text = text.replace(INK, "currentColor").replace(GRID, "var(--grid, #ccc)")
    text = re.sub(r"font: ([\d.]+)px [^;\"]*", r"font: \1px system-ui, sans-serif", text)
    text = re.sub(r"font: (\w+) ([\d.]+)px [^;\"]*", r"font: \1 \2px system-ui, sans-serif", text)
    head = re.sub(r'\s(width|height)="[^"]*"', "", text[: text.index(">")])
    return f'{head} role="img" aria-label="{escape(printable(title, 120))}"{text[text.index(">") :]}'


def stacked(places: Sequence[float], widths: Sequence[float]) -> list[int]:
    """On which line above a scale each label goes, 0 the nearest, so that none covers another.

    >>> stacked([0.0, 0.1, 1.0], [0.4, 0.4, 0.4])
    [0, 1, 0]
    """
    out, ends = [0] * len(places), [-float("inf")]
    for i in sorted(range(len(places)), key=lambda i: places[i] - widths[i] / 2):
        left = places[i] - widths[i] / 2
        level = next((n for n, end in enumerate(ends) if end <= left), len(ends))
        ends[level : level + 1] = [left + widths[i]]
        out[i] = level
    return out
