"""What `tb.fit` chooses when nobody else does: families, readings of text, weights and pairs, all on held-out rows.

One look at the data (all rows of a small table, 100,000 spread over a large one) is cut into folds. Every form is
judged by its nested held-out log loss, and a richer form is taken only where it gains at least 0.005 nats per row:

    one temperature for all columns  →  a weight for each column  →  pairs of columns besides

Up to eight neighbours of one class stay in one fold: rows that follow each other are often alike (one speaker, one
thread, one day), and weights fitted on rows whose twins were counted believe too much.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from . import calibrate, encode
from .block import Bag
from .calibrate import Evidence, Weights
from .candidates import pair_of, propose_pairs
from .encode import Labelled
from .families import Blend, Complement, Family, Multinomial
from .families.blend import READERS, bounded
from .folds import Folds, HeldOut, count_folds
from .numerics import Floats, Ints
from .schema import Column, Schema
from .settings import Calibrated, Settings
from .smoothing import Laplace
from .sources import Batch, open_source

GAIN = 0.005
FEWEST = 10  # rows; below, the counts are believed as they are
_WEIGHTS_FROM = 100  # rows, and 10 of each class on average: below, one temperature
_PAIRS_FROM = 25  # rows of each class on average: one for each cell of a table of five by five
_NEIGHBOURS = 8
_MOST_PARTS = 50_000_000  # numbers held at a time while readings of a text are compared
READINGS: tuple[Family, ...] = (
    Multinomial(presence=True), Multinomial(), Complement(presence=True), Complement(),
)  # fmt: skip
ALPHAS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
Pairs = bool | str | Sequence[tuple[str, str]]


@dataclass(frozen=True)
class _Term:
    """One summand of the score: a column, or one of several families that read it."""

    column: str
    reader: int | None = None


def choose(look: Batch, schema: Schema, base: Settings, pairs: Pairs = "auto") -> tuple[Schema, Settings]:
    """The schema with pairs added, and settings with families, smoothing and weights, that held-out rows support."""
    rows = encode.labelled(schema, look)
    counted, n_classes = len(rows.labels), len(rows.classes)
    if isinstance(pairs, (list, tuple)):
        blocks = encode.blocks(schema, look)
        schema = schema._with(columns=[*schema.columns, *_asked(pairs, schema, blocks)])
        rows = encode.labelled(schema, look)
    if counted < FEWEST or n_classes < 2 or not schema.counted or len(np.unique(rows.labels)) < 2:
        return schema, base
    assign = _Neighbours(rows, 10 if counted < 2_000 else 5)
    folds = count_folds(open_source(look), schema, assign)
    if len(folds.scored()) < 2:
        return schema, base
    settings = _read_texts(folds, schema, base)
    terms, parts, held = _held_parts(folds, schema, settings)
    tokens = _tokens(folds, schema, terms)
    kinds = {c.name: c.kind for c in schema.counted}
    groups = np.array([int(kinds[t.column] == "pair") for t in terms], dtype=np.int64)
    target = np.array([1.0 if t.reader is None else 1 / len(READERS) for t in terms])
    evidence = Evidence.of(
        parts, held.log_prior[held.folds], held.labels, held.folds, held.weights, tokens, groups, target
    )
    form = "one temperature"
    weights, losses = calibrate.temperature(evidence)
    found = {form: _mean(evidence, losses)}
    several = len(terms) > 1 and counted >= _WEIGHTS_FROM and counted >= 10 * n_classes
    if several:
        richer, nested = calibrate.column_weights(evidence)
        found["column weights"] = _mean(evidence, nested)
        if _better(evidence, losses, nested):
            form, weights, losses = "column weights", richer, nested
    if several and pairs in (True, "auto") and counted >= _PAIRS_FROM * n_classes:
        added = propose_pairs(schema.counted, rows.blocks, rows.labels, n_classes)
        if added:
            wider = schema._with(columns=added)
            more = count_folds(open_source(look), wider, assign).held_out(base)
            with_pairs = Evidence.of(
                [*parts, *(more.parts[c.name] for c in added)], held.log_prior[held.folds], held.labels, held.folds,
                held.weights, tokens, np.concatenate([groups, np.ones(len(added), dtype=np.int64)]),
                np.concatenate([target, np.ones(len(added))]),
            )  # fmt: skip
            richer, nested = calibrate.column_weights(with_pairs)
            name = "column weights and pairs"
            found[name] = _mean(with_pairs, nested)
            same = len(nested) == len(losses)
            if pairs is True or (_better(with_pairs, losses, nested) if same else found[name] <= found[form] - GAIN):
                form, weights = name, richer
                kept = [c for c, w in zip(added, richer.weights[len(terms) :], strict=True) if w > 0]
                schema = schema._with(columns=[*schema.columns, *kept])
                terms = [*terms, *(_Term(c.name) for c in added)]
    known = {c.name for c in schema.counted}
    final = _settings(settings, terms, weights, known)
    return schema, replace(final, calibrated=Calibrated(form, counted, found))


def _asked(pairs: Sequence[Any], schema: Schema, blocks: Mapping[str, Any]) -> list[Column]:
    columns = {c.name: c for c in schema.counted}
    for name in (n for pair in pairs for n in pair):
        schema[name]  # an unknown name is an error with a hint
    return [pair_of(a, b, columns, blocks) for a, b in pairs]


def _mean(evidence: Evidence, losses: Floats) -> float:
    return float(np.average(losses, weights=evidence.weights))


def _better(evidence: Evidence, before: Floats, after: Floats) -> bool:
    """Whether the gain is at least GAIN nats per row."""
    return _mean(evidence, before - after) >= GAIN


class _Neighbours:
    """A fold for each labelled row of the look: runs of up to eight rows of a class, dealt out in a fixed shuffle."""

    def __init__(self, rows: Labelled, folds: int) -> None:
        rng = np.random.default_rng(0)
        self.folds = np.full(int(rows.rows.max(initial=-1)) + 1, -1, dtype=np.int64)
        for y in range(len(rows.classes)):
            own = rows.rows[rows.labels == y]
            run = np.arange(len(own)) // max(1, min(_NEIGHBOURS, len(own) // folds))
            dealt = rng.permutation(int(run.max(initial=0)) + 1)
            self.folds[own] = (dealt[run] + rng.integers(folds)) % folds

    def __call__(self, rows: Labelled, start: int) -> Ints:
        return self.folds[rows.rows + start]


def _read_texts(folds: Folds, schema: Schema, base: Settings) -> Settings:
    """The reading and smoothing of each column of words under which its held-out rows lose least."""
    out = base
    named = base.smoothing if isinstance(base.smoothing, Mapping) else {}
    for column in schema.counted:
        if column.kind not in ("text", "bag") or column.name in base.families or column.name in named:
            continue
        if not isinstance(base.smoothing, Mapping) and base.smoothing != Laplace():
            continue
        best: tuple[float, Settings] | None = None
        for settings, held in _each_reading(folds, column, out):
            evidence = Evidence.of(
                [held.parts[column.name]], held.log_prior[held.folds], held.labels, held.folds, held.weights,
                _tokens(folds, schema, [_Term(column.name)]),
            )  # fmt: skip
            loss = _mean(evidence, calibrate.fit_weights(evidence, None).losses(evidence))
            if best is None or loss < best[0]:
                best = loss, settings
        assert best is not None
        out = best[1]
    return out


def _each_reading(folds: Folds, column: Column, base: Settings) -> Iterator[tuple[Settings, HeldOut]]:
    """Settings with their held-out rows, as many at a time as memory holds."""
    smoothing = base.smoothing if isinstance(base.smoothing, Mapping) else {}
    settings = [
        replace(
            base,
            families={**base.families, column.name: family},
            smoothing={**smoothing, column.name: Laplace(alpha)},
        )
        for family in READINGS
        for alpha in ALPHAS
    ]
    size = max(1, sum(len(p.rows) for p in folds.pieces) * len({label for label, _ in folds.names}))
    some = max(1, _MOST_PARTS // size)
    for start in range(0, len(settings), some):
        chunk = settings[start : start + some]
        yield from zip(chunk, folds.held_out_each(chunk, parts=True), strict=True)


def _held_parts(folds: Folds, schema: Schema, settings: Settings) -> tuple[list[_Term], list[Floats], HeldOut]:
    """Every term with what it said of the held-out rows; number columns are read by several families."""
    blended = [
        c.name for c in schema.counted if c.kind == "number" and c.cells is not None and c.name not in settings.families
    ]
    if not blended:
        held = folds.held_out(settings)
        return [_Term(n) for n in schema.names], [held.parts[n] for n in schema.names], held
    each = folds.held_out_each(
        [replace(settings, families={**settings.families, **dict.fromkeys(blended, f)}) for f in READERS], parts=True
    )
    terms, parts = [], []
    for name in schema.names:
        readers = range(len(READERS)) if name in blended else [None]
        for reader in readers:
            terms.append(_Term(name, reader))
            said = each[reader or 0].parts[name]
            parts.append(said if reader is None else bounded(said))
    return terms, parts, each[0]


def _tokens(folds: Folds, schema: Schema, terms: Sequence[_Term]) -> dict[int, Floats]:
    """How many tokens the rows of each term made of words have, in the order of the held-out rows."""
    out = {}
    for j, term in enumerate(terms):
        if schema[term.column].kind in ("text", "bag"):
            rows, lengths = [], []
            for piece in folds.pieces:
                assert piece.blocks is not None  # a look fits into memory
                bag = piece.blocks[term.column]
                assert isinstance(bag, Bag)
                rows.append(piece.rows)
                lengths.append(bag.lengths())
            scored = np.concatenate(lengths)[np.argsort(np.concatenate(rows), kind="stable")]
            out[j] = scored
    return out


def _settings(settings: Settings, terms: Sequence[_Term], weights: Weights, known: set[str]) -> Settings:
    """The weights as settings: shares of a blend where several families read a column, its weight their sum."""
    families, total = dict(settings.families), {}
    for name in dict.fromkeys(t.column for t in terms if t.column in known):
        own = [(t.reader, float(w)) for t, w in zip(terms, weights.weights, strict=True) if t.column == name]
        total[name] = sum(w for _, w in own)
        if own[0][0] is not None and total[name] > 0:
            families[name] = Blend(READERS, tuple(w / total[name] for _, w in own))
    lengths = {terms[j].column: b for j, b in weights.exponents.items()}
    return replace(settings, families=families, weights=total, lengths=lengths)
