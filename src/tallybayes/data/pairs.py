"""Two columns counted together: a slot for each pair of values, numbers by coarse stretches."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from ..base.arrays import Floats, Ints
from ..base.canon import number_text
from ..base.errors import SchemaError
from ..base.records import Record
from .blocks import Codes, Numbers
from .kinds import KINDS, check_part
from .spelling import Spelling

BROAD = 8  # stretches a side of the smooth surface that is corrected beneath the cells of a pair
_LIKE = ("category", "number")


@dataclass(frozen=True)
class PairColumn(Record):
    """A column that another is made of, one of the two of a pair: which column of the data, where numbers are cut.

    `tb.Side` is the same class, by the name it had before.

    >>> size = tb.PairColumn("size", "number", cuts=(40, 80))
    >>> tb.Column("size × rooms", "pair", of=[size, tb.PairColumn("rooms")]).inputs
    ('size', 'rooms')
    """

    source: str
    kind: str = "category"
    part: str | None = None  # of a date
    missing: tuple[str, ...] = ()
    cuts: tuple[float, ...] = ()
    groups: tuple[tuple[str, ...], ...] = ()  # values of a category that are taken together; others take no part
    spelling: Spelling | None = None  # how its texts are read

    def __post_init__(self) -> None:
        object.__setattr__(self, "missing", tuple(self.missing))
        object.__setattr__(self, "cuts", tuple(float(c) for c in self.cuts))
        object.__setattr__(self, "groups", tuple(tuple(map(str, g)) for g in self.groups))
        rising = all(a < b for a, b in pairwise(self.cuts)) and bool(np.isfinite(self.cuts).all())
        like = KINDS[self.kind].like if self.kind in KINDS and not KINDS[self.kind].of else ""
        if like not in _LIKE or not rising or (self.cuts and like != "number"):
            raise SchemaError(
                f"the column {self.source!r} of a pair has kind {self.kind!r} and cuts {list(self.cuts)}",
                hint="a pair is of categories and numbers; cuts are rising numbers, of a number only.",
            )
        check_part(self.source, self.kind, self.part)
        grouped = [value for group in self.groups for value in group]
        if self.groups and (like != "category" or not all(self.groups) or len(set(grouped)) < len(grouped)):
            raise SchemaError(
                f"the groups of the column {self.source!r} of a pair are not groups of different values of a category",
                hint="give each value of a category once: groups=[['a', 'b'], ['c']].",
            )

    def to_dict(self) -> dict[str, Any]:
        """A form that JSON can hold; groups and a spelling only where there are any."""
        out = {k: v for k, v in asdict(self).items() if k not in ("groups", "spelling") or v}
        return out if self.spelling is None else {**out, "spelling": self.spelling.to_dict()}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> PairColumn:
        """The inverse of `to_dict`."""
        return cls(**{**given, "spelling": Spelling(**given["spelling"])} if given.get("spelling") else given)

    @property
    def ordered(self) -> bool:
        """Whether its cells lie along a line: the stretches of a number, or groups of values by what they say."""
        return bool(self.cuts or self.groups)

    @property
    def cells(self) -> list[str]:
        """What the cells along its line are called; none where each value is one."""
        return stretch_names(self.cuts) if self.cuts else group_names(self.groups)

    @cached_property
    def group_of(self) -> dict[str, str]:
        """The name of each value's group."""
        named = zip(self.groups, group_names(self.groups), strict=True)
        return {value: name for group, name in named for value in group}


Side = PairColumn


def pair_slot(u: str, v: str) -> str:
    """Two values as one slot."""
    return json.dumps([u, v], ensure_ascii=False)


def pair_values(slot: str) -> tuple[str, str]:
    """The two values of a slot."""
    u, v = json.loads(slot)
    return u, v


def paired(one: Codes | Numbers, other: Codes | Numbers, sides: tuple[PairColumn, ...]) -> Codes:
    """Both columns as one; missing where either is."""
    u, v = (coded(block, side) for block, side in zip((one, other), sides, strict=True))
    there = u.present() & v.present()
    both = u.codes * len(v.slots) + v.codes
    used, code = np.unique(both[there], return_inverse=True)
    slots = [pair_slot(u.slots[k // len(v.slots)], v.slots[k % len(v.slots)]) for k in used.tolist()]
    codes = np.full(len(both), -1, dtype=np.int64)
    codes[there] = code
    return Codes(slots, codes)


def coded(block: Codes | Numbers, side: PairColumn) -> Codes:
    """A column in the cells of its side: values, groups of them, or stretches between cuts."""
    if isinstance(block, Codes):
        return _grouped(block, side) if side.groups else block
    there = block.present()
    codes = np.full(block.rows, -1, dtype=np.int64)
    codes[there] = np.searchsorted(side.cuts, block.values[there], side="right")
    return Codes(stretch_names(side.cuts), codes)


def _grouped(block: Codes, side: PairColumn) -> Codes:
    """The groups of values; a value that is in none takes no part."""
    names = group_names(side.groups)
    place = {name: i for i, name in enumerate(names)}
    of = [place[side.group_of[slot]] if slot in side.group_of else -1 for slot in block.slots]
    return Codes(names, np.array([*of, -1], dtype=np.int64)[block.codes])


def group_names(groups: Sequence[Sequence[str]]) -> list[str]:
    """What groups of values are called: by the first of them and how many more, each otherwise."""
    out: dict[str, None] = {}
    for group in groups:
        name = group[0] if len(group) == 1 else f"{group[0]} and {len(group) - 1} more"
        while name in out:  # a value may be called so
            name += " "
        out[name] = None
    return list(out)


def stretch_names(cuts: Any) -> list[str]:
    """What the stretches between cuts are called, in full digits: they are slots of a tally."""
    return between_names([number_text(float(c)) for c in cuts])


def between_names(cuts: Sequence[str]) -> list[str]:
    """The same of cuts as they are written."""
    return [f"< {cuts[0]}", *(f"{a} to {b}" for a, b in pairwise(cuts)), f"≥ {cuts[-1]}"] if cuts else ["any"]


def broad_stretches(size: int, most: int = BROAD) -> Ints:
    """The broad stretch of each of so many stretches along a line."""
    return np.arange(size) * min(most, size) // max(size, 1)


def coarse_cuts(values: Floats, most: int) -> tuple[float, ...]:
    """Cuts between all values if there are at most so many, else between those nearest to quantiles.

    A cut never falls on a value: half of the rows may have it, and must be told from the rows above.
    """
    distinct, times = np.unique(values, return_counts=True)
    if len(distinct) <= most:
        last = np.arange(len(distinct) - 1)
    else:
        wanted = np.linspace(0, 1, most + 1)[1:-1] * len(values)
        last = np.unique(np.minimum(np.searchsorted(np.cumsum(times), wanted), len(distinct) - 2))
    cuts = np.unique(distinct[last] / 2 + distinct[last + 1] / 2)
    short = np.unique([float(f"{c:.4g}") for c in cuts])  # four digits read better, where they part the same values
    same = len(short) == len(cuts) and np.array_equal(
        np.searchsorted(short, distinct, side="right"), np.searchsorted(cuts, distinct, side="right")
    )
    return tuple((short if same else cuts).tolist())
