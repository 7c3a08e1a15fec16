"""Sets of classes that hold the right one as often as asked, by how strange known rows were to models without them.

How strange a class is for a row is the log-odds against it, log Σ P(other classes) − log P(class). The p-value of a
class is the share of known rows whose own class was at least as strange to a model without them, the new row counted
among them; a set has the classes whose p-value is above 1 − coverage. Only the scores are kept, with the model, so that
answers need no rows. `selection.sets` takes them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base import canon
from ..base.arrays import Bools, Floats, Ints, log_sum_exp
from ..base.errors import ModelFileError, SettingsError
from ..base.show import Page, Shown
from ..data.sources import open_source

if TYPE_CHECKING:
    from .model import Model

NOTE = "prediction sets"  # where the notes of a model keep them
LEVELS = (0.8, 0.9, 0.95, 0.99)  # coverages of which the mean size is told
MOST = 4096  # scores that are kept of a class; of more rows several share the strangest of theirs
_MOST_ROWS = 1 << 53  # that the scores of a file may stand for: sums of them are counted exactly
END = 1e300  # JSON has no infinity
TIE = 1e-9  # two ways to the same sum differ by rounding alone
_HINT = "calibrate the sets again: model = model.with_sets(rows)."


def strangeness(joint: Floats, log_prior: Floats) -> Floats:
    """The log-odds against each class, rows × classes, to full precision also where a probability is all but 1."""
    if not (possible := np.isfinite(joint.max(axis=1))).all():  # the prior answers
        joint = np.where(possible[:, None], joint, log_prior)
    rows, best = np.arange(len(joint)), np.argmax(joint, axis=1)
    others = joint.copy()
    others[rows, best] = -np.inf
    with np.errstate(divide="ignore", invalid="ignore"):
        log_p = joint - log_sum_exp(joint)[:, None]
        out = np.log1p(-np.exp(log_p)) - log_p
        out[rows, best] = (log_sum_exp(others) if joint.shape[1] > 1 else -np.inf) - joint[rows, best]
    return np.asarray(np.clip(np.nan_to_num(out, nan=END, posinf=END, neginf=-END), -END, END))


def _thinned(scores: Floats, rows: Ints) -> tuple[Floats, Ints]:
    """Sorted scores and how many rows each stands for; of several that share one the strangest, so no p gets smaller.

    >>> _thinned(np.array([2.0, 1.0, 2.0]), np.array([1, 1, 5]))[1].tolist()
    [1, 6]
    """
    values, at = np.unique(scores, return_inverse=True)
    counts = np.zeros(len(values), dtype=np.int64)
    np.add.at(counts, at, rows)
    if len(values) > MOST:
        ends = np.unique(np.searchsorted(np.cumsum(counts), np.arange(1, MOST + 1) * (counts.sum() / MOST)))
        ends = np.minimum(ends, len(values) - 1)
        values, counts = values[ends], np.diff(np.cumsum(counts)[ends], prepend=0)
    return values, np.asarray(counts, dtype=np.int64)


@dataclass(frozen=True, eq=False, repr=False)
class PredictionSets(Shown):
    """How strange the own class of each row was to a model that had not seen it, class by class; print it.

    >>> rows = {"Sky": ["sunny", "rainy", "sunny", "rainy"] * 9, "Play": ["yes", "no", "yes", "yes"] * 9}
    >>> tb.prediction_sets(tb.textbook(rows, "Play"), rows)
    Prediction sets: 36 rows, each left out by itself
    coverage  classes in a set, on average
    80%                               1.50
    90%                               1.50
    95%                               1.50
    99%                               2.00
    """

    classes: tuple[str, ...]  # as texts
    scores: tuple[tuple[Floats, Ints], ...]  # of each class, sorted, and how many rows each stands for
    how: str
    fingerprint: str  # of the counts and settings that the scores belong to
    added: int = 0  # rows that came since, scored by the model that had not counted them
    sizes: tuple[float, ...] = ()  # mean sizes at `LEVELS` over the rows themselves

    @classmethod
    def of(cls, model: Model, strange: Floats, labels: Ints, how: str) -> PredictionSets:
        """Sets from rows × classes of a model, and the class number of each row."""
        names = tuple(str(canon.text(c)) for c in model.classes)
        own = strange[np.arange(len(labels)), labels]
        each = tuple(_thinned(some := own[labels == i], np.ones_like(some, np.int64)) for i in range(len(names)))
        out = cls(names, each, how, fingerprint(model))
        p = out.p_values(strange)
        sizes = tuple(float(chosen(p, strange, c).sum(axis=1).mean()) for c in LEVELS)
        return replace(out, sizes=sizes)

    @property
    def rows(self) -> int:
        """How many rows were scored."""
        return sum(int(counts.sum()) for _, counts in self.scores)

    def p_values(self, strange: Floats, by_class: bool = False, u: Floats | None = None) -> Floats:
        """p of every class for rows × strangeness; `u`, one number of [0, 1] per row, smooths ties away."""
        out = np.empty(strange.shape)
        for i in range(strange.shape[1]):
            values, below = self._below[i] if by_class else self._below[-1]
            p = strange[:, i]
            reach = TIE * np.maximum(np.abs(p), 1.0)
            total = below[-1]
            at_least = total - below[np.searchsorted(values, p - reach, "left")]
            more = total - below[np.searchsorted(values, p + reach, "right")]
            out[:, i] = smoothed(total, at_least, more, u)
        return out

    @cached_property
    def _below(self) -> list[tuple[Floats, Ints]]:
        """The scores of each class, then of all, and how many rows lie below each of them."""
        values, counts = (np.concatenate(each) for each in zip(*self.scores, strict=True))
        order = np.argsort(values, kind="stable")
        return [(v, np.concatenate(([0], np.cumsum(n)))) for v, n in (*self.scores, (values[order], counts[order]))]

    def predicted(
        self, model: Model, strange: Floats, coverage: float, by_class: bool = False, empty: bool = False,
        u: Floats | None = None,
    ) -> PredictedSets:  # fmt: skip
        """The sets of rows that are so strange to the model."""
        p = self.p_values(strange, by_class, u)
        return PredictedSets(model.classes, chosen(p, strange, coverage, empty), p, strange, coverage)

    def with_rows(self, before: Model, after: Model, data: Any) -> PredictionSets:
        """The same after an update: its rows are scored by the model that had not counted them."""
        from ..selection.sets.calibrate import strange_rows

        names = tuple(str(canon.text(c)) for c in after.classes)
        if before.tally is not None and after.tally is not None and before.tally.rows == after.tally.rows:
            return replace(self, fingerprint=fingerprint(after))  # no row had a label
        strange, labels = strange_rows(before, data, after.classes)
        own = strange[np.arange(len(labels)), labels]
        known = dict(zip(self.classes, self.scores, strict=True))
        each = []
        for i, name in enumerate(names):
            values, counts = known.get(name, (np.zeros(0), np.zeros(0, dtype=np.int64)))
            come = own[labels == i]
            each.append(_thinned(np.append(values, come), np.append(counts, np.ones_like(come, np.int64))))
        return replace(
            self, classes=names, scores=tuple(each), added=self.added + len(labels), fingerprint=fingerprint(after)
        )

    def to_dict(self) -> dict[str, Any]:
        """A form that JSON can hold."""
        scores = {c: [v.tolist(), n.tolist()] for c, (v, n) in zip(self.classes, self.scores, strict=True)}
        told = {"how": self.how, "fingerprint": self.fingerprint, "added": self.added, "sizes": list(self.sizes)}
        return {**told, "scores": scores}

    @classmethod
    def from_dict(cls, given: Any) -> PredictionSets:
        """What a file holds; refused if it is none."""
        try:
            each = [(np.array(v, dtype=np.float64), np.array(n, dtype=np.int64)) for v, n in given["scores"].values()]
            out = cls(
                tuple(given["scores"]), tuple(each), str(given["how"]), str(given["fingerprint"]), int(given["added"]),
                tuple(map(float, given["sizes"])),
            )  # fmt: skip
            fine = all(v.ndim == 1 and v.shape == n.shape and (n > 0).all() for v, n in each)
            fine = fine and all(np.isfinite(v).all() and (np.diff(v) > 0).all() for v, _ in each)
            fine = fine and sum(sum(n.tolist()) for _, n in each) < _MOST_ROWS
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            fine = False
        if not fine:
            raise ModelFileError("the prediction sets in the notes of the model are none", hint=_HINT)
        return out

    def _page(self) -> Page:
        since = f", {canon.many(self.added, 'row')} of them added since" if self.added else ""
        sizes = [[f"{level:.0%}", f"{size:.2f}"] for level, size in zip(LEVELS, self.sizes, strict=False)]
        table = [["coverage", "classes in a set, on average"], *sizes] if sizes else []
        return Page(f"Prediction sets: {canon.many(self.rows, 'row')}{since}, {self.how}", table)


def smoothed(total: Any, at_least: Ints, more: Ints, u: Floats | None) -> Floats:
    """The p-value from how many of `total` rows are at least as strange, and how many are more so."""
    return np.asarray((at_least + 1 if u is None else more + u * (at_least - more + 1)) / (total + 1))


def chosen(p: Floats, strange: Floats, coverage: float, empty: bool = False) -> Bools:
    """Which classes are in the set of each row; the likeliest one always is, unless sets may be empty."""
    out = p > 1 - coverage + 1e-12  # a share that is 1 − coverage but for rounding is not above it
    if not empty and len(out):
        out[np.arange(len(out)), np.argmin(strange, axis=1)] = True
    return np.asarray(out)


def fingerprint(model: Model) -> str:
    """What the scores of rows belong to: other counts or other settings would give others."""
    from ..families.settings_json import settings_to_json  # no answer without sets loads it

    out = hashlib.sha256(b"" if model.tally is None else model.tally.digest.encode())
    out.update(json.dumps(settings_to_json(model.settings), sort_keys=True).encode())
    return out.hexdigest()


def without_sets(notes: Mapping[str, Any]) -> Mapping[str, Any]:
    """The notes of a model whose counts or settings have changed."""
    return {key: value for key, value in notes.items() if key != NOTE} if NOTE in notes else notes


def told_notes(notes: Mapping[str, Any]) -> Mapping[str, Any]:
    """The notes as a page may show them: of the sets what they are, and no thousand scores."""
    if NOTE not in notes:
        return notes
    found = PredictionSets.from_dict(notes[NOTE])
    said = f"scores of {canon.many(found.rows, 'row')}, class by class"
    return {**notes, NOTE: said}


def sets_of(model: Model) -> PredictionSets:
    """The sets that a model keeps; refused where there are none, or they are of other counts."""
    found = model.__dict__.get("_sets")
    if found is None:
        if NOTE not in model.notes:
            raise SettingsError(
                "the model has no prediction sets: a tally holds no rows to take them from",
                hint="model = model.with_sets(rows), the rows that it has counted or rows that it has never seen; "
                "rows that were forgotten take the sets with them.",
            )
        found = PredictionSets.from_dict(model.notes[NOTE])
        if found.fingerprint != fingerprint(model):
            raise SettingsError("the prediction sets of the model are of other counts or settings", hint=_HINT)
        model.__dict__["_sets"] = found
    return found


@dataclass(frozen=True, eq=False, repr=False)
class PredictedSets(Shown, Sequence[tuple[Any, ...]]):
    """A set of classes for each row, the likeliest first: `sets[0]`; `members` and `p_values` are rows × classes.

    >>> rows = {"Sky": ["sunny", "rainy", "sunny", "rainy"] * 9, "Play": ["yes", "no", "yes", "yes"] * 9}
    >>> sets = tb.textbook(rows, "Play").with_sets(rows).predict_set({"Sky": ["sunny", "rainy"]}, coverage=0.9)
    >>> sets[0], sets[1], sets.sizes.tolist()
    (('yes',), ('yes', 'no'), [1, 2])
    """

    classes: tuple[Any, ...]
    members: Bools
    p_values: Floats
    strange: Floats
    coverage: float

    def __len__(self) -> int:
        return len(self.members)

    def __getitem__(self, row: Any) -> Any:
        if isinstance(row, slice):
            return [self[i] for i in range(*row.indices(len(self)))]
        order = np.argsort(self.strange[row], kind="stable")
        return tuple(self.classes[i] for i in order.tolist() if self.members[row, i])

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return (self[i] for i in range(len(self)))

    @property
    def sizes(self) -> Ints:
        """How many classes each set has."""
        return np.asarray(self.members.sum(axis=1), dtype=np.int64)

    def _page(self) -> Page:
        shown = [[f"{i}", ", ".join(canon.printable(c, 40) for c in self[i])] for i in range(min(len(self), 20))]
        more = [[f"… {len(self) - 20:,} more"]] if len(self) > 20 else []
        mean = f", {self.sizes.mean():.2f} classes on average" if len(self) else ""
        title = f"Prediction sets of {canon.many(len(self), 'row')} at coverage {self.coverage:g}{mean}"
        return Page(title, [["row", "set"], *shown, *more], left=2)


def checked_coverage(coverage: Any) -> float:
    """A share between 0 and 1."""
    plain = isinstance(coverage, (int, float, np.number)) and not isinstance(coverage, bool)
    if not plain or not 0 < coverage < 1:
        raise SettingsError(f"coverage={coverage!r}", hint="give a share between 0 and 1, e.g. coverage=0.9.")
    return float(coverage)


def predicted_sets(
    model: Model, rows: Any, coverage: float, by_class: bool, smooth: bool, empty: bool, seed: int | None,
    calibration: Any, exact: bool,
) -> PredictedSets:  # fmt: skip
    """`Model.predict_set`."""
    coverage = checked_coverage(coverage)
    if exact and calibration is None:
        raise SettingsError(
            "exact=True without rows", hint="full conformal sets look at every row: give calibration=rows, too."
        )
    found = None if exact else sets_of(model if calibration is None else model.with_sets(calibration))
    rows = open_source(model.table_of(rows)).repeatable()
    start = model.start
    strange = strangeness(model._log_joint(rows, start), start)
    u = np.random.default_rng(seed).random(len(strange)) if smooth else None
    if found is None:
        from ..selection.sets.full import full_p_values

        p = full_p_values(model, calibration, rows, strange, by_class, u)
        return PredictedSets(model.classes, chosen(p, strange, coverage, empty), p, strange, coverage)
    return found.predicted(model, strange, coverage, by_class, empty, u)
