"""How a column of words is read: family and smoothing, and what else its text is cut into, by what held-out rows lose.

Multinomial or complement, and α, are decided after counting, from rows of one fold: each reading is judged with the
temperature and the length exponent that suit it best. α is sought coarsely first, then beside the best.

A text says more than its words. Two further columns of the same text can stand beside them, each with a weight of its
own, and are kept where held-out rows gain: pairs of words ("not good"), and for short texts stretches of one to four
characters (endings, digits, punctuation). Words and pairs in one column would share one weight, and the many rare
pairs would shout the words down.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from ....base.arrays import Floats, Ints
from ....data.blocks import Bag
from ....data.schema import Column, Schema
from ....data.sources import Batch
from ....families import Complement, Family, Multinomial
from ....families.settings import Settings
from ....families.smoothing import Laplace
from ...folds import Folds, HeldOut
from ..columns import DealtRows
from ..joint import Dense, Joint
from ..losses import against_first, posterior
from ..penalised import tempered

ONCE: tuple[Family, ...] = (Multinomial(presence=True), Complement(presence=True))
COUNTS: tuple[Family, ...] = (Multinomial(), Complement())
COARSE = (0.03, 0.3, 3.0)
ALPHAS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
PAIRS_OF_WORDS, CHARACTERS = "pairs of words", "characters"
LOOK_BYTES = 1 << 25  # of text to choose by; a longer look is thinned out
_SHORT = 50  # words on average: texts shorter than this are also read by their characters
_CHARACTER_BYTES = 6 << 20  # of text, beyond which characters cost more than they tell
_PAIRED_BYTES = 100 << 20  # of text times classes, beyond which pairs of words cost more than they tell
LEAST_WORDS = -6000.0  # nats below the best class: hundreds of words add up to more than one value can say
_IMPOSSIBLE = -700.0  # the log prior of a class that a training part has not seen
_MOST_SCORES = 2_000_000  # rows × classes that a reading is judged by
_ONE_FOLD = 5_000  # rows, from which the rows of one fold are enough to choose a reading by
_MOST_PARTS = 15_000_000  # numbers held at a time while readings are compared


def read_texts(folds: Folds, schema: Schema, base: Settings) -> Settings:
    """The settings with a reading for each column of words that has none of its own."""
    out = base
    if not isinstance(base.smoothing, Mapping) and base.smoothing != Laplace():
        return out
    named = base.smoothing if isinstance(base.smoothing, Mapping) else {}
    for column in schema.counted:
        if column.about.words and column.name not in base.families and column.name not in named:
            out = _best(folds, column, out)
    return out


def _best(folds: Folds, column: Column, base: Settings) -> Settings:
    n_classes = len({label for label, _ in folds.names})
    families = ONCE if column.text is not None else ONCE + COUNTS
    if n_classes == 2:  # the complement of one class is the other: both readings give the same odds
        families = tuple(f for f in families if isinstance(f, Multinomial))
    tried = _losses(folds, column, base, [(f, a) for f in families for a in COARSE])
    family, alpha = min(tried, key=lambda key: tried[key])
    at = ALPHAS.index(alpha)
    beside = [ALPHAS[i] for i in (at - 1, at + 1) if 0 <= i < len(ALPHAS)]
    others = [f for f in families if min(tried[f, a] for a in COARSE) < 1.1 * tried[family, alpha]]
    more = {(f, a) for f in others for a in beside} - set(tried)
    tried |= _losses(folds, column, base, sorted(more, key=lambda key: (families.index(key[0]), key[1])))
    return _with_reading(base, column, *min(tried, key=lambda key: tried[key]))


def _with_reading(base: Settings, column: Column, family: Family, alpha: float) -> Settings:
    smoothing = base.smoothing if isinstance(base.smoothing, Mapping) else {}
    return replace(
        base,
        families={**base.families, column.name: family},
        smoothing={**smoothing, column.name: Laplace(alpha)},
    )


def _losses(
    folds: Folds, column: Column, base: Settings, readings: Sequence[tuple[Family, float]]
) -> dict[tuple[Family, float], float]:
    """The held-out log loss of each reading, with the temperature and the exponent that suit it."""
    rows: Ints = np.sort(np.concatenate([piece.rows for piece in folds.pieces]))
    lengths = row_lengths(folds, column.name)
    fold = folds.scored()[0] if len(rows) >= _ONE_FOLD else None
    out = {}
    for reading, held in _each_reading(folds, column, base, readings, fold, len(rows)):
        out[reading] = _loss(held, column.name, lengths[np.searchsorted(rows, held.rows)])
    return out


def _loss(held: HeldOut, column: str, lengths: Floats) -> float:
    """The loss under the best temperature and exponent; rows of a class that their model never saw are left out."""
    known = np.flatnonzero(np.isfinite(held.log_prior[held.folds, held.labels]))
    n_folds, classes = held.log_prior.shape
    known = known[:: max(1, -(-len(known) * classes // _MOST_SCORES))]
    weights = np.ones(len(known)) if held.weights is None else held.weights[known]
    rows = DealtRows(held.labels[known], held.folds[known], weights, classes, n_folds)
    said = against_first(bounded_words(held.parts[column][known]))
    prior = against_first(np.maximum(held.log_prior, _IMPOSSIBLE))
    dense = [Dense(column, said, np.log(np.maximum(lengths[known], 1.0)))]
    joint = Joint(rows, [], [], prior, np.zeros((n_folds, n_folds), dtype=bool), dense=dense)
    losses, _ = posterior(joint.scores(tempered(joint)), rows.labels)
    return float(np.average(losses, weights=weights))


def bounded_words(parts: Floats) -> Floats:
    """What whole texts say against their best class: impossible is strong, not infinite."""
    out = np.nan_to_num(parts, neginf=-1e300)
    out -= out.max(axis=1, keepdims=True)
    return np.asarray(np.maximum(out, LEAST_WORDS, out=out))


def row_lengths(folds: Folds, column: str) -> Floats:
    """How many tokens each row has in a column of words, in the order of the held-out rows."""
    rows, lengths = [], []
    for piece in folds.pieces:
        assert piece.blocks is not None  # a look fits into memory
        bag = piece.blocks[column]
        assert isinstance(bag, Bag)
        rows.append(piece.rows)
        lengths.append(bag.lengths())
    return np.asarray(np.concatenate(lengths)[np.argsort(np.concatenate(rows), kind="stable")])


def _each_reading(
    folds: Folds, column: Column, base: Settings, readings: Sequence[tuple[Family, float]], fold: int | None, rows: int
) -> Iterator[tuple[tuple[Family, float], HeldOut]]:
    """Readings with their held-out rows, as many at a time as memory holds."""
    size = max(1, rows * len({label for label, _ in folds.names}) // (1 if fold is None else folds.count))
    some = max(1, _MOST_PARTS // size)
    for start in range(0, len(readings), some):
        chunk = readings[start : start + some]
        settings = [_with_reading(base, column, *reading) for reading in chunk]
        yield from zip(chunk, folds.held_out_each(settings, fold, parts=True), strict=True)


# ---- further columns of the same text


def is_text(column: Column) -> bool:
    """Whether a column is a text cut into single words, of which more can be read."""
    return column.text is not None and column.text.chars is None and column.text.ngrams == (1, 1)


def further(schema: Schema, look: Batch, classes: int = 2) -> Iterator[tuple[str, Column]]:
    """(what it is, column) of what else can be read from the texts of a look, where that is affordable."""
    names = set(schema.names)
    for column in schema.counted:
        if not is_text(column) or column.text is None:
            continue
        source = column.source or column.name
        size = text_bytes(look, source)
        cuts: list[tuple[str, dict[str, Any]]] = []
        if size * classes <= _PAIRED_BYTES:
            cuts.append((PAIRS_OF_WORDS, {"ngrams": (2, 2)}))
        if size <= _CHARACTER_BYTES and size < 6 * _SHORT * max(look.rows, 1):
            cuts.append((CHARACTERS, {"chars": (1, 4), "across": True}))
        for what, cut in cuts:
            name = f"{column.name} ({what})"
            if name not in names:
                yield (
                    what,
                    replace(
                        column,
                        name=name,
                        source=source,
                        text=replace(column.text, **cut),
                        reason=f"its {what} tell more",
                    ),
                )


def text_bytes(look: Batch, source: str) -> int:
    """About how many bytes of text a column of a look has."""
    if source not in look:  # taken as missing, with a warning
        return 0
    raw = look[source]
    if isinstance(raw, pa.Array) and not pa.types.is_dictionary(raw.type):
        return int(raw.nbytes)
    values = raw.to_pylist() if isinstance(raw, pa.Array) else raw
    return sum(len(v) for v in values if isinstance(v, str))


def thinned(look: Batch, schema: Schema) -> Batch:
    """Every k-th row of a look with so much text that choosing by all of it would take long."""
    size = sum(text_bytes(look, c.source or c.name) for c in schema.counted if c.text is not None)
    step = -(-size // LOOK_BYTES)
    return look if step <= 1 else look.take(np.arange(0, look.rows, step))
