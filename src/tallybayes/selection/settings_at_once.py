"""Several settings asked of one training tally: a column that two settings believe alike is worked out once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial

import numpy as np

from ..base import canon
from ..base.arrays import Floats, Ints
from ..data.blocks import Bag, Block
from ..data.schema import Schema
from ..families import Belief
from ..families.settings import Settings
from ..families.smoothing import Dirichlet
from ..model import posterior
from ..model.model import Model
from ..tally.tally import Tally
from ..tally.together import together
from .word_grid import TrainingWords, WordRows, reading

Answer = tuple[Floats, Floats, dict[str, Floats]]  # log prior, log joint, what each column says


class Asked:
    """Several settings, looked at once for all folds: which of them believe a column, or the prior, alike."""

    def __init__(self, schema: Schema, settings: Sequence[Settings], classes: Sequence[tuple[str, ...]]) -> None:
        settings = [Settings.of(each, schema) for each in settings]
        for name in {n for s in settings for by_column in s.by_column().values() for n in by_column}:
            schema[name]  # an unknown name is an error with a hint, not a setting without effect
        self.schema, self.settings, self.classes = schema, settings, classes
        self.names = [c.name for c in schema.counted]
        self.apart = separable(settings, schema)
        self.priors, self.prior = _distinct(
            [Settings(prior=s.prior, offsets=s.offsets, classes=s.classes) if self.apart else s for s in settings]
        )
        self.own = {name: _distinct([for_column(s, name) for s in settings]) for name in self.names}
        self.ways = {name: [reading(schema[name], own) for own in self.own[name][0]] for name in self.names}
        self.alphas: dict[str, dict[tuple[bool, str], tuple[float, ...]]] = {}
        for name, ways in self.ways.items():
            known = [way for way in ways if way is not None]
            self.alphas[name] = {w[:2]: tuple(sorted({v[2] for v in known if v[:2] == w[:2]})) for w in known}


def _distinct(settings: Sequence[Settings]) -> tuple[list[Settings], list[int]]:
    """The settings that differ, and for each of those given which it is."""
    found: list[Settings] = []
    which = []
    for one in settings:
        if one not in found:
            found.append(one)
        which.append(found.index(one))
    return found, which


class FoldScorer:
    """What a training tally makes of rows under each of some settings, in the order of classes that the caller gives.

    `only` gives the tally with some of its columns, `words` what it counted of a column of words, if that is whole.
    """

    def __init__(
        self, asked: Asked, only: Callable[[Sequence[str]], Tally], words: Callable[[str], TrainingWords | None]
    ) -> None:
        self.asked = asked
        self._only, self._words = cache(only), cache(words)
        self._beliefs: dict[tuple[str, int], Belief] = {}

    def answers(
        self, blocks: Mapping[str, Block], ids: Callable[[str], Ints], rows: int, parts: bool
    ) -> Iterator[Answer]:
        """The answer of each setting for some rows; `ids` numbers the words of a block."""
        asked = self.asked
        said = {name: _Said(blocks[name], partial(ids, name)) for name in asked.names}
        for number, (settings, classes) in enumerate(zip(asked.settings, asked.classes, strict=True)):
            each = {name: self._parts(number, name, said[name]) for name in asked.names}
            prior, names = self._priors[asked.prior[number]]
            joint = posterior.calibrated(settings, posterior.scores(prior, each, settings, blocks, rows))
            if names == classes:
                yield prior, joint, each if parts else {}
                continue
            at = [classes.index(c) for c in names]
            log_prior, full = np.full(len(classes), -np.inf), np.full((rows, len(classes)), -np.inf)
            log_prior[at], full[:, at] = prior, joint
            yield log_prior, full, {n: spread(p, at, len(classes)) for n, p in each.items()} if parts else {}

    def _parts(self, number: int, name: str, said: _Said) -> Floats:
        own = self.asked.own[name][1][number]
        if own not in said.parts:
            fast = self._fast(number, name, own, said)
            said.parts[own] = self._belief(number, name, own).parts(said.block) if fast is None else fast
        return said.parts[own]

    def _fast(self, number: int, name: str, own: int, said: _Said) -> Floats | None:
        """The parts by the fast twin, where it knows the family and the counts."""
        way = self.asked.ways[name][own]
        words = self._words(name) if way is not None else None
        prior = self.asked.prior[number]
        if way is None or words is None or not isinstance(said.block, Bag) or not words.has(self._priors[prior][1]):
            return None
        if said.words is None:
            said.words = words.of(said.block, said.ids(), self.asked.schema[name].width)
        if prior not in said.classes:
            said.classes[prior] = words.numbers(self._priors[prior][1])
        return said.words.parts(*way, said.classes[prior], self.asked.alphas[name][way[:2]])

    def _belief(self, number: int, name: str, own: int) -> Belief:
        if not self.asked.apart:
            return self._models[self.asked.prior[number]].beliefs[name]
        if (name, own) not in self._beliefs:
            self._beliefs[name, own] = self._only((name,)).model(self.asked.own[name][0][own]).beliefs[name]
        return self._beliefs[name, own]

    @cached_property
    def _models(self) -> list[Model]:
        """Of the settings with different priors, without columns; of all settings where columns cannot stand alone."""
        tally = self._only(() if self.asked.apart else tuple(self.asked.names))
        return [tally.model(s) for s in self.asked.priors]

    @cached_property
    def _priors(self) -> list[tuple[Floats, tuple[str, ...]]]:
        """What the scores start from, and the classes, as text, of each model."""
        return [(m.start, tuple(str(canon.text(c)) for c in m.classes)) for m in self._models]


@dataclass
class _Said:
    """What a column said of some rows, under the settings asked so far."""

    block: Block
    ids: Callable[[], Ints]
    parts: dict[int, Floats] = field(default_factory=dict)
    words: WordRows | None = None
    classes: dict[int, Ints] = field(default_factory=dict)  # the columns of the classes under each prior


def separable(settings: Sequence[Settings], schema: Schema) -> bool:
    """Whether each column can be believed without looking at the others."""
    return together(schema) is None and all(s.floor.kind != "global" for s in settings)


def for_column(settings: Settings, column: str) -> Settings:
    """The settings as far as they concern what one column says: two that are equal here give equal parts."""
    prior = settings.prior if isinstance(settings.prior, Dirichlet) else "counted"  # it may imagine classes
    alone = settings.without(fitted=True).about({column})  # what is fitted acts on what the column has said
    corrections = {n: c for n, c in settings.corrections.items() if n == column}  # but they are part of what it says
    return replace(alone, smoothing=settings.smoothing_of(column), prior=prior, corrections=corrections)


def spread(part: Floats, at: Sequence[int], width: int) -> Floats:
    """Rows × some classes in places of their own among all classes; 0 in the others: no evidence, no probability."""
    out = np.zeros((len(part), width))
    out[:, at] = part
    return out
