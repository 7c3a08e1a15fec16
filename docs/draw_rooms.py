"""Draws docs/rooms.svg: the rooms, what each is for, and the doors that open upwards.

    python docs/draw_rooms.py

It is made from the import contract in pyproject.toml, the first sentence of each room's page (the docstring of its
`__init__`) and the imports themselves, and tests/test_rooms.py fails when the file is not what this draws.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape
from textwrap import wrap

from house import ROOT, Contract, House

WIDTH = 520
MARGIN = 44  # beside the boxes, where the doors' arrows run
GAP = 16
PADDING = 12
SIZE, SMALL, LINE = 13.5, 12.5, 18.0  # of letters, and from line to line
LETTER = 0.545  # the width of a letter of the text, in letter sizes, with some air: no font is measured
FIXED = 0.62  # of the letters of names

STYLE = """
  .paper { fill: #ffffff; stroke: #d8dee4 }
  .box { fill: #f6f8fa; stroke: #c4ccd4 }
  .bar { fill: #4c6fbf }
  .chip { fill: #e3eaf8; stroke: none }
  text { font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; fill: #2b333b }
  .name, .sub, .door { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace }
  .name { font-weight: 700; fill: #1d3f8f }
  .sub { fill: #1d3f8f }
  .note { fill: #57606a }
  .door { fill: #a84300 }
  .way { fill: none; stroke: #c2590c; stroke-width: 1.3 }
  .head { fill: #c2590c }
  @media (prefers-color-scheme: dark) {
    .paper { fill: #0d1117; stroke: #30363d }
    .box { fill: #161b22; stroke: #3d444d }
    .bar { fill: #6d8fe0 }
    .chip { fill: #233152 }
    text { fill: #d5dbe1 }
    .name, .sub { fill: #9dbcff }
    .note { fill: #9198a1 }
    .door { fill: #ffa657 }
    .way { stroke: #e08a3c }
    .head { fill: #e08a3c }
  }
"""


@dataclass(frozen=True)
class Way:
    """A door as it is drawn: from room to room, with the names of the methods that open it."""

    source: str
    target: str
    names: tuple[str, ...]


def ways(house: House, contract: Contract) -> list[Way]:
    """The imports that point upwards, by the rooms they join; each must be a door of the contract."""
    height = {room: i for i, layer in enumerate(contract.layers) for room in layer}
    named = {(door.source, door.target) for door in contract.doors}
    found: dict[tuple[str, str], list[str]] = {}
    for module in house.modules.values():
        here = module.name.partition(".")[0]
        for each in house.imports(module):
            there = each.target.partition(".")[0]
            if not each.ours or each.typing or here not in house.pages or there not in house.pages:
                continue
            if there == here or height[there] > height[here]:
                continue
            by_name = f"{house.folder.name}.{each.target}" in module.text  # loaded by its name, which no contract sees
            if (module.name, each.target) not in named and not by_name:
                raise ValueError(f"{module.name}, line {each.line} imports {each.target}, which is above and no door")
            name = each.inside.rpartition(".")[2] or house.modules[each.target].room.rpartition(".")[2]
            names = found.setdefault((here, there), [])
            names += [name] if name not in names else []
    return [Way(here, there, tuple(names)) for (here, there), names in found.items()]


@dataclass
class Box:
    """A room in the picture."""

    room: str
    x: float
    width: float
    words: list[str]
    chips: list[list[str]]  # names of sub-rooms, line by line
    left: list[Way]  # doors that leave on this side
    right: list[Way]
    y: float = 0.0
    height: float = 0.0

    @property
    def wanted(self) -> float:
        doors = len(self.left) + len(self.right)
        return (
            2 * PADDING
            + 19
            + LINE * len(self.words)
            + 26 * len(self.chips)
            + LINE * doors
            + 4 * bool(self.chips)
            + 2 * bool(doors)
        )


def purpose(page: str) -> str:
    """The first sentence of a room's page."""
    text = " ".join(page.partition("\n\n")[0].split())
    return re.split(r"(?<=\.)\s+(?=[A-Z`])", text)[0].replace("`", "")


def _balanced(text: str, letters: int) -> list[str]:
    """The text in as few lines as that many letters allow, all about equally long."""
    lines = wrap(text, letters)
    while letters > 1 and len(narrower := wrap(text, letters - 1)) == len(lines):
        lines, letters = narrower, letters - 1
    return lines


def _chips(names: list[str], width: float) -> list[list[str]]:
    lines: list[list[str]] = []
    room = 0.0
    for name in names:
        wide = _chip(name) + 6
        if not lines or room + wide > width:
            lines.append([])
            room = 0.0
        lines[-1].append(name)
        room += wide
    return lines


def _chip(name: str) -> float:
    return len(name) * FIXED * SMALL + 14


def boxes(house: House, contract: Contract) -> list[list[Box]]:
    """The boxes, row by row from the top, placed."""
    doors = ways(house, contract)
    rows = [[room for room in layer if room in house.pages] for layer in contract.layers]
    place = {room: (i, len(row)) for row in rows for i, room in enumerate(row)}

    def on_the_left(way: Way) -> bool:
        """Doors go where their higher end is nearest; those between whole rows go left."""
        for room in (way.target, way.source):
            i, n = place[room]
            if n > 1:
                return i == 0
        return True

    out: list[list[Box]] = []
    y = 74.0
    for row in rows:
        if not row:
            continue
        width = (WIDTH - 2 * MARGIN - GAP * (len(row) - 1)) / len(row)
        line: list[Box] = []
        for i, room in enumerate(row):
            inner = width - 2 * PADDING
            mine = [w for w in doors if w.source == room]
            line.append(
                Box(
                    room,
                    MARGIN + i * (width + GAP),
                    width,
                    _balanced(purpose(house.pages[room].says), int(inner / (SIZE * LETTER))),
                    _chips([name.rpartition(".")[2] for name in house.subrooms(room)], inner),
                    [w for w in mine if on_the_left(w)],
                    [w for w in mine if not on_the_left(w)],
                )
            )
        tall = max(box.wanted for box in line)
        for box in line:
            box.y, box.height = y, tall
        out.append(line)
        y += tall + GAP
    return out


def drawn(house: House, contract: Contract) -> str:
    """The picture as SVG: rooms from the top to the ground, and the doors that open upwards."""
    rows = boxes(house, contract)
    all_boxes = {box.room: box for row in rows for box in row}
    tall = rows[-1][0].y + rows[-1][0].height + 26
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {tall:.0f}" width="{WIDTH}" height="{tall:.0f}" '
        'role="img" aria-labelledby="title what">',
        '<title id="title">The rooms of tallybayes</title>',
        f'<desc id="what">From the top: {escape("; ".join(" and ".join(b.room for b in row) for row in rows))}. A room '
        "imports the rooms below it; arrows are doors that open upwards.</desc>",
        f"<style>{STYLE}</style>",
        f'<rect class="paper" x="0.5" y="0.5" width="{WIDTH - 1}" height="{tall - 1:.0f}" rx="10"/>',
        _text(MARGIN, 30, "A room imports the rooms below it, siblings never each other.", "note", SMALL),
        _text(MARGIN, 50, "Orange: the doors that open upwards, inside the named method only.", "note", SMALL),
    ]
    for box in all_boxes.values():
        out += _drawn_box(box)
    for side in ("left", "right"):
        out += _drawn_ways(all_boxes, side)
    return "\n".join([*out, "</svg>", ""])


def _text(x: float, y: float, text: str, kind: str, size: float, anchor: str = "start") -> str:
    return (
        f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}">{escape(text)}</text>'
    )


def _drawn_box(box: Box) -> list[str]:
    out = [
        f'<rect class="box" x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" rx="7"/>',
        f'<rect class="bar" x="{box.x + PADDING:.1f}" y="{box.y + PADDING:.1f}" width="4" height="16" rx="2"/>',
        _text(box.x + PADDING + 11, box.y + PADDING + 13, f"{box.room}/", "name", 15),
    ]
    y = box.y + PADDING + 19
    for words in box.words:
        y += LINE
        out.append(_text(box.x + PADDING, y - 2, words, "says", SIZE))
    y += 4
    for line in box.chips:
        x = box.x + PADDING
        for name in line:
            wide = _chip(name)
            out.append(f'<rect class="chip" x="{x:.1f}" y="{y + 6:.1f}" width="{wide:.1f}" height="20" rx="10"/>')
            out.append(_text(x + wide / 2, y + 20, name, "sub", SMALL, "middle"))
            x += wide + 6
        y += 26
    return out


def _drawn_ways(all_boxes: dict[str, Box], side: str) -> list[str]:
    """The doors on one side: short ones run near the boxes, and two that pass each other have lanes of their own."""
    leaving = [(box, way) for box in all_boxes.values() for way in (box.left if side == "left" else box.right)]
    leaving.sort(key=lambda each: each[0].y - all_boxes[each[1].target].y)
    lanes: list[list[tuple[float, float]]] = []  # what each lane has, from … to …
    mine: dict[Way, int] = {}
    for box, way in leaving:
        upper, lower = all_boxes[way.target].y, box.y + box.height
        free = [i for i, taken in enumerate(lanes) if all(lower < a or upper > b for a, b in taken)]
        mine[way] = free[0] if free else len(lanes)
        lanes += [] if free else [[]]
        lanes[mine[way]].append((upper, lower))
    out = []
    for box, way in leaving:
        target = all_boxes[way.target]
        arriving = sorted((w for w in mine if w.target == way.target), key=lambda w: -mine[w])  # the outermost on top
        doors = [*box.left, *box.right]
        at = box.y + box.height - PADDING - LINE * (len(doors) - 1 - doors.index(way))
        out += _drawn_way(box, target, side, mine[way], at, target.y + 21 + 15 * arriving.index(way), way.names)
    return out


def _drawn_way(
    box: Box, target: Box, side: str, lane: int, at: float, head: float, names: tuple[str, ...]
) -> list[str]:
    """One door: its names beside the edge it leaves by, a line in its lane, and the arrow's head."""
    away = -1 if side == "left" else 1
    start, end = (b.x + (0 if side == "left" else b.width) for b in (box, target))
    lane_x = (MARGIN if side == "left" else WIDTH - MARGIN) + away * (15 + 9 * lane)
    return [
        _text(start - away * PADDING, at + 1, f"↑ {' · '.join(names)}", "door", SMALL, "start" if away < 0 else "end"),
        f'<path class="way" d="M {start:.1f} {at - 3:.1f} H {lane_x - away * 5:.1f} '
        f"Q {lane_x:.1f} {at - 3:.1f} {lane_x:.1f} {at - 8:.1f} V {head + 5:.1f} "
        f'Q {lane_x:.1f} {head:.1f} {lane_x - away * 5:.1f} {head:.1f} H {end + away * 6:.1f}"/>',
        f'<path class="head" d="M {end + away * 1:.1f} {head:.1f} l {away * 7} -4 v 8 z"/>',
    ]


def picture() -> str:
    return drawn(House(ROOT / "src" / "tallybayes"), Contract.read(ROOT / "pyproject.toml"))


if __name__ == "__main__":
    (ROOT / "docs" / "rooms.svg").write_text(picture(), encoding="utf-8")
