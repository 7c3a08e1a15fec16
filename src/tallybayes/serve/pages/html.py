"""HTML as values: whatever is not `Safe` is escaped when it comes into an element, so nothing can be forgotten."""

from __future__ import annotations

import html
import re
from typing import Any

from ...base.wording import printable
from ..asking import LONGEST

_VOID = {"br", "hr", "img", "input", "link", "meta"}


class Safe(str):
    """A piece of HTML, made here and nowhere else."""

    __slots__ = ()


def text(value: object, most: int = LONGEST) -> Safe:
    """A text from outside: printable but for ends of lines, not too long, escaped."""
    if isinstance(value, Safe):
        return value
    lines = str(value)[: most + 1].split("\n")
    return Safe("\n".join(html.escape(printable(line.rstrip("\r"), most)) for line in lines))


def exact(value: object) -> Safe:
    """A value that a form sends back as it is: escaped, and otherwise untouched."""
    return Safe(html.escape(str(value)))


def join(*inside: Any) -> Safe:
    """Pieces one after the other: texts, `Safe` pieces, lists of them; None and False are nothing."""
    return Safe("".join(_flat(each) for each in inside))


def tag(name: str, /, *inside: Any, **attributes: Any) -> Safe:
    """An element; `class_` and `data_live` are written class and data-live, True stands alone, None and False do not.

    >>> tag("p", "1 < 2", tag("b", "!"), class_="note", hidden=True)
    '<p class="note" hidden>1 &lt; 2<b>!</b></p>'
    """
    told = "".join(_attribute(k.strip("_").replace("_", "-"), v) for k, v in attributes.items())
    return Safe(f"<{name}{told}>") if name in _VOID else Safe(f"<{name}{told}>{join(*inside)}</{name}>")


def table(head: list[Any], rows: list[list[Any]], *, caption: str = "", left: tuple[int, ...] = (0,)) -> Safe:
    """A table that scrolls sideways where it must; the columns `left` are texts."""

    def line(kind: str, cells: list[Any]) -> Safe:
        scope = {"scope": "col"} if kind == "th" else {}
        return tag("tr", [
            tag(kind, c, class_="l" if i in left else None, **scope) if c != "" else tag("td")  # no head is empty
            for i, c in enumerate(cells)
        ])  # fmt: skip

    inside = [
        tag("caption", caption, class_="unseen") if caption else None,
        tag("thead", line("th", head)) if any(head) else None,
        tag("tbody", [line("td", row) for row in rows]),
    ]
    return tag("div", tag("table", inside), class_="scroll", tabindex="0", role="region", aria_label=caption or "table")


def bar(share: float, *, label: str, class_: str = "") -> Safe:
    """A bar as long as a share, between 0 and 1, of the room it has; `label` says it in words."""
    width = 100 * min(max(share, 0.0), 1.0)
    filled = tag("rect", width=f"{width:.2f}", height="8", class_=f"filled {class_}".strip())
    return tag(
        "svg", tag("rect", width="100", height="8", class_="rest"), filled,
        viewBox="0 0 100 8", preserveAspectRatio="none", class_="bar", role="img", aria_label=label,
    )  # fmt: skip


def leaning(share: float, *, label: str) -> Safe:
    """A bar from the middle to the right for a share above 0, to the left for one below; at most 1 either way."""
    width = 50 * min(abs(share), 1.0)
    side = tag(
        "rect", x=f"{50 if share > 0 else 50 - width:.2f}", width=f"{width:.2f}", height="8",
        class_="for" if share > 0 else "against",
    )  # fmt: skip
    middle = tag("rect", x="49.7", width="0.6", height="8", class_="middle")
    return tag(
        "svg", tag("rect", width="100", height="8", class_="rest"), side, middle,
        viewBox="0 0 100 8", preserveAspectRatio="none", class_="bar", role="img", aria_label=label,
    )  # fmt: skip


def on_enter(says: str) -> Safe:
    """What Enter presses in the fields of a form, where it stands first: else a browser takes the first button."""
    return tag("button", says, type="submit", class_="unseen", tabindex="-1", aria_hidden="true")


def choice(name: str, options: list[tuple[str, Any]], chosen: str, **attributes: Any) -> Safe:
    """A list to choose from: what is sent, and what is shown."""
    each = [tag("option", shown, value=value, selected=value == chosen) for value, shown in options]
    return tag("select", each, name=name, **attributes)


def natural(label: object) -> tuple[bool, Any]:
    """What labels and names are ordered by where people look for one: numbers by size, also those within a text.

    >>> sorted(["k10", "k2", "k", "k02b", "a"], key=natural), sorted([10, 9.5, "b"], key=natural)
    (['a', 'k', 'k2', 'k02b', 'k10'], [9.5, 10, 'b'])
    """
    if isinstance(label, (int, float)):
        return False, label
    parts = re.split("([0-9]+)", str(label))
    return True, [(len(p.lstrip("0")), p.lstrip("0")) if i % 2 else p for i, p in enumerate(parts)]


def _flat(value: Any) -> str:
    if value is None or value is False:
        return ""
    return "".join(_flat(each) for each in value) if isinstance(value, (list, tuple)) else text(value)


def _attribute(name: str, value: Any) -> str:
    if value is None or value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{text(value)}"'
