"""A number for each row that depends on its canonical content only: the same from every file, frame and engine.

Folds are drawn by it, so that equal rows stay together and every engine draws the same folds.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from . import encode
from .block import Block, Codes, Numbers
from .schema import Schema
from .sources import Batch

Hashes = NDArray[np.uint64]


def row_hash(schema: Schema, batch: Batch, key: str = "") -> Hashes:
    """64 bits for each row, from its label and its counted columns as they are read, not from weights.

    Another `key` gives numbers that have nothing to do with the first ones.

    >>> from .schema import Column
    >>> schema = Schema([Column("size", "number")], target="y")
    >>> a, b, c = row_hash(schema, Batch({"size": [1, 1.0, "2"], "y": ["u", "u", "u"]}, 3)).tolist()
    >>> a == b, a == c
    (True, False)
    """
    out = np.full(batch.rows, _name_hash(key), dtype=np.uint64)
    if schema.target in batch:
        out = _mixed(out ^ _values(encode.labels(schema, batch)))
    blocks = encode.blocks(schema, batch)
    for name in sorted(blocks):
        out = _mixed((out + _name_hash(name)) ^ _values(blocks[name]))
    return out


def fold_of(hashes: Hashes, folds: int) -> NDArray[np.int64]:
    """The fold, 0 to folds − 1, of each row."""
    return (hashes % np.uint64(folds)).astype(np.int64)


def _values(block: Block) -> Hashes:
    """A hash of each row's value in one column; 0 where it is missing."""
    if isinstance(block, Numbers):
        bits = (block.values + 0.0).view(np.uint64)  # −0.0 and 0.0 are equal, and so are their hashes
        return np.where(np.isnan(block.values), np.uint64(0), _mixed(bits ^ _name_hash("number")))
    if isinstance(block, Codes):
        table = np.array([_name_hash(slot) for slot in block.slots] + [np.uint64(0)], dtype=np.uint64)
        return table[block.codes]  # the code of a missing value, −1, is the last
    return np.array([np.uint64(0) if r == b"-" else _bytes_hash(r) for r in block.receipts()], dtype=np.uint64)


def _name_hash(name: str) -> np.uint64:
    return _bytes_hash(name.encode("utf-8", "surrogatepass"))


def _bytes_hash(content: bytes) -> np.uint64:
    return np.uint64(int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little"))


def _mixed(x: Hashes) -> Hashes:
    """Every bit of the result depends on every bit of x (the finaliser of SplitMix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    out: Hashes = x ^ (x >> np.uint64(31))
    return out
