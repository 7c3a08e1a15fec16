"""What could be different about a row: other values, words removed or added, and what each change does to the score.

A `Move` is one change and adds `delta` to the scores of the classes. Moves of one `unit` exclude each other: a column
has one value at a time. The words of a text are units of their own, unless what a word adds depends on how long the
text is: then they are `Coupled`, and their effect is known for each change of the length.
"""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from scipy.special import gammaln

from ..base.arrays import Floats, safe_log
from ..base.canon import number_text
from ..data import encode
from ..data.blocks import Bag, Block, N, Numbers, Vectors
from ..data.clock import told_by
from ..data.sources import Batch
from ..families.forms import BellForm, Form, LevelsForm, PolyaForm, PresenceForm, TableForm, WordsForm
from ..families.histogram import middles
from ..model import posterior

if TYPE_CHECKING:
    from ..data.schema import Column
    from ..families import Belief
    from ..model.model import Model

# what stands for an infinite log: for the class that is to win, and for one that is to lose. Of the second, being
# impossible must never make up for the first being so.
_WORST = np.array([1e9, 1e5])
_GRID = np.linspace(-2.5, 2.5, 21)  # deviations from the mean at which a number without cells is tried
_MOST_DAYS = 400


@dataclass(frozen=True)
class Move:
    """One change: where, from what to what, and what it adds to the score of each class (see `finite`)."""

    unit: tuple[str, Any]  # the column, and the word or position in it; None for a column of one value
    before: str
    after: str
    delta: Floats
    value: Any  # the new raw value, the number at a position, or the word
    length: int = 0  # how many tokens longer the text gets

    def gain(self, a: int, b: Any) -> Any:
        """What the change adds for class a against one class b, or several."""
        return self.delta[0, a] - self.delta[1, b]

    @property
    def inside(self) -> bool:
        """Whether a word or a position changes, not the whole value."""
        return self.unit[1] is not None

    @property
    def column(self) -> str:
        """The column as a person reads it, with the position of a vector."""
        return f"{self.unit[0]}[{self.unit[1]}]" if isinstance(self.unit[1], int) else self.unit[0]


@dataclass(frozen=True)
class Coupled:
    """The words of a text whose score is scale(n)·core + extra(n), n the number of tokens."""

    column: str
    core: Floats
    tokens: int
    scale: Callable[[int], float]
    extra: Callable[[int], Floats]
    moves: Sequence[Move]  # their delta is that of the core

    def score(self, core: Floats, tokens: int) -> Floats:
        """What the column adds to each class."""
        return self.scale(tokens) * core + self.extra(tokens)

    @cached_property
    def by_length(self) -> dict[int, tuple[list[Move], Floats]]:
        """The moves by how many tokens longer the text gets, and their deltas as one array."""
        groups: dict[int, list[Move]] = {}
        for move in self.moves:
            groups.setdefault(move.length, []).append(move)
        return {length: (moves, np.stack([m.delta for m in moves])) for length, moves in groups.items()}

    def at_length(self, tokens: int) -> tuple[float, Floats]:
        """The scale and the extra of a text of so many tokens, worked out once."""
        if tokens not in self._at_length:
            extra = np.broadcast_to(self.extra(tokens), self.core.shape)
            self._at_length[tokens] = (self.scale(tokens), extra)
        return self._at_length[tokens]

    @cached_property
    def _at_length(self) -> dict[int, tuple[float, Floats]]:
        return {}


@dataclass(frozen=True)
class Possible:
    """All changes of a row: single ones by unit, and coupled texts."""

    units: Mapping[tuple[str, Any], list[Move]]
    coupled: Sequence[Coupled] = field(default_factory=list)


def finite(parts: Floats) -> Floats:
    """Parts with infinities made large, in two ways along the first axis: for a winner and for a loser."""
    worst = _WORST.reshape(2, *[1] * np.ndim(parts))
    return np.clip(np.nan_to_num(parts, nan=0.0), -worst, worst)


def score(belief: Belief, block: Block, factor: float) -> Floats:
    """What a column adds to each class, as `finite` has it, and in a third row how many zeros are behind that.

    The words of a bag are taken one by one, so that of two words that a class never had each has to go.
    """
    rows = factor * belief.parts(block) if factor else np.zeros((1, belief.parts(block).shape[1]))
    form = belief.form()
    if isinstance(block, Bag) and block.has[0] and factor and not np.isfinite(rows).all():
        amounts = amounts_of(block)
        if isinstance(form, WordsForm):
            at = [(form.logs[form.at[w]] if w in form.at else form.unseen, n) for w, n in amounts.items()]
            rows = factor * np.array([(1.0 if form.once else n) * logs for logs, n in at])
        elif isinstance(form, PresenceForm):
            there = np.array([w in amounts for w in form.words])
            rows = factor * np.where(there[:, None], form.present, form.absent)
        elif isinstance(form, LevelsForm):
            level = [min(math.ceil(amounts.get(w, 0.0)), len(form.logs) - 1) for w in form.words]
            rows = factor * form.logs[level, np.arange(len(form.words))]
    zeros = np.isneginf(rows).sum(axis=0, keepdims=True).astype(np.float64)
    return np.concatenate([finite(rows).sum(axis=1), zeros])


def possible(model: Model, batch: Batch, blocks: Mapping[str, Block], fixed: Container[str] = ()) -> Possible:
    """Every change of one row (a batch of one) that the model can judge, of columns that are not `fixed`."""
    units: dict[tuple[str, Any], list[Move]] = {}
    coupled: list[Coupled] = []
    seen: set[str] = set()
    for column in model.schema.counted:
        block = blocks[column.name]
        if column.reads in fixed:
            continue
        if isinstance(block, (Bag, Vectors)):
            name = column.name
            for move in _words(model, name, block) if isinstance(block, Bag) else _positions(model, name, block):
                if isinstance(move, Coupled):
                    coupled.append(move)
                else:
                    units.setdefault(move.unit, []).append(move)
        elif column.of is None and column.reads not in seen:
            seen.add(column.reads)
            units[column.reads, None] = list(_values(model, column.reads, batch, blocks))
    return Possible({u: moves for u, moves in units.items() if moves}, coupled)


# ---- a value of a column


def readers(model: Model, sources: Container[str]) -> list[Column]:
    """The columns of the model that read some columns of the data; a pair reads two."""
    return [
        c for c in model.schema.counted
        if (c.reads in sources if c.of is None else any(side.source in sources for side in c.of))
    ]  # fmt: skip


def read(model: Model, batch: Batch, changes: Mapping[str, Sequence[Any]]) -> dict[str, Block]:
    """The blocks of the columns that read what is changed, for a row with each of the new values in turn."""
    columns = readers(model, changes)
    rows = len(next(iter(changes.values())))
    wanted = {side.source for c in columns if c.of is not None for side in c.of} | set(changes)
    raw = {s: pa.array(changes[s]) if s in changes else _repeated(batch.get(s), rows) for s in wanted}
    under = model.schema._with(columns=columns)
    return encode.blocks(under, Batch({s: r for s, r in raw.items() if r is not None}, rows))


def _repeated(raw: Any, rows: int) -> Any:
    if raw is None:
        return None
    return raw.take(pa.array(np.zeros(rows, dtype=np.int64))) if isinstance(raw, pa.Array) else [raw[0]] * rows


def _values(model: Model, source: str, batch: Batch, blocks: Mapping[str, Block]) -> Iterator[Move]:
    """Other values of one column of the data, which several columns of the model may read."""
    columns = [c for c in readers(model, {source}) if c.of is None]
    raw = _candidates(model, columns, blocks)
    if not len(raw):
        return
    delta = np.zeros((2, len(raw), len(model.classes)))
    for name, block in read(model, batch, {source: raw}).items():
        factor = posterior.factor_of_one(model.settings, name, blocks[name])
        belief = model.beliefs[name]
        if factor:
            delta += finite(factor * belief.parts(block)) - finite(factor * belief.parts(blocks[name]))
    before, told = _shown(columns, blocks), told_by(columns[0]) or number_text
    for value, change in zip(raw, delta.swapaxes(0, 1), strict=True):
        after = told(value) if isinstance(value, float) else str(value).removesuffix(" 00:00:00")
        if after != before:
            yield Move((source, None), before or "missing", after, change, value)


def _shown(columns: Sequence[Column], blocks: Mapping[str, Block]) -> str | None:
    for column in columns:
        block = blocks[column.name]
        if (told := told_by(column)) and isinstance(block, Numbers) and block.present()[0]:
            return told(float(block.values[0]))
        if column.part is None:
            return block.text(0)
    return blocks[columns[0].name].text(0)


def _candidates(model: Model, columns: Sequence[Column], blocks: Mapping[str, Block]) -> list[Any]:
    """Raw values to try: those of a category, numbers where some were counted, days that were counted."""
    if any(c.only_here and c.about.write is None for c in columns):
        return []  # nobody can say how they are written
    for column in columns:
        block, write = blocks[column.name], column.about.write
        if column.part is not None:
            days = [c for c in columns if c.part == "days"]
            return _dates(model, days[0].name, any(c.part == "hour" for c in columns)) if days else []
        if isinstance(block, Numbers):
            values: list[Any] = counted_numbers(model, column.name).tolist()
        else:
            form = model.beliefs[column.name].form()
            values = list(form.values) if isinstance(form, TableForm) else []
        return values if write is None else list(map(write, values))
    return []


def counted_numbers(model: Model, name: str) -> Floats:
    """Numbers of a column within what was seen: its cells, or a few deviations about the mean of each class.

    A cell stands for its middle, or where all points are whole numbers for one of those; the first and the last for
    the end that is no further out than some row.
    """
    if model.tally is None:
        return np.zeros(0)
    cells, counts = model.schema[name].cells, model.tally.columns[name]
    if cells is not None and "cells" in counts.sheets:
        low, high = cells.edges(cells.slot_codes(counts.sheet("cells", N).slot_names))
        if not len(low):
            return low
        least, most = float(np.where(low == high, low, np.nextafter(high, -np.inf)).min()), float(low.max())
        middle = middles(low, high)
        if cells.discrete and np.array_equal(cells.point_values, np.rint(cells.point_values)):
            inner = np.where(middle < cells.centre, np.ceil(high) - 1, np.ceil(low))
            middle = np.where((low < high) & (inner >= low) & (inner < high), inner, middle)
        return np.unique(np.clip(middle, min(least, most), max(least, most)))
    known = [(mean, np.sqrt(var)) for n, mean, var in model.tally.moments(name).values() if n > 0]
    with np.errstate(over="ignore", invalid="ignore"):  # at the ends of the line, where the deviation is infinite
        around = [float(f"{mean + sd * z:.4g}") for mean, sd in known for z in _GRID]
    return np.unique([x for x in around if math.isfinite(x)])


def _dates(model: Model, days: str, hours: bool) -> list[dt.datetime]:
    known = counted_numbers(model, days)
    whole = np.unique(np.floor(known[(known > -700_000) & (known < 2_900_000)]))  # the years that a date can have
    if len(whole) > _MOST_DAYS:
        whole = whole[np.linspace(0, len(whole) - 1, _MOST_DAYS).astype(int)]
    every = range(24) if hours else [0]
    return [dt.datetime(1970, 1, 1) + dt.timedelta(days=float(d), hours=h) for d in whole for h in every]


# ---- a position of a vector, a word of a bag


def _positions(model: Model, name: str, block: Vectors) -> Iterator[Move]:
    form = model.beliefs[name].form()
    if not isinstance(form, BellForm) or form.positions is None:
        return
    factor = posterior.factor_of_one(model.settings, name, block)
    for i, place in enumerate(form.positions.tolist()):
        x = float(block.values[0, place])
        grid = form.location[i][:, None] + form.scale[i][:, None] * _GRID
        values = np.unique([float(f"{v:.4g}") for v in grid.ravel()])
        now = 0.0 if np.isnan(x) else finite(factor * form.log_density(np.array([[x]]), i))
        before = "missing" if np.isnan(x) else number_text(float(f"{x:.10g}"))
        delta = finite(factor * form.log_density(values[:, None], i)) - now
        for value, change in zip(values.tolist(), delta.swapaxes(0, 1), strict=True):
            yield Move((name, place), before, number_text(value), change, value)


def amounts_of(block: Bag) -> dict[str, float]:
    """How often a bag of one row has each of its words."""
    return {block.slots[s]: float(a) for s, a in zip(block.matrix.indices, block.matrix.data, strict=True)}


def _words(model: Model, name: str, block: Bag) -> Iterator[Move | Coupled]:
    """Words of the vocabulary removed, with all their occurrences, or added once."""
    belief, settings = model.beliefs[name], model.settings
    factor = posterior.factor_of_one(settings, name, block)
    if not block.has[0] or not factor:
        return
    amounts = amounts_of(block)
    tokens = round(float(block.lengths()[0]))

    def scale(tokens: int) -> float:
        return float(posterior.by_length(settings, name, np.array(float(tokens))))

    form = belief.form()
    if isinstance(form, PolyaForm):
        yield _polya(form, name, scale, amounts, tokens)
        return
    by_length = settings.lengths.get(name, 0.0) != 0.0
    moves = list(_word_moves(name, 1.0 if by_length else factor, form, amounts))
    if by_length and moves:
        core = score(belief, block, 1.0)[:2]
        yield Coupled(name, core, tokens, scale, lambda tokens: np.zeros(core.shape[1]), moves)
    else:
        yield from moves


def _word_moves(name: str, factor: float, form: Form, amounts: Mapping[str, float]) -> Iterator[Move]:
    if isinstance(form, WordsForm):
        logs = finite(factor * form.logs)
        times = {w: factor * (1.0 if form.once else n) for w, n in amounts.items() if w in form.at or form.unseen.any()}
        gone = {w: -finite(n * (form.logs[form.at[w]] if w in form.at else form.unseen)) for w, n in times.items()}
        yield from _moves(name, form.words, amounts, gone, logs)
    elif isinstance(form, PresenceForm):
        change = finite(factor * form.present) - finite(factor * form.absent)
        gone = {w: -change[:, i] for i, w in enumerate(form.words) if w in amounts}
        yield from _moves(name, form.words, amounts, gone, change)
    elif isinstance(form, LevelsForm):
        logs, top = finite(factor * form.logs), len(form.logs) - 1
        level = {w: min(math.ceil(n), top) for w, n in amounts.items()}
        gone = {w: logs[:, 0, i] - logs[:, level[w], i] for i, w in enumerate(form.words) if w in amounts}
        yield from _moves(name, form.words, amounts, gone, logs[:, 1] - logs[:, 0])


def _moves(
    name: str, words: Sequence[str], amounts: Mapping[str, float], gone: Mapping[str, Floats], new: Floats
) -> Iterator[Move]:
    for word, change in gone.items():
        yield Move((name, word), word, "", change, word, -round(amounts[word]))
    for i, word in enumerate(words):
        if word not in amounts:
            yield Move((name, word), "", word, new[:, i], word, 1)


def _polya(
    form: PolyaForm, name: str, scale: Callable[[int], float], amounts: Mapping[str, float], tokens: int
) -> Coupled:
    """The core is Σ log Γ(a + x) − log Γ(a); the rest depends on the number of known words alone."""
    times = dict.fromkeys(amounts, 1.0) if form.once else dict(amounts)
    at = {w: i for i, w in enumerate(form.words) if w in amounts}
    known = {w: i for w in amounts if (i := at.get(w, form.unseen)) is not None}
    total = form.amounts.sum(axis=0)
    rise = {w: finite(gammaln(form.amounts[i] + times[w]) - gammaln(form.amounts[i])) for w, i in known.items()}
    unknown = round(sum(times[w] for w in times if w not in known))
    counted = len(times) if form.once else tokens

    def extra(tokens: int) -> Floats:
        length = tokens - unknown
        return -scale(tokens) * np.asarray(gammaln(total + length) - gammaln(total))

    gone = {w: -r for w, r in rise.items()}
    moves = list(_moves(name, form.words, times, gone, finite(safe_log(form.amounts))))
    core = np.sum(list(rise.values()), axis=0) if rise else np.zeros((2, len(total)))
    return Coupled(name, core, counted, scale, extra, moves)


def with_words(block: Bag, moves: Iterable[Move]) -> Bag:
    """The bag of one row with words added or removed."""
    amounts = amounts_of(block)
    there = amounts if block.given is None else (block.slots[i] for i in block.given[0])
    order = [word for word in there if word in amounts]  # an amount may be too small to be counted
    for m in moves:
        if m.after:
            amounts[m.value] = 1.0
            order.append(m.value)
        else:
            del amounts[m.value]
            order = [w for w in order if w != m.value]
    slots = list(amounts)
    matrix = type(block.matrix)((list(amounts.values()), ([0] * len(slots), range(len(slots)))), shape=(1, len(slots)))
    at = {w: i for i, w in enumerate(slots)}
    return Bag(slots, matrix, block.has, block.levels, [[at[w] for w in order]])


def bag_value(block: Bag, text: bool) -> Any:
    """A bag as a person would write it: its words, or amounts that are not ones."""
    words, amounts = [block.slots[i] for i in block.given[0]], amounts_of(block)
    return " ".join(words) if text else words if Counter(words) == amounts else amounts
