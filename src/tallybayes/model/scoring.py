"""How a model scores: rows to blocks, blocks to parts, parts to a sum; a lone row by a shorter way to the same."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ..base import canon, threads
from ..base.arrays import Floats, Ints, safe_log
from ..base.errors import DataError
from ..base.records import Record
from ..data import encode
from ..data.batch import one_row
from ..data.blocks import Block, Vectors
from ..data.sources import Batch, open_source
from ..exact.kernels import gate
from ..families.forms import BellForm
from . import fast, posterior
from .held import Held
from .one_row import RowScorer, lone
from .prior import class_prior, class_totals

T = TypeVar("T")


class Scoring(Held, Record):
    """The part of a model that reads rows and adds up what its columns say of them."""

    if TYPE_CHECKING:

        @property
        def start(self) -> Floats:
            """Where the score of each class starts."""
            ...

    def _one(self, row: Any, number: int) -> dict[str, Block]:
        """The blocks of one row."""
        return self._encoded(self._row(row, number))

    def _encoded(self, batch: Batch) -> dict[str, Block]:
        encode.check_columns(self.schema, batch)
        return encode.bags(self._read(batch))

    def _read(self, batch: Batch) -> dict[str, Block]:
        """The blocks of a batch; a vector that is shorter than those counted misses the positions that it has not."""
        blocks = encode.blocks(self.schema, batch)
        for name, width in self._widths.items():
            block = blocks[name]
            if isinstance(block, Vectors) and (short := width - block.unchecked.shape[1]) > 0:
                blocks[name] = Vectors(np.pad(block.values, ((0, 0), (0, short)), constant_values=np.nan))
        return blocks

    @cached_property
    def _widths(self) -> dict[str, int]:
        """How many positions are believed of each vector whose width the schema leaves open."""
        free = {c.name for c in self.schema.counted if c.like == "vector" and c.width is None}
        forms = {name: self.beliefs[name].form() for name in free & self.beliefs.keys()}
        places = {name: f.positions for name, f in forms.items() if isinstance(f, BellForm) and f.positions is not None}
        return {name: int(each.max(initial=-1)) + 1 for name, each in places.items()}

    def _row(self, rows: Any, number: int) -> Batch:
        """One row as a batch of one."""
        seen = 0
        for batch in open_source(self.table_of(rows)).batches():
            if seen <= number < seen + batch.rows:
                return batch.slice(number - seen, number - seen + 1)
            seen += batch.rows
        raise DataError(
            f"there is no row {number} among {seen} (the first is row 0)",
            hint="give the number of a row that exists.",
        )

    def table_of(self, rows: Any) -> Any:
        """A dict that is one row as a table of one; it is told from a dict of columns by what it holds."""
        if hasattr(rows, "to_dict") and hasattr(rows, "index") and not hasattr(rows, "columns"):
            rows = rows.to_dict()  # a row of a pandas frame
        if isinstance(rows, Mapping) and not rows:
            return [rows]
        return one_row(rows) if isinstance(rows, Mapping) and encode.is_row(self.schema, rows) else rows

    def scored_batch(self, batch: Batch, start: Floats) -> tuple[dict[str, Block], Floats]:
        """The blocks of a batch and its scores; the first batch of a source is checked for its columns."""
        if batch.start == 0 and self.beliefs and (batch.rows or batch.columns):
            encode.check_columns(self.schema, batch)
        blocks = self._read(batch)
        return blocks, self._scores(blocks, batch.rows, start)

    def _each(self, rows: Any, answer: Callable[[dict[str, Block], int], T]) -> Iterator[T]:
        """answer(blocks, rows) for every batch, on several threads."""

        def of_batch(item: tuple[int, Batch]) -> T:
            number, batch = item
            if number == 0 and batch.start == 0 and self.beliefs and (batch.rows or batch.columns):
                encode.check_columns(self.schema, batch)
            return answer(self._read(batch), batch.rows)

        source = open_source(self.table_of(rows))
        return threads.each(of_batch, enumerate(source.batches(encode.wanted(self.schema, labelled=False))))

    @gate.guarded
    def _scores(self, blocks: Mapping[str, Block], rows: int, start: Floats) -> Floats:
        """start + Σ weight · part, bent where the settings say so."""
        adders = fast.adders(self.beliefs, blocks, self.settings.weights)
        parts = self._parts(blocks, but=adders)
        joint = fast.add_all(adders, posterior.scores(start, parts, self.settings, blocks, rows))
        if not self.settings.curves:
            return joint
        return posterior.calibrated(self.settings, joint, posterior.prior_shift(start, self.start))

    @gate.guarded
    def _best(self, blocks: Mapping[str, Block], rows: int, start: Floats) -> Ints:
        """The number of the most probable class of each row; where the kernels know all columns no scores are kept."""
        if not self.settings.curves:
            adders = fast.adders(self.beliefs, blocks, self.settings.weights)
            if adders and len(adders) == len(self.beliefs):
                return fast.best(adders, start, rows)
        return posterior.best(self._scores(blocks, rows, start))

    def _log_joint(self, rows: Any, start: Floats) -> Floats:
        return np.concatenate(list(self._each(rows, lambda blocks, n: self._scores(blocks, n, start))))

    def _log_proba(self, rows: Any, prior: Any) -> Floats:
        start = self._start(prior)
        return posterior.log_posterior(self._log_joint(rows, start), start)

    def _of_one(self, rows: Any, prior: Any) -> list[float] | None:
        """The scores of a lone row by the short way; None for other data and for rows that it cannot read."""
        row = lone(rows, self.schema)
        return None if row is None else self._row_scorer.scores(row, None if prior is None else self._start(prior))

    @cached_property
    def _row_scorer(self) -> RowScorer:
        return RowScorer(self.schema, self.beliefs, self.settings, self.start)

    def _blocks(self, rows: Any) -> list[dict[str, Block]]:
        return list(self._each(rows, lambda blocks, _: blocks))

    def _parts(self, blocks: Mapping[str, Block], but: Container[str] = ()) -> dict[str, Floats]:
        return {name: belief.parts(blocks[name]) for name, belief in self.beliefs.items() if name not in but}

    def _start(self, prior: Any) -> Floats:
        """Where scores start under another prior; None for the model's own."""
        if prior is None:
            return self.start
        names = tuple(str(canon.text(c)) for c in self.classes)
        totals = np.zeros(len(names)) if self.tally is None else class_totals(self.tally, names)
        log_prior = safe_log(class_prior(replace(self.settings, prior=prior), names, totals))
        return log_prior + posterior.offsets(self.settings, self.classes)

    @cached_property
    def _label_array(self) -> np.ndarray[Any, Any]:
        if all(isinstance(c, (int, float)) for c in self.classes):
            numbers = np.array(self.classes)
            if list(map(type, numbers.tolist())) == list(map(type, self.classes)):  # 2⁶⁴ beside 3 would be a float
                return numbers
        labels = np.empty(len(self.classes), dtype=object)
        labels[:] = self.classes
        return labels
