"""Why each of many rows gets its answer: the strongest terms of its sum, as log-odds of the answer against the next.

What `explain` shows of one row, for all rows of a batch. A category or a number is one term, found for all rows at
once; words and the positions of a vector are terms of their own, looked at row by row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ..base.arrays import Floats, Ints
from ..base.canon import printable
from ..data import encode
from ..data.blocks import Block, Codes, Numbers
from ..data.clock import told_by
from . import posterior

if TYPE_CHECKING:
    from ..data.schema import Column
    from ..families import Belief
    from .model import Model

LONGEST = 90  # characters of a column and its value: a pair has two of each


def term_text(column: str, label: str) -> str:
    """A column and what was seen there, as a person reads it."""
    return printable(f"{column}: {label}" if column and label else column or label, LONGEST)


def value_text(column: Column, block: Block, row: int) -> str:
    """The value of a row as a person reads it: days and hours as dates and times; empty where it is missing."""
    told = told_by(column)
    if told is None or not isinstance(block, Numbers):
        return block.text(row) or ""
    return told(float(block.values[row])) if block.present()[row] else ""


def runners_up(p: Floats, answers: Ints) -> Ints:
    """The likeliest class of each row besides its answer; the answer itself where there is no other class."""
    if p.shape[1] < 2:
        return answers
    others = p.copy()
    others[np.arange(len(p)), answers] = -np.inf
    return np.asarray(np.argmax(others, axis=1), dtype=np.int64)


def strongest_terms(
    model: Model, blocks: Mapping[str, Block], answers: Ints, others: Ints, most: int
) -> tuple[list[list[str | None]], Floats]:
    """The `most` strongest terms of each row, rank by rank: their texts, and log-odds as ranks × rows.

    They are log-odds of the answer against the other class, those farthest from 0 first. Where a row has fewer terms
    that say anything, texts are None and log-odds NaN. The prior, offsets and calibration are no terms of a row.
    """
    rows = len(answers)
    at = np.arange(rows)
    blocks = encode.bags(dict(blocks))
    odds = [np.zeros((rows, most))]  # so many that say nothing: a row may have no others
    told: list[tuple[_OneTerm | _ManyTerms, int]] = []
    for name, belief in model.beliefs.items():
        if model.settings.weights.get(name, 1.0) == 0:
            continue
        block = blocks[name]
        by = posterior.factor(model.settings, name, block)
        if isinstance(block, (Codes, Numbers)):
            parts = belief.parts(block)
            with np.errstate(invalid="ignore"):
                odds.append(((parts[at, answers] - parts[at, others]) * by)[:, None])
            told.append((_OneTerm(model.schema[name], belief, block), 0))
        else:
            found = _ManyTerms(name, belief, block, answers, others, most)
            odds.append(found.odds * (by[:, None] if isinstance(by, np.ndarray) else by))
            told += [(found, rank) for rank in range(most)]
    table = np.nan_to_num(np.concatenate(odds, axis=1), nan=0.0, posinf=np.inf, neginf=-np.inf)
    order = np.argsort(-np.abs(table), axis=1, kind="stable")[:, :most]
    strength = np.take_along_axis(table, order, axis=1)
    strength[strength == 0] = np.nan
    texts: list[list[str | None]] = []
    for rank in range(most):
        out: list[str | None] = [None] * rows
        for place in np.unique(order[:, rank]).tolist():
            if place >= most:
                column, own_rank = told[place - most]
                chosen = np.flatnonzero((order[:, rank] == place) & ~np.isnan(strength[:, rank]))
                for row, text in zip(chosen.tolist(), column.texts(chosen, own_rank), strict=True):
                    out[row] = text
        texts.append(out)
    return texts, np.ascontiguousarray(strength.T)


class _OneTerm:
    """A column that is one term of every row."""

    def __init__(self, column: Column, belief: Belief, block: Codes | Numbers) -> None:
        self.name, self.column, self.belief, self.block = column.name, column, belief, block

    def texts(self, rows: Ints, rank: int) -> list[str]:
        """What is said of some rows; of a category once for each of its values."""
        if isinstance(self.block, Numbers):
            return [term_text(self.name, value_text(self.column, self.block, row)) for row in rows.tolist()]
        _, first, same = np.unique(self.block.codes[rows], return_index=True, return_inverse=True)
        each = [term_text(self.name, self.belief.terms(self.block, int(rows[i]))[0].label) for i in first.tolist()]
        return [each[i] for i in same.tolist()]


class _ManyTerms:
    """A column of words or positions: the strongest of each row, equal ones added up."""

    def __init__(self, name: str, belief: Belief, block: Block, answers: Ints, others: Ints, most: int) -> None:
        self.name = name
        self.odds = np.zeros((len(answers), most))
        self.labels: list[list[str]] = []
        for row, (a, b) in enumerate(zip(answers.tolist(), others.tolist(), strict=True)):
            said: dict[str, float] = {}
            for term in belief.terms(block, row):
                with np.errstate(invalid="ignore"):
                    odds = float(term.parts[a] - term.parts[b])
                said[term.label] = said.get(term.label, 0.0) + (0.0 if np.isnan(odds) else odds)
            kept = sorted(said.items(), key=lambda item: -abs(item[1]))[:most]
            self.labels.append([label for label, _ in kept])
            self.odds[row, : len(kept)] = [v for _, v in kept]

    def texts(self, rows: Ints, rank: int) -> list[str]:
        """What is said of some rows by their term of a rank."""
        return [term_text(self.name, self.labels[row][rank]) for row in rows.tolist()]
