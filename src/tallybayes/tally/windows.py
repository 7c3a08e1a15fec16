"""A tally per period of time, of which any window is a sum and the oldest leaves by subtraction.

    window(start, end) = Σ tallies of the periods start ≤ p < end         decayed = Σ 2^−⌊age / half-life⌋ · tally

Periods are hours, days, weeks, months, whole numbers or so many rows each. Sums are kept in a tree (`period_sums`), so
that a window adds few tallies, and rows that come late change as few; a window that has moved on by a period is the
last one plus the new less the old. All of this is exact: whichever way a window was come by, it has the digest of its
rows counted anew.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterator, MutableMapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base import canon, threads
from ..base.arrays import Ints
from ..base.errors import CannotForget, DataError, SettingsError, did_you_mean
from ..data import encode
from ..data.batch import Batch, Source
from ..data.dates import UNITS, unit_name, unit_number
from ..data.schema import Schema
from ..data.sources import open_source
from .by_period import Mixed, count_mixed, sum_by_period
from .period_sums import PeriodSums, without_receipts
from .tally import Tally
from .traces import by_renewed, renewed, watched

if TYPE_CHECKING:
    from ..families.settings import SettingsLike
    from ..model.model import Model

NUMBER = "number"  # periods are the whole numbers of a column
_HALVINGS = 64  # half-lives after which a row counts nothing unless more are asked for: it would weigh 2⁻⁶⁴


class Windows:
    """Counts by period: `add` rows as they come, late ones too, and ask for the model of any stretch of periods.

    >>> schema = tb.Schema([tb.Column("Sky", "category")], target="Play")
    >>> windows = tb.Windows(schema, by="day", time="When")
    >>> windows.add({"Sky": ["sunny", "rainy"], "Play": ["yes", "no"], "When": ["2024-05-30T18:00", "2024-05-31"]})
    >>> windows.periods, windows.last(1)
    (('2024-05-30', '2024-05-31'), Tally: 1 row · no 1 · 1 column)
    """

    def __init__(
        self, schema: Schema, by: str | int = "day", time: str | None = None,
        *, parts: MutableMapping[int, Tally] | None = None, arrived: int = 0,
    ) -> None:  # fmt: skip
        """`by`: "hour", "day", "week" or "month" that the column `time` lies in, in UTC; "number", where `time` holds
        the whole number of the period itself; or how many rows a period has, as they come.

        `parts` and `arrived` are how a folder gives back what it has; see `load`.
        """
        rows = isinstance(by, (int, np.integer)) and not isinstance(by, bool)
        if rows and int(by) < 1:
            raise SettingsError(f"periods of {by} rows", hint="take a whole number of at least 1.")
        if not rows and by not in (*UNITS, NUMBER):
            near = did_you_mean(str(by), (*UNITS, NUMBER))
            raise SettingsError(
                f"{by!r} is no period",
                hint=f"{near}take 'hour', 'day', 'week', 'month', 'number' (time= names a column of whole numbers) or "
                "a number of rows.",
            )
        if rows and time is not None:
            raise SettingsError(
                f"periods of {by} rows beside {time!r}, a column of times",
                hint="rows are numbered as they come: leave time out.",
            )
        self.by: str | int = int(by) if rows else str(by)
        self.time = time if rows else _time_column(schema, str(by), time)
        self.schema = schema
        self._sums = PeriodSums({} if parts is None else parts)
        self._arrived = arrived  # rows that were given, labelled or not: the number of the next where rows are numbered

    # ---- periods

    @property
    def periods(self) -> tuple[str, ...]:
        """The periods that have rows, in their order."""
        return tuple(map(self.name, self._sums.keys))

    @property
    def numbers(self) -> tuple[int, ...]:
        """Their numbers: hours, days, weeks or months since 1970, or what the column or the order of rows says."""
        return tuple(self._sums.keys)

    @property
    def rows(self) -> int:
        """How many rows all periods have counted."""
        return self.window().rows

    def name(self, number: int) -> str:
        """How the period of a number is called: 2024-05-31T18, 2024-05-31, 2024-W22, 2024-05 or the number itself."""
        return unit_name(number, str(self.by)) if self.by in UNITS else str(number)

    def number(self, period: Any) -> int:
        """The number of the period that is called so or begins then."""
        if self.by not in UNITS:
            try:
                return int(canon.text(period) or "")
            except ValueError:
                raise SettingsError(
                    f"{period!r} is no number of a period", hint=f"periods are whole numbers, {self._span()}."
                ) from None
        try:
            found = unit_number(period, str(self.by))
        except ValueError:
            raise SettingsError(
                f"{period!r} is no time", hint=f"write 2024-05-31 or 2024-05-31T18:00; there are {self._span()}."
            ) from None
        if found is None:
            raise SettingsError(
                f"{str(period)!r} lies within a {self.by}, of which only the whole was counted",
                hint=f"a window begins and ends between two of them; there are {self._span()}.",
            )
        return found

    def _span(self) -> str:
        return f"{self.name(self._sums.keys[0])} to {self.name(self._sums.keys[-1])}" if self._sums.keys else "none yet"

    def __getitem__(self, period: Any) -> Tally:
        """The tally of one period; that of no rows where none has come."""
        number = self.number(period)
        return self._sums.parts[number] if number in self._sums.parts else Tally.zero(self.schema)

    def __len__(self) -> int:
        return len(self._sums.keys)

    def __iter__(self) -> Iterator[tuple[str, Tally]]:
        return ((self.name(k), self._sums.parts[k]) for k in self._sums.keys)

    # ---- rows come and go

    def add(self, data: Any, y: Any = None, weights: Any = None) -> None:
        """Count more rows, each in its own period, however late it comes; all of them, or none where one is refused."""
        source = self._source(data, y, weights)
        counted, rows = self._count(source, self._arrived)
        self._sums.put({k: self._sums.parts[k] + t if k in self._sums.parts else t for k, t in counted.items()})
        self._arrived += rows

    def forget(self, data: Any, y: Any = None, weights: Any = None, *, period: Any = None) -> None:
        """Make it as if these rows had never been counted, each in its own period; refused if one cannot have been.

        `period` says which one, where it is no column of the rows: needed where a period is a number of rows.
        """
        if period is None and isinstance(self.by, int):
            raise CannotForget(
                f"rows do not say in which {self.by:,} of them they were counted",
                hint="say so: forget(rows, period=3).",
            )
        source = self._source(data, y, weights)
        only = None if period is None else self.number(period)
        gone = self._count(source, 0)[0] if only is None else {only: Tally.of(self.schema, source)}
        rest = {}
        for k, tally in gone.items():
            there = self._sums.parts[k] if k in self._sums.parts else Tally.zero(self.schema)
            rest[k] = there - tally
            if (problem := rest[k].impossible()) is not None:
                raise CannotForget(
                    f"forgetting would leave {problem} in {self.name(k)}; nothing has been forgotten",
                    hint="these rows were never counted there as they are now: check times, labels and values.",
                )
        before = self.window() if watched(self.schema) else None
        self._sums.put(rest)
        self._renew(before)

    def drop(self, before: Any) -> None:
        """Leave out all periods before one; the schema keeps what it learnt from them, as `tally - part` does."""
        end = bisect_left(self._sums.keys, self.number(before))
        self._sums.put({k: Tally.zero(self.schema) for k in self._sums.keys[:end]})

    def _renew(self, before: Tally | None) -> None:
        """Take out of the schema what only forgotten rows had."""
        if before is None:
            return
        after = self.window()
        new = renewed(before, after).schema
        if new is after.schema:
            return
        self.schema = new.cut_by(None)
        self._sums.put({k: by_renewed(self._sums.parts[k], new) for k in self._sums.keys})

    def _source(self, data: Any, y: Any, weights: Any) -> Source:
        return open_source(encode.as_table(self.schema, data), y, weights=weights, target=self.schema.target)

    def _count(self, source: Source, first: int) -> tuple[dict[int, Tally], int]:
        """The tallies of the periods that a source has rows of, and how many rows it has; `first` numbers the first."""
        if source.engine is not None:
            if self.time is None:
                raise DataError(
                    f"{source.name} has no order in which {self.by:,} rows at a time could be counted",
                    hint="take periods that a column says: a time, or a whole number.",
                )
            return source.engine.count_periods(self.schema, self.by, self.time), 0
        rows = 0

        def numbered() -> Iterator[tuple[Batch, int, bool]]:
            nonlocal rows
            for batch in source.batches(self.wanted()):
                yield batch, first + rows, rows == 0
                rows += batch.rows

        each = threads.each(lambda item: self._of_batch(*item), numbered())
        return sum_by_period(each, self.schema), rows

    def wanted(self) -> Any:
        """What of the data is looked at."""
        wanted = dict(encode.wanted(self.schema))
        if self.time is not None:
            kind = "date" if self.by in UNITS else ""
            wanted[self.time] = kind if wanted.get(self.time, kind) == kind else ""
        return wanted

    def _of_batch(self, batch: Batch, start: int, first: bool) -> Mixed:
        if batch.rows == 0:
            return Mixed(Tally.zero(self.schema), {})
        return count_mixed(self.schema, batch, self.periods_of(batch, start), first=first)

    def periods_of(self, batch: Batch, start: int = 0) -> Ints:
        """The number of the period of each row of a batch, the first of which is row `start`."""
        if self.time is None:
            return np.asarray((start + np.arange(batch.rows)) // int(self.by))
        return encode.periods(self.schema, batch, self.time, str(self.by))

    # ---- sums

    def window(self, start: Any = None, end: Any = None) -> Tally:
        """The tally of the periods from `start` on, before `end`; None: from the first, with the newest.

        A period is called by its name, or by the date or time at which it begins; all else is a SettingsError.

        >>> schema = tb.Schema([tb.Column("price", "number")], target="returned")
        >>> windows = tb.Windows(schema, by="day", time="day")
        >>> windows.add(tb.datasets.drift(rows=40))
        >>> windows.periods[:2], windows.window(end=windows.periods[2])
        (('2024-01-01', '2024-01-09'), Tally: 2 rows · no 2 · 1 column)
        """
        return self.between(*self._bounds(start, end))

    def last(self, n: int, end: Any = None) -> Tally:
        """The tally of the `n` periods before `end`, or up to the newest; those without rows are counted, too.

        >>> schema = tb.Schema([tb.Column("price", "number")], target="returned")
        >>> windows = tb.Windows(schema, by="day", time="day")
        >>> windows.add(tb.datasets.drift(rows=40))
        >>> windows.last(10)
        Tally: 2 rows · no 1, yes 1 · 1 column
        """
        stop = self._end(end)
        return self.between(stop - _whole(n, "last"), stop)

    def decayed(self, half_life: int = 1, end: Any = None, *, halvings: int = _HALVINGS) -> Tally:
        """The tally in which rows of the newest `half_life` periods weigh 1, those before them ½, then ¼ and so on.

        It is the tally of rows with these weights, to the last bit: a power of two moves bits, and amounts go on below
        one. Rows older than `halvings` half-lives are left out. `end`: as it was before that period.

        >>> schema = tb.Schema([tb.Column("price", "number")], target="returned")
        >>> windows = tb.Windows(schema, by="day", time="day")
        >>> windows.add(tb.datasets.drift(rows=40))
        >>> windows.decayed(10)
        Tally: 40 rows · no 1.653192521, yes 1.348761082 · 1 column
        """
        life, most = _whole(half_life, "half_life"), _whole(halvings, "halvings")
        stop = self._end(end)
        found = self._sums.decayed(stop, life, most)
        return without_receipts(Tally.zero(self.schema)) if found is None else found

    def model(
        self, settings: SettingsLike = None, *, start: Any = None, end: Any = None,
        last: int | None = None, half_life: int | None = None,
    ) -> Model:  # fmt: skip
        """The model of a window (`start`, `end`, or `last` so many periods), or of all rows as they decay.

        >>> schema = tb.Schema([tb.Column("price", "number")], target="returned")
        >>> windows = tb.Windows(schema, by="day", time="day")
        >>> windows.add(tb.datasets.drift(rows=40))
        >>> windows.model(last=30).tally == windows.last(30)
        True
        """
        return self.tally(start=start, end=end, last=last, half_life=half_life).model(settings)

    def tally(
        self, *, start: Any = None, end: Any = None, last: int | None = None, half_life: int | None = None
    ) -> Tally:
        """The tally of a window or of decayed rows, whichever is asked for."""
        if sum(x is not None for x in (start, last, half_life)) > 1:
            raise SettingsError(
                "more than one of start, last and half_life", hint="a window begins at start, or has the last periods."
            )
        if half_life is not None:
            return self.decayed(half_life, end)
        return self.window(start, end) if last is None else self.last(last, end)

    def _end(self, end: Any) -> int:
        if end is not None:
            return self.number(end)
        return self._sums.keys[-1] + 1 if self._sums.keys else 0

    def _bounds(self, start: Any, end: Any) -> tuple[int, int]:
        stop = self._end(end)
        begin = self.number(start) if start is not None else min(self._sums.keys[0], stop) if self._sums.keys else stop
        if begin > stop:
            raise SettingsError(
                f"a window from {self.name(begin)} to {self.name(stop)}", hint="it begins before it ends."
            )
        return begin, stop

    def between(self, start: int, stop: int, *, keep: bool = True) -> Tally:
        """The tally of the periods of these numbers; `keep` it as what the next window is likely to begin with."""
        found = self._sums.between(start, stop, keep=keep)
        return Tally.zero(self.schema) if found is None else found

    # ---- files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a folder of Parquet files, one per period, of which only those that changed are written anew.

        Whoever pulls the plug meanwhile finds all periods as they were or all as they are.
        """
        from ..store.windows import save_folder

        save_folder(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Windows:
        """The windows in a folder that `save` wrote; a period is read when it is first asked for."""
        from ..store.windows import load_folder

        return load_folder(path)

    def __repr__(self) -> str:
        each = f"{self.by:,} rows" if isinstance(self.by, int) else str(self.by)
        by = f"by {each}" + (f" of {canon.printable(self.time, 40)}" if self.time else "")
        return f"Windows: {canon.many(len(self), 'period')} {by}" + (f" · {self._span()}" if self._sums.keys else "")

    def _repr_html_(self) -> str:
        from .views import windows_html  # counting needs none

        return windows_html(self)


def _time_column(schema: Schema, by: str, time: str | None) -> str:
    """The column that says the period; where the schema reads one column of dates it need not be named."""
    if time is not None:
        return time
    dates = list(dict.fromkeys(c.reads for c in schema.columns if c.part is not None))
    if by in UNITS and len(dates) == 1:
        return dates[0]
    found = f"; the schema reads dates of {canon.printable(', '.join(dates), 80)}" if dates else ""
    raise SettingsError(
        f"periods by {by} without the column that says them{found}", hint="name it: tb.Windows(schema, by, time='…')."
    )


def _whole(given: Any, name: str) -> int:
    if isinstance(given, bool) or not isinstance(given, (int, np.integer)) or given < 1:
        raise SettingsError(f"{name}={given!r}", hint="take a whole number of periods, at least 1.")
    return int(given)
