"""What a table holds, before a model is made of it: what each column is taken for and why, and which one to predict."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ..base.canon import printable
from ..base.errors import DataError, TallybayesError, heard
from ..data import encode
from ..data.guess import Reading
from ..data.infer import first_look, looked_at
from ..data.kinds import KINDS
from ..data.schema import Column, Schema
from ..data.sources import Batch, Source, read
from .problems import ApiProblem

CHOICES = tuple(name for name, kind in KINDS.items() if not kind.of)  # a pair and a gap are made of other columns
_NAMED = ("target", "label", "class", "y", "outcome", "answer", "result")
_MOST_CLASSES, _MOST_NUMBERS = 50, 20  # of a column that may be meant as the answer, of one of numbers
_MOST_NAMED = 1_000  # of one that is called so
_CELLS = 2_000_000  # of which values are counted for show
_SHOWN = 4


@dataclass(frozen=True)
class Glimpse:
    """Some values of a column with how often they occur, how many different ones there are, and how many are missing.

    Of values that are lists or dicts only the first few are shown.
    """

    values: tuple[tuple[str, int | None], ...]
    different: int
    missing: int


@dataclass(frozen=True)
class TakenFor:
    """What a column is taken for, why, and why it cannot be read as that, if so."""

    kind: str
    why: str
    problem: str = ""


@dataclass(frozen=True)
class TableFile:
    """How a file is written, as `tb.read` takes it; what is no CSV needs none of it."""

    encoding: str = "utf-8"
    decimal: str = "."
    bad_lines: str = "error"

    def source(self, path: str) -> Source:
        """The rows of a file that is written so."""
        return read(path, encoding=self.encoding, decimal=self.decimal, bad_lines=self.bad_lines)


AS_USUAL = TableFile()


@dataclass(frozen=True)
class TableChoices:
    """What a person has said of a table: kinds of columns, texts that mean missing, whether letter case matters, how
    dates and the file itself are written.
    """

    kinds: Mapping[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    fold: bool = False
    dates: str = ""
    file: TableFile = AS_USUAL

    def reading(self, target: str) -> dict[str, Any]:
        """The same as `tb.fit` takes it."""
        kinds = {name: kind for name, kind in self.kinds.items() if name != target}
        dates = self.dates or None
        return {"kinds": kinds, "missing": self.missing or None, "fold": self.fold, "date_format": dates}


@dataclass(frozen=True)
class TableUnderstood:
    """What the columns of a table are taken for, once it is known what is to be predicted; or why that cannot be."""

    columns: Mapping[str, TakenFor] = field(default_factory=dict)
    classes: tuple[tuple[str, int], ...] = ()  # the commonest first
    unlabelled: int = 0
    told: tuple[str, ...] = ()  # what a person should know besides
    problem: ApiProblem | None = None


class TableLook:
    """A look at a file: all rows of a small one, some from all over a large one."""

    def __init__(self, path: str, file: TableFile = AS_USUAL) -> None:
        self.name = os.path.basename(path)
        self._folder = path[: len(path) - len(self.name)]  # nobody who looks at a page need know it
        with heard() as told:
            self.rows: Batch = first_look(file.source(path))
        self.told = tuple(told)
        self.names = self.rows.names()
        if not self.names:
            raise DataError(f"{self.name} has no columns", hint="give a table whose first line names its columns.")
        self.whole = not (self.rows.sampled or self.rows.stretches)
        self._some = self.rows.slice(0, max(1_000, _CELLS // len(self.names)))

    @property
    def glimpsed(self) -> int:
        """Of how many rows values are counted for show."""
        return self._some.rows

    @cached_property
    def glimpses(self) -> dict[str, Glimpse]:
        """Some values of each column."""
        return {name: self._glimpse(name) for name in self.names}

    def _glimpse(self, name: str) -> Glimpse:
        counted = _counted(self._some, name)
        if counted is None:
            raw = self._some[name]
            return Glimpse(tuple((printable(raw[i], 60), None) for i in range(min(_SHOWN, self._some.rows))), 0, 0)
        common = sorted(counted, key=lambda value: (-counted[value], value))[:_SHOWN]
        there = sum(counted.values())
        return Glimpse(tuple((v, counted[v]) for v in common), len(counted), self._some.rows - there)

    @cached_property
    def proposed(self) -> tuple[str, str]:
        """The column that is likely to be meant as the answer, and why it is proposed."""
        for name, why in self._candidates():
            counted = _counted(self._some, name)
            if counted is None or len(counted) < 2:
                continue
            most = _MOST_NUMBERS if all(map(_is_number, counted)) else _MOST_CLASSES
            most = _MOST_NAMED if name.strip().lower() in _NAMED else most
            if len(counted) <= min(most, self._some.rows / 2):
                return name, f"{why}, and has {len(counted)} different values"
        return self.names[-1], "it is the last column; no column looks like an answer"

    def _candidates(self) -> Iterator[tuple[str, str]]:
        for wanted in _NAMED:
            for name in self.names:
                if name.strip().lower() == wanted:
                    yield name, f"it is called {name}"
        yield self.names[-1], "it is the last column"
        yield self.names[0], "it is the first column"
        for name in reversed(self.names):
            yield name, "it is the last column with few values"

    def understood(self, target: str, choices: TableChoices) -> TableUnderstood:
        """What the columns are taken for, some of them by choice."""
        given = choices.reading(target)
        with heard() as told:
            try:
                reading = Reading.of(given["missing"], False, given["date_format"], given["fold"], given["kinds"])
                schema, _ = looked_at(self.rows, target, None, False, reading)
                labels = encode.labels(schema, self.rows)
            except TallybayesError as error:
                return TableUnderstood(told=(*self.told, *told), problem=ApiProblem.of(error))
            own: dict[str, list[Column]] = {name: [] for name in self.names}
            for column in schema.columns:
                own[column.reads].append(column)
            taken = (name for name in self.names if name != target)
            columns = {name: self._taken(schema, own[name], name in given["kinds"]) for name in taken}
        said = tuple(each.replace(self._folder, "") for each in (*self.told, *told))
        counts = np.bincount(labels.codes[labels.codes >= 0], minlength=len(labels.slots)).tolist()
        classes = sorted(zip(labels.slots, counts, strict=True), key=lambda each: (-each[1], each[0]))
        return TableUnderstood(columns, tuple(classes), int(np.count_nonzero(labels.codes < 0)), said)

    def _taken(self, schema: Schema, own: list[Column], chosen: bool) -> TakenFor:
        if not own:
            return TakenFor("ignore", "it is not read")
        kind = "date" if any(c.part for c in own) else own[0].kind
        return TakenFor(kind, str(own[0].reason), self._unreadable(schema, own) if chosen else "")

    def _unreadable(self, schema: Schema, columns: list[Column]) -> str:
        """Why a column cannot be read as what was chosen; empty if it can."""
        try:
            for block in encode.blocks(schema._with(columns=columns, weights=None), self.rows).values():
                block.present()
        except TallybayesError as error:
            return error.found.replace(self._folder, "")
        return ""


def _counted(rows: Batch, name: str) -> dict[str, int] | None:
    """How often each value of a column occurs; None where values are lists or dicts."""
    try:
        codes = encode.labels(Schema([], target=name), rows)
    except TallybayesError:
        return None
    counts = np.bincount(codes.codes[codes.codes >= 0], minlength=len(codes.slots)).tolist()
    return {value: n for value, n in zip(codes.slots, counts, strict=True) if n}


def _is_number(value: str) -> bool:
    try:
        return math.isfinite(float(value))
    except ValueError:
        return False
