"""A model that is watched while it answers: what rows had that was never learnt, what was answered, and how sure.

    watch = model.watch()
    watch.predict(rows)          as model.predict(rows), and counted
    watch.report()               what was counted, column by column
    watch.shift()                whether the rows come from what was learnt, by counts without labels
    watch.prometheus()           the counters as text for Prometheus

Counters are exact, but for how many answers are unsure, which is told of the rows that were judged. The tally that
`shift` asks holds the first thousands of rows, then one in 64. A lone row waits until some hundreds can be looked
at together. Memory stays small however long the stream: columns and
classes are those of the model, and of values that were never learnt only so many are kept by name.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, replace
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from ...base.arrays import Floats, Ints
from ...base.canon import text as canonical
from ...base.errors import CannotEstimate, ModelFileError, SettingsError, TallybayesError
from ...data import encode
from ...data.batch import Batch
from ...data.blocks import Block, Codes, Numbers
from ...data.sources import open_source
from ...data.spelling import OddCells
from ...tally.tally import Tally
from ...tally.unlabelled import OTHERS, count_blocks, unlabelled_schema
from .. import posterior
from ..model import Model
from .learnt import LearntColumns, Outside, range_text
from .watched import Counters, WatchReport, exposition

if TYPE_CHECKING:
    from ..joint.shift import Shifts

_WAITING = 512  # lone rows that are looked at together
_OF_A_BATCH = 1024  # rows of a large batch that the tally counts, at least
_TOGETHER = 8192  # rows that are counted at once, since adding tallies costs more than rows do
_PART = 64  # beyond these, one row in so many is counted, and its probability looked at beyond the first
_JUDGED = 512  # rows, all of whose probabilities are
_MOST_NEW = 1000  # values never learnt that are kept by name, of each column
_LONGEST = 200  # characters of such a name


class _Answering(Model):
    """A model that tells a watch of the rows it reads and the classes it answers with; all else is the model's own."""

    if TYPE_CHECKING:
        _watch: Watch
        _plain: Model

    def _read(self, batch: Batch) -> dict[str, Block]:
        odd = OddCells()
        blocks = super()._read(replace(batch, odd=odd))
        self._watch._look(blocks, batch.rows, odd)
        return blocks

    def _best(self, blocks: Mapping[str, Block], rows: int, start: Floats) -> Ints:
        numbers = self._plain._best(blocks, rows, start)
        judged = np.zeros((0, len(start)))
        if self._watch._judging():
            some = _spaced(rows)
            judged = self._plain._scores({n: b.take(some) for n, b in blocks.items()}, len(some), start)
        self._watch._answered(numbers, judged)
        return numbers

    def _scores(self, blocks: Mapping[str, Block], rows: int, start: Floats) -> Floats:
        joint = self._plain._scores(blocks, rows, start)
        self._watch._answered(posterior.best(joint), joint[_spaced(rows)] if self._watch._judging() else joint[:0])
        return joint

    def _of_one(self, rows: Any, prior: Any) -> list[float] | None:
        joint = super()._of_one(rows, prior)
        if joint is not None:
            self._watch._wait(rows if type(rows) is dict else rows[0], joint)
        return joint


def _spaced(rows: int) -> Ints:
    """The numbers of some rows of a batch, evenly spaced: all of a small one."""
    return np.arange(0, rows, max(rows // _OF_A_BATCH, 1))


class Watch:
    """A model that counts what it is asked and answers as before. Threads may share one; merge two with `+`.

    >>> import tallybayes as tb
    >>> model = tb.fit({"Sky": ["sunny", "rainy", "sunny"], "Play": ["yes", "no", "yes"]}, target="Play")
    >>> watch = model.watch()
    >>> watch.predict([{"Sky": "sunny"}, {"Sky": "hail"}]).tolist()
    ['yes', 'yes']
    >>> watch.report().outside()
    'Sky 1 never seen'
    """

    def __init__(self, model: Model, unsure_below: float = 0.8, *, counting: bool = True) -> None:
        """See `Model.watch`; without `counting` no tally is kept, and `shift` cannot be asked."""
        if not 0 < unsure_below <= 1:
            raise SettingsError(f"unsure_below={unsure_below!r}", hint="take a probability, such as 0.8.")
        self.model, self.unsure_below = model, float(unsure_below)
        self._learnt, self._lock = LearntColumns(model), Lock()
        self._names = [str(canonical(c)) for c in model.classes]
        self._counters = self._nothing()
        self._rows: list[Any] = []  # lone ones that wait
        self._scores: list[list[float]] = []  # of these
        self._pieces: list[dict[str, Block]] = []  # blocks that wait to be counted
        self._pending = 0  # their rows
        self._counted = 0  # rows of the tally, those that wait included
        self._count_at = self._judge_at = 0  # how many rows have been seen when the next are counted, and judged
        self._new: dict[str, set[str]] = {}
        self._tally: Tally | None = None
        if counting and model.tally is not None:
            read = [c for c in model.schema.counted if c.name in self._learnt.names]
            kept = [c for c in read if c.like in ("category", "number")]
            self._tally = Tally.zero(unlabelled_schema(model.schema._with(columns=kept)))
        self.answering: Model = object.__new__(_Answering)  # the model as it is watched, for whoever takes a model
        self.answering.__dict__.update(model.__dict__, _watch=self, _plain=model)

    def __repr__(self) -> str:
        return repr(self.report())

    def _repr_html_(self) -> str:
        return self.report()._repr_html_()

    # ---- answers

    def predict(self, rows: Any, **how: Any) -> Any:
        """As `Model.predict`, and counted."""
        return self._asked("predict", rows, how)

    def predict_proba(self, rows: Any, **how: Any) -> Floats:
        """As `Model.predict_proba`, and counted."""
        return np.asarray(self._asked("predict_proba", rows, how))

    def predict_log_proba(self, rows: Any, **how: Any) -> Floats:
        """As `Model.predict_log_proba`, and counted."""
        return np.asarray(self._asked("predict_log_proba", rows, how))

    def see(self, rows: Any) -> None:
        """Count rows that were answered elsewhere: what they hold, not what was answered."""
        for batch in open_source(self.model.table_of(rows)).batches(encode.wanted(self.model.schema, labelled=False)):
            self.answering._read(batch)

    def _asked(self, what: str, rows: Any, how: Mapping[str, Any]) -> Any:
        try:
            return getattr(self.answering, what)(rows, **how)
        except TallybayesError:
            with self._lock:
                self._counters.failed += 1
            raise

    # ---- counting

    def _nothing(self) -> Counters:
        """The counters of no rows, classes and columns in the order of the model, which a file does not keep."""
        columns = {name: Outside() for name in self._learnt.names}
        return Counters(answers=dict.fromkeys(self._names, 0), columns=columns)

    def _look(self, blocks: Mapping[str, Block], rows: int, odd: OddCells) -> None:
        """Count what the rows of a batch have that was never learnt, and keep some for the tally."""
        outside = self._learnt.outside(blocks)
        for name, found in odd.found.items():
            column = next((c.name for c in self.model.schema.counted if c.reads == name), None)
            if column is not None and found.odd:
                outside.setdefault(column, Outside()).odd += found.odd
        piece: dict[str, Block] = {}
        if self._tally is not None and self._counters.rows >= self._count_at:
            some = _spaced(rows)
            piece = {c.name: blocks[c.name].take(some) for c in self._tally.schema.counted}
        with self._lock:
            self._counters.add(Counters(rows=rows, columns=outside))
            if piece:
                self._pieces.append({name: self._named(name, block) for name, block in piece.items()})
                self._pending += len(some)
                self._counted += len(some)
                if self._counted >= _TOGETHER:
                    self._count_at = self._counters.rows + (_PART - 1) * len(some)
                if self._pending >= _TOGETHER or len(self._pieces) >= _WAITING:
                    self._count()

    def _named(self, name: str, block: Block) -> Block:
        """The block, with values that were never learnt under their name, or as others once there are too many."""
        if not isinstance(block, Codes):
            return block
        known, new = self._learnt.values.get(name, frozenset()), self._new.setdefault(name, set())
        used = np.flatnonzero(np.bincount(block.codes + 1, minlength=len(block.slots) + 1)[1:]).tolist()
        slots: dict[str, int] = {}
        number = np.full(len(block.slots) + 1, -1, dtype=np.int64)
        for i in used:
            slot = block.slots[i]
            if slot not in known and slot not in new:
                if len(new) < _MOST_NEW and len(slot) <= _LONGEST:
                    new.add(slot)
                else:
                    slot = OTHERS
            number[i] = slots.setdefault(slot, len(slots))
        return Codes(list(slots), number[block.codes])

    def _count(self) -> None:
        """Add the blocks that wait to the tally; the caller has the lock."""
        if self._tally is None or not self._pieces:
            return
        pieces, rows = self._pieces, self._pending
        self._pieces, self._pending = [], 0
        joined = {name: _joined([piece[name] for piece in pieces]) for name in pieces[0]}
        self._tally = self._tally + count_blocks(self._tally.schema, joined, rows)

    def _judging(self) -> bool:
        """Whether it is time to work probabilities out where the answer did not need them."""
        return self._counters.rows >= self._judge_at

    def _answered(self, numbers: Ints, judged: Floats) -> None:
        """Count answers, and how sure those are that were looked at: P(best) = 1 / Σ exp(score − best)."""
        possible = numbers if numbers.min(initial=0) >= 0 else numbers[numbers >= 0]
        each = np.bincount(possible, minlength=len(self._names)).tolist()
        with np.errstate(invalid="ignore"):
            others = np.exp(judged - judged.max(axis=1, keepdims=True)).sum(axis=1) if len(judged) else np.zeros(0)
        unsure = int(np.count_nonzero(others * self.unsure_below > 1))
        answers = {name: n for name, n in zip(self._names, each, strict=True) if n}
        with self._lock:
            self._counters.add(Counters(judged=len(judged), unsure=unsure, answers=answers))
            if self._counters.judged >= _JUDGED and len(judged):
                self._judge_at = self._counters.rows + (_PART - 1) * len(judged)

    def _wait(self, row: Any, scores: list[float]) -> None:
        """Keep a lone row until it can be looked at with others."""
        kept = dict(row) if type(row) is dict else row.copy()
        with self._lock:
            self._rows.append(kept)
            self._scores.append(scores)
            full = len(self._rows) >= _WAITING
        if full:
            self._flush()

    def _flush(self) -> None:
        """Look at the lone rows that wait."""
        with self._lock:
            rows, scores = self._rows, self._scores
            self._rows, self._scores = [], []
        if not rows:
            return
        joint = np.array(scores)
        self._answered(posterior.best(joint), joint)
        named = [r for r in rows if type(r) is dict]
        matrices: dict[int, list[Any]] = {}
        for row in rows:
            if type(row) is not dict:
                matrices.setdefault(len(row), []).append(row)
        for together in ([named] if named else []) + [np.stack(m) for m in matrices.values()]:
            try:
                self.see(together)
            except TallybayesError:  # each was read by itself before: together they may be of no one type
                for row in together:
                    self.see([row] if type(row) is dict else row[None])

    # ---- what was counted

    @property
    def tally(self) -> Tally:
        """The counts of the rows, without labels; of large batches those of evenly spaced rows."""
        self._flush()
        with self._lock:
            self._count()
            if self._tally is None:
                raise CannotEstimate(
                    "this watch keeps no tally", hint="watch a model that has counted rows: tb.load(path).watch()."
                )
            return self._tally

    @property
    def counters(self) -> Counters:
        """A copy of what was counted so far."""
        self._flush()
        out = Counters()
        with self._lock:
            out.add(self._counters)
        return out

    def report(self) -> WatchReport:
        """What was counted so far, column by column; print it."""
        of = self.model.schema
        ranges = {name: range_text(ends, of[name]) for name, ends in self._learnt.ranges.items()}
        return WatchReport(self.counters, self.unsure_below, ranges)

    def shift(self) -> Shifts:
        """Whether the rows come from the distribution that was learnt, column by column: see `tb.shift`."""
        from ..joint.shift import shift

        if not self.tally.schema.counted:
            raise CannotEstimate(
                "a watch counts categories and numbers, and the model has none",
                hint="tb.shift(model, rows) says how far words and vectors differ.",
            )
        return shift(self.model, self.tally)

    def prometheus(self, **labels: str) -> str:
        """The counters in Prometheus' text form; `labels` such as model="churn" stand on every line.

        Columns and classes beyond the first 100 of the model share the label "(others)".
        """
        return exposition(self.counters, 0 if self.model.tally is None else self.model.tally.rows, labels)

    def __add__(self, other: Watch) -> Watch:
        if not isinstance(other, Watch):
            return NotImplemented
        if (self._names, self._learnt.names) != (other._names, other._learnt.names):
            raise SettingsError(
                "the two watches are of models with other classes or columns", hint="merge watches of one model."
            )
        counting = self._tally is not None and other._tally is not None
        out = Watch(self.model, self.unsure_below, counting=counting)
        for each in (self, other):
            out._counters.add(each.counters)
            if counting:
                out._put(each.tally)
        return out

    def _put(self, tally: Tally) -> None:
        """Add counts without labels, with no more new values by name than may be kept."""
        columns = dict(tally.columns)
        for name, known in self._learnt.values.items():
            sheet = columns[name].sheets.get("values")
            if not sheet:
                continue
            new = self._new.setdefault(name, set())
            for slot in sorted({*sheet.slot_names} - known - new - {OTHERS}):
                if len(new) < _MOST_NEW:
                    new.add(slot)
            renamed = sheet.rename(lambda slot, kept=known | new: slot if slot in kept else OTHERS)  # type: ignore[misc]
            columns[name] = replace(columns[name], sheets={**columns[name].sheets, "values": renamed}, _known={})
        assert self._tally is not None
        self._tally = self._tally + replace(tally, columns=columns)
        self._counted += tally.rows

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write what was counted to a file of a tally, replaced at once or not at all; `model.watch(path)` goes on."""
        from ...store import model_file

        tally = Tally.zero(unlabelled_schema(self.model.schema)) if self._tally is None else self.tally
        model_file.save(path, model_file.tally_to_bytes(tally, {"watch": asdict(self.counters)}))

    def _load(self, path: str | os.PathLike[str]) -> None:
        """Go on from a file that `save` wrote."""
        from ...store import model_file

        stored = model_file.load_stored(path)
        given = stored.notes.get("watch")
        names = {*self._learnt.names}
        try:
            assert isinstance(given, dict) and stored.tally is not None
            columns = {name: Outside(**found) for name, found in given["columns"].items()}
            found = Counters(**{**given, "columns": columns})
            whole = [*found.answers.values(), *(n for c in columns.values() for n in asdict(c).values())]
            assert all(type(n) is int and n >= 0 for n in (found.rows, found.judged, found.unsure, *whole))
        except (AssertionError, KeyError, TypeError, AttributeError):
            raise ModelFileError(f"{path} holds no watch", hint="give a file that watch.save(path) wrote.") from None
        if {*columns} != names or not {*found.answers} <= {*self._names}:
            raise ModelFileError(
                f"{path} is the watch of a model with other columns or classes",
                hint="watch.save and model.watch(path) go with one model; begin anew with model.watch().",
            )
        self._counters = self._nothing()
        self._counters.add(found)
        if self._tally is not None:
            self._put(stored.tally)


def _joined(blocks: list[Block]) -> Block:
    """Several blocks of one column as one."""
    first = blocks[0]
    if isinstance(first, Numbers):
        return Numbers(np.concatenate([b.values for b in blocks if isinstance(b, Numbers)]), first.cells)
    number: dict[str, int] = {}
    codes = []
    for block in blocks:
        assert isinstance(block, Codes)
        new = [number.setdefault(slot, len(number)) for slot in block.slots]
        codes.append(np.array([*new, -1], dtype=np.int64)[block.codes])
    return Codes(list(number), np.concatenate(codes))
