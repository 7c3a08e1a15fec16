"""The model: what a tally makes one believe, and the answers that follow.

θ = estimate(T, settings)        pure and repeatable; smoothing, priors and families live only here
S = b + Σ parts(φ, θ)            one part per column and class; the parts before the sum are the explanation
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base import canon
from ..base.arrays import Floats, safe_log
from ..base.errors import SettingsError
from ..data.schema import Schema
from ..data.sources import open_source
from ..families import Belief, Family
from ..families.settings import Settings
from ..tally.tally import Tally
from . import one_row, posterior
from .generative import Generative
from .learning import Learning
from .posterior import decide
from .prior import natural_order, prior_probabilities
from .provenance import History
from .scoring import Scoring
from .views import Views
from .written import Tables, fixed_beliefs, strong_settings, written_schema, written_tables

if TYPE_CHECKING:
    from ..explain.explanation import Explanation
    from ..explain.what_if import WhatIf
    from ..selection.measure.importance import Importance
    from ..store.reveals import Reveals
    from ..store.share import SharedCopy
    from .sets import PredictedSets
    from .watching.watch import Watch


@dataclass(frozen=True, eq=False, repr=False)
class Model(Views, Learning, Generative, Scoring):
    """A naive Bayes classifier. Make one with `tally.model()`, `tb.fit` or `Model.written`; it never changes.

    >>> import tallybayes as tb
    >>> schema = tb.Schema([tb.Column("Sky", "category")], target="Play")
    >>> model = tb.count({"Sky": ["sunny", "rainy", "sunny"], "Play": ["yes", "no", "yes"]}, schema).model()
    >>> model.predict({"Sky": "rainy"}).tolist()
    ['no']
    """

    schema: Schema
    classes: tuple[Any, ...]  # labels as they went in, in the order of the probability columns
    log_prior: Floats
    beliefs: Mapping[str, Belief]
    families: Mapping[str, Family]
    settings: Settings
    # None: the model was written down without a strength. Made by a factory, or the class would have a `tally`, too
    tally: Tally | None = field(default_factory=lambda: None)
    notes: Mapping[str, Any] = field(default_factory=dict)  # what else is to be remembered, kept in the model's file
    history: History = field(default_factory=History.begun)  # what `provenance` tells, kept in the file, too

    @classmethod
    def written(
        cls,
        prior: Mapping[Any, float],
        tables: Tables | None = None,
        *,
        kinds: Mapping[str, str] | None = None,
        strength: float | None = None,
        target: str = "class",
    ) -> Model:
        """A model from probabilities that a person gives: {class: P} and {column: {class: {value: P}}}.

        Tables may be partial: values without a probability are no evidence. `kinds={"words": "bag"}` makes a column
        a bag of words. With `strength` the model is worth that many rows and can be updated like any other.
        """
        given = prior_probabilities(prior)
        labels = sorted(prior, key=natural_order)
        names = tuple(str(canon.text(c)) for c in labels)
        given = {c: given[c] for c in names}
        each = written_tables(tables or {}, names)
        schema = written_schema(each, kinds or {}, target)
        schema = schema._with(label_type=canon.label_type(labels[0]))
        if strength is not None:
            return Tally.zero(schema).model(strong_settings(given, each, strength))
        log_prior = safe_log(np.array([given[c] for c in names]))
        beliefs = fixed_beliefs(schema, each, len(names))
        return cls(schema, tuple(labels), log_prior, beliefs, {}, Settings(), None)

    # ---- answers

    def predict(self, rows: Any, *, prior: Any = None, unsure_below: float | None = None, costs: Any = None) -> Any:
        """The most probable class of each row, as the labels went in.

        With `unsure_below=0.8` rows whose answer is less probable get None. With `costs={("ham", "spam"): 10}`, what
        it costs to call a ham spam, the answer is the one that costs least on average (others 1, right ones 0).
        A Spark frame comes back as a frame: the same rows with `prediction` and a column `P(class)` for each class.

        >>> days = tb.datasets.tennis()
        >>> model, windy = tb.textbook(days, "Play"), days.truth["asked"]["windy"]
        >>> model.predict(windy).tolist(), model.predict(windy, unsure_below=0.9).tolist()
        (['no'], [None])
        """
        if costs is None and unsure_below is None and (joint := self._of_one(rows, prior)) is not None:
            return self._label_array[[joint.index(max(joint))]]
        source = open_source(self.table_of(rows))
        if source.engine is not None:
            if unsure_below is not None or costs is not None:
                raise SettingsError(
                    "unsure_below and costs are not applied to rows that live elsewhere",
                    hint="decide there, from the columns P(class) of model.predict(frame).",
                )
            return source.engine.predict(self, prior)
        if costs is None and unsure_below is None:
            start = self._start(prior)
            numbers = self._each(source, lambda blocks, n: self._best(blocks, n, start))
            return posterior.named(numbers, self._label_array, start)
        best = decide(self.predict_proba(source, prior=prior), self.classes, unsure_below, costs)
        if unsure_below is None:
            return self._label_array[best]
        out = np.empty(len(self.classes) + 1, dtype=object)  # its last stays None
        out[:-1] = self.classes
        return np.asarray(out[best])

    def predict_proba(self, rows: Any, *, prior: Any = None) -> Floats:
        """P(class given row), rows × classes in the order of `classes`; each row sums to one.

        >>> days = tb.datasets.tennis()
        >>> model, windy = tb.textbook(days, "Play"), days.truth["asked"]["windy"]
        >>> model.classes, model.predict_proba(windy).round(3).tolist()
        (('no', 'yes'), [[0.72, 0.28]])
        """
        joint = self._of_one(rows, prior)
        return np.exp(self._log_proba(rows, prior)) if joint is None else one_row.probabilities(joint)

    def predict_log_proba(self, rows: Any, *, prior: Any = None) -> Floats:
        """log P(class given row)."""
        joint = self._of_one(rows, prior)
        return self._log_proba(rows, prior) if joint is None else one_row.log_probabilities(joint)

    def log_joint(self, rows: Any, *, prior: Any = None) -> Floats:
        """log P(class) + Σ log P(value given class): the score before it is normalised, rows × classes.

        Up to what all classes share, which no answer needs; `log_density` and `log_likelihood` have it.

        >>> days = tb.datasets.tennis()
        >>> model, windy = tb.textbook(days, "Play"), days.truth["asked"]["windy"]
        >>> model.log_joint(windy).round(3).tolist()
        [[-4.005, -4.95]]
        """
        joint = self._of_one(rows, prior)
        return self._log_joint(rows, self._start(prior)) if joint is None else np.array([joint])

    def predict_set(
        self, rows: Any, coverage: float = 0.9, *, by_class: bool = False, smoothed: bool = False, empty: bool = False,
        seed: int | None = None, calibration: Any = None, exact: bool = False,
    ) -> PredictedSets:  # fmt: skip
        """For each row a set of classes that holds the right one as often as `coverage` says; see `with_sets`.

        `by_class` keeps the promise for every class by itself. The likeliest class is always in, unless `empty`;
        `smoothed` draws lots (by `seed`) among ties. `calibration` are the rows to go by where the model has no sets,
        all of which `exact=True` looks at again for every row and class: full conformal prediction.

        >>> days = tb.datasets.tennis()
        >>> model, windy = tb.textbook(days, "Play"), days.truth["asked"]["windy"]
        >>> model.with_sets(days).predict_set(windy, coverage=0.9)[0]
        ('no', 'yes')
        """
        from .sets import predicted_sets

        return predicted_sets(self, rows, coverage, by_class, smoothed, empty, seed, calibration, exact)

    def parts(self, rows: Any) -> dict[str, Floats]:
        """What each column says, before weights: log P(value given class), rows × classes."""
        pieces = list(self._each(rows, lambda blocks, _: self._parts(blocks)))
        return {n: np.concatenate([p[n] for p in pieces]) for n in self.beliefs}

    def explain(self, row: Any, number: int = 0, *, log: str = "natural", prior: Any = None) -> Explanation:
        """Why one row gets its answer: the prior and every column and word, adding up to the score.

        `log` is "natural", "2", "10" or "decibans"; `number` picks the row where `row` is a table.

        >>> days = tb.datasets.tennis()
        >>> model, windy = tb.textbook(days, "Play"), days.truth["asked"]["windy"]
        >>> model.explain(windy)
        no, probability 0.7201 (natural logs)
                                no      yes     Σ no    Σ yes
        prior              -1.0296  -0.4418  -1.0296  -0.4418
        Outlook: sunny     -0.6931  -1.3863  -1.7228  -1.8281
        Temperature: cool  -1.3863  -1.0986  -3.1091  -2.9267
        Humidity: high     -0.3365  -1.0116  -3.4455  -3.9383
        Wind: strong       -0.5596  -1.0116  -4.0051  -4.9499
        probability                           0.7201   0.2799
        rounded, so that the last digits of a sum may differ
        """
        from ..explain.explanation import explained

        return explained(self, self._one(row, number), str(log), self._start(prior), prior)

    def what_if(self, row: Any, to: Any = None, number: int = 0, *, fixed: Sequence[str] = ()) -> WhatIf:
        """The smallest set of changed values that gives one row another answer, or the class `to`; print it.

        Values change to others that were counted, numbers within the range of those; of a text or a bag, words of the
        vocabulary are removed or added. Columns of the data that are named in `fixed` stay as they are.

        >>> days = tb.datasets.tennis()
        >>> model, windy = tb.textbook(days, "Play"), days.truth["asked"]["windy"]
        >>> model.what_if(windy)
        1 change turns no into yes: probability of yes 0.2799 → 0.7216
        change                     log-odds
        Outlook: sunny → overcast   +1.8971
        """
        from ..explain.what_if import what_if

        batch, kept = self._row(row, number), [fixed] if isinstance(fixed, str) else fixed
        return what_if(self, batch, self._encoded(batch), None if to is None else self.class_number(to), kept)

    def importance(self, data: Any = None, y: Any = None, *, weights: Any = None) -> Importance:
        """What each column is worth: bits that it says alone, and what log loss and accuracy lose without it; print it.

        Give labelled rows that the model has not seen, with `y` or `weights` beside them as for `tb.evaluate`. Rows
        that it was counted from are scored by folds; without rows there are only bits.

        >>> days = tb.datasets.tennis()
        >>> tb.textbook(days, "Play").importance()
        What each column is worth, by the 14 rows counted: no rows were given, so bits alone
        column        bits
        Humidity     0.083
        Outlook      0.079
        Wind         0.029
        Temperature  0.013
        bits: what a column says alone
        """
        from ..selection.measure.importance import importance

        return importance(self, data, y, weights=weights)

    def watch(self, path: str | os.PathLike[str] | None = None, *, unsure_below: float = 0.8) -> Watch:
        """The model as it is used in production: it answers as before and counts what it is asked.

        Rows, values never seen, missing ones, numbers beyond the range learnt, answers by class, and answers less
        probable than `unsure_below`: `watch.report()`, `watch.prometheus()`, `watch.shift()`. With a `path` that
        `watch.save` wrote it goes on counting from there.

        >>> days = tb.datasets.tennis()
        >>> model, windy = tb.textbook(days, "Play"), days.truth["asked"]["windy"]
        >>> watch = model.watch(unsure_below=0.9)
        >>> watch.predict({**windy, "Outlook": "hail"}).tolist(), watch.report().outside()
        (['no'], 'Outlook 1 never seen')
        """
        from .watching.watch import Watch

        out = Watch(self, unsure_below)
        if path is not None:
            out._load(path)
        return out

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file for `tb.load`; a file of that name is replaced at once or not at all.

        >>> days = tb.datasets.tennis()
        >>> model, windy = tb.textbook(days, "Play"), days.truth["asked"]["windy"]
        >>> model.save("tennis.tb.parquet")
        >>> tb.load("tennis.tb.parquet").predict(windy).tolist()
        ['no']
        """
        from ..store import model_file

        model_file.save(path, model_file.to_bytes(self))

    def export(self, path: str | os.PathLike[str] | None = None, format: str | None = None) -> bytes:
        """The model as "sealed" scorer, "json", "onnx" or model "card", also written to the path if there is one.

        >>> days = tb.datasets.tennis()
        >>> model, windy = tb.textbook(days, "Play"), days.truth["asked"]["windy"]
        >>> sealed = model.export("tennis.sealed", "sealed")
        >>> tb.load_sealed("tennis.sealed").predict(windy).tolist()
        ['no']
        """
        from ..store.export import export

        return export(self, path, format)

    def reveals(self, below: int = 5) -> Reveals:
        """What can be read out of a file of this model, column by column, what fewest rows have first; print it.

        Values, words and cells are listed by name where fewer than `below` rows have them.
        """
        from ..store.reveals import revealed

        return revealed(self, below)

    def share(self, at_least: int = 5) -> SharedCopy:
        """A copy for others without what fewer rows have (see `Tally.at_least`), as `.model`; print what it has lost.

        `.measured(rows)` says how the answers to some rows change.

        >>> days = tb.datasets.tennis()
        >>> tb.textbook(days, "Play").share(at_least=5).model.tally
        Tally: 14 rows · yes 9, no 5 · 4 columns · a copy without what fewer than 5 rows have
        """
        from ..store.share import SharedCopy

        return SharedCopy(self, self._with_least(at_least))

    def to_sql(self, table: str | Sequence[str], dialect: str = "duckdb", **how: Any) -> Any:
        """The model as SQL for "duckdb", "sqlite", "spark" or "postgres": `prediction` and `P(class)` of every row.

        `keep` names the columns that come along, by default those that the model reads. Texts are cut by DuckDB and
        PostgreSQL, or read from tables of tokens, `tokens={column: table}`, with columns row (the `row_id` of the
        table), token and count. `weights_table` names the table of weights, by default after what it holds. Run the
        statements of `setup`, or `transaction` that does all or nothing, then `query`.

        >>> days = tb.datasets.tennis()
        >>> plan = tb.textbook(days, "Play").to_sql("days", "sqlite")
        >>> plan.setup, plan.query.count("P(yes)")
        ((), 1)
        """
        from ..store.sql.query import sql_scorer

        return sql_scorer(self.schema, self.classes, self.start, self.beliefs, self.settings, table, dialect, **how)
