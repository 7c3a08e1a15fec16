"""How a model learns and forgets: rows go to its tally, at once or when the model is next asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np

from ..base import canon
from ..base.errors import CannotEstimate, warn
from ..data import encode
from ..data.schema import Schema
from ..data.sources import open_source
from ..families.calibration import Correction
from ..families.settings import Settings
from ..families.smoothing import Dirichlet
from ..tally.tally import Tally
from ..tally.traces import new_slot, renewed_schema, slots_of
from ..tally.waiting import Pending

_ESTIMATED = ("classes", "log_prior", "beliefs", "families")


class Learning:
    """The part of a model that takes rows in and lets them go; every change gives a new model."""

    if TYPE_CHECKING:
        classes: tuple[Any, ...]
        families: Mapping[str, Any]
        schema: Schema
        settings: Settings
        tally: Tally | None
        notes: Mapping[str, Any]

    def __getattr__(self, name: str) -> Any:
        """What a model that was updated row by row has not worked out yet: it is estimated when first asked for."""
        pending = self.__dict__.get("_pending")
        if pending is None or name not in (*_ESTIMATED, "tally"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        self.__dict__.update(tally=pending.tally, schema=pending.tally.schema)
        if name != "tally":
            model = pending.tally.model(self.settings)
            self.__dict__.update({n: getattr(model, n) for n in _ESTIMATED})
        return self.__dict__[name]

    def update(self, data: Any, y: Any = None, *, weights: Any = None) -> Self:
        """The model with more rows counted; the settings stay. One row as a dict costs nothing until it is asked."""
        pending = self._waiting(data, y, weights)
        if pending is not None:
            return self._later(pending.update(data))
        return self._changed(self._tally("updated").update(data, y, weights=weights))

    def forget(self, data: Any, y: Any = None, *, weights: Any = None) -> Self:
        """The model as if these rows had never been counted; of the settings goes what only these rows had.

        Weights stay as they were fitted: `recalibrate` renews them.
        """
        pending = self._waiting(data, y, weights)
        less = None if pending is None else pending.forget(data)
        if less is not None:
            return self._later(less, renewed_schema(self.schema))
        before = self._tally("made to forget")
        after = before.forget(data, y, weights=weights)
        return self._changed(after, _without_traces(self.settings, before, after))

    def recalibrate(
        self, data: Any, y: Any = None, *, weights: Any = None, effort: str = "default", groups: str | None = None,
        order: str | bool | None = None,
    ) -> Self:  # fmt: skip
        """The same counts under weights fitted anew on these rows, which may be old ones, new ones or both.

        Families, pairs and readings of text stay. Rows are scored by the other folds of the rows given, never by
        themselves; the fewer there are, the less their weights suit a model that has counted more. `effort`, `groups`
        and `order` are as for `tallybayes.fit`.
        """
        from ..selection.choose.chosen import recalibrated

        source = open_source(data, y, weights=weights, target=self.schema.target).repeatable()
        settings = recalibrated(source, self.schema, self.settings, effort=effort, groups=groups, order=order)
        fitted: Any = self._tally("recalibrated").model(settings)
        return cast(Self, replace(fitted, notes=self.notes))

    def _with_least(self, rows: int) -> Self:
        """The copy for others that `share` speaks of: the same families on `tally.at_least(rows)`."""
        from .estimate import estimate

        before = self._tally("shared")
        after = before.at_least(rows)
        settings = _without_traces(_without_classes(self.settings, before, after), before, after, copied=True)
        wide = {n: _with_wide_stretches(c, before, n, rows) if c.cuts else c for n, c in settings.corrections.items()}
        settings = replace(settings, corrections=wide)
        known = {name: family for name, family in self.families.items() if name in after.columns}
        out: Any = replace(estimate(after, settings.about(after.schema.names), known=known), notes=self.notes)
        return cast(Self, out)

    def _changed(self, tally: Tally, settings: Settings | None = None) -> Self:
        """The model of a changed tally, whose fitted weights are a little older."""
        settings = (settings or self.settings).after(abs(tally.rows - self._tally("changed").rows))
        out: Any = replace(tally.model(settings), notes=self.notes)
        if settings.isotonic is not None and len(out.classes) > 2 >= len(self.classes):
            warn(
                f"the isotonic curve is for two classes and is out of use now that there are {len(out.classes)}. "
                "Hint: model.recalibrate(rows) fits weights without it."
            )
        return cast(Self, out)

    def _waiting(self, data: Any, y: Any, weights: Any) -> Pending | None:
        """Where a row that can wait would wait; None for rows that are counted at once."""
        plain = y is None and weights is None and self.schema.weights is None and not self.schema.receipts
        if not (plain and isinstance(data, Mapping) and encode.is_row(self.schema, data)):
            return None
        pending: Pending | None = self.__dict__.get("_pending")
        if pending is not None and not pending.full:
            return pending
        known = {name: correction.cells for name, correction in self.settings.corrections.items()}
        return None if self.tally is None else Pending(self.tally, known=known)

    def _later(self, pending: Pending, schema: Schema | None = None) -> Self:
        """The model of a tally that nobody has read yet, whose fitted weights are a little older."""
        out = object.__new__(type(self))
        known = {"schema": schema or self.schema, "settings": self.settings.after(1), "notes": self.notes}
        out.__dict__.update(known, _pending=pending)
        return out

    def _tally(self, verb: str) -> Tally:
        if self.tally is None:
            raise CannotEstimate(
                f"a model written down without a strength cannot be {verb}",
                hint="say how many rows it is worth: tb.Model.written(prior, tables, strength=100).",
            )
        return self.tally


# ---- what settings that were fitted to rows know by name


def _without_traces(settings: Settings, before: Tally, after: Tally, *, copied: bool = False) -> Settings:
    """The settings without the classes and the cells of corrections that only the forgotten rows had.

    In a copy for others nothing stays by name that it has not counted.
    """
    lost = {*before.classes} - {*after.classes}
    if copied:
        named = {*settings.offsets, *(c for each in settings.corrections.values() for c in each.classes)}
        lost = named - {*after.classes, *settings.classes}
    offsets = {c: nats for c, nats in settings.offsets.items() if c not in lost}
    corrections = {
        name: _of_slots(name, _of_classes(correction, lost, after.classes), before, after, copied)
        for name, correction in settings.corrections.items()
    }
    if offsets == settings.offsets and corrections == settings.corrections:
        return settings
    return replace(settings, offsets=offsets, corrections=corrections)


def _of_classes(correction: Correction, lost: set[str], left: Sequence[str]) -> Correction:
    """The correction without what it adds to some classes."""
    kept = [i for i, name in enumerate(correction.classes) if name not in lost]
    if len(kept) == len(correction.classes):
        return correction
    if not kept:  # a correction has a class: one that is left, to which it adds nothing
        return replace(correction, classes=tuple(left[:1]) or ("",), added=np.zeros((len(correction.added), 1)))
    return replace(correction, classes=tuple(correction.classes[i] for i in kept), added=correction.added[:, kept])


def _without_classes(settings: Settings, before: Tally, after: Tally) -> Settings:
    """The settings without the classes that a copy for others has left out, where a person has named them."""
    lost = {*before.classes} - {*after.classes}
    if not lost:
        return settings
    prior = settings.prior
    if isinstance(prior, Mapping):
        left = {c: p for c, p in prior.items() if canon.text(c) not in lost}
        total = sum(left.values())
        prior = {c: p / total for c, p in left.items()} if total > 0 else "counted"
    elif isinstance(prior, Dirichlet):
        amounts = {c: a for c, a in prior.amounts.items() if canon.text(c) not in lost}
        prior = replace(prior, amounts=amounts) if amounts else "counted"
    return replace(settings, prior=prior, classes=tuple(c for c in settings.classes if c not in lost))


def _of_slots(name: str, correction: Correction, before: Tally, after: Tally, copied: bool) -> Correction:
    """The correction without cells that have lost their last row, the others called as their slots are called now."""
    if not correction.cells or name not in after.columns:
        return correction
    old, new = before.schema[name].of, after.schema[name].of
    there, cells = _slots(after, name), list(correction.cells)
    regrouped = old is not None and new is not None and old != new
    if old is not None and new is not None and regrouped:
        cells = list(map(new_slot(old, new), cells))
    if regrouped or copied:
        kept = [i for i, slot in enumerate(cells) if slot in there]
    else:
        gone = _slots(before, name) - there
        kept = [i for i, slot in enumerate(cells) if slot not in gone]
    if kept == [*range(len(cells))] and cells == [*correction.cells]:
        return correction
    return replace(correction, cells=tuple(cells[i] for i in kept), added=correction.added[kept])


def _with_wide_stretches(correction: Correction, tally: Tally, name: str, least: int) -> Correction:
    """The correction of a number in stretches of at least so many rows: neighbours go together, and add their mean.

    Rows are counted by the middle of their cells. Without cells there is one stretch: nobody knows what is in which.
    """
    cells, sheet = tally.schema[name].cells, tally.columns[name].sheets.get("cells")
    rows = np.zeros(len(correction.cuts) + 1)
    if cells is not None and sheet is not None:
        low, high = (np.nan_to_num(e) for e in cells.edges(cells.slot_codes(sheet.slot_names)))
        place = np.searchsorted(correction.cuts, low / 2 + high / 2, side="right")
        rows = np.bincount(place, sheet.by_slot("n"), minlength=len(rows)).astype(np.float64)
    starts, found = [0], 0.0
    for i, n in enumerate(rows.tolist()):
        if found >= least and rows[i:].sum() >= least:
            starts.append(i)
            found = 0.0
        found += n
    weights = rows + (np.add.reduceat(rows, starts).repeat(np.diff([*starts, len(rows)])) == 0)
    added = np.add.reduceat(correction.added * weights[:, None], starts, axis=0)
    cuts = tuple(correction.cuts[i - 1] for i in starts[1:])
    return replace(correction, cuts=cuts, added=added / np.add.reduceat(weights, starts)[:, None])


def _slots(tally: Tally, name: str) -> set[str]:
    return {slot for sheet in tally.columns[name].sheets for slot in slots_of(tally, name, sheet)}
