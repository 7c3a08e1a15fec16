"""Several settings asked of one training tally: a column that two settings believe alike is worked out once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from . import canon, scorer
from .block import Block
from .families import Belief
from .model import Model
from .numerics import Floats
from .settings import Settings
from .smoothing import Dirichlet
from .tally import Tally

Answer = tuple[Floats, Floats, dict[str, Floats]]  # log prior, log joint, what each column says


class FoldScorer:
    """What a tally makes of rows under each of some settings, in the order of classes that the caller gives."""

    def __init__(self, tally: Tally, settings: Sequence[Settings], classes: Sequence[tuple[str, ...]]) -> None:
        self.tally, self.settings, self.classes = tally, settings, classes
        for name in {n for s in settings for _, by_column in _by_column(s) for n in by_column}:
            tally.schema[name]  # an unknown name is an error with a hint, not a setting without effect
        self.names = [c.name for c in tally.schema.counted]
        self._known: dict[str, list[tuple[Settings, Belief]]] = {name: [] for name in self.names}

    def answers(self, blocks: Mapping[str, Block], rows: int, parts: bool) -> Iterator[Answer]:
        """The answer of each setting for some rows."""
        said: dict[str, list[tuple[Settings, Floats]]] = {name: [] for name in self.names}
        for number, (settings, classes) in enumerate(zip(self.settings, self.classes, strict=True)):
            each = {name: self._parts(number, name, blocks[name], said[name]) for name in self.names}
            model = self._priors[number]
            joint = scorer.scores(model.log_prior, each, settings.weights, rows)
            at = [classes.index(str(canon.text(c))) for c in model.classes]
            log_prior, full = np.full(len(classes), -np.inf), np.full((rows, len(classes)), -np.inf)
            log_prior[at], full[:, at] = model.log_prior, joint
            yield log_prior, full, {n: _spread(p, at, len(classes)) for n, p in each.items()} if parts else {}

    def _parts(self, number: int, name: str, block: Block, said: list[tuple[Settings, Floats]]) -> Floats:
        own = for_column(self.settings[number], name)
        for settings, known in said:
            if settings == own:
                return known
        out = self._belief(number, name, own).parts(block)
        said.append((own, out))
        return out

    def _belief(self, number: int, name: str, own: Settings) -> Belief:
        if not self._apart:
            return self._whole[number].beliefs[name]
        for settings, known in self._known[name]:
            if settings == own:
                return known
        belief = self._only(name).model(own).beliefs[name]
        self._known[name].append((own, belief))
        return belief

    def _only(self, *names: str) -> Tally:
        """The tally with only these columns."""
        schema = self.tally.schema
        kept = schema._with(columns=[schema[n] for n in names])
        return Tally(kept, self.tally.classes, self.tally.labels, {n: self.tally.columns[n] for n in names})

    @cached_property
    def _apart(self) -> bool:
        """Whether each column can be believed without looking at the others."""
        return all(s.floor.kind != "global" for s in self.settings) and all(
            c.kind != "pair" for c in self.tally.schema.counted
        )

    @cached_property
    def _whole(self) -> list[Model]:
        return [self.tally.model(s) for s in self.settings]

    @cached_property
    def _priors(self) -> list[Model]:
        labels = self._only()
        return [labels.model(Settings(prior=s.prior)) for s in self.settings] if self._apart else self._whole


def for_column(settings: Settings, column: str) -> Settings:
    """The settings as far as they concern what one column says: two that are equal here give equal parts."""
    own: dict[str, Any] = {n: {k: v for k, v in m.items() if k == column} for n, m in _by_column(settings)}
    own["smoothing"], own["weights"] = settings.smoothing_of(column), {}
    own["prior"] = settings.prior if isinstance(settings.prior, Dirichlet) else "counted"  # it may imagine classes
    return replace(settings, **own)


def _by_column(settings: Settings) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The fields of the settings that say something for each column."""
    for field in fields(settings):
        value = getattr(settings, field.name)
        if field.name != "prior" and isinstance(value, Mapping):
            yield field.name, value


def _spread(part: Floats, at: list[int], width: int) -> Floats:
    """A part in the caller's classes; a class that the tally has not seen says nothing."""
    out = np.zeros((len(part), width))
    out[:, at] = part
    return out
