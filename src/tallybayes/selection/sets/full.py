"""Full conformal prediction: the new row is counted under each class in turn, and every row scored without itself.

For a candidate (x, y) the rows and the candidate are one heap of n + 1 rows. Each is scored by the tally of the n
others, so the candidate by the model as it is, and row i by T + (x, y) − i. All are scored alike: if rows come in no
particular order, the right candidate has any rank with the same probability, and its p-value is at most ε with
probability at most ε, whatever the data are and however few. One pass over all rows per new row and class.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ...base import canon
from ...base.arrays import Floats, Ints
from ...base.errors import DataError, SettingsError
from ...data import encode
from ...data.blocks import Groups
from ...data.encode import Labelled
from ...data.sources import Source, open_source
from ...model.model import Model
from ...model.sets import TIE, smoothed, strangeness
from ...tally.tally import Tally, count_rows
from ..leave_one_out import LeftOutRows


def full_p_values(
    model: Model, data: Any, rows: Source, strange: Floats, by_class: bool = False, u: Floats | None = None
) -> Floats:
    """p of every class for the rows, which are so strange to the model; `data` are the rows that it has counted."""
    schema, tally = model.schema, model.tally
    if model.settings.calibrated is not None:
        raise SettingsError(
            "full conformal sets under settings that were learnt from the rows",
            hint="leave out exact=True: the settings are then learnt anew for each of ten folds.",
        )
    source = open_source(data, target=schema.target).repeatable()
    if tally is None or replace(Tally.of(schema, source), skipped=tally.skipped) != tally:
        raise DataError("these are not the rows that the model has counted", hint="give all of them, and no others.")
    if len(model.classes) != len(tally.classes):
        raise SettingsError("full conformal sets with classes that no row has", hint="leave out exact=True.")
    reads = [encode.labelled(schema, batch) for batch in source.batches()]
    reads = [replace(read, blocks=encode.bags(read.blocks)) for read in reads if len(read.rows)]
    names = [str(canon.text(c)) for c in model.classes]
    out, at = np.empty(strange.shape), 0
    for batch in rows.batches():
        blocks = encode.bags(model._read(batch))
        for i in range(batch.rows):
            row = {name: block.take(np.array([i])) for name, block in blocks.items()}
            for j, name in enumerate(names):
                one = count_rows(schema, [name], Groups(np.zeros(1, dtype=np.int64), 1, None), row)
                scores, labels = _left_out(tally + one, reads, model)
                own = scores[labels == j] if by_class else scores
                s, reach = strange[at, j], TIE * max(abs(strange[at, j]), 1.0)
                at_least, more = np.count_nonzero(own >= s - reach), np.count_nonzero(own > s + reach)
                counts = np.array([at_least]), np.array([more])
                out[at, j] = smoothed(len(own), *counts, None if u is None else u[at : at + 1])[0]
            at += 1
    return out


def _left_out(tally: Tally, reads: list[Labelled], model: Model) -> tuple[Floats, Ints]:
    """How strange the own class of each row is to the tally without it, and the number of the class."""
    scores, labels = [], []
    for read in reads:
        held = LeftOutRows(tally, read, model.settings).scored(0)
        scores.append(strangeness(held.joint, held.log_prior[held.folds])[np.arange(len(held.labels)), held.labels])
        labels.append(held.labels)
    return np.concatenate(scores), np.concatenate(labels)
