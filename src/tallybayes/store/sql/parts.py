"""What a column says, in SQL: weights looked up by slot, a formula of the number, or words of a table of tokens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from ...base.arrays import Floats, safe_log
from ...base.errors import SettingsError
from ...base.lazy import gammaln
from ...data.pairs import PairColumn, stretch_names
from ...data.schema import Column
from ...families.base import Belief
from ...families.blend import BlendBelief
from ...families.categorical import CategoricalBelief
from ...families.gaussian import GaussianBelief, StudentBelief
from ...families.histogram import CellBelief
from ...families.pair import InteractionBelief
from ...families.poisson import PoissonBelief
from ...families.presence import BernoulliWordsBelief
from ...families.steps import Steps, steps, written
from ...families.words import PolyaBelief, WordsBelief
from .dialects import Dialect, TableName

_INSTEAD = "take it out with schema.with_column(…, kind='ignore'), or count its parts as numbers."
_FAR = 1e150  # a distance of more deviations is cut here, as in `families.moments`


@dataclass(frozen=True)
class Lookup:
    """Weights by slot: how the column is read (NULL: missing), the slot of what was read, the known slots, and what any
    other one says.
    """

    read: str
    slot: str  # an expression in {x}
    names: list[str]
    weights: Floats  # slots × classes
    unseen: Floats
    bounded: bool = False  # it says at most MOST against a class, as part of a blend


@dataclass(frozen=True)
class Formula:
    """How the column is read, an expression in {x} (and {never}) for each class, and when the number says nothing."""

    read: str
    formulas: list[str]
    unless: str = ""
    bounded: bool = False


@dataclass(frozen=True)
class Tokens:
    """Weights by word, `base` for a row that has a text at all, and the table to read the words from."""

    table: TableName
    present: str
    names: list[str]
    weights: Floats
    unseen: Floats
    base: Floats
    once: bool
    bounded: bool = False


def parts_of(
    d: Dialect, column: Column, belief: Belief, marks: Iterable[str], tokens: TableName | None
) -> Iterator[tuple[Lookup | Formula | Tokens, float]]:
    """A column's parts and what each counts: one, none where it says nothing, several of a blend."""
    if isinstance(belief, BlendBelief):
        for one, share in zip(belief.beliefs, belief.shares, strict=True):
            part = _part_of(d, column, one, marks, tokens)
            if part is not None:
                yield replace(part, bounded=True), share
        return
    part = _part_of(d, column, belief, marks, tokens)
    if part is not None:
        yield part, 1.0


def _part_of(
    d: Dialect, column: Column, belief: Belief, marks: Iterable[str], tokens: TableName | None
) -> Lookup | Formula | Tokens | None:
    if column.only_here:
        raise _cannot(column, f"a {column.kind}, which is read by Python code", _INSTEAD)
    if isinstance(belief, InteractionBelief) and column.of is not None:
        return _pair(d, column, belief, marks)
    if column.part is not None or column.kind == "vector":
        raise _cannot(column, "a part of a date" if column.part else "a vector", _INSTEAD)
    raw = f"t.{d.name(column.reads)}"
    if isinstance(belief, (WordsBelief, BernoulliWordsBelief)):
        if tokens is None:
            raise _cannot(
                column, f"a {column.kind}", f"give a table of its tokens: tokens={{{column.name!r}: 'table'}} with the "
                "columns row, token and count."
            )  # fmt: skip
        return _words(column, belief, tokens, f"{raw} IS NOT NULL")
    if isinstance(belief, CategoricalBelief):
        return _category(d, raw, belief, marks)
    x = d.without(d.to_number(raw), raw, marks)
    if isinstance(belief, CellBelief):
        return _cells(d, x, steps(belief))
    if isinstance(belief, (GaussianBelief, StudentBelief)):
        return _bell(d, x, belief) if belief.varies.any() else None
    if isinstance(belief, PoissonBelief):
        if belief.predictive:
            raise _cannot(column, "averaged over", "take predictive=False, or another family than 'poisson'.")
        return _poisson(d, x, belief)
    raise _cannot(column, f"believed by {type(belief).__name__}", "choose another family for it in the settings.")


def _cannot(column: Column, what: str, hint: str) -> SettingsError:
    return SettingsError(f"column {column.name!r} is {what}, which this SQL cannot score", hint=hint)


def _value(d: Dialect, raw: str, values: Iterable[str]) -> str:
    """A category's value as the text that was counted."""
    text = d.canonical(raw)
    if set(values) <= {"true", "false"}:  # where a database has no booleans they are 1 and 0
        text = f"CASE {text} WHEN '1' THEN 'true' WHEN '0' THEN 'false' ELSE {text} END"
    return text


def _pair(d: Dialect, column: Column, belief: InteractionBelief, marks: Iterable[str]) -> Lookup:
    """The numbers of both values as one text; NULL where one is missing or was never seen."""
    assert column.of is not None
    sides = [
        _side(d, column, side, names, marks) for side, names in zip(column.of, (belief.us, belief.vs), strict=True)
    ]
    names = [f"{i} {j}" for i in range(len(belief.us)) for j in range(len(belief.vs))]
    n_classes = belief.log.shape[2]
    weights = belief.log.reshape(len(names), n_classes)
    return Lookup(f"({sides[0]}) || ' ' || ({sides[1]})", "{x}", names, weights, np.zeros(n_classes))


def _side(d: Dialect, column: Column, side: PairColumn, known: tuple[str, ...], marks: Iterable[str]) -> str:
    """The number of a value among those known to one side of a pair."""
    if side.part is not None:
        raise _cannot(column, "a pair with a part of a date", _INSTEAD)
    raw, all_marks = f"t.{d.name(side.source)}", {*marks, *side.missing}
    if side.kind == "number":
        places = {name: f"'{i}'" for i, name in enumerate(known)}
        answers = [places.get(name, "NULL") for name in stretch_names(side.cuts)]
        x = d.without(d.to_number(raw), raw, all_marks)
        found = _search(f"({x})", [d.number(c) for c in side.cuts], answers)
        return f"CASE WHEN ({x}) IS NOT NULL THEN {found} END"
    each = " ".join(f"WHEN {d.text(name)} THEN '{i}'" for i, name in enumerate(known))
    return d.without(f"CASE {_value(d, raw, known)} {each} END" if known else "NULL", raw, all_marks)


def _category(d: Dialect, raw: str, belief: CategoricalBelief, marks: Iterable[str]) -> Lookup:
    text = _value(d, raw, belief.values)
    log = safe_log(belief.probabilities)
    known = len(belief.values)
    unseen = log[known] if belief.reserve else np.zeros(log.shape[1])
    return Lookup(d.without(text, raw, marks), "{x}", list(belief.values), written(log[:known]), written(unseen))


def _cells(d: Dialect, x: str, found: Steps) -> Lookup:
    """The point that a value is, the interval that it falls into, or the cell of the middle."""
    points = [f"p{i}" for i in range(len(found.points))]
    intervals = [f"i{i}" for i in range(len(found.weights))]
    distance = f"{{x}} - {d.number(found.centre)}"
    answers = [f"'{n}'" for n in intervals]
    names, weights = [*points, *intervals], [found.point_weights, found.weights]
    if found.middle is not None and found.cells is not None:
        width = d.number(found.width)
        cell = d.to_text(f"CAST(FLOOR(({distance}) / {width}) AS BIGINT)")
        near = f"{distance} < {d.number(0.0)} AND {distance} > {d.number(-found.width)}"  # its quotient may be lost
        answers[found.middle] = f"CASE WHEN {near} THEN '-1' ELSE {cell} END"
        half = len(found.cells) // 2
        names += [str(i) for i in range(-half, half)]
        weights.append(found.cells)
    slot = _search(distance, [d.number(t) for t in found.thresholds], answers)
    if points:
        each = " ".join(f"WHEN {d.number(p)} THEN '{n}'" for p, n in zip(found.points, points, strict=True))
        slot = f"CASE {{x}} {each} ELSE {slot} END"
    n_classes = found.weights.shape[1]
    slot = f"CASE WHEN {{x}} IS NOT NULL THEN {slot} END"
    return Lookup(x, slot, names, np.concatenate(weights), np.zeros(n_classes))


def _search(x: str, bounds: list[str], names: list[str]) -> str:
    """What holds in the interval that x falls into, found by halving."""
    if not bounds:
        return names[0]
    half = len(bounds) // 2
    below, above = _search(x, bounds[:half], names[: half + 1]), _search(x, bounds[half + 1 :], names[half + 1 :])
    return f"CASE WHEN {x} < {bounds[half]} THEN {below} ELSE {above} END"


def _bell(d: Dialect, x: str, belief: GaussianBelief | StudentBelief) -> Formula:
    """log N or log t, with every constant worked out here."""
    out = []
    for c in range(belief.location.shape[1]):
        mean, scale = float(belief.location[0, c]), float(belief.scale[0, c])
        far = [d.number(-_FAR), d.number(_FAR)]
        z = f"(({{x}} - {d.number(mean)}) / {d.number(scale)})"
        z = f"CASE WHEN {z} < {far[0]} THEN {far[0]} WHEN {z} > {far[1]} THEN {far[1]} ELSE {z} END"
        if isinstance(belief, StudentBelief):
            v = float(belief.freedom[0, c])
            constant = float(gammaln((v + 1) / 2) - gammaln(v / 2) - 0.5 * np.log(v)) - float(np.log(scale))
            root = d.number(float(np.sqrt(v)))
            curve = f"{d.number((v + 1) / 2)} * LN({d.number(1.0)} + ({z}) / {root} * (({z}) / {root}))"
        else:
            constant = -float(np.log(scale))
            curve = f"{d.number(0.5)} * ({z}) * ({z})"
        out.append(f"{d.number(constant)} - {curve}")
    return Formula(x, out)


def _poisson(d: Dialect, x: str, belief: PoissonBelief) -> Formula:
    """x·log λ − λ; what x alone decides is left out."""
    out = []
    for rate in (belief.shape / belief.rate).tolist():
        if rate > 0:
            out.append(f"{{x}} * {d.number(float(np.log(rate)))} - {d.number(rate)}")
        else:
            out.append(f"CASE WHEN {{x}} = 0 THEN {d.number(0.0)} ELSE {{never}} END")
    return Formula(x, out, " OR {x} < 0")


def _words(column: Column, belief: WordsBelief | BernoulliWordsBelief, table: TableName, present: str) -> Tokens:
    n_classes = belief.table().values.shape[1]
    none = np.zeros(n_classes)
    if isinstance(belief, BernoulliWordsBelief):
        there, gone = safe_log(belief.present), safe_log(belief.absent)
        if not (np.isfinite(there).all() and np.isfinite(gone).all()):
            raise _cannot(column, "a text with impossible words", "smooth the counts: smoothing=tb.Laplace(1.0).")
        return Tokens(table, present, list(belief.words), there - gone, none, gone.sum(axis=0), once=True)
    if isinstance(belief, PolyaBelief):
        raise _cannot(column, "averaged over", "take predictive=False.")
    known = len(belief.words)
    unseen = belief.weights[known] if belief.reserve else none
    return Tokens(table, present, list(belief.words), belief.weights[:known], unseen, none, belief.presence)
