"""Rows on their way in: a `Batch` of named columns, and the `Source` that gives batches."""

from __future__ import annotations

import itertools
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from ..base.arrow import array
from ..base.disk import on_windows
from ..base.errors import DataError, excerpt
from ..base.lazy import scipy
from ..base.temporary import folder_of
from ..base.threads import threads
from .columns import as_column, plain, with_points

BATCH_ROWS = 1 << 18
BATCH_CELLS = 1 << 23  # of a batch, a matrix counted by its positions: 64 MB of float64
_SHARES = 2  # a long batch is cut into a multiple of so many pieces for each thread
WEIGHTS = "\0weights"  # weights given beside the data; the columns of a frame have other names
SHARES, ROW = "\0shares", "\0row"  # of rows that belong to several classes: the share, and which row it is of
HIDDEN = (WEIGHTS, SHARES, ROW)
MATRIX = "x"  # a matrix is one column of this name, and its columns are also x0, x1, …

_MATRIX_COLUMN = re.compile(rf"{MATRIX}(0|[1-9]\d*)\Z")


Wanted = Mapping[str, str]  # the columns that will be looked at, and as which kind: a file need not be read whole


def matrix_column(name: str) -> int | None:
    """Which column of a matrix the name means: 3 for "x3"."""
    found = _MATRIX_COLUMN.match(name)
    return int(found[1]) if found else None


@dataclass(frozen=True)
class Batch:
    """Some rows: each column an Arrow array, a 2-D NumPy array, a sparse matrix, or a list of Python objects."""

    columns: Mapping[str, Any]
    rows: int
    start: int = 0  # the number of the first row in its source, for messages
    place: Callable[[int], str] | None = None  # where the row of a number stands: "people.csv, line 7"
    written: bool = False  # a file without types: all values are text, and "3.0" or "True" may be a number or a bool
    of: int | None = None  # a sample: how many rows it was drawn from
    stretches: bool = False  # of a file, what lies between which nobody has read
    sampled: bool = False  # some rows of a source: their numbers say nothing of where they stood
    odd: Any = None  # a `spelling.OddCells` that is told of cells that cannot be read
    decimal: str = "."  # how the numbers of a file without types are written; a column that is asked for has points

    def __contains__(self, name: object) -> bool:
        return name in self.columns or self._matrix_column(str(name)) is not None

    def __getitem__(self, name: str) -> Any:
        if name in self.columns:
            return self.columns[name] if self.decimal == "." else with_points(self.columns[name])
        position = self._matrix_column(name)
        if position is None:
            raise KeyError(name)
        return array(np.ascontiguousarray(self.columns[MATRIX][:, position]))

    def get(self, name: str) -> Any:
        """The column of this name, or None."""
        return self[name] if name in self else None  # noqa: SIM401 - this is the `get` it asks for

    def _matrix_column(self, name: str) -> int | None:
        matrix = self.columns.get(MATRIX)
        if not (isinstance(matrix, np.ndarray) and matrix.ndim == 2):
            return None
        found = matrix_column(name)
        return found if found is not None and found < matrix.shape[1] else None

    def names(self) -> list[str]:
        """The columns as a person would list them: a dense matrix by its columns."""
        out: list[str] = []
        for name, column in self.columns.items():
            if name == MATRIX and isinstance(column, np.ndarray) and column.ndim == 2:
                out += [f"{MATRIX}{j}" for j in range(column.shape[1])]
            elif name not in HIDDEN:
                out.append(name)
        return out

    def slice(self, start: int, stop: int) -> Batch:
        """Rows start to stop."""
        stop = min(stop, self.rows)
        columns = {name: c[start:stop] for name, c in self.columns.items()}
        return replace(self, columns=columns, rows=stop - start, start=self.start + start)

    def take(self, rows: np.ndarray[Any, Any]) -> Batch:
        """The rows of these numbers."""
        if np.array_equal(rows, np.arange(self.rows)):
            return self
        columns = {
            n: c.take(pa.array(rows))
            if isinstance(c, pa.Array)
            else [c[i] for i in rows.tolist()]
            if isinstance(c, list)
            else c[rows]
            for n, c in self.columns.items()
        }
        return replace(self, columns=columns, rows=len(rows))

    def cut(self, rows: int) -> Iterator[Batch]:
        """The batch in pieces of at most so many rows; an empty batch is one empty piece.

        Wide rows make shorter pieces, and the pieces are even and many, so that every thread has its share.
        """
        if self.rows <= 1:
            yield self
            return
        wide = sum(c.shape[1] if isinstance(c, np.ndarray) and c.ndim == 2 else 1 for c in self.columns.values())
        most = max(min(rows, BATCH_CELLS // max(wide, 1)), 1)
        if self.rows <= most:
            yield self
            return
        shares = _SHARES * threads()
        pieces = shares * -(-self.rows // (shares * most))
        for start, stop in itertools.pairwise(self.rows * i // pieces for i in range(pieces + 1)):
            if stop > start:
                yield self.slice(start, stop)


@dataclass
class Source:
    """Data that can be read: `batches()` gives all rows in order, as often as asked unless `once`."""

    read: Callable[[], Iterator[Batch]]
    once: bool = False
    arrow: bool = False  # every batch has the same Arrow types
    narrow: Callable[[Wanted], Iterator[Batch]] | None = None  # a file: reads only what is wanted
    name: str = "the data"  # for messages
    engine: Any = None  # what counts and scores the rows where they live, see `tally.spark`; None: they are read here
    home: str = "local"  # the name of the engine that the data ask for: "local", "duckdb" or "spark"
    rows: int | None = None  # how many there are, where that is known before they are read
    stretches: Callable[[int], Batch | None] | None = None  # a file: about so many rows without reading all; or None
    files: tuple[str, ...] = ()  # the paths of those that are read

    def batches(self, wanted: Wanted | None = None) -> Iterator[Batch]:
        """All rows, in order; columns that are not wanted may be left out, but never all of them."""
        return self.narrow(wanted) if wanted and self.narrow is not None else self.read()

    def no_rows(self, hint: str = "give at least one row with a label.") -> DataError:
        """The error about a source that has none."""
        return DataError(f"there are no rows in {self.name}", hint=hint)

    def repeatable(self) -> Source:
        """A source that can be read again.

        A stream of Arrow batches is first written to a temporary file; an iterator of dicts is kept, since its
        rows are Python objects and may change their type from one to the next.
        """
        if not self.once:
            return self
        batches = self.batches()
        first = next(batches)
        if all(isinstance(c, pa.Array) for c in first.columns.values()) and self.arrow:
            return _spooled(itertools.chain([first], batches))
        kept = [first, *batches]
        return Source(lambda: iter(kept))


def arrow_batches(reader: Any) -> Iterator[Batch]:
    """The batches of an Arrow stream; one empty batch if it has no rows."""
    names = [str(n) for n in reader.schema.names]
    refuse_repeated(names)
    start = 0
    for piece in unbroken(reader, "the Arrow stream"):
        columns = {n: plain(c) for n, c in zip(names, piece.columns, strict=True)}
        batch = Batch(columns, piece.num_rows, start)
        start += piece.num_rows
        yield from batch.cut(BATCH_ROWS)
    if start == 0:
        yield Batch({n: plain(pa.nulls(0, f.type)) for n, f in zip(names, reader.schema, strict=True)}, 0)


def unbroken(pieces: Iterable[Any], what: str, *errors: type[Exception]) -> Iterator[Any]:
    """Arrow batches one after another; refused in our words where the next one cannot be had."""
    rows, waiting = 0, iter(pieces)
    while True:
        try:
            piece = next(waiting, None)
        except (pa.ArrowException, OSError, *errors) as error:
            raise broken_off(what, rows, error) from error
        if piece is None:
            return
        rows += piece.num_rows
        yield piece


def broken_off(what: str, rows: int, error: Exception) -> DataError:
    """The error of rows that end before their end: a pipe that was cut, a database that gave up."""
    said = (str(error).splitlines() or [type(error).__name__])[0]
    return DataError(
        f"{what} breaks off after {rows:,} rows: {said[:300]}",
        hint="nothing has been counted: mend what gives the rows, or save them to a file first, and start again.",
    )


def batch_of_rows(rows: Sequence[Any], start: int) -> Batch:
    """A batch of dicts, one per row."""
    names: dict[Any, None] = {}
    for i, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise DataError(
                f"row {start + i} (the first is row 0) is of type {type(row).__name__}, not a dict",
                hint="give a list of dicts, one per row: [{'colour': 'red', 'size': 3}, …].",
            )
        for name in row:
            names.setdefault(name)
    refuse_repeated([str(n) for n in names])
    return Batch({str(n): as_column([row.get(n) for row in rows]) for n in names}, len(rows), start)


def batches_of_rows(rows: Iterable[Any]) -> Iterator[Batch]:
    """Batches of an iterator of dicts; one empty batch if it has none."""
    start = 0
    iterator = iter(rows)
    while True:
        piece = list(itertools.islice(iterator, BATCH_ROWS))
        if piece or start == 0:
            yield batch_of_rows(piece, start)
        if len(piece) < BATCH_ROWS:
            return
        start += len(piece)


def refuse_repeated(names: Sequence[str], where: str = "") -> None:
    """Refuse columns of one name."""
    repeated = sorted(name for name, times in Counter(names).items() if times > 1)
    if repeated:
        raise DataError(
            f"{where}more than one column is called {excerpt(repeated)}",
            hint="columns are found by name, so names must differ: rename or drop the repeated ones.",
        )


def _spooled(batches: Iterator[Batch]) -> Source:
    """The same rows from a temporary Arrow file, deleted with the source."""

    def read() -> Iterator[Batch]:
        with opened(path) as file, pa.ipc.open_stream(file) as reader:
            yield from arrow_batches(reader)

    source = Source(read)
    path = os.path.join(folder_of(source), "rows.arrow")
    opened = pa.OSFile if on_windows() else pa.memory_map  # where a file that is mapped could not be deleted
    pieces = (pa.RecordBatch.from_pydict(dict(batch.columns)) for batch in batches)
    first = next(pieces)
    with pa.ipc.new_stream(path, first.schema) as writer:
        for piece in itertools.chain([first], pieces):
            writer.write_batch(piece)
    return source


def one_batch(batches: list[Batch]) -> Batch:
    """Several batches as one, their columns of one type where there is one."""
    batches = [b for b in batches if b.rows] or batches[:1]
    if len(batches) <= 1:
        return batches[0] if batches else Batch({}, 0)
    names = dict.fromkeys(n for b in batches for n in b.columns)
    columns: dict[str, Any] = {}
    for name in names:
        pieces = [b.columns[name] if name in b.columns else pa.nulls(b.rows) for b in batches]
        kind = _one_type(pieces)
        if kind is not None:
            columns[name] = pa.concat_arrays([p if p.type == kind else p.cast(kind) for p in pieces])
        elif all(isinstance(p, np.ndarray) for p in pieces):
            columns[name] = np.concatenate(pieces)
        elif all(scipy.sparse.issparse(p) for p in pieces):
            columns[name] = scipy.sparse.vstack(pieces).tocsr()
        else:
            columns[name] = [v for p in pieces for v in (p.to_pylist() if isinstance(p, pa.Array) else p)]
    first = batches[0]
    rows = sum(b.rows for b in batches)
    return Batch(
        columns, rows, place=_places(batches), written=first.written, sampled=first.sampled, decimal=first.decimal
    )


def _places(batches: list[Batch]) -> Callable[[int], str] | None:
    """Where the rows of several batches stand."""
    if any(b.place is None for b in batches):
        return None
    return lambda row: next(b.place(row) for b in reversed(batches) if b.start <= row and b.place is not None)


def _one_type(pieces: list[Any]) -> Any:
    """The Arrow type that all pieces of a column can have, or None; a batch may lack a column or its fractions."""
    if not all(isinstance(p, pa.Array) for p in pieces):
        return None
    kinds = {str(p.type): p.type for p in pieces if not pa.types.is_null(p.type)}
    if len(kinds) <= 1:
        return next(iter(kinds.values()), pa.null())
    return pa.float64() if all(pa.types.is_integer(k) or pa.types.is_floating(k) for k in kinds.values()) else None


def one_row(row: Mapping[Any, Any]) -> Batch:
    """A dict as a batch of one; its values stay Python objects, since Arrow costs more than a row is worth."""
    columns = {str(name): [value] for name, value in row.items()}
    if len(columns) < len(row):
        refuse_repeated([str(name) for name in row])
    return Batch(columns, 1)
