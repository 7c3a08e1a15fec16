"""Receipts: a 128-bit hash per row, counted like any slot, so that `forget` knows every row it is asked to forget."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from ..base.arrays import Floats
from ..base.canon import number_text
from ..data import encode
from ..data.blocks import Block, Groups, N
from ..data.schema import Schema
from ..data.sources import Batch
from ..exact.counts import Counts
from ..exact.limbs import Limbs
from ..exact.sheet import Sheet


def hashes(blocks: Mapping[str, Block], weights: Floats | None, rows: int) -> list[str]:
    """A hash of each row's values and weight; equal rows have equal ones on every machine."""
    values = [blocks[name].receipts() for name in sorted(blocks)]
    weight = [b"1"] * rows if weights is None else [number_text(w).encode() for w in weights.tolist()]
    out = []
    for row in zip(weight, *values, strict=True):
        digest = hashlib.blake2b(digest_size=16)
        for piece in row:
            digest.update(len(piece).to_bytes(8, "little"))
            digest.update(piece)
        out.append(digest.hexdigest())
    return out


def sheet(blocks: Mapping[str, Block], groups: Groups) -> Sheet:
    """How often each row was counted, by class."""
    found, code = np.unique(hashes(blocks, groups.weights, len(groups.labels)), return_inverse=True)
    n = np.bincount(code * groups.n_labels + groups.labels, minlength=len(found) * groups.n_labels)
    return Sheet.dense([str(h) for h in found], groups.n_labels, {"n": Limbs(0, n.astype(np.int64)[:, None])})


def first_unknown(schema: Schema, classes: Sequence[str], labels: Counts, batches: Iterable[Batch]) -> int | None:
    """The number of the first row that was not counted, or not so often; None if all were."""
    counted = labels.sheet("receipts", N)
    table = counted.table("n", len(classes))
    left = {(counted.slot_names[s], classes[c]): float(table[s, c]) for s, c in np.argwhere(table)}
    for batch in batches:
        label = encode.labels(schema, batch)
        weights = encode.weights(schema, batch)
        for row, digest in enumerate(hashes(encode.blocks(schema, batch), weights, batch.rows)):
            name = label.text(row)
            if name is None or (weights is not None and weights[row] == 0):
                continue
            left[digest, name] = left.get((digest, name), 0.0) - 1
            if left[digest, name] < 0:
                return batch.start + row
    return None
