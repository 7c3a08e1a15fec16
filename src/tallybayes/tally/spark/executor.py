"""What runs on the executors of a cluster: plain functions from Arrow batches to Arrow batches.

Spark sends one of these objects to every executor. They hold names, JSON or a model without its tally, and are found
there by import: an executor needs tallybayes installed and nothing else. One task uses one thread, because
Spark already runs a task per core.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ...base import canon
from ...base.errors import TallybayesError, TallybayesWarning
from ...data import encode
from ...data.batch import BATCH_ROWS, Batch
from ...data.columns import plain
from ...data.schema import Schema
from ..by_period import Mixed, count_mixed, sum_by_period
from ..table import from_ipc, to_ipc
from ..tally import Tally, sum_tallies

if TYPE_CHECKING:
    from ...model.model import Model

PARTS = "part long, tally binary, problem string"
STREAMS = "stream binary"
_BATCH_BYTES = 1 << 26  # Spark sends 10,000 rows at a time; they are gathered up to this or BATCH_ROWS

Batches = Iterable[pa.RecordBatch]


def read(pieces: list[pa.RecordBatch], names: Iterable[str], start: int = 0) -> Batch:
    """Arrow batches as one batch of the library, with the columns' own names."""
    table = pa.Table.from_batches(pieces).combine_chunks()
    columns = {
        n: plain(c.chunk(0) if c.num_chunks else pa.array([], c.type))
        for n, c in zip(names, table.columns, strict=True)
    }
    return Batch(columns, table.num_rows, start)


def gathered(batches: Batches) -> Iterator[list[pa.RecordBatch]]:
    """The batches in groups worth a kernel's while, which still fit in memory."""
    kept: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if kept and (rows + batch.num_rows > BATCH_ROWS or size + batch.nbytes > _BATCH_BYTES):
            yield kept
            kept, rows, size = [], 0, 0
        if batch.num_rows:
            kept.append(batch)
            rows, size = rows + batch.num_rows, size + batch.nbytes
    if kept:
        yield kept


def quietly(work: Callable[[], Iterator[pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
    """The work done on one thread; what a person should be warned of was said where the job was started."""
    os.environ.setdefault("TALLYBAYES_THREADS", "1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TallybayesWarning)
        yield from work()


@dataclass(frozen=True)
class CountPartition:
    """Rows → one partial tally, or what is wrong with them: an error would only make Spark try four times."""

    schema: str
    names: tuple[str, ...]

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """The partition's tally as bytes."""
        return quietly(lambda: self._count(batches))

    def _count(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        schema = Schema.from_dict(json.loads(self.schema))
        part, start = _partition(), 0

        def tallies() -> Iterator[Tally]:
            nonlocal start
            for pieces in gathered(batches):
                batch = read(pieces, self.names, start)
                start += batch.rows
                yield Tally.of(schema, batch)

        try:
            total = sum_tallies(tallies())
        except TallybayesError as error:
            found = f"partition {part}: {error.found}"
            yield _part(part, None, json.dumps([type(error).__name__, found, error.hint]))
            return
        if total is not None:
            yield _part(part, to_ipc(total), None)


@dataclass(frozen=True)
class AddPartition:
    """Partial tallies → their sum. A problem is passed on in place of it."""

    most: int

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """The sum as bytes."""
        return quietly(lambda: self._add(batches))

    def _add(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        part, problem = 0, None

        def tallies() -> Iterator[Tally]:
            nonlocal part, problem
            for row in (row for batch in batches for row in batch.to_pylist()):
                part, problem = row["part"] % self.most, row["problem"]
                if problem is not None:
                    return
                yield from_ipc(row["tally"])

        total = sum_tallies(tallies())
        if problem is not None:
            yield _part(part, None, problem)
        elif total is not None:
            yield _part(part, to_ipc(total), None)


@dataclass(frozen=True)
class CountPeriods:
    """Rows → a partial tally per period, in the place of `part`; or what is wrong with them."""

    schema: str
    names: tuple[str, ...]
    by: str
    time: str

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """The partition's tallies as bytes."""
        return quietly(lambda: self._count(batches))

    def _count(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        schema = Schema.from_dict(json.loads(self.schema))
        part, start = _partition(), 0

        def mixed() -> Iterator[Mixed]:
            nonlocal start
            for pieces in gathered(batches):
                batch = read(pieces, self.names, start)
                start += batch.rows
                yield count_mixed(schema, batch, encode.periods(schema, batch, self.time, self.by))

        try:
            found = sum_by_period(mixed(), schema)
        except TallybayesError as error:
            yield _part(0, None, json.dumps([type(error).__name__, f"partition {part}: {error.found}", error.hint]))
            return
        for period, tally in found.items():
            yield _part(period, to_ipc(tally), None)


@dataclass(frozen=True)
class AddPeriods:
    """Partial tallies by period → the sum of each. A problem is passed on in place of them."""

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """The sums as bytes."""
        return quietly(lambda: self._add(batches))

    def _add(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        sums: dict[int, Tally] = {}
        for row in (row for batch in batches for row in batch.to_pylist()):
            if row["problem"] is not None:
                yield _part(row["part"], None, row["problem"])
                return
            period, tally = row["part"], from_ipc(row["tally"])
            sums[period] = sums[period] + tally if period in sums else tally
        for period, tally in sums.items():
            yield _part(period, to_ipc(tally), None)


def _part(part: int, tally: bytes | None, problem: str | None) -> pa.RecordBatch:
    columns = [pa.array([part], pa.int64()), pa.array([tally], pa.binary()), pa.array([problem], pa.string())]
    return pa.RecordBatch.from_arrays(columns, names=["part", "tally", "problem"])


def _partition() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    return 0 if context is None else int(context.partitionId())


@dataclass(frozen=True)
class StreamPartition:
    """Rows → the same rows as Arrow streams in a column of bytes, so that the driver gets Arrow's types."""

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """A stream per group of batches."""
        for pieces in gathered(batches):
            out = pa.BufferOutputStream()
            with pa.ipc.new_stream(out, pieces[0].schema) as writer:
                for piece in pieces:
                    writer.write_batch(piece)
            stream = pa.array([out.getvalue().to_pybytes()], pa.binary())
            yield pa.RecordBatch.from_arrays([stream], names=["stream"])


@dataclass(frozen=True)
class ScorePartition:
    """Rows → the first `kept` columns of them, the most probable class and every class's probability."""

    model: Model
    prior: Any
    names: dict[str, int]  # where the columns that the model reads are
    kept: int
    outputs: tuple[str, ...]
    label: str  # Spark's name for the type of the labels

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Scored batches of the sizes that Spark sent."""
        return quietly(lambda: map(self._score, batches))

    @cached_property
    def _labels(self) -> pa.Array:
        if self.label == "StringType":
            return pa.array([canon.text(c) for c in self.model.classes], pa.string())
        return pa.array(list(self.model.classes))

    def _score(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        rows = Batch({name: plain(batch.column(at)) for name, at in self.names.items()}, batch.num_rows)
        log = self.model.predict_log_proba(rows, prior=self.prior)
        best = self._labels.take(pa.array(np.argmax(log, axis=1)))
        p = np.exp(log)
        columns = [*batch.columns[: self.kept], best, *(pa.array(p[:, i]) for i in range(p.shape[1]))]
        return pa.RecordBatch.from_arrays(columns, names=self.outputs)
