"""Predictions for more rows than memory holds: from any source to a CSV, JSON lines or Parquet file."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import IO, Any, TypeVar

import numpy as np
import pyarrow as pa

from ..base import canon, threads
from ..base.arrays import Floats, Ints
from ..base.arrow import array
from ..base.disk import replacing
from ..base.errors import DataError, FileError, SettingsError, excerpt, unknown, warn
from ..data import encode
from ..data.batch import Batch
from ..data.columns import as_column
from ..data.files.writer import as_array, output_format, row_writer
from ..data.outputs import PREDICTION, ROW, SET, because_names, output_names
from ..data.sources import open_source
from . import posterior
from .model import Model
from .reasons import runners_up, strongest_terms
from .sets import PredictedSets, checked_coverage, sets_of, strangeness

ALL, NONE = "all", "none"


def predict_file(
    model: Model,
    data: Any,
    out: str | os.PathLike[str] | IO[bytes],
    *,
    format: str | None = None,
    probabilities: bool = True,
    keep: Sequence[str] | str = (),
    prior: Any = None,
    costs: Any = None,
    unsure_below: float | None = None,
    explain: int = 0,
    row_numbers: bool = False,
    coverage: float | None = None,
    by_class: bool = False,
) -> int:
    """How many rows were predicted: each row's class and probabilities are written to `out`, in the order of the rows.

    `data` is anything that `predict` takes, and `prior`, `costs` and `unsure_below` are as there; an unsure row has no
    class. The columns written are those of the data named in `keep` ("all" for all of them), `prediction`, and a
    `P(class)` for each class. With `explain=3` the three strongest terms of each row follow, as `because 1` and
    `log-odds 1` of the answer against the next likeliest class, and so on. `row_numbers` puts `row` before everything,
    the first is 0. With a `coverage`, and perhaps `by_class`, `set` holds the classes of `Model.predict_set`, as
    "yes | no". `out` is a path ending in .csv, .tsv, .jsonl or .parquet (the first three packed if they end in .gz
    or .zst), which appears only once it is complete, or an open binary file with a `format`.

    >>> model = tb.textbook({"Sky": ["sunny", "rainy", "sunny"], "Play": ["yes", "no", "yes"]}, "Play")
    >>> tb.predict_file(model, {"Sky": ["rainy", "sunny"]}, "answers.csv", keep="all")
    2
    >>> with open("answers.csv", encoding="utf-8") as file:
    ...     print([line.split(",")[:2] for line in file])
    [['Sky', 'prediction'], ['rainy', 'no'], ['sunny', 'yes']]
    """
    asked = Question(model, probabilities, prior, costs, unsure_below, explain, row_numbers, coverage, by_class)
    return write_answers(asked, data, out, keep, format=format)[0]


@dataclass(frozen=True)
class Question:
    """What is asked of a model about every row; checked before any is read."""

    model: Model
    probabilities: bool = True
    prior: Any = None
    costs: Any = None
    unsure_below: float | None = None
    explain: int = 0
    row_numbers: bool = False
    coverage: float | None = None
    by_class: bool = False
    start: Floats = field(init=False)

    def __post_init__(self) -> None:
        if isinstance(self.explain, bool) or not isinstance(self.explain, (int, np.integer)) or self.explain < 0:
            raise SettingsError(f"explain={self.explain!r}", hint="take the number of terms to tell of each row: 3.")
        if self.coverage is not None:
            checked_coverage(self.coverage)
            sets_of(self.model)
            if self.prior is not None:
                raise SettingsError(
                    "prediction sets under another prior",
                    hint="leave out one of the two: sets go by rows as they came.",
                )
        object.__setattr__(self, "start", self.model._start(self.prior))
        posterior.decide(np.exp(self.start)[None, :], self.model.classes, self.unsure_below, self.costs)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the answers."""
        p = output_names(self.model.classes) if self.probabilities else ()
        return (
            *((ROW,) if self.row_numbers else ()),
            PREDICTION,
            *((SET,) if self.coverage else ()),
            *p,
            *because_names(self.explain),
        )

    def answer(self, batch: Batch) -> Answers:
        """The answers to some rows."""
        blocks, joint = self.model.scored_batch(batch, self.start)
        p = np.exp(posterior.log_posterior(joint, self.start))
        if self.costs is None and self.unsure_below is None:
            best = np.argmax(p, axis=1)
        else:
            best = posterior.decide(p, self.model.classes, self.unsure_below, self.costs)
        terms = None
        if self.explain:
            taken = best if self.unsure_below is None else posterior.decide(p, self.model.classes, None, self.costs)
            terms = strongest_terms(self.model, blocks, taken, runners_up(p, taken), self.explain)
        sets = None
        if self.coverage is not None:
            sets = sets_of(self.model).predicted(
                self.model, strangeness(joint, self.start), self.coverage, self.by_class
            )
        return Answers(best, p, terms, sets)

    @cached_property
    def classes(self) -> pa.Array:
        """The labels as a column holds them."""
        found = as_column(list(self.model.classes))
        if isinstance(found, pa.Array):
            return found
        return array([canon.text(c) for c in found], pa.string())  # of several types: their texts tell them apart

    def columns(self, answers: Answers) -> dict[str, pa.Array]:
        """The answers as columns, without the row numbers."""
        best = array(answers.best)
        if self.unsure_below is not None:
            best = pa.array(answers.best, mask=answers.best == posterior.UNSURE)
        out = {PREDICTION: self.classes.take(best)}
        if answers.sets is not None:
            told = [" | ".join(str(canon.text(c)) for c in one) for one in answers.sets]
            out[SET] = array(told, pa.string())
        if self.probabilities:
            each = map(array, np.ascontiguousarray(answers.p.T))
            out |= dict(zip(output_names(self.model.classes), each, strict=True))
        if answers.terms is not None:
            reasons = (
                column
                for texts, odds in zip(*answers.terms, strict=True)
                for column in (array(texts, pa.string()), pa.array(odds, mask=np.isnan(odds)))
            )
            out |= dict(zip(because_names(self.explain), reasons, strict=True))
        return out


@dataclass(frozen=True)
class Answers:
    """The number of each row's class, −1 for unsure, its probabilities; the strongest terms and sets if asked for."""

    best: Ints
    p: Floats
    terms: tuple[list[list[str | None]], Floats] | None
    sets: PredictedSets | None = None


def write_answers(
    asked: Question,
    data: Any,
    out: str | os.PathLike[str] | IO[bytes],
    keep: Sequence[str] | str = (),
    *,
    format: str | None = None,
) -> tuple[int, int]:
    """Write all answers as `predict_file` does: how many rows there were, and how many of them were unsure."""
    form, packing = output_format(out if isinstance(out, (str, os.PathLike)) else None, format)
    kept = Kept.of(keep, asked.names, ragged=form == "jsonl")
    source = open_source(asked.model.table_of(data))
    batches = map(kept.checked, source.batches(encode.kept_as_written(asked.model.schema, kept.named)))
    scored = threads.each(lambda batch: (batch, asked.answer(batch)), batches)
    with _written(out) as (file, own), contextlib.ExitStack() as stack:
        rows, unsure, sink = 0, 0, file
        if packing:  # through a second handle, since it closes what it writes to
            sink = stack.enter_context(pa.CompressedOutputStream(os.fdopen(os.dup(file.fileno()), "wb"), packing))
        write = stack.enter_context(row_writer(form, sink))
        for batch, answers in own(scored):
            number = {ROW: array(np.arange(rows, rows + batch.rows))} if asked.row_numbers else {}
            write({**number, **kept.columns(batch, rows), **asked.columns(answers)})
            rows += batch.rows
            unsure += int(np.count_nonzero(answers.best == posterior.UNSURE))
    return rows, unsure


class Kept:
    """The columns of the data that are written beside the answers, and what they are called there."""

    def __init__(self, named: list[str] | None, taken: Sequence[str], ragged: bool) -> None:
        self.named, self._taken, self._ragged = named, set(taken), ragged
        self._written: dict[str, str] | None = None  # by the name in the data, in the order of the columns

    @classmethod
    def of(cls, keep: Sequence[str] | str, taken: Sequence[str], ragged: bool) -> Kept:
        """What "all", "none" or a list of names means; a name that an answer has is refused."""
        if isinstance(keep, str):
            if keep not in (ALL, NONE):
                raise SettingsError(f"keep={keep!r}", hint=f"give a list of columns, keep=[{keep!r}], or 'all'.")
            return cls(None if keep == ALL else [], taken, ragged)
        clash = sorted({*keep} & {*taken})
        if clash:
            raise SettingsError(
                f"keep={clash[0]!r} is what a column of predictions is called",
                hint="rename it in the data; keep='all' writes it under another name.",
            )
        return cls(list(dict.fromkeys(keep)), taken, ragged)

    def checked(self, batch: Batch) -> Batch:
        """The same batch, if it has the columns to keep."""
        absent = [name for name in self.named or () if name not in batch]
        if absent:
            raise unknown(DataError, f"there is no column {absent[0]!r} to keep", absent[0], batch.names())
        return batch

    def columns(self, batch: Batch, first: int) -> Mapping[str, pa.Array]:
        """The columns of a batch whose first row has this number, under the names that are written."""
        if self._written is None:
            self._written = self._renamed(batch.names() if self.named is None else self.named, {})
        elif self.named is None and (new := [n for n in batch.names() if n not in self._written]):
            self._appear(new, first)
        return {
            name: as_array(batch[own]) if own in batch else pa.nulls(batch.rows, pa.string())
            for own, name in self._written.items()
            if name
        }

    def _appear(self, new: list[str], first: int) -> None:
        """Columns that rows before did not have: a line of JSON can, a table has those of its first rows."""
        assert self._written is not None
        if self._ragged:
            self._written |= self._renamed(new, self._written)
            return
        self._written |= dict.fromkeys(new, "")
        warn(f"columns that appear after row {first} only are not written: {excerpt(new)}. Hint: JSON lines hold them.")

    def _renamed(self, names: Sequence[str], before: Mapping[str, str]) -> dict[str, str]:
        out, taken = {}, {*self._taken, *before.values(), *names}
        for name in names:
            out[name] = name
            if name in self._taken:
                number = 1
                while (other := f"{name} (data{'' if number == 1 else f' {number}'})") in taken:
                    number += 1
                out[name] = other
                taken.add(other)
                warn(f"the data have a column {name!r}, which is written as {other!r} beside the answers' own.")
        return out


T = TypeVar("T")
Own = Callable[[Iterable[T]], Iterator[T]]


@contextlib.contextmanager
def _written(out: str | os.PathLike[str] | IO[bytes]) -> Iterator[tuple[Any, Own[Any]]]:
    """An open file; a path is replaced when all is written, and untouched if anything fails.

    What fails is the file, unless it is what a caller's own rows raise while they are given: those go through `own`.
    """
    theirs: list[OSError] = []

    def own(rows: Iterable[T]) -> Iterator[T]:
        try:
            yield from rows
        except OSError as error:
            theirs.append(error)
            raise

    if not isinstance(out, (str, os.PathLike)):
        yield out, own
        return
    try:
        with contextlib.ExitStack() as stack:
            try:
                number = stack.enter_context(replacing(out))
            except FileError as error:
                raise DataError(error.found, hint=error.hint) from None
            yield stack.enter_context(open(number, "wb", closefd=False)), own
    except OSError as error:
        if error in theirs:
            raise
        raise FileError.of(error, os.fspath(out), "written") from error
