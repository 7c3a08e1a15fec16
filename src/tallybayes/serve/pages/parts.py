"""Pieces that several pages have: names from outside, pictures with a way around them, lists in pages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlencode

from ...explain.plots.paper import svg_file
from ..served import Served
from .frame import Download, PageRequest
from .html import Safe, join, tag, text


def name(of: object, most: int = 60) -> Safe:
    """The name of a column, a class or a value, short, which turns no text around it."""
    shown = str(of)
    return tag("bdi", text(shown, most) if shown.strip() else f"(nothing: {shown!r})")


def picture(address: str, served: Served, says: str) -> Safe | None:
    """A picture that is drawn when it is looked at; None where nothing can draw."""
    if find_spec("matplotlib") is None:
        return None
    sign = "&" if "?" in address else "?"
    return tag("img", src=f"{address}{sign}v={served.version}", alt=says, loading="lazy", class_="drawn")


def without_pictures() -> Safe | None:
    """What to do where nothing can draw."""
    if find_spec("matplotlib") is not None:
        return None
    said = "There are no pictures here, since matplotlib is not installed: "
    return tag("p", said, tag("code", "pip install 'tallybayes[plot]'"), class_="note")


def drawn(asked: PageRequest, key: tuple[Any, ...], display: Callable[[Served], Any], title: str) -> Download:
    """The file of a picture, drawn once for each state of the model."""
    served = asked.desk.served
    made = asked.api.once.get(served, ("picture", *key), lambda: svg_file(display(served), title).encode())
    return Download("picture.svg", made, media_type="image/svg+xml", inline=True)


def page_of(asked: PageRequest, total: int, size: int) -> tuple[int, int]:
    """Which things of a list are on this page: the first, and the end."""
    number = min(max(asked.whole("page") or 1, 1), max(-(-total // size), 1))
    return (number - 1) * size, min(number * size, total)


def pager(
    asked: PageRequest, address: str, total: int, size: int, *, keep: Sequence[str] = (), at: str = ""
) -> Safe | None:
    """Links to the pages before and after this one, with the fields of the address that stay."""
    if total <= size:
        return None
    first, end = page_of(asked, total, size)
    number, last = first // size + 1, -(-total // size)

    def link(to: int, says: str) -> Safe | None:
        if not 1 <= to <= last or to == number:
            return None
        fields = {each: asked.one(each) for each in keep if asked.one(each)} | {"page": to}
        return tag("a", says, href=f"{address}?{urlencode(fields)}{at}")

    said = tag("span", f"{first + 1:,} to {end:,} of {total:,}", class_="soft")
    links = (link(1, "First"), link(number - 1, "Before"), link(number + 1, "Next"), link(last, "Last"))
    return tag("nav", said, [each for each in links if each], aria_label="Pages of this list", class_="row")


def fold(says: Any, *inside: Any, open_: bool = False) -> Safe:
    """Something to be opened by whoever wants it."""
    return tag("details", tag("summary", says), join(*inside), open=open_)
