"""Folds by subtraction: every row is counted once, and scored by the model of all other folds.

One pass counts each fold apart. The training tally of a fold is the total less the fold, to the last bit what counting
the other rows would have given: a word or a value that only the fold's rows have is not in it, and cannot leak.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from ..base import canon, threads
from ..base.arrays import Bools, Floats, Ints
from ..base.errors import DataError
from ..data import encode
from ..data.blocks import Bag, Block, Groups
from ..data.encode import Labelled
from ..data.schema import Schema
from ..data.sources import Batch, Source
from ..families.settings import Settings
from ..model import posterior
from ..model.estimate import without_rows
from ..model.prior import natural_order
from ..tally.guard import refuse_empty
from ..tally.tally import Tally, count_rows, sum_tallies
from ..tally.together import of_columns
from .settings_at_once import Answer, Asked, FoldScorer
from .word_grid import TrainingWords, WordGrid

KEPT_BYTES = 1 << 29  # of encoded rows held between counting and scoring; beyond that the source is read again
_MANY_CELLS = 1 << 23  # words × classes: of more each thread would hold a table, so one fold comes after the other
Assign = Callable[[Labelled, int], Ints]  # the labelled rows of a batch, and where it starts → a fold for each


@dataclass(frozen=True)
class HeldOut:
    """Rows scored by models that have not seen them, in the order of their source."""

    classes: tuple[Any, ...]  # of the columns, labels as they went in
    rows: Ints  # the number of each row in its source
    labels: Ints  # the right class, as a column number
    weights: Floats | None
    folds: Ints
    log_prior: Floats  # folds × classes
    joint: Floats  # rows × classes; −inf for a class that the row's model has never seen
    parts: Mapping[str, Floats]  # what each column says, before weights; empty unless asked for

    def log_proba(self) -> Floats:
        """log P(class given row); where every class is impossible the prior answers."""
        return posterior.log_posterior(self.joint, self.log_prior[self.folds])

    def proba(self) -> Floats:
        """P(class given row), rows × classes."""
        return np.exp(self.log_proba())


@dataclass(frozen=True)
class _Piece:
    """A batch after the first pass: its labelled rows that have a fold, and their blocks if there was room."""

    start: int  # the number of the batch's first row
    kept: Bools  # of the labelled rows, those with a fold
    rows: Ints  # numbers in the source
    labels: list[str]  # the classes that occur
    label: Ints
    folds: Ints
    weights: Floats | None
    blocks: Mapping[str, Block] | None
    again: bool = False  # read once more: its words may be in another order
    counted: Bools | None = None  # those that are in a tally, where others are only scored


@dataclass(frozen=True, eq=False)
class Folds:
    """The tallies of all folds, and the rows to be scored. Make one with `count_folds`."""

    schema: Schema
    cells: Tally  # every (class, fold) as a class of its own
    names: tuple[tuple[str, int], ...]  # the class and the fold of each of them
    pieces: tuple[_Piece, ...]
    source: Source
    past: bool = False  # time goes forward: a fold is scored by the folds before it
    known: frozenset[str] = frozenset()  # classes of rows that are only scored
    _known_ids: dict[tuple[str, int], Ints] = field(default_factory=dict, repr=False)
    _known_labels: dict[int, Tally] = field(default_factory=dict, repr=False)

    @cached_property
    def count(self) -> int:
        """How many folds, empty ones included."""
        return 1 + max(fold for _, fold in self.names)

    @property
    def total(self) -> Tally:
        """The tally of all folds."""
        return self.cells.regroup([label for label, _ in self.names])

    def part(self, k: int) -> Tally:
        """The tally of one fold."""
        part = self.cells.regroup([label if fold == k else None for label, fold in self.names])
        return replace(part, skipped=0)  # rows without a label belong to no fold

    def training(self, k: int) -> Tally:
        """What a fold is scored by: the total less the fold, or the folds before it where time goes forward."""
        return self._training(k, self.schema.names)

    def training_labels(self, k: int) -> Tally:
        """The same without any column."""
        if k not in self._known_labels:
            self._known_labels[k] = self._training(k, ())
        return self._known_labels[k]

    def _training(self, k: int, columns: Sequence[str]) -> Tally:
        schema, kept = of_columns(self.schema, columns), {n: self.cells.columns[n] for n in columns}
        cells = Tally(schema, self.cells.classes, self.cells.labels, kept, self.cells.skipped)
        return cells.regroup([label if (fold < k if self.past else fold != k) else None for label, fold in self.names])

    def part_of(self, column: str, counted: Bools) -> Tally:
        """What some of the folds have counted of one column."""
        schema = self.schema._with(columns=[self.schema[column]])
        cells = Tally(schema, self.cells.classes, self.cells.labels, {column: self.cells.columns[column]})
        return cells.regroup([label if counted[fold] else None for label, fold in self.names])

    @cached_property
    def words(self) -> dict[str, WordGrid | None]:
        """The words of each column of words by class and fold; None where an amount is no small whole number."""
        kinds = [c.name for c in self.schema.counted if c.about.words]
        return {name: WordGrid.of(self.cells.columns[name], self.names) for name in kinds}

    def _scorer(self, k: int, asked: Asked) -> FoldScorer:
        inside = np.array([j < k if self.past else j != k for j in range(self.count)])

        def words(column: str) -> TrainingWords | None:
            grid = self.words[column]
            return None if grid is None else grid.training(inside)

        def only(columns: Sequence[str]) -> Tally:
            return self._training(k, columns) if columns else self.training_labels(k)

        return FoldScorer(asked, only, words)

    def scored(self) -> list[int]:
        """The folds that have rows, and other rows to be scored by."""
        with_rows = sorted({fold for _, fold in self.names})
        return with_rows[1:] if self.past else with_rows if len(with_rows) > 1 else []

    def classes(self, settings: Settings) -> tuple[str, ...]:
        """The canonical classes of all folds, and those that are known without rows, in the order of the columns."""
        more = without_rows(settings)
        return self._in_order({*self._counted_classes, *more}) if more else self._counted_classes

    @cached_property
    def _counted_classes(self) -> tuple[str, ...]:
        return self._in_order({*self.known, *(label for label, _ in self.names)})

    def _in_order(self, classes: Iterable[str]) -> tuple[str, ...]:
        return tuple(sorted(classes, key=lambda c: natural_order(canon.from_text(c, self.schema.label_type))))

    def held_out(self, settings: Settings | None = None, fold: int | None = None, *, parts: bool = True) -> HeldOut:
        """Every row (or those of one fold) scored once, by the model of the other folds."""
        return self.held_out_each([settings or Settings()], fold, parts=parts)[0]

    def counting(self, inside: Bools) -> Folds:
        """The same rows, numbered fold · len(inside) + part, of which some parts are counted and all are scored."""
        parts = len(inside)
        kept = [_name(label, cell // parts) if inside[cell % parts] else None for label, cell in self.names]
        cells = self.cells.regroup(kept)
        pieces = [replace(p, folds=p.folds // parts, counted=inside[p.folds % parts]) for p in self.pieces]
        names, known = tuple(_split_name(c) for c in cells.classes), frozenset(label for label, _ in self.names)
        return Folds(self.schema, cells, names, tuple(pieces), self.source, self.past, known)

    def held_out_each(
        self, settings: Sequence[Settings], fold: int | None = None, *, parts: bool = False, seen: bool = False
    ) -> list[HeldOut]:
        """The same for several settings, which share the encoded rows, the training tallies and equal columns.

        With `seen` each model scores the rows that it has counted instead.
        """
        folds = [k for k in self.scored() if fold is None or k == fold]
        if not folds:
            raise DataError(
                "all rows fall into one fold" if fold is None else f"there is no fold {fold} that could be scored",
                hint="a fold is scored by the other ones: ask for more folds, or shuffle with stratify=True.",
            )
        classes = [self.classes(s) for s in settings]
        found = [_Collected(c, self.count) for c in classes]
        streaming = any(p.blocks is None for p in self.pieces)
        # In memory one fold after the other; from a source read again all folds at once, one setting after the other
        rounds: Iterable[tuple[Sequence[int], Sequence[int], Asked, Iterable[_Piece]]]
        if streaming:
            each = [Asked(self.schema, [s], [c]) for s, c in zip(settings, classes, strict=True)]
            rounds = [(folds, [i], asked, self._again()) for i, asked in enumerate(each)]
        else:
            together = Asked(self.schema, settings, classes)
            rounds = [([k], range(len(settings)), together, self.pieces) for k in folds]
        words = sum(len(grid.sheet.slots) for grid in self.words.values() if grid is not None)
        many = words * len(self._counted_classes) > _MANY_CELLS

        def of_round(one: tuple[Sequence[int], Sequence[int], Asked, Iterable[_Piece]]) -> list[Any]:
            return list(self._round(*one, parts, seen))

        for answered in map(of_round, rounds) if many else threads.each(of_round, rounds):
            for i, k, piece, at, answer in answered:
                found[i].add(k, piece, at, *answer)
        return [f.joined(self.schema.label_type, parts) for f in found]

    def _round(
        self, folds: Sequence[int], numbers: Sequence[int], asked: Asked, pieces: Iterable[_Piece], *wanted: bool
    ) -> Iterator[tuple[int, int, _Piece, Ints, Answer]]:
        """Some folds under some settings, going through the pieces once; wanted are parts, and rows that were seen."""
        parts, seen = wanted
        scorers = {k: self._scorer(k, asked) for k in folds}
        for piece in pieces:
            for k, scoring in scorers.items():
                at = np.flatnonzero(self._inside(piece, k) if seen else piece.folds == k)
                if len(at) == 0:
                    continue
                assert piece.blocks is not None
                narrow = {name: _narrow(block.take(at)) for name, block in piece.blocks.items()}
                ids = partial(self._ids, piece, {name: used for name, (_, used) in narrow.items()})
                blocks = {name: block for name, (block, _) in narrow.items()}
                answers = scoring.answers(blocks, ids, len(at), parts)
                for i, answer in zip(numbers, answers, strict=True):
                    yield i, k, piece, at, answer

    def _inside(self, piece: _Piece, k: int) -> Bools:
        """The rows that the model of a fold has counted."""
        inside: Bools = piece.folds < k if self.past else piece.folds != k
        return inside if piece.counted is None else inside & piece.counted

    def _ids(self, piece: _Piece, used: Mapping[str, Ints | None], name: str) -> Ints:
        """The numbers in the grid of a piece's words, looked up once for a piece that stays in memory."""
        ids, some = self.ids(piece, name), used[name]
        return ids if some is None else ids[some]

    def ids(self, piece: _Piece, name: str) -> Ints:
        """The same of all its words."""
        grid, bag = self.words[name], (piece.blocks or {})[name]
        assert grid is not None
        assert isinstance(bag, Bag)
        ids = self._known_ids.get((name, piece.start))
        if ids is None:
            ids = grid.ids(bag.slots)
            if not piece.again:
                self._known_ids[name, piece.start] = ids
        return ids

    def _again(self) -> Iterator[_Piece]:
        """The pieces with their blocks, those without room read from the source once more."""
        for piece, batch in zip(self.pieces, self.source.batches(), strict=True):
            if piece.blocks is not None:
                yield piece
            else:
                read = encode.labelled(self.schema, batch)
                yield replace(piece, blocks=_taken(_unordered(read.blocks), piece.kept), again=True)


class _Collected:
    """The answers for one setting, piece by piece."""

    def __init__(self, classes: tuple[str, ...], folds: int) -> None:
        self.classes = classes
        self.number = {c: i for i, c in enumerate(classes)}
        self.log_prior = np.full((folds, len(classes)), -np.inf)
        self.each: list[tuple[Ints, Ints, Floats | None, Ints, Floats, dict[str, Floats]]] = []

    def add(self, k: int, piece: _Piece, at: Ints, log_prior: Floats, joint: Floats, parts: dict[str, Floats]) -> None:
        self.log_prior[k] = log_prior
        labels = np.array([self.number[c] for c in piece.labels], dtype=np.int64)[piece.label[at]]
        weights = None if piece.weights is None else piece.weights[at]
        self.each.append((piece.rows[at], labels, weights, np.full(len(at), k), joint, parts))

    def joined(self, label_type: str, with_parts: bool) -> HeldOut:
        rows, labels, weights, folds, joint, parts = zip(*self.each, strict=True)
        number = np.concatenate(rows)
        order = np.argsort(number, kind="stable")
        names = parts[0] if with_parts else {}
        return HeldOut(
            tuple(canon.from_text(c, label_type) for c in self.classes),
            number[order],
            np.concatenate(labels)[order],
            None if any(w is None for w in weights) else np.concatenate(weights)[order],
            np.concatenate(folds)[order],
            self.log_prior,
            np.concatenate(joint)[order],
            {n: np.concatenate([p[n] for p in parts])[order] for n in names},
        )


def _taken(blocks: Mapping[str, Block], rows: Bools) -> dict[str, Block]:
    return dict(blocks) if rows.all() else {n: b.take(rows) for n, b in blocks.items()}


def _narrow(block: Block) -> tuple[Block, Ints | None]:
    """A bag with only the slots that its rows use, and which those are: a fold has few of the words of its batch."""
    if not isinstance(block, Bag) or len(block.slots) < 1024:
        return block, None
    matrix = block.matrix
    there = np.zeros(len(block.slots), dtype=bool)
    there[matrix.indices] = True
    used = np.flatnonzero(there)
    at = (np.cumsum(there) - 1)[matrix.indices]
    narrow = type(matrix)((matrix.data, at, matrix.indptr), shape=(block.rows, len(used)))
    return Bag(_Some(block.slots, used), narrow, block.has, block.levels), used


@dataclass(frozen=True, eq=False)
class _Some(Sequence[str]):
    """Some of the slots, taken when somebody asks for them: the fast way knows words by their numbers."""

    slots: Sequence[str]
    used: Ints

    def __len__(self) -> int:
        return len(self.used)

    def __getitem__(self, i: Any) -> Any:
        return self._taken[i]

    @cached_property
    def _taken(self) -> list[str]:
        return [self.slots[i] for i in self.used.tolist()]


def _unordered(blocks: Mapping[str, Block]) -> dict[str, Block]:
    """Bags without the order of their words, which scoring does not ask for."""
    return {n: b.unordered() if isinstance(b, Bag) else b for n, b in encode.bags(dict(blocks)).items()}


def _bytes(blocks: Mapping[str, Block]) -> int:
    """About how much memory some blocks take."""
    total = 0
    for b in blocks.values():
        if isinstance(b, Bag):
            total += 20 * len(b.matrix.indices) + 100 * len(b.slots)
        else:
            total += sum(getattr(v, "nbytes", 0) for v in vars(b).values())
    return total


# ---- counting


def count_folds(source: Source, schema: Schema, assign: Assign, *, past: bool = False) -> Folds:
    """The tallies of all folds from one pass over a source that can be read again."""

    def work(item: tuple[int, Batch, int]) -> tuple[Tally, _Piece]:
        number, batch, start = item
        read = encode.labelled(schema, batch, first=number == 0)
        return _count(schema, read, assign(read, start), start)

    pieces: list[_Piece] = []

    def counted() -> Iterator[Tally]:
        room = KEPT_BYTES
        for tally, piece in threads.each(work, _numbered(source.batches())):
            assert piece.blocks is not None
            room -= _bytes(piece.blocks)
            pieces.append(piece if room >= 0 else replace(piece, blocks=None))
            yield tally

    cells = sum_tallies(counted()) or Tally.zero(schema)
    refuse_empty(cells, source)
    return Folds(schema, cells, tuple(_split_name(c) for c in cells.classes), tuple(pieces), source, past)


def _numbered(batches: Iterator[Batch]) -> Iterator[tuple[int, Batch, int]]:
    """Each batch with its number and the number of its first row."""
    start = 0
    for number, batch in enumerate(batches):
        yield number, batch, start
        start += batch.rows


def _count(schema: Schema, read: Labelled, folds: Ints, start: int) -> tuple[Tally, _Piece]:
    kept = folds >= 0
    label, fold, blocks = read.labels[kept], folds[kept], _taken(read.blocks, kept)
    weights = None if read.weights is None else read.weights[kept]
    n_folds = int(fold.max()) + 1 if len(fold) else 0
    used, group = np.unique(label * max(n_folds, 1) + fold, return_inverse=True)
    names = [_name(read.classes[u // n_folds], u % n_folds) for u in used.tolist()]
    bags = _unordered(blocks)  # counted and scored: texts are cut once; but what a receipt is taken of is the text
    counted = blocks if schema.receipts else bags
    tally = count_rows(schema, names, Groups(group, len(names), weights), counted, read.skipped)
    return tally, _Piece(start, kept, read.rows[kept] + start, list(read.classes), label, fold, weights, bags)


def _name(label: str, fold: int) -> str:
    """A class and a fold as one class: sorted by class, then fold, whatever the class is called."""
    return f"{label.encode().hex()} {fold:09d}"


def _split_name(name: str) -> tuple[str, int]:
    label, fold = name.split(" ")
    return bytes.fromhex(label).decode(), int(fold)
