"""Several settings asked of one training tally: a column that two settings believe alike is worked out once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache, cached_property, partial
from typing import Any

import numpy as np

from . import canon, scorer
from .block import Bag, Block
from .families import Belief
from .model import Model
from .numerics import Floats, Ints
from .schema import Schema
from .settings import Settings
from .smoothing import Dirichlet
from .tally import Tally
from .wordgrid import TrainingWords, WordRows, reading

Answer = tuple[Floats, Floats, dict[str, Floats]]  # log prior, log joint, what each column says


class FoldScorer:
    """What a training tally makes of rows under each of some settings, in the order of classes that the caller gives.

    `only` gives the tally with some of its columns, `words` what it counted of a column of words, if that is whole.
    """

    def __init__(
        self,
        schema: Schema,
        settings: Sequence[Settings],
        classes: Sequence[tuple[str, ...]],
        only: Callable[[Sequence[str]], Tally],
        words: Callable[[str], TrainingWords | None],
    ) -> None:
        for name in {n for s in settings for _, by_column in _by_column(s) for n in by_column}:
            schema[name]  # an unknown name is an error with a hint, not a setting without effect
        self.schema, self.settings, self.classes = schema, settings, classes
        self.names = [c.name for c in schema.counted]
        self._only, self._words = cache(only), cache(words)
        self._beliefs: dict[str, list[tuple[Settings, Belief]]] = {name: [] for name in self.names}

    def answers(
        self, blocks: Mapping[str, Block], ids: Callable[[str], Ints], rows: int, parts: bool
    ) -> Iterator[Answer]:
        """The answer of each setting for some rows; `ids` numbers the words of a block."""
        said = {name: _Said(blocks[name], partial(ids, name)) for name in self.names}
        for number, (settings, classes) in enumerate(zip(self.settings, self.classes, strict=True)):
            each = {name: self._parts(number, name, said[name]) for name in self.names}
            model = self._priors[number]
            joint = scorer.calibrated(settings, scorer.scores(model.start, each, settings, blocks, rows))
            at = [classes.index(str(canon.text(c))) for c in model.classes]
            log_prior, full = np.full(len(classes), -np.inf), np.full((rows, len(classes)), -np.inf)
            log_prior[at], full[:, at] = model.start, joint
            yield log_prior, full, {n: _spread(p, at, len(classes)) for n, p in each.items()} if parts else {}

    def _parts(self, number: int, name: str, said: _Said) -> Floats:
        own = for_column(self.settings[number], name)
        for settings, known in said.parts:
            if settings == own:
                return known
        out = self._fast(number, name, own, said)
        if out is None:
            out = self._belief(number, name, own).parts(said.block)
        said.parts.append((own, out))
        return out

    def _fast(self, number: int, name: str, own: Settings, said: _Said) -> Floats | None:
        """The parts by the fast twin, where it knows the family and the counts."""
        way = reading(self.schema[name], own)
        words = self._words(name) if way is not None else None
        if way is None or words is None or not isinstance(said.block, Bag):
            return None
        if said.words is None:
            said.words = words.of(said.block, said.ids(), self.schema[name].width)
        names = [str(canon.text(c)) for c in self._priors[number].classes]
        return said.words.parts(*way, words.numbers(names))

    def _belief(self, number: int, name: str, own: Settings) -> Belief:
        if not self._apart:
            return self._whole[number].beliefs[name]
        for settings, known in self._beliefs[name]:
            if settings == own:
                return known
        belief = self._only((name,)).model(own).beliefs[name]
        self._beliefs[name].append((own, belief))
        return belief

    @cached_property
    def _apart(self) -> bool:
        return separable(self.settings)

    @cached_property
    def _whole(self) -> list[Model]:
        return [self._only(tuple(self.names)).model(s) for s in self.settings]

    @cached_property
    def _priors(self) -> list[Model]:
        if not self._apart:
            return self._whole
        return [self._only(()).model(Settings(prior=s.prior, offsets=s.offsets)) for s in self.settings]


@dataclass
class _Said:
    """What a column said of some rows, under the settings asked so far."""

    block: Block
    ids: Callable[[], Ints]
    parts: list[tuple[Settings, Floats]] = field(default_factory=list)
    words: WordRows | None = None


def separable(settings: Sequence[Settings]) -> bool:
    """Whether each column can be believed without looking at the others."""
    return all(s.floor.kind != "global" for s in settings)


def for_column(settings: Settings, column: str) -> Settings:
    """The settings as far as they concern what one column says: two that are equal here give equal parts."""
    own: dict[str, Any] = {n: {k: v for k, v in m.items() if k == column} for n, m in _by_column(settings)}
    own["smoothing"] = settings.smoothing_of(column)
    # these act on what the column has said
    own.update(weights={}, lengths={}, offsets={}, isotonic=None, lead=None, calibrated=None)
    own["prior"] = settings.prior if isinstance(settings.prior, Dirichlet) else "counted"  # it may imagine classes
    return replace(settings, **own)


def _by_column(settings: Settings) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The fields of the settings that say something for each column."""
    for f in fields(settings):
        value = getattr(settings, f.name)
        if f.name not in ("prior", "offsets") and isinstance(value, Mapping):  # these speak of classes
            yield f.name, value


def _spread(part: Floats, at: list[int], width: int) -> Floats:
    """A part in the caller's classes; a class that the tally has not seen says nothing."""
    out = np.zeros((len(part), width))
    out[:, at] = part
    return out
