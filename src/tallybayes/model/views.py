"""How a model shows what it is made of: its tables, what speaks most for a class, the linear view, the graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ..base import canon
from ..base.arrays import Floats, log_sum_exp
from ..base.errors import SettingsError, unknown
from ..base.show import Page
from ..data.blocks import Block
from ..families import Belief, Linear
from ..families.base import Table
from ..tally.together import TOGETHER, together
from . import posterior
from .counted import told
from .graph import Graph, model_html
from .held import Held
from .odds import OddsTable, dated, never_counted, odds_table, stretches
from .provenance import Provenance

if TYPE_CHECKING:
    from ..explain.plots import Plots
    from .model import Model


class Views(Held):
    """The part of a model that shows what it is made of."""

    if TYPE_CHECKING:
        _blocks: Callable[[Any], list[dict[str, Block]]]

    @property
    def _whole(self) -> Model:
        """The model that these are views of."""
        return cast("Model", self)

    def parameters(self) -> tuple[int, int]:
        """How many numbers the model has: raw, and free once those that follow from others are left out.

        >>> days = tb.datasets.tennis()
        >>> tb.textbook(days, "Play").parameters()
        (22, 13)
        """
        counts = [belief.parameters() for belief in self.beliefs.values()]
        c = len(self.classes)
        return c + sum(raw for raw, _ in counts), c - 1 + sum(free for _, free in counts)

    def linear(self) -> LinearView:
        """W, b and a centre x₀ with softmax(W·(x − x₀) + b) = posterior, where every column has such a view.

        >>> days = tb.datasets.tennis()
        >>> model, windy = tb.textbook(days, "Play"), days.truth["asked"]["windy"]
        >>> view = model.linear()
        >>> bool(np.allclose(view.predict_proba(windy), model.predict_proba(windy)))
        True
        """
        bent = [n for n, b in self.settings.lengths.items() if b != 0.0]
        curved = self.settings.curves
        if bent or curved:
            raise SettingsError(
                f"the evidence of column {bent[0]!r} depends on the length of the text, which no linear view knows"
                if bent
                else f"the settings bend the whole score ({curved[0]}), which no linear view knows",
                hint="take settings without lengths, lead and isotonic: tally.model(tb.Settings(…)).",
            )
        return linear_view(self.start, self.beliefs, self.settings.weights, self.classes, self._blocks)

    def table(self, column: str) -> Table:
        """The conditional table of one column: P(value given class), or a family's parameters.

        >>> days = tb.datasets.tennis()
        >>> tb.textbook(days, "Play").table("Wind")
        P(value given class)        no       yes
        strong                0.571429  0.363636
        weak                  0.428571  0.636364
        """
        if column not in self.beliefs:
            raise unknown(SettingsError, f"the model has no column {column!r}", column, self.beliefs)
        return dated(self._whole, column, replace(self.beliefs[column].table(), classes=self.classes))

    def odds(
        self, column: str, label: Any, against: Any = None, *, top: int = 20, least: float = 0.0, by: str = "ratio"
    ) -> OddsTable:
        """The most telling values or words for a class: how many times likelier they are there than elsewhere.

        With `by="probability"` they are simply the most frequent ones of the class, by P(value given class).
        Ratios are infinite where another class has probability 0, as it may without smoothing. A number that its
        family reads as a curve is told by stretches of the line and the rows counted there. Values and levels that no
        row has are left out: all that is known of them is how many rows the classes have.

        >>> days = tb.datasets.tennis()
        >>> tb.textbook(days, "Play").odds("Outlook", "yes")
        Outlook: times likelier in yes than in the others
          overcast      3.333×   0.417 against 0.125
          rain         0.8889×   0.333 against 0.375
          sunny           0.5×   0.25 against 0.5
        """
        table = self.table(column)
        if not table.title.startswith("P("):
            found = stretches(self._whole, column)
            if found is None:
                raise SettingsError(
                    f"column {column!r} has no table of probabilities under its family",
                    hint="odds need a category, words, or a number whose cells were counted.",
                )
            table = found[1]
        elif table.unit == "values" and self.tally is not None:
            table = replace(table, empty=never_counted(self._whole, column, table))
        at = [self.class_number(c) for c in ([label] if against is None else [label, against])]
        other = at[1] if len(at) == 2 else None
        return odds_table(column, table, np.exp(self.log_prior), at[0], other, top, least, by)

    def class_number(self, label: Any) -> int:
        """The place of a class among `classes`."""
        names = [str(canon.text(c)) for c in self.classes]
        text = str(canon.text(label))
        if text not in names:
            raise unknown(SettingsError, f"there is no class {label!r}", text, names)
        return names.index(text)

    @property
    def start(self) -> Floats:
        """Where the score of each class starts: log P(class), and its offset if the settings have one."""
        if not self.settings.offsets:
            return self.log_prior
        return self.log_prior + posterior.offsets(self.settings, self.classes)

    @property
    def counted(self) -> Model:
        """The model by its counts alone: the same tally and families, and nothing that was fitted to held-out rows.

        No weights, corrections, offsets or curves, no cells counted together; and no pair of columns whose counts are
        not asked anyway, since a correction of weight 0 is all it says.

        >>> days = tb.datasets.tennis()
        >>> model = tb.fit(days, "Play", settings={"weights": {"Wind": 0.5}})
        >>> model.settings.weights, model.counted.settings.weights
        ({'Wind': 0.5}, {})
        """
        from .estimate import estimate

        settings = self.settings.without(fitted=True)
        if self.tally is None:
            return replace(self._whole, settings=settings)
        own = self.settings.corrections
        gone = {c.name for c in self.schema.counted if c.of and c.name in own and own[c.name].weight == 0}
        gone |= {c.name for c in self.schema.columns if c.kind == TOGETHER}
        tally = self.tally
        if gone:
            schema = self.schema._with(columns=[c for c in self.schema.columns if c.name not in gone])
            columns = {n: c for n, c in tally.columns.items() if n not in gone}
            tally = replace(tally, schema=schema, columns=columns, labels=tally.labels.without(TOGETHER))
            settings = settings.about(schema.names)
        return replace(estimate(tally, settings, known=self.families), notes=self.notes, history=self.history)

    @property
    def provenance(self) -> Provenance:
        """Where the model comes from: when it was made, from how many rows of which files, how its fit was judged.

        Times, names of files and what has happened since are no part of what a model is: digests do not know them.
        """
        return Provenance.of(self._whole)

    def prior(self) -> dict[Any, float]:
        """P(class).

        >>> days = tb.datasets.tennis()
        >>> {label: round(p, 3) for label, p in tb.textbook(days, "Play").prior().items()}
        {'no': 0.357, 'yes': 0.643}
        """
        return dict(zip(self.classes, np.exp(self.log_prior).tolist(), strict=True))

    @property
    def plot(self) -> Plots:
        """Pictures: plot.waterfall(row), plot.nomogram(), plot.column(name), plot.words(name); needs matplotlib."""
        from ..explain.plots import Plots

        return Plots(self._whole)

    def graph(self) -> Graph:
        """The graphical model: the class, and an arrow from it to every column, with their tables."""
        tables = {name: belief.table() for name, belief in self.beliefs.items()}
        return Graph(self.schema.target, tuple(map(str, self.classes)), np.exp(self.log_prior), tables)

    def __repr__(self) -> str:
        prior = ", ".join(f"{canon.printable(c, 20)} {p:.3g}" for c, p in list(self.prior().items())[:6])
        more = ", …" if len(self.classes) > 6 else ""
        origin = "written by hand" if self.tally is None else canon.many(self.tally.rows, "row")
        title = f"Model: {origin} · P({canon.printable(self.schema.target)}): {prior}{more}"
        page = Page(title, [[canon.printable(name, 40), what] for name, what in self._described()], left=2, indent=2)
        calibrated = self.settings.calibrated
        if calibrated is None:
            return f"{page}\nweights: {counted}" if (counted := told(self.schema, self.settings)) else str(page)
        noticed = f"\n{calibrated.note}" if calibrated.note else ""
        return f"{page}\nweights: {calibrated}{noticed}"

    def _described(self) -> Iterator[tuple[str, str]]:
        counted = together(self.schema) is not None
        for name, belief in self.beliefs.items():
            family = self.families[name].describe() if name in self.families else "written"
            own = self.settings.corrections.get(name)
            weighted = own is not None or name in self.settings.weights
            table = belief.table()
            count = len(table.rows)
            size = f", {count} {table.unit if count != 1 else table.unit[:-1]}" if table.unit else ""
            length = self.settings.lengths.get(name)
            by = f", weight {self.settings.weight_of(name):.3g}" if weighted else ""
            term = "numbers of the counted term" if counted else "corrections"
            corrected = "" if own is None else f" and {np.count_nonzero(own.added):,} {term}"
            if self.settings.weight_of(name) == 0:  # whatever the family, it is not asked
                alone = "by itself not used" if counted else "counts not used"
                yield name, "not used" if own is None else f"{alone}{by}{corrected}"
                continue
            yield name, family + size + by + ("" if not length else f" × tokens^{length:.2f}") + corrected

    def _repr_html_(self) -> str:
        return model_html(self._whole)


@dataclass(frozen=True)
class LinearView:
    """softmax(W·(x − centre) + b) = P(class given x), for rows without missing numbers.

    For two classes: P(first) = 1/(1 + exp(−z)) with z = w·(x − centre) + c, w = W[0] − W[1] and c = b[0] − b[1].
    The centre is each number column's mean: about the origin an offset of 1e8 would drown the digits that matter.
    """

    classes: tuple[Any, ...]
    names: tuple[str, ...]  # of the features
    W: Floats  # classes × features
    b: Floats  # classes
    centre: Floats  # features
    _columns: Mapping[str, Linear] = field(repr=False)
    _read: Callable[[Any], list[dict[str, Block]]] = field(repr=False)

    def features(self, rows: Any) -> Floats:
        """x for each row: numbers as they are, a one for the value a category has, the counts of a bag."""
        out = []
        for blocks in self._read(rows):
            none = np.zeros((next((b.rows for b in blocks.values()), 0), 0))
            out.append(np.hstack([none, *(part.features(blocks[n]) for n, part in self._columns.items())]))
        return np.concatenate(out)

    def predict_proba(self, rows: Any) -> Floats:
        """softmax(W·(x − centre) + b)."""
        x = self.features(rows)
        if np.isnan(x).any():
            row, at = (int(i) for i in np.argwhere(np.isnan(x))[0])
            raise SettingsError(
                f"row {row} (the first is row 0) has no value for {self.names[at]!r}, and a weighted sum needs one",
                hint="use model.predict_proba, which leaves missing columns out.",
            )
        score = (x - self.centre) @ self.W.T + self.b
        return np.exp(score - log_sum_exp(score)[:, None])


def linear_view(
    log_prior: Floats,
    beliefs: Mapping[str, Belief],
    weights: Mapping[str, float],
    classes: tuple[Any, ...],
    read: Callable[[Any], list[dict[str, Block]]],
) -> LinearView:
    """The view of a whole model, or an error that names the column without one."""
    parts: dict[str, Linear] = {}
    for name, belief in beliefs.items():
        part = belief.linear()
        if part is None or not np.isfinite(part.weights).all():
            raise SettingsError(
                f"column {name!r} has no linear view under its family and smoothing",
                hint="a Gaussian needs a shared variance ('gaussian-shared'), a table smoothing without zeros; "
                "Student-t, kernel and the predictive forms have none.",
            )
        parts[name] = part
    scale = {n: weights.get(n, 1.0) for n in parts}
    names = tuple(f"{n}={f}" if f else n for n, p in parts.items() for f in p.names)
    w = np.hstack([np.zeros((len(classes), 0)), *(scale[n] * p.weights for n, p in parts.items())])
    b = log_prior + sum((scale[n] * p.offset for n, p in parts.items()), np.zeros(len(classes)))
    centre = np.concatenate([np.zeros(0), *(p.centre for p in parts.values())])
    return LinearView(classes, names, w, b, centre, parts, read)
