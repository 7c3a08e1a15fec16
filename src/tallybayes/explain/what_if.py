"""What would have to be different for another answer: the smallest set of changed values that flips it.

The score is a sum, so the best single change of each column against a rival is known, and the fewest changes are the
largest gains, taken until they outweigh the lead. For a text whose evidence depends on its length the best k changes
are worked out for every length. Where two columns also speak together, a set of changes is checked but not proven to be
the smallest. The answer flips as soon as some rival is ahead, so all are tried; a class asked for by
name must be ahead of every other, for which sets are searched one size after the other. Of the changes that are needed,
numbers move no further than they must: to the border, found by halving, and past it to the next short number. Every
answer is checked by predicting the changed row. A row that no class can have is none: there the prior answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ..base.arrays import Bools, Floats, Ints
from ..base.canon import number_text, printable
from ..base.errors import SettingsError, unknown
from ..base.show import Page, Shown, signed, softmax
from ..data.blocks import Bag, Block, Codes, Numbers, Vectors
from ..data.clock import told_by
from ..data.sources import Batch
from ..model import posterior
from .changes import Move, bag_value, finite, possible, read, score, with_words
from .search import Best, best_words, border, combined, short_number, smallest_set

if TYPE_CHECKING:
    from ..model.model import Model

_FEW = 8  # classes whose changes are remembered as arrays
_MOST_STEPS = 12  # changes tried one after the other
_ROUNDING = 1e-9  # a lead smaller than this share of the scores may be rounding
_MOST_WHOLE = 4096  # whole numbers that are tried
_LARGEST = float(np.finfo(np.float64).max)
_HALVINGS, _BETWEEN = 9, 65  # of the way to the border: 64 numbers at a time, to the last digits of a float64


@dataclass(frozen=True)
class Change:
    """One change: a column's value, or a word removed (`after` is empty) or added (`before` is)."""

    column: str
    before: str
    after: str
    log_odds: float  # what it adds for the new answer against the old; infinite where it makes one of them impossible

    def __str__(self) -> str:
        if not self.after or not self.before:
            how = "without" if self.before else "with"
            return f"{printable(self.column)}: {how} {printable(self.before or self.after)!r}"
        return f"{printable(self.column)}: {printable(self.before)} → {printable(self.after)}"


@dataclass(frozen=True, repr=False)
class WhatIf(Shown):
    """The fewest changes that turn `answer` into `becomes`; none where nothing the model knows would.

    `smallest` says whether fewer changes are ruled out. `row` is the changed row, None where a text that has just
    these tokens cannot be written down.

    >>> model = tb.textbook({"Sky": ["sunny", "rainy", "sunny"], "Play": ["yes", "no", "yes"]}, "Play")
    >>> found = model.what_if({"Sky": "rainy"})
    >>> found.answer, found.becomes, found.row
    ('no', 'yes', {'Sky': 'sunny'})
    """

    answer: Any
    becomes: Any
    changes: tuple[Change, ...]
    probability: tuple[float, float]  # of the new answer, before and after
    smallest: bool = True
    row: Mapping[str, Any] | None = None

    def __bool__(self) -> bool:
        return bool(self.changes)

    def to_dict(self) -> dict[str, Any]:
        """The same as plain Python values."""
        return {
            "answer": self.answer,
            "becomes": self.becomes,
            "changes": [vars(c) for c in self.changes],
            "probability": list(self.probability),
            "smallest": self.smallest,
        }

    def _page(self) -> Page:
        old, new = printable(self.answer, 40), printable(self.becomes, 40)
        if not self.changes:
            asked = "any other class" if self.becomes is None else new
            if not self.smallest:
                return Page(f"{old} stays: no small set of changes was found that turns it into {asked}")
            return Page(f"{old} stays: no change of the values that were counted turns it into {asked}")
        n = len(self.changes)
        what = f"{n} change{'s' if n > 1 else ''} turn{'' if n > 1 else 's'} {old} into {new}"
        proof = "" if self.smallest else " (fewer may do)"
        before, after = self.probability
        lines = [["change", "log-odds"], *([str(c), signed(c.log_odds, 4)] for c in self.changes)]
        return Page(f"{what}{proof}: probability of {new} {before:.4f} → {after:.4f}", lines)


def what_if(
    model: Model, batch: Batch, blocks: Mapping[str, Block], to: int | None, fixed: Sequence[str] = ()
) -> WhatIf:
    """The fewest changes of one row (a batch of one) that give another answer, or the class number `to`.

    Columns of the data that are `fixed` stay as they are.
    """
    known = {source for c in model.schema.counted for source in c.inputs}
    for name in fixed:
        if name not in known:
            raise unknown(SettingsError, f"the model reads no column {name!r}", name, sorted(known))
    search = _Search(model, batch, blocks, frozenset(fixed))
    found, smallest = search.flip() if to is None else search.turn(to)
    old = search.answer
    if not found:
        becomes = None if to is None else model.classes[to]
        same = float(search.chances(())[old if to is None else to])
        return WhatIf(model.classes[old], becomes, (), (same, same), smallest)
    new = int(np.argmax(search.chances(found)))
    found = search.nearest(found, to)
    new = int(np.argmax(search.chances(found)))
    gains = sorted(((search.gain(found, m, new), m) for m in found), key=lambda g: -g[0])
    changes = tuple(Change(m.column, m.before, m.after, gain) for gain, m in gains)
    p = (float(search.chances(())[new]), float(search.chances(found)[new]))
    return WhatIf(model.classes[old], model.classes[new], changes, p, smallest, search.row(found))


class _Search:
    """One row and its possible changes."""

    def __init__(self, model: Model, batch: Batch, blocks: Mapping[str, Block], fixed: frozenset[str]) -> None:
        self.model, self.batch, self.blocks, self.fixed = model, batch, blocks, fixed
        self.possible = possible(model, batch, blocks, fixed)
        self._known: dict[tuple[int, int], Floats] = {}
        self.paired = any(len(c.inputs) > 1 for c in model.schema.counted)
        self.border = border(model)
        self.scores = self._scores(())
        self.answer = int(np.argmax(self.chances(())))
        small = np.abs(self.scores[0])[np.abs(self.scores[0]) < 1e8]
        self.slack = _ROUNDING * float(small.max(initial=1.0))

    # ---- what a set of changes does

    def changed(self, moves: Sequence[Move]) -> dict[str, Block]:
        """The blocks of the row with these changes."""
        out = dict(self.blocks)
        values = {m.unit[0]: [m.value] for m in moves if not m.inside}
        if values:
            out.update(read(self.model, self.batch, values))
        for name in {m.unit[0] for m in moves if m.inside}:
            block, own = out[name], [m for m in moves if m.inside and m.unit[0] == name]
            if isinstance(block, Bag):
                out[name] = with_words(block, own)
            elif isinstance(block, Vectors):
                numbers = block.values.copy()
                for m in own:
                    numbers[0, m.unit[1]] = m.value
                out[name] = Vectors(numbers)
        return out

    def _scores(self, moves: Sequence[Move]) -> Floats:
        """The score of each class with infinities made finite, as a winner and as a loser, and how many there are."""
        settings, blocks, start = self.model.settings, self.changed(moves), self.model.start
        out = np.concatenate([finite(start), np.isneginf(start)[None]])
        for name, belief in self.model.beliefs.items():
            out += score(belief, blocks[name], posterior.factor_of_one(settings, name, blocks[name]))
        return out

    def _joint(self, moves: Sequence[Move], source: str | None = None, values: Sequence[Any] = (None,)) -> Floats:
        """The scores of the row with these changes, bent as the settings say; one for each value of one column."""
        settings, blocks, rows = self.model.settings, self.changed(moves), len(values)
        again: Mapping[str, Block] = {}
        if source is not None:
            others = {m.unit[0]: [m.value] * rows for m in moves if not m.inside}
            again = read(self.model, self.batch, others | {source: list(values)})
        out = np.tile(self.model.start, (rows, 1))
        for name, belief in self.model.beliefs.items():
            by = posterior.factor_of_one(settings, name, blocks[name])
            if by != 0:  # 0 · −inf would be NaN
                out += by * belief.parts(again.get(name, blocks[name]))
        return posterior.calibrated(settings, out)

    def chances(self, moves: Sequence[Move]) -> Floats:
        """P(class) of the row with these changes, as `predict_proba` has it."""
        (joint,) = self._joint(moves)
        return softmax(joint if np.isfinite(joint).any() else self.model.start)

    def flips(self, moves: Sequence[Move], to: int | None) -> bool:
        """Whether the changed row is predicted as something else, or as the class asked for, and is possible."""
        return bool(self._turned(self._joint(moves), to)[0])

    def _turned(self, joint: Floats, to: int | None) -> Bools:
        best = np.argmax(joint, axis=1)
        turned = best != self.answer if to is None else best == to
        return np.asarray(turned & np.isfinite(joint).any(axis=1))

    def gain(self, moves: Sequence[Move], move: Move, new: int) -> float:
        """What one of the changes adds for the new answer against the old: the difference if it is left out."""
        change = self._scores(moves) - self._scores([m for m in moves if m is not move])
        gain = float(change[0, new] - change[1, self.answer])
        return float(np.copysign(np.inf, gain)) if change[2, [new, self.answer]].any() else gain

    # ---- the fewest changes

    def flip(self) -> tuple[list[Move], bool]:
        """The fewest changes after which some rival is ahead of the answer."""
        best: tuple[int, float, list[Move]] | None = None
        for rival in range(len(self.model.classes)):
            if rival == self.answer:
                continue
            found = self._against(rival, self.answer, best[0] if best else None)
            if found is not None and self.flips(found[1], None):
                key = (len(found[1]), -found[0], found[1])
                if best is None or key[:2] < best[:2]:
                    best = key
        sure = not self.paired or (best is not None and len(best[2]) == 1)
        if best is None and not sure:
            return self._greedily(None), False
        return (best[2], sure) if best else ([], not self.possible.coupled)

    def _against(self, a: int, b: int, most: int | None = None) -> tuple[float, list[Move]] | None:
        """The fewest changes that put class a ahead of class b, with the lead that they give; at most so many."""
        need = float(self.scores[1, b] - self.scores[0, a]) + (self.border if a == 1 else -self.border)
        single: Best = [(0.0, [])]
        for gain, move in self._by_gain(a, b):
            if single[-1][0] > 2 * abs(need) + 1:
                break
            single.append((single[-1][0] + gain, [*single[-1][1], move]))
        texts = combined([best_words(c, a, b) for c in self.possible.coupled])
        for k in range(1, min(len(single) + len(texts) - 2, most or 1 << 30) + 1):
            splits = [(single[k - j], texts[j]) for j in range(len(texts)) if 0 <= k - j < len(single)]
            reach, chosen = max(((s[0] + t[0], [*s[1], *t[1]]) for s, t in splits), key=lambda g: g[0])
            # within rounding of a tie, which the class that comes first wins, only predicting tells
            if reach > need + self.slack or (reach >= need - self.slack and a < b and self.flips(chosen, None)):
                return reach - need, chosen
        return None

    def _by_gain(self, a: int, b: int) -> Iterator[tuple[float, Move]]:
        """The best change of each unit for class a against b, the largest gain first, as far as they gain anything."""
        gains = self._deltas(0, a) - self._deltas(1, b)
        unit, moves = self._units
        order = np.lexsort((-gains, unit))
        order = order[np.concatenate(([True], np.diff(unit[order]) > 0))] if len(order) else order
        for i in order[np.argsort(-gains[order], kind="stable")].tolist():
            if gains[i] <= 0:
                return
            yield float(gains[i]), moves[i]

    @cached_property
    def _units(self) -> tuple[Ints, list[Move]]:
        """All single changes, and the number of the unit of each."""
        groups = self.possible.units.values()
        return np.repeat(np.arange(len(groups)), [len(g) for g in groups]), [m for g in groups for m in g]

    def _deltas(self, place: int, label: int) -> Floats:
        """What each change adds to a class as a winner (place 0) or as a loser; the last few are remembered."""
        if (place, label) not in self._known:
            if len(self._known) > _FEW:
                self._known.clear()
            moves = self._units[1]
            self._known[place, label] = np.fromiter((m.delta[place, label] for m in moves), np.float64, len(moves))
        return self._known[place, label]

    def turn(self, to: int) -> tuple[list[Move], bool]:
        """The fewest changes after which a given class is ahead of all others, and whether fewer are ruled out."""
        rivals = [r for r in range(len(self.model.classes)) if r != to]
        if to == self.answer:
            return [], True
        pairs = [self._against(to, r) for r in rivals if self.scores[1, r] >= self.scores[0, to]]
        if any(p is None for p in pairs):
            return (self._greedily(to), False) if self.paired else ([], not self.possible.coupled)
        known = [p[1] for p in pairs if p is not None]
        fewest = max(len(k) for k in known)
        for chosen in sorted(known, key=len):
            if len(chosen) == fewest and self.flips(chosen, to):
                return chosen, fewest == 1 or not self.paired
        moves, proven = smallest_set(self.possible, self.scores, to, rivals, fewest, self.slack)
        if moves and self.flips(moves, to):
            return moves, proven and not self.possible.coupled and not self.paired
        for chosen in sorted(known, key=len):
            if self.flips(chosen, to):
                return chosen, False
        return self._greedily(to), False

    def _greedily(self, to: int | None) -> list[Move]:
        """One best change after the other, each judged on the row as the ones before left it; none if that fails.

        For models in which two columns also speak together: their changes do not add up.
        """
        chosen: dict[Any, Move] = {}
        search = self
        for _ in range(_MOST_STEPS):
            moves = [m for group in search.possible.units.values() for m in group if m.unit not in chosen]
            if not moves:
                return []
            reach = np.array([self._lead(search.scores[:2] + m.delta, to) for m in moves])
            best = moves[int(np.argmax(reach))]
            chosen[best.unit] = best
            if self.flips(list(chosen.values()), to):
                return list(chosen.values())
            blocks = self.changed(list(chosen.values()))
            raw = {m.unit[0]: pa.array([m.value]) for m in chosen.values() if not m.inside}
            now = {name: self.batch[name] for name in self.batch.columns}
            search = _Search(self.model, Batch({**now, **raw}, 1), blocks, self.fixed)
        return []

    def _lead(self, scores: Floats, to: int | None) -> float:
        """How far the class asked for, or any rival of the answer, is ahead."""
        others = [i for i in range(scores.shape[1]) if i != (self.answer if to is None else to)]
        if to is None:
            return float(scores[0, others].max() - scores[1, self.answer])
        return float(scores[0, to] - scores[1, others].max())

    # ---- of the same changes, the mildest

    def nearest(self, moves: Sequence[Move], to: int | None) -> list[Move]:
        """The same columns changed, numbers no further from what they are than it needs."""
        out = list(moves)
        for at, move in enumerate(moves):
            block = self.blocks.get(move.column)
            if move.inside or not isinstance(block, Numbers) or np.isnan(block.values[0]):
                continue
            if not isinstance(move.value, float):  # written as its kind writes it
                continue
            told = told_by(self.model.schema[move.column]) or number_text
            value = self._nearest([*out[:at], *out[at + 1 :]], move, float(block.values[0]), to)
            out[at] = replace(move, after=told(value), value=value)
        return out

    def _nearest(self, others: Sequence[Move], move: Move, x: float, to: int | None) -> float:
        """The number nearest to x that still turns the answer, beside the other changes."""

        def turns(values: Floats) -> Bools:
            return self._turned(self._joint(others, move.unit[0], values.tolist()), to)

        known = np.array([m.value for m in self.possible.units[move.unit] if m.value != x])
        known = known[np.argsort(np.abs(known / 2 - x / 2), kind="stable")]
        good = known[turns(known)]
        if not len(good) or np.ptp(np.append(known / 4, x / 4)) > _LARGEST / 4:  # at the ends of the line
            return float(good[0]) if len(good) else float(move.value)
        best = float(good[0])
        side = known[(known > x) == (best > x)]
        inner = side[np.abs(side - x) < abs(best - x)]
        worse = float(inner[-1]) if len(inner) else x
        if np.array_equal(known, np.rint(known)):
            first, last = (np.floor(worse) + 1, best) if best > x else (best + 1, np.ceil(worse))
            between = np.rint(np.arange(first, last, max(1.0, (last - first) / _MOST_WHOLE)))
            nearer = [v for v in between[turns(between)].tolist() if self._says(move.column, v)] if len(between) else []
            return float(min([*nearer, best], key=lambda v: abs(v - x)))
        for _ in range(_HALVINGS):
            between = np.linspace(worse, best, _BETWEEN)[1:]
            first = int(np.argmax(turns(between)))  # the last one does
            worse, best = float(between[first - 1]) if first else worse, float(between[first])
        found = short_number(best, x, float(np.max(side) if best > x else np.min(side)), turns)
        return found if self._says(move.column, found) else float(good[0])

    def _says(self, column: str, value: float) -> bool:
        """Whether the column knows anything of a number: one that was never seen may be no evidence at all."""
        block = Numbers(np.array([value]), self.model.schema[column].cells)
        return not self.model.beliefs[column].note(block, 0)

    # ---- the changed row

    def row(self, moves: Sequence[Move]) -> dict[str, Any] | None:
        """The row with these changes as raw values; None where its tokens cannot be written as a text."""
        blocks = self.changed(moves)
        out: dict[str, Any] = {}
        for column in self.model.schema.counted:
            if column.of is not None or column.reads not in self.batch or column.reads in out:
                continue
            block = blocks[column.name]
            own = [m for m in moves if m.unit == (column.reads, None)]
            touched = any(m.inside and m.unit[0] == column.name for m in moves)
            raw = self.batch[column.reads]
            if isinstance(block, Vectors):
                out[column.reads] = block.values[0].tolist()
            elif isinstance(block, Bag) and touched:
                bag = bag_value(block, column.text is not None)
                if column.text is not None and column.text.tokens(str(bag)) != str(bag).split():
                    return None
                out[column.reads] = bag
            elif isinstance(block, Bag) and not isinstance(raw, (pa.Array, list)):
                out[column.reads] = bag_value(block, text=False)
            elif own:
                out[column.reads] = own[0].value
            elif self.batch.written and isinstance(block, Codes) and column.part is None:
                out[column.reads] = block.text(0)  # a file's True is read as true, which a row would have to say
            else:
                out[column.reads] = raw[0].as_py() if isinstance(raw, pa.Array) else raw[0]
        return out
