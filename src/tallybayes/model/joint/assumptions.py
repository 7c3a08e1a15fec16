"""How far data break the three assumptions of naive Bayes.

columns are independent given the class     conditional mutual information I(A; B given class) of every pair
rows are independent of each other          rows that repeat an earlier one
rows come from one distribution             `shift`: how a column differs between two tallies
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...base.arrays import Floats, Ints, nearest_quantiles
from ...base.canon import many, printable
from ...base.errors import DataError
from ...data import encode
from ...data.blocks import Block, Codes, Numbers
from ...data.guess import Reading
from ...data.infer import asked, schema_of
from ...data.schema import Schema
from ...data.sources import Source, open_source
from .dependence import Dependence, dependence, holm

_BINS = 10  # equal-frequency bins that a number is coarsened to at most
_MOST_PAIRS = 50  # that a report keeps


@dataclass(frozen=True)
class Pair:
    """Two columns and what they tell about each other within the classes."""

    a: str
    b: str
    found: Dependence

    def __repr__(self) -> str:
        return repr(self.found)


@dataclass(frozen=True)
class Repeats:
    """Rows equal to an earlier one in every column and the class."""

    rows: int
    distinct: int
    most: int  # how often the most repeated row occurs
    example: Mapping[str, str | None]  # that row

    @property
    def repeats(self) -> int:
        """How many rows repeat an earlier one."""
        return self.rows - self.distinct

    @property
    def share(self) -> float:
        """The part of all rows that repeat an earlier one."""
        return self.repeats / self.rows if self.rows else 0.0


@dataclass(frozen=True)
class Assumptions:
    """What `assumptions` found; print it."""

    target: str
    rows: int
    pairs: tuple[Pair, ...]  # the strongest, by nats beyond chance
    n_pairs: int  # how many there are in all
    total: float  # nats beyond chance, added up over all pairs
    dependent: int  # pairs that are called dependent, of all of them
    repeats: Repeats

    def __repr__(self) -> str:
        shown = self.pairs[:10]
        names, target = [printable(f"{p.a} · {p.b}", 100) for p in shown], printable(self.target)
        width = max(map(len, ["pair", *names]))
        lines = [
            f"The assumptions of naive Bayes in {many(self.rows, 'row')}",
            "",
            f"1. Columns independent given {target}: {self.n_pairs:,} pairs, {self.total:.4g} nats in all, "
            f"{self.dependent:,} called dependent",
        ]
        if shown:
            lines.append(f"   {'pair':<{width}}   nats  by chance   share        p  corrected")
        lines += [
            f"   {name:<{width}} {p.found.mutual_information:6.4f}     {p.found.expected:6.4f}  "
            f"{100 * p.found.share:4.0f} %  {p.found.p_value:7.2g}    {p.found.p_corrected:7.2g}  {p.found.verdict}"
            for name, p in zip(names, shown, strict=True)
        ]
        if self.n_pairs > len(shown):
            lines.append(f"   … and {self.n_pairs - len(shown):,} weaker pairs")
        r = self.repeats
        again = many(r.repeats, "row repeats", "rows repeat")
        lines += ["", f"2. Rows independent: {again} an earlier one ({100 * r.share:.1f} %)"]
        if r.repeats:
            row = ", ".join(f"{c}={v}" for c, v in list(r.example.items())[:6] if v is not None)
            lines.append(f"   {r.most:,} times: {printable(row, 100)}")
        lines += ["", "3. One distribution: compare two tallies with shift(a, b)"]
        return "\n".join(lines)


def assumptions(
    data: Any,
    target: Any = None,
    y: Any = None,
    *,
    schema: Schema | None = None,
    kinds: Mapping[str, str] | None = None,
    missing: str | Iterable[str] | None = None,
    strict: bool = False,
    date_format: str | Mapping[str, str] | None = None,
    fold: bool = False,
) -> Assumptions:
    """How strongly columns depend on each other given the class, and how many rows repeat.

    The data are told of as for `fit`: by the name of the target, by labels beside them or by a schema.
    Every pair of category and number columns is looked at, rows in which one of the two is missing left out. Numbers
    are binned within each class: ∛rows bins of equal frequency, from 2 to 10. Pairs are sorted by nats beyond chance
    (degrees of freedom / 2n), since columns of many values show mutual information where there is none.

    p says how often chance alone ties a pair together as strongly; p_corrected counts that so many pairs were asked
    about (Holm's method), and the verdict goes by that one.

    >>> rows = {"a": [0, 0, 1, 1] * 15, "b": [0, 0, 1, 1] * 15, "c": [0, 1, 1, 0, 1] * 12, "y": ["yes", "no"] * 30}
    >>> tb.assumptions(rows, "y", kinds=dict.fromkeys("abc", "category"))
    The assumptions of naive Bayes in 60 rows
    <BLANKLINE>
    1. Columns independent given y: 3 pairs, 0.6765 nats in all, 1 called dependent
       pair    nats  by chance   share        p  corrected
       a · b 0.6931     0.0167   100 %  1.7e-16      5e-16  dependent
       a · c 0.0000     0.0167     0 %        1          1  no sign of dependence
       b · c 0.0000     0.0167     0 %        1          1  no sign of dependence
    <BLANKLINE>
    2. Rows independent: 52 rows repeat an earlier one (86.7 %)
       9 times: y=no, a=0, b=0, c=1
    <BLANKLINE>
    3. One distribution: compare two tallies with shift(a, b)
    """
    reading = Reading.of(missing, strict, date_format, fold, kinds)
    target, y, schema = asked(target, y, schema, reading)
    source = open_source(data, y, target=target)
    if schema is None:
        source = source.repeatable()
        schema = schema_of(source, target, None, reading)
    labels, columns, repeats = _read(schema, source)
    found = []
    for (a, a_codes), (b, b_codes) in itertools.combinations(columns.items(), 2):
        both = (a_codes >= 0) & (b_codes >= 0)
        weight = np.ones(int(np.count_nonzero(both)))
        name = f"{a}; {b} given {schema.target}"
        found.append(Pair(a, b, dependence(name, a_codes[both], b_codes[both], labels[both], weight)))
    corrected = holm([p.found.p_value for p in found])
    found = [replace(p, found=replace(p.found, p_corrected=q)) for p, q in zip(found, corrected, strict=True)]
    dependent = sum(p.found.dependent for p in found)
    found.sort(key=lambda p: -p.found.excess)
    total = math.fsum(max(p.found.excess, 0.0) for p in found)
    return Assumptions(schema.target, len(labels), tuple(found[:_MOST_PAIRS]), len(found), total, dependent, repeats)


def _read(schema: Schema, source: Source) -> tuple[Ints, dict[str, Ints], Repeats]:
    """The class of each labelled row, the codes of each category and number column, and the repeated rows."""
    labels: list[Codes] = []
    blocks: list[dict[str, Block]] = []
    for batch in source.batches():
        if batch.rows:
            encode.check_columns(schema, batch)
            label = encode.labels(schema, batch)
            kept = label.present()
            labels.append(label.take(kept))
            blocks.append({n: b.take(kept) for n, b in encode.blocks(schema, batch).items()})
    if not sum(label.rows for label in labels):
        raise DataError("there is no row with a label", hint="give rows with their classes, see target and y.")
    columns, classes = {}, _joined(labels)
    for column in schema.counted:
        pieces = [b[column.name] for b in blocks]
        if column.like == "category":
            columns[column.name] = _joined([p for p in pieces if isinstance(p, Codes)])
        elif column.like == "number":
            values = np.concatenate([p.values for p in pieces if isinstance(p, Numbers)])
            columns[column.name] = binned(values, classes)
    return classes, columns, _repeats(schema.target, labels, blocks)


def _joined(pieces: Sequence[Codes]) -> Ints:
    """The codes of several blocks in one numbering."""
    number: dict[str, int] = {}
    out = []
    for piece in pieces:
        new = [number.setdefault(s, len(number)) for s in piece.slots]
        out.append(np.array([*new, -1], dtype=np.int64)[piece.codes])
    return np.concatenate(out)


def binned(values: Floats, classes: Ints) -> Ints:
    """The number of each value's bin within its class, −1 for missing; up to 10 distinct values are a bin each.

    Bins of a class by itself, since only what happens within it is asked about: a column that the class moves has
    its rows spread over all bins of every class.
    """
    out = np.full(len(values), -1, dtype=np.int64)
    for label in np.unique(classes):
        here = np.flatnonzero((classes == label) & ~np.isnan(values))
        edges = np.unique(values[here])
        if len(edges) > _BINS:
            bins = int(np.clip(round(len(here) ** (1 / 3)), 2, _BINS))
            edges = np.unique(nearest_quantiles(np.sort(values[here]), np.arange(1, bins) / bins))
        out[here] = np.searchsorted(edges, values[here], side="left")  # an edge is the largest value of its bin
    return out


def _repeats(target: str, labels: Sequence[Codes], blocks: Sequence[Mapping[str, Block]]) -> Repeats:
    times: dict[bytes, int] = {}
    first: dict[bytes, tuple[int, int]] = {}
    for i, (label, columns) in enumerate(zip(labels, blocks, strict=True)):
        texts = [label.receipts(), *(columns[n].receipts() for n in sorted(columns))]
        for j, row in enumerate(zip(*texts, strict=True)):
            key = hashlib.blake2b(b"".join(len(t).to_bytes(8, "little") + t for t in row), digest_size=16).digest()
            times[key] = times.get(key, 0) + 1
            first.setdefault(key, (i, j))
    key = max(times, key=lambda k: times[k])
    i, j = first[key]
    example = {target: labels[i].text(j), **{n: b.text(j) for n, b in blocks[i].items()}}
    return Repeats(sum(times.values()), len(times), times[key], example)
