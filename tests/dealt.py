"""A table as choosing sees it: its rows dealt to folds as they stand, its columns coded."""

from __future__ import annotations

from typing import Any

import numpy as np

import tallybayes as tb
from tallybayes.data import encode
from tallybayes.data.blocks import Codes, Numbers
from tallybayes.data.encode import Labelled
from tallybayes.data.sources import open_source
from tallybayes.families.smoothing import BackOff, Laplace
from tallybayes.selection.choose.columns import Category, DealtRows, Number
from tallybayes.selection.choose.pairs import coded_pairs
from tallybayes.selection.choose.problem import Problem

FOLDS = 5


def dealt(data: dict[str, list[Any]], given: Laplace | BackOff | None = None) -> tuple[Problem, tb.Schema, Labelled]:
    """The columns of a table with target y, its rows in five folds of neighbours, and the pairs they could make."""
    schema = tb.infer(data, target="y")
    read = encode.labelled(schema, next(iter(open_source(data, target="y").batches())))
    n = len(read.labels)
    rows = DealtRows(read.labels, np.arange(n) * FOLDS // n, np.ones(n), len(read.classes), FOLDS)
    coded: list[Category | Number] = []
    for column in schema.counted:
        block = read.blocks[column.name]
        if isinstance(block, Numbers):
            coded.append(Number.of(column, block, rows))
        else:
            assert isinstance(block, Codes)
            coded.append(Category.of(column, block, rows, given))
    pairs = coded_pairs(list(zip(schema.counted, coded, strict=True)), schema.counted)
    return Problem(rows, coded, [], pairs), schema, read
