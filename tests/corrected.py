"""Random corrections of every column of a model that can have one, and what they must add up to, worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import tallybayes as tb
from tallybayes.data import encode
from tallybayes.data.pairs import pair_slot
from tallybayes.data.sources import open_source
from tallybayes.families.blend import BlendBelief, bounded
from tallybayes.families.forms import PairForm, TableForm, WordsForm

NEW = "a value that only a correction knows"
WEIGHTS = (0.0, 0.35, 1.0, 1.75)


def correction(model: tb.Model, name: str, seed: int) -> tb.Correction | None:
    """Some cells of a column, and one that was never counted; one class unknown to it, and one to the model."""
    rng = np.random.default_rng([seed, len(name)])
    form = model.beliefs[name].form()
    cells: tuple[str, ...] = ()
    cuts: tuple[float, ...] = ()
    if isinstance(form, TableForm):
        cells = (*form.values[::2], *_new(form.values))
    elif isinstance(form, PairForm):
        cells = tuple(pair_slot(u, v) for u in form.us[:3] for v in form.vs[-2:])
        cells += tuple(pair_slot(u, v) for u in _new(form.us) for v in _new(form.vs))
    elif isinstance(form, WordsForm):
        cells = (*form.words[1::2], NEW)
    elif model.schema[name].like == "number":
        assert model.tally is not None
        known = [m for n, m, _ in model.tally.moments(name).values() if n > 0]
        cuts = tuple(sorted({0.0, 3.0, *known}))
    else:
        return None
    classes = (*[str(c) for c in model.classes][1:], "a class of long ago")
    added = rng.normal(0, 0.7, (len(cells) or len(cuts) + 1, len(classes)))
    added[rng.random(len(added)) < 0.2] = 0.0
    return tb.Correction(WEIGHTS[(seed + len(name)) % len(WEIGHTS)], classes, added, cells, cuts)


def _new(values: tuple[str, ...]) -> tuple[str, ...]:
    """A value that was never counted; a boolean has none."""
    return () if set(values) <= {"true", "false"} else (NEW,)


def corrected(model: tb.Model, seed: int = 0) -> tb.Model:
    """The same counts under random corrections."""
    own = {n: c for n in model.beliefs if (c := correction(model, n, seed)) is not None}
    weights = {n: w for n, w in model.settings.weights.items() if n not in own}
    assert model.tally is not None
    return model.tally.model(replace(model.settings, weights=weights, corrections=own))


def parts_by_hand(model: tb.Model, name: str, rows: Any) -> np.ndarray[Any, Any]:
    """weight · what the counts say + what is added, up to what all classes share."""
    assert model.tally is not None
    plain = model.tally.model(replace(model.settings, corrections={})).beliefs[name]
    own = model.settings.corrections[name]
    block: Any = encode.bags(encode.blocks(model.schema, next(open_source(rows).batches())))[name]
    says = plain.parts(block)
    if model.schema[name].like == "number" and not isinstance(plain, BlendBelief):
        says = bounded(says, 1e300)  # where every class is impossible the counts say nothing
    out = own.weight * says if own.weight else np.zeros_like(says)
    known = {c: i for i, c in enumerate(own.classes)}
    places = [known.get(str(c)) for c in model.classes]
    at = {cell: i for i, cell in enumerate(own.cells)}
    for i in range(len(says)):
        cells: list[tuple[int, float]] = []
        if own.cells and hasattr(block, "matrix"):
            start, stop = block.matrix.indptr[i : i + 2]
            found = zip(block.matrix.indices[start:stop], block.matrix.data[start:stop], strict=True)
            once = getattr(plain, "presence", False)
            cells = [(at[block.slots[s]], 1.0 if once else n) for s, n in found if block.slots[s] in at]
        elif own.cells and block.text(i) in at:
            cells = [(at[block.text(i)], 1.0)]
        elif not own.cells and block.text(i) is not None:
            cells = [(int(np.sum(np.array(own.cuts) <= block.values[i])), 1.0)]
        for cell, times in cells:
            out[i] += [0.0 if p is None else times * own.added[cell, p] for p in places]
    return out
