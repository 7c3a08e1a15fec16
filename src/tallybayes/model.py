"""The model: what a tally makes one believe, and the answers that follow.

θ = estimate(T, settings)        pure and repeatable; smoothing, priors and families live only here
S = b + Σ parts(φ, θ)            one part per column and class; the parts before the sum are the explanation
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from . import canon, encode, scorer
from .block import Block
from .errors import CannotEstimate, DataError, SettingsError, did_you_mean, excerpt
from .explain import LOGS, Contribution, Explanation
from .families import Belief, Family
from .families.base import Table
from .graph import Graph, model_html
from .linear import LinearView, linear_view
from .numerics import Floats, Ints, log_sum_exp, safe_log
from .odds import OddsTable, odds_table
from .prior import class_prior, class_totals, natural_order
from .schema import Schema
from .settings import Settings
from .sources import Batch, open_source
from .tally import Tally
from .written import (
    Tables,
    fixed_beliefs,
    prior_probabilities,
    strong_settings,
    written_schema,
    written_tables,
)


@dataclass(frozen=True, eq=False)
class Model:
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
    tally: Tally | None = None  # None: the model was written down without a strength
    notes: Mapping[str, Any] = field(default_factory=dict)  # what else is to be remembered, kept in the model's file

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
        return cls(schema, tuple(labels), log_prior, beliefs, {}, Settings())

    # ---- answers

    def predict(self, rows: Any, *, prior: Any = None) -> np.ndarray[Any, Any]:
        """The most probable class of each row, as the labels went in."""
        best = np.argmax(self.predict_log_proba(rows, prior=prior), axis=1)
        return self._labels(best)

    def predict_proba(self, rows: Any, *, prior: Any = None) -> Floats:
        """P(class given row), rows × classes in the order of `classes`; each row sums to one."""
        return np.exp(self.predict_log_proba(rows, prior=prior))

    def predict_log_proba(self, rows: Any, *, prior: Any = None) -> Floats:
        """log P(class given row)."""
        log_prior = self._log_prior(prior)
        return scorer.log_posterior(self.log_joint(rows, prior=prior), log_prior)

    def log_joint(self, rows: Any, *, prior: Any = None) -> Floats:
        """log P(class) + Σ log P(value given class): the score before it is normalised."""
        log_prior = self._log_prior(prior)
        return np.concatenate([self._scores(log_prior, blocks, batch.rows) for batch, blocks in self._read(rows)])

    def log_density(self, rows: Any) -> Floats:
        """log P(row), the class summed out: how likely the model finds each row."""
        weighted = {n for n, w in self.settings.weights.items() if w != 1.0}
        weighted |= {n for n, b in self.settings.lengths.items() if b != 0.0}
        readings = [n for n, b in self.beliefs.items() if not b.density or n in weighted]
        if readings:
            raise SettingsError(
                f"column {readings[0]!r} is weighted, or read by a family that is no probability distribution",
                hint="take weight 1 and the family 'multinomial' or 'bernoulli' for this column.",
            )
        out = []
        for batch, blocks in self._read(rows):
            joint = self._scores(self.log_prior, blocks, batch.rows)
            out.append(log_sum_exp(joint) + sum((b.base(blocks[n]) for n, b in self.beliefs.items()), np.zeros(1)))
        return np.concatenate(out)

    def parts(self, rows: Any) -> dict[str, Floats]:
        """What each column says, before weights: log P(value given class), rows × classes."""
        pieces = [self._parts(blocks) for _, blocks in self._read(rows)]
        return {n: np.concatenate([p[n] for p in pieces]) for n in self.beliefs}

    def explain(self, row: Any, number: int = 0, *, log: str = "natural", prior: Any = None) -> Explanation:
        """Why one row gets its answer: the prior and every column and word, adding up to the score.

        `log` is "natural", "2", "10" or "decibans"; `number` picks the row where `row` is a table.
        """
        if str(log) not in LOGS:
            raise SettingsError(f"log={log!r}", hint="take " + ", ".join(map(repr, LOGS)) + ".")
        batch = self._row(row, number)
        encode.check_columns(self.schema, batch)
        blocks = encode.bags(encode.blocks(self.schema, batch))
        unit = LOGS[str(log)]
        lines = [Contribution("prior", "", self._log_prior(prior) / unit)]
        for name, belief in self.beliefs.items():
            weight = float(np.max(scorer.factor(self.settings, name, blocks[name])))
            for term in belief.terms(blocks[name], 0):
                parts = term.parts * weight if weight else np.zeros_like(term.parts)
                lines.append(Contribution(name, term.label, parts / unit, term.note))
        explanation = Explanation(self.classes, tuple(lines), np.zeros(len(self.classes)), str(log))
        log_p = scorer.log_posterior(explanation.total[None, :] * unit, self._log_prior(prior))[0]
        return replace(explanation, probabilities=np.exp(log_p))

    def sample(self, n: int, seed: int | np.random.Generator | None = None) -> pa.Table:
        """Rows drawn by the generative story: a class from P(y), then each column from P(x given y)."""
        rng = np.random.default_rng(seed)
        p = np.exp(self.log_prior)
        labels: Ints = rng.choice(len(self.classes), size=n, p=p / p.sum())
        drawn = [name for name in self.beliefs if self.schema[name].kind != "pair"]
        columns = {name: self.beliefs[name].sample(labels, rng) for name in drawn}
        return pa.table({**columns, self.schema.target: pa.array(list(self.classes)).take(pa.array(labels))})

    # ---- other rows

    def update(self, data: Any, y: Any = None, *, weights: Any = None) -> Model:
        """The model with more rows counted; the settings stay."""
        return self._changed(self._tally("updated").update(data, y, weights=weights))

    def forget(self, data: Any, y: Any = None, *, weights: Any = None) -> Model:
        """The model as if these rows had never been counted; the settings stay."""
        return self._changed(self._tally("made to forget").forget(data, y, weights=weights))

    def _changed(self, tally: Tally) -> Model:
        """The model of a changed tally, whose fitted weights are a little older."""
        settings = self.settings
        if settings.calibrated is not None:
            assert self.tally is not None
            since = settings.calibrated.changed + abs(tally.rows - self.tally.rows)
            settings = replace(settings, calibrated=replace(settings.calibrated, changed=since))
        return replace(tally.model(settings), notes=self.notes)

    def _tally(self, verb: str) -> Tally:
        if self.tally is None:
            raise CannotEstimate(
                f"a model written down without a strength cannot be {verb}",
                hint="say how many rows it is worth: tb.Model.written(prior, tables, strength=100).",
            )
        return self.tally

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file for `tb.load`; a file of that name is replaced at once or not at all."""
        from . import modelfile

        modelfile.save(path, modelfile.to_bytes(self))

    def export(self, path: str | os.PathLike[str] | None = None, format: str | None = None) -> bytes:
        """The model as "sealed" scorer, "json", "onnx" or model "card", also written to the path if there is one."""
        from .export import export

        return export(self, path, format)

    # ---- views

    def parameters(self) -> tuple[int, int]:
        """How many numbers the model has: raw, and free once those that follow from others are left out."""
        counts = [belief.parameters() for belief in self.beliefs.values()]
        c = len(self.classes)
        return c + sum(raw for raw, _ in counts), c - 1 + sum(free for _, free in counts)

    def linear(self) -> LinearView:
        """W, b and a centre x₀ with softmax(W·(x − x₀) + b) = posterior, where every column has such a view."""
        bent = [n for n, b in self.settings.lengths.items() if b != 0.0]
        if bent:
            raise SettingsError(
                f"the evidence of column {bent[0]!r} depends on the length of the text, which no linear view knows",
                hint="take settings without lengths: tally.model(tb.Settings(…)).",
            )
        return linear_view(self.log_prior, self.beliefs, self.settings.weights, self.classes, self._blocks)

    def table(self, column: str) -> Table:
        """The conditional table of one column: P(value given class), or a family's parameters."""
        if column not in self.beliefs:
            raise SettingsError(
                f"the model has no column {column!r}",
                hint=did_you_mean(column, self.beliefs) + f"it has {excerpt(self.beliefs) or 'none'}.",
            )
        return replace(self.beliefs[column].table(), classes=self.classes)

    def odds(self, column: str, label: Any, against: Any = None, *, top: int = 20, least: float = 0.0) -> OddsTable:
        """The most telling values or words for a class: how many times likelier they are there than elsewhere.

        Ratios are infinite where another class has probability 0, as it may without smoothing.
        """
        table = self.table(column)
        if not table.title.startswith("P("):
            raise SettingsError(
                f"column {column!r} has no table of probabilities under its family",
                hint="odds need a category, words, bins or levels.",
            )
        at = [self._class_number(c) for c in ([label] if against is None else [label, against])]
        other = at[1] if len(at) == 2 else None
        return odds_table(column, table, np.exp(self.log_prior), at[0], other, top, least)

    def _class_number(self, label: Any) -> int:
        names = [str(canon.text(c)) for c in self.classes]
        text = str(canon.text(label))
        if text not in names:
            raise SettingsError(
                f"there is no class {label!r}", hint=did_you_mean(text, names) + f"the classes are {excerpt(names)}."
            )
        return names.index(text)

    def prior(self) -> dict[Any, float]:
        """P(class)."""
        return dict(zip(self.classes, np.exp(self.log_prior).tolist(), strict=True))

    def graph(self) -> Graph:
        """The graphical model: the class, and an arrow from it to every column, with their tables."""
        tables = {name: belief.table() for name, belief in self.beliefs.items()}
        return Graph(self.schema.target, tuple(map(str, self.classes)), np.exp(self.log_prior), tables)

    def __repr__(self) -> str:
        prior = ", ".join(f"{canon.printable(c, 20)} {p:.3g}" for c, p in list(self.prior().items())[:6])
        more = ", …" if len(self.classes) > 6 else ""
        origin = "written by hand" if self.tally is None else f"{self.tally.rows:,} rows"
        lines = [f"Model: {origin} · P({canon.printable(self.schema.target)}): {prior}{more}"]
        described = [(canon.printable(name, 40), what) for name, what in self._described()]
        width = max((len(name) for name, _ in described), default=0)
        lines += [f"  {name:<{width}}  {what}" for name, what in described]
        if self.settings.calibrated is not None:
            lines.append(f"weights: {self.settings.calibrated}")
        return "\n".join(lines)

    def _described(self) -> Iterator[tuple[str, str]]:
        for name, belief in self.beliefs.items():
            family = self.families[name].describe() if name in self.families else "written"
            weight = self.settings.weights.get(name)
            table = belief.table()
            count = len(table.rows)
            size = f", {count} {table.unit if count != 1 else table.unit[:-1]}" if table.unit else ""
            length = self.settings.lengths.get(name)
            by = "" if weight is None else f", weight {weight:.3g}"
            yield name, family + size + by + ("" if not length else f" × tokens^{length:.2f}")

    def _repr_html_(self) -> str:
        return model_html(repr(self), self.graph())

    # ---- reading rows

    def _row(self, rows: Any, number: int) -> Batch:
        """One row as a batch of one."""
        seen = 0
        for batch in open_source(self._table(rows)).batches():
            if seen <= number < seen + batch.rows:
                return batch.slice(number - seen, number - seen + 1)
            seen += batch.rows
        raise DataError(
            f"there is no row {number} among {seen} (the first is row 0)",
            hint="give the number of a row that exists.",
        )

    def _table(self, rows: Any) -> Any:
        """A dict that is one row, told from a dict of columns by what stands in the columns of the model."""
        if hasattr(rows, "to_dict") and hasattr(rows, "index") and not hasattr(rows, "columns"):
            rows = rows.to_dict()  # a row of a pandas frame
        if not isinstance(rows, Mapping):
            return rows
        if not rows:
            return [rows]
        given = [(c.kind, rows[n]) for c in self.schema.counted for n in c.inputs if rows.get(n) is not None]
        return [rows] if any(_is_one_value(kind, value) for kind, value in given) else rows

    def _read(self, rows: Any) -> Iterator[tuple[Batch, dict[str, Block]]]:
        first = True
        for batch in open_source(self._table(rows)).batches():
            if first and self.beliefs and (batch.rows or batch.columns):
                encode.check_columns(self.schema, batch)
            first = False
            yield batch, encode.blocks(self.schema, batch)

    def _blocks(self, rows: Any) -> list[dict[str, Block]]:
        return [blocks for _, blocks in self._read(rows)]

    def _scores(self, log_prior: Floats, blocks: Mapping[str, Block], rows: int) -> Floats:
        if not self.beliefs:
            return np.tile(log_prior, (rows, 1))
        return scorer.scores(log_prior, self._parts(blocks), self.settings, blocks)

    def _parts(self, blocks: Mapping[str, Block]) -> dict[str, Floats]:
        return {name: belief.parts(blocks[name]) for name, belief in self.beliefs.items()}

    def _log_prior(self, prior: Any) -> Floats:
        if prior is None:
            return self.log_prior
        names = tuple(str(canon.text(c)) for c in self.classes)
        totals = np.zeros(len(names)) if self.tally is None else class_totals(self.tally, names)
        return safe_log(class_prior(replace(self.settings, prior=prior), names, totals))

    def _labels(self, numbers: Ints) -> np.ndarray[Any, Any]:
        if all(isinstance(c, (int, float)) for c in self.classes):
            return np.array(self.classes)[numbers]
        labels = np.empty(len(self.classes), dtype=object)
        labels[:] = self.classes
        return labels[numbers]


def _is_one_value(kind: str, value: Any) -> bool:
    """Whether this is the value of one row: a lone number or text; for a bag or vector a flat list, or a dict."""
    if isinstance(value, (str, bytes)) or not hasattr(value, "__len__"):
        return True
    if kind not in ("bag", "vector"):
        return False
    if isinstance(value, Mapping):
        return True
    if hasattr(value, "shape"):
        return len(value.shape) == 1
    return all(isinstance(v, str) or not hasattr(v, "__len__") for v in value if v is not None)
