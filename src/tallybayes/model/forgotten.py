"""What settings that were fitted to rows know by name, and how they are renewed once rows are forgotten."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..families.calibration import Correction
from ..families.settings import Settings
from ..tally.tally import Tally
from ..tally.traces import new_slot, slots_of


def without_traces(settings: Settings, before: Tally, after: Tally) -> Settings:
    """The settings without the classes and the cells of corrections that only the forgotten rows had."""
    lost = {*before.classes} - {*after.classes}
    offsets = {c: nats for c, nats in settings.offsets.items() if c not in lost}
    corrections = {
        name: _of_slots(name, _of_classes(correction, lost, after.classes), before, after)
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


def _of_slots(name: str, correction: Correction, before: Tally, after: Tally) -> Correction:
    """The correction without cells that have lost their last row, the others called as their slots are called now."""
    if not correction.cells or name not in after.columns:
        return correction
    old, new = before.schema[name].of, after.schema[name].of
    there, cells = _slots(after, name), list(correction.cells)
    if old is not None and new is not None and old != new:
        cells = list(map(new_slot(old, new), cells))
        kept = [i for i, slot in enumerate(cells) if slot in there]
    else:
        gone = _slots(before, name) - there
        kept = [i for i, slot in enumerate(cells) if slot not in gone]
    if kept == [*range(len(cells))] and cells == [*correction.cells]:
        return correction
    return replace(correction, cells=tuple(cells[i] for i in kept), added=correction.added[kept])


def _slots(tally: Tally, name: str) -> set[str]:
    return {slot for sheet in tally.columns[name].sheets for slot in slots_of(tally, name, sheet)}
