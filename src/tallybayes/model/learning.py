"""How a model learns and forgets: rows go to its tally, at once or when the model is next asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self, cast

from ..base.errors import CannotEstimate, SettingsError, warn
from ..data import encode
from ..data.schema import Schema
from ..data.sources import open_source
from ..families.settings import Settings
from ..tally.tally import Tally
from ..tally.together import together
from ..tally.traces import renewed_schema
from ..tally.waiting import Pending
from .held import Held
from .provenance import History, names_of
from .renewing import aged, known_slots, with_wide_stretches, without_classes, without_origin, without_traces
from .sets import NOTE, sets_of, without_sets

_ESTIMATED = ("classes", "log_prior", "beliefs", "families")


class Learning(Held):
    """The part of a model that takes rows in and lets them go; every change gives a new model."""

    def __getattr__(self, name: str) -> Any:
        """What a model that was updated row by row has not worked out yet: it is estimated when first asked for."""
        pending = self.__dict__.get("_pending")
        if name == "history":
            self.__dict__["history"] = out = self._told_since()
            return out
        if pending is None or name not in (*_ESTIMATED, "tally"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        self.__dict__.update(tally=pending.tally, schema=pending.tally.schema)
        if name != "tally":
            model = pending.tally.model(self.settings)
            self.__dict__.update({n: getattr(model, n) for n in _ESTIMATED})
        return self.__dict__[name]

    def update(self, data: Any, y: Any = None, *, weights: Any = None, new_classes: str | None = None) -> Self:
        """The model with more rows counted; the settings stay. One row as a dict costs nothing until it is asked.

        A label never seen is a class of its own from then on, with a warning unless `new_classes="allow"`;
        `new_classes="refuse"` refuses the rows (DataError), and nothing has changed.

        >>> days = tb.datasets.tennis()
        >>> model, windy = tb.textbook(days, "Play"), days.truth["asked"]["windy"]
        >>> model.update({**windy, "Play": "no"}).tally
        Tally: 15 rows · yes 9, no 6 · 4 columns
        """
        pending = self._waiting(data, y, weights)
        if pending is not None:
            return self._later(pending.update(data, new_classes), added=1)
        before = self._tally("updated")
        scored = NOTE in self.notes and weights is None
        if scored:
            rows = open_source(encode.as_table(self.schema, data), y, target=self.schema.target)
            scored = rows.engine is None  # rows that live elsewhere take the sets away
            data, y = (rows.repeatable(), None) if scored else (data, y)
        after = before.update(data, y, weights=weights, new_classes=new_classes)
        out = self._changed(after, aged(self.settings, before, after), self._after("added", after, data))
        if not scored:
            return out
        own, new = cast(Any, self), cast(Any, out)
        return cast(Self, replace(new, notes={**new.notes, NOTE: sets_of(own).with_rows(own, new, data).to_dict()}))

    def forget(self, data: Any, y: Any = None, *, weights: Any = None) -> Self:
        """The model as if these rows had never been counted; of the settings goes what only these rows had.

        Weights stay as they were fitted: `recalibrate` renews them. Rows counted apart can be given as their tally.

        >>> days = tb.datasets.tennis()
        >>> model, first = tb.textbook(days, "Play"), days.records()[0]
        >>> model.forget(first).tally, model.forget(first).update(first).tally == model.tally
        (Tally: 13 rows · yes 9, no 4 · 4 columns, True)
        """
        pending = self._waiting(data, y, weights)
        less = None if pending is None else pending.forget(data)
        if less is not None and pending is not None:
            older = -1 if pending.holds(data) else 1
            return self._later(less, renewed_schema(self.schema), older, forgotten=1)
        before = self._tally("made to forget")
        after = before.forget(data, y, weights=weights)
        settings = aged(without_traces(self.settings, before, after), before, after, forgot=True)
        return self._changed(after, settings, self._after("forgotten", after))

    def recalibrate(
        self, data: Any, y: Any = None, *, weights: Any = None, effort: str | None = None, groups: str | None = None,
        order: str | bool | None = None,
    ) -> Self:  # fmt: skip
        """The same counts under weights fitted anew on these rows, which may be old ones, new ones or both.

        Families, pairs and readings of text stay. Rows are scored by the other folds of the rows given, never by
        themselves; the fewer there are, the less their weights suit a model that has counted more. `effort`, `groups`
        and `order` are as for `tallybayes.fit`, and those of the fit before where they are left out; `order=False`
        holds no stretches or groups out.

        >>> days = tb.datasets.tennis()
        >>> model = tb.textbook(days, "Play")
        >>> fresh = model.recalibrate(days, effort="quick")
        >>> fresh.settings.calibrated.form, fresh.tally == model.tally
        ('one temperature', True)
        """
        from ..selection.choose.chosen import recalibrated

        if together(self.schema) is not None:
            raise SettingsError(
                "the weights of this model are worked out of its counts, and no rows can fit them",
                hint="update and forget renew them; for fitted weights leave calibrate='counted' away in tb.fit.",
            )
        source = open_source(data, y, weights=weights, target=self.schema.target).repeatable()
        settings = recalibrated(source, self.schema, self.settings, effort=effort, groups=groups, order=order)
        fitted: Any = self._tally("recalibrated").model(settings)
        rows = 0 if settings.calibrated is None else settings.calibrated.rows
        history = self.history.after("recalibrated", rows)
        return cast(Self, replace(fitted, notes=without_sets(self.notes), history=history))

    def with_sets(
        self, data: Any, y: Any = None, *, folds: int | str | None = None, seed: int = 0, relearn: bool | None = None
    ) -> Self:
        """The model with what `predict_set` needs, taken from these rows as `tallybayes.prediction_sets` takes it.

        It stays with the model and in its file. Rows of an update are added, scored by the model before it; `forget`
        and `recalibrate` take the sets away, since every score of them was made with the rows or weights that go.

        >>> days = tb.datasets.tennis()
        >>> model, windy = tb.textbook(days, "Play"), days.truth["asked"]["windy"]
        >>> model.with_sets(days).predict_set(windy, coverage=0.6)[0]
        ('no',)
        """
        from ..selection.sets.calibrate import prediction_sets

        found = prediction_sets(cast(Any, self), data, y, folds=folds, seed=seed, relearn=relearn)
        return cast(Self, replace(cast(Any, self), notes={**self.notes, NOTE: found.to_dict()}))

    def _with_least(self, rows: int) -> Self:
        """The copy for others that `share` speaks of: the same families on `tally.at_least(rows)`."""
        from .estimate import estimate

        before = self._tally("shared")
        after = before.at_least(rows)
        settings = without_classes(with_wide_stretches(self.settings, before, after), before, after)
        settings = without_origin(without_traces(settings, before, after, copied=True))
        known = {name: family for name, family in self.families.items() if name in after.columns}
        out: Any = estimate(after, settings.about(after.schema.names), known=known)
        return cast(Self, replace(out, notes=without_sets(self.notes), history=self.history.without_names()))

    def _changed(self, tally: Tally, settings: Settings | None = None, history: History | None = None) -> Self:
        """The model of a changed tally; by default under the same settings, whose fitted weights are a little older."""
        before = self._tally("changed")
        settings = settings or aged(self.settings, before, tally)
        history = history or self._after("added" if tally.rows > before.rows else "taken out", tally)
        out: Any = replace(tally.model(settings), notes=without_sets(self.notes), history=history)
        if settings.isotonic is not None and len(out.classes) > 2 >= len(self.classes):
            warn(
                f"the isotonic curve is for two classes and is out of use now that there are {len(out.classes)}. "
                "Hint: model.recalibrate(rows) fits weights without it."
            )
        return cast(Self, out)

    def _waiting(self, data: Any, y: Any, weights: Any) -> Pending | None:
        """Where a row that can wait would wait; None for rows that are counted at once."""
        plain = y is None and weights is None and self.schema.weights is None and not self.schema.receipts
        plain = plain and NOTE not in self.notes  # of sets, each row has its score
        plain = plain and together(self.schema) is None
        if not (plain and isinstance(data, Mapping) and encode.is_row(self.schema, data)):
            return None
        pending: Pending | None = self.__dict__.get("_pending")
        if pending is not None and not pending.full:
            return pending
        return None if self.tally is None else Pending(self.tally, known=known_slots(self.settings, self.tally))

    def _later(
        self, pending: Pending, schema: Schema | None = None, older: int = 1, *, added: int = 0, forgotten: int = 0
    ) -> Self:
        """The model of a tally that nobody has read yet, whose fitted weights are a little older."""
        out = object.__new__(type(self))
        known = {"schema": schema or self.schema, "settings": self.settings.after(older), "notes": self.notes}
        told = self.__dict__.get("history")
        history, more, less = self.__dict__["_since"] if told is None and "_since" in self.__dict__ else (told, 0, 0)
        out.__dict__.update(known, _pending=pending, _since=(history, more + added, less + forgotten))
        return out

    def _told_since(self) -> History:
        """The history of a model that was updated row by row, worked out when it is asked for."""
        history, added, forgotten = self.__dict__.get("_since", (None, 0, 0))
        history = History() if history is None else history  # pickled before models had one
        history = history.after("added", added) if added else history
        return history.after("forgotten", forgotten) if forgotten else history

    def _after(self, what: str, tally: Tally, data: Any = None) -> History:
        """The history once so many rows have come or gone."""
        return self.history.after(what, abs(tally.rows - self._tally("changed").rows), names_of(data))

    def _tally(self, verb: str) -> Tally:
        if self.tally is None:
            raise CannotEstimate(
                f"a model written down without a strength cannot be {verb}",
                hint="say how many rows it is worth: tb.Model.written(prior, tables, strength=100).",
            )
        return self.tally
