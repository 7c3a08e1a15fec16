"""Pages for people: a schema with its reasons, figures beside the majority class, telling evidence, whole models."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.canon import many, printable
from .choices import smoothing_words
from .terminal import FirstThatFits, clean, for_commands, grid, heading

if TYPE_CHECKING:
    from ..data.schema import Schema
    from ..families import Table
    from ..model.model import Model
    from ..model.odds import Odds
    from ..model.provenance import Provenance
    from ..selection.choose.tune import Tuned
    from ..selection.measure.evaluation import Evaluation
    from ..selection.measure.saved import ModelComparison
    from ..selection.rivals.compare import Comparison
    from ..store.reveals import Revealed

FIGURES = {
    "accuracy": "accuracy",
    "log_loss": "log loss",
    "brier": "Brier score",
    "calibration_error": "calibration error",
}
_AREAS = {"roc_auc": "ROC-AUC", "average_precision": "average precision"}
_NAMES = 11  # characters of a figure's name in each line of a narrow screen
_MOST_AREAS = 20  # classes, each against the rest
_LEAST_JUDGED = 10  # rows, of fewer than which figures say nothing
_COMPARED = ("accuracy", "log_loss", "calibration_error")
MOST_CLASSES = 6  # beside each other on a page
_LEAST_ROWS, _LEAST_SHARE = 5, 0.02  # of a class, behind a value that is called telling
_CERTAIN = 1e6  # times likelier: more says no more
_OF_A_COLUMN = 2  # values of a category or number among the telling ones, so that others have a say
_WORDS_OF_A_ROW = 10  # a word's share of all words is about so much less than the share of rows that have it


def schema_page(schema: Schema) -> Any:
    """Every column: its kind, and why."""
    rows = [(c.name, c.kind, for_commands(c.reason)) for c in schema.columns]
    return grid(("column", "kind", "why"), rows, left=3, fold=2)


def classes_page(model: Model) -> Any:
    """Every class: how many rows, and its prior probability as a bar."""
    rows = dict.fromkeys(map(str, model.classes), "")
    if model.tally is not None:
        counted = zip(model.tally.classes, model.tally.class_weights().tolist(), strict=True)
        rows |= {name: f"{n:,.10g}" for name, n in counted}
    from ..base import canon

    prior = model.prior()
    most = max(prior.values(), default=1.0)
    shown = sorted(prior.items(), key=lambda item: -item[1])[:30]
    lines = [(c, rows.get(str(canon.text(c)), ""), f"{p:.4f}", "▇" * round(24 * p / most)) for c, p in shown]
    if len(prior) > len(shown):
        lines.append((f"… {len(prior) - len(shown)} more", "", "", ""))
    return grid((model.schema.target, "", "rows", "prior"), [(a, d, b, c) for a, b, c, d in lines], left=2)


def figures_page(evaluation: Evaluation, name: str = "this model") -> Any:
    """The metrics with their intervals, beside those of the majority class."""
    lines = []
    areas = areas_of(evaluation)
    for metric, words in (FIGURES | areas).items():
        value, low, high = evaluation.figure(metric)
        around = [f"{low:.4f} to {high:.4f}"] if evaluation.intervals else []
        lines.append((words, f"{value:.4f}", *around, f"{evaluation.known(metric):.4f}"))
    heads = ("", name, *(["95 % interval"] if evaluation.intervals else []), "majority class")
    cut = [(clean(fill(words, _NAMES, break_long_words=False)), *figures) for words, *figures in lines]
    shown = [(n, each) for n in range(len(heads), 1, -1) for each in (lines, cut)]  # a narrow screen has room for less
    page = FirstThatFits(*(grid(heads[:n], [line[:n] for line in each]) for n, each in shown))
    notes = [evaluation.rare] if areas and evaluation.rare else []
    if len(evaluation.rows) < _LEAST_JUDGED:
        notes.append(f"{many(len(evaluation.rows), 'row')}: too few to say how good it is, whatever the intervals are.")
    if not notes:
        return page
    from rich.console import Group

    return Group(page, *map(clean, notes))


def areas_of(evaluation: Evaluation) -> dict[str, str]:
    """The areas under curves that a page shows, and of what; none of very many classes, or where rows are of one."""
    classes = evaluation.classes
    if len(classes) > _MOST_AREAS or np.isnan(evaluation.value("roc_auc")):
        return {}
    if len(classes) == 2:
        return _AREAS | {"average_precision": f"average precision of {printable(classes[1], 30)}"}
    return {metric: f"{words}, mean of the classes" for metric, words in _AREAS.items()}


def provenance_page(provenance: Provenance) -> Any:
    """When a model was made, from what, and what has happened since."""
    lines = provenance.lines()
    before = ["", *(word for word, _ in lines)]
    rows = [("" if word == last else word, told) for last, (word, told) in zip(before, lines, strict=False)]
    return grid(("", ""), rows, left=2, fold=1)


def judged_page(model: Model) -> Any:
    """The figures that the choice of a model was judged by, beside those of the majority class."""
    calibrated, tally = model.settings.calibrated, model.tally
    assert calibrated is not None and tally is not None
    shares = tally.class_weights() / tally.class_weights().sum()
    shares = shares[shares > 0]
    known = {
        "accuracy": float(shares.max()),
        "log_loss": -float(shares @ np.log(shares)),
        "brier": 0.5 * (1.0 - float(shares @ shares)),
        "calibration_error": 0.0,
    }
    lines = []
    for metric, words in FIGURES.items():
        value, *ends = calibrated.interval(metric)
        around = " to ".join(f"{end:.4f}" for end in ends) if len(calibrated.figures[metric]) > 1 else ""
        lines.append((words, f"{value:.4f}", around, f"{known[metric]:.4f}"))
    return grid(("", "this model", "± 2 standard errors", "majority class"), lines)


def tuned_page(tuned: Tuned) -> Any:
    """What the search chose for each column, and the held-out log loss of the best other candidate."""
    lines = []
    for name, family in tuned.plain.families.items():
        smoothing = tuned.plain.smoothing_of(name)
        tried = [c for c in tuned.tried if c.column == name]
        others = [c.loss for c in tried if not (c.family == family and c.smoothing == smoothing)]
        lines.append(
            (name, _believed(family.describe()), smoothing_words(smoothing), f"{min(others):.4f}" if others else "")
        )
    return grid(("column", "family", "smoothing", "next best log loss"), lines, left=3)


def _believed(family: str) -> str:
    """A family in words of no language of programs: presence=True is presence."""
    return family.replace("=True", "")


def compared_page(found: Comparison) -> Any:
    """A line per classifier, the best log loss first, with seconds per fold and memory."""
    figures = {name: [found.evaluation.figure(m, name)[0] for m in _COMPARED] for name in found.names}
    lines = [
        (
            name,
            *(f"{v:.4f}" for v in figures[name]),
            f"{found.fit_seconds[name]:.3f}",
            f"{found.predict_seconds[name]:.3f}",
            f"{found.peak_bytes[name] / 1e6:.1f}",
        )
        for name in sorted(found.names, key=lambda n: figures[n][1])
    ]
    heads = ("", "accuracy", "log loss", "calibration", "fit s", "predict s", "MB")
    return grid(heads, lines, fold=0)


def models_page(found: ModelComparison) -> Iterator[Any]:
    """Models beside each other: their figures, differences from the first, and who is right alone."""
    first, *others = found.names
    metrics = FIGURES | {"f1_macro": "F1, mean of the classes"} | areas_of(found.evaluation)
    value = found.evaluation.value
    yield grid(
        ("", *found.names), [(words, *(f"{value(m, n):.4f}" for n in found.names)) for m, words in metrics.items()]
    )
    for name in others:
        yield heading(f"{name}, less {first}")
        lines = []
        for metric in (
            m for m in metrics if m != "calibration_error"
        ):  # chance alone makes it positive, of each its own
            less, low, high = found.difference(metric, name)
            lines.append((metrics[metric], f"{less:+.4f}", f"{low:+.4f} to {high:+.4f}"))
        yield grid(("", "difference", "95 % interval"), lines)
        yield found.mcnemar_said(name)


def apart_page(found: ModelComparison, most: int) -> Any:
    """The rows that get different answers whose probabilities are furthest apart."""
    table = found.disagreements(most).to_pydict()
    heads = ["row", "is", *(h for name in found.names for h in (name, ""))]
    lines = [
        (
            str(table["row"][i]),
            table["is"][i],
            *(cell for n in found.names for cell in (table[n][i], f"{table[f'{n}: probability'][i]:.4f}")),
        )
        for i in range(len(table["row"]))
    ]
    return grid(heads, lines, left=2)


def by_class_page(evaluation: Evaluation) -> Any:
    """Precision, recall and F1 of every class."""
    table = evaluation.by_class().to_pydict()
    heads = ["class", "rows", "precision", "recall", "f1"]
    lines = [
        (table["class"][i], f"{table['rows'][i]:,.10g}", *(f"{table[h][i]:.4f}" for h in heads[2:]))
        for i in range(len(table["class"]))
    ]
    return grid(("class", "rows", "precision", "recall", "F1"), lines)


def confusion_page(evaluation: Evaluation) -> Any:
    """How many rows of each class were given to each class."""
    table = evaluation.confusion().to_pydict()
    names = [n for n in table if n != "class"] if "class" not in map(str, evaluation.classes) else list(table)[1:]
    lines = [(table["class"][i], *(f"{table[n][i]:,.10g}" for n in names)) for i in range(len(table["class"]))]
    return grid(("is ↓  answered →", *names), lines)


def telling(model: Model, label: Any, top: int) -> list[tuple[str, Odds]]:
    """The values, words and stretches most telling for a class, of all columns, that enough rows stand behind."""
    from ..model.odds import best_stretch

    found: list[tuple[str, Odds]] = []
    asked = [name for name in model.beliefs if model.settings.weight_of(name) > 0 and len(model.classes) > 1]
    for column in asked:
        stretch = best_stretch(model, column, model.class_number(label))
        if stretch is not None:
            found.append((column, stretch))
        elif (table := model.table(column)).title.startswith("P("):
            least = _least(model, column, label)
            found += [(column, o) for o in model.odds(column, label, top=len(table.rows), least=least)]
    found.sort(key=lambda item: -_says(model, *item))
    kept: dict[str, int] = {}
    out = []
    for column, o in found:
        kept[column] = kept.get(column, 0) + 1
        words = model.schema[column].about.words
        if o.ratio > 1 and (words or kept[column] <= _OF_A_COLUMN):
            out.append((column, o))
    return sorted(out[:top], key=lambda item: (-item[1].ratio, -item[1].inside))


def _says(model: Model, column: str, o: Odds) -> float:
    """How much a value says in a row of the class on average, so that a rare one does not stand before all."""
    often = _WORDS_OF_A_ROW if model.schema[column].about.words else 1
    return model.settings.weight_of(column) * often * o.inside * float(np.log(min(o.ratio, _CERTAIN)))


def _least(model: Model, column: str, label: Any) -> float:
    """The probability of a value that a few rows of the class have: rarer ones tell much, but on little ground."""
    if model.tally is None:
        return 0.0
    from ..base import canon

    counted = dict(zip(model.tally.classes, model.tally.class_weights().tolist(), strict=True))
    rows = max(float(counted.get(str(canon.text(label)), 0.0)), 1.0)
    slots = max(len(model.beliefs[column].table().rows), 1)
    words = model.schema[column].about.words
    return max(_LEAST_ROWS, _LEAST_SHARE * rows) / (rows + slots) / (_WORDS_OF_A_ROW if words else 1)


def evidence_page(model: Model, top: int = 4) -> Any | None:
    """The most telling evidence for each class; None where no column has a table of values."""
    by_class = [(c, telling(model, c, top)) for c in model.classes[: 4 * MOST_CLASSES]]
    lines: list[tuple[Any, ...]] = []
    for label, found in by_class:
        for i, (column, o) in enumerate(found):
            ratio = "∞" if o.outside == 0 else f"{o.ratio:.3g}" if o.ratio < 100 else f"{o.ratio:,.0f}"
            name = label if i == 0 else ""
            lines.append((name, column, o.value, f"{ratio} ×", _share(o.inside), _share(o.outside)))
    heads = (model.schema.target, "column", "value", "times likelier", "in the class", "in the others")
    return grid(heads, lines, left=3) if lines else None


def _share(p: float) -> str:
    return f"{p:.2%}" if p >= 5e-5 or p == 0 else "< 0.01%"


def columns_page(model: Model) -> Any:
    """Every counted column: its kind, the family that reads it, its weight."""
    told = dict(model._described())
    rows = []
    for name in model.beliefs:
        family, _, weight = told[name].partition(", weight ")
        rows.append((name, model.schema[name].kind, _believed(family), weight))
    return grid(("column", "kind", "believed as", "weight"), rows, left=3)


def numbers_page(model: Model) -> Any | None:
    """Mean and standard deviation of every number by class; None where nothing was counted as a number."""
    from ..data.clock import told_by

    tally = model.tally
    if tally is None:
        return None
    classes = tally.classes[:MOST_CLASSES]
    lines = []
    for column in model.schema.counted:
        if column.like != "number":
            continue
        found = tally.moments(column.name)
        days, told = column.part == "days", told_by(column)

        def spread(mean: float, wide: float, days: bool = days, told: Any = told) -> str:
            if days or told is None:
                return f"{told(round(mean)) if days else f'{mean:.4g}'} ± {wide:.3g}{' days' * days}"
            return f"{told(mean)} ± {told(wide)}"

        each = map(found.__getitem__, classes)
        lines.append((column.name, *(spread(mean, square**0.5) if n else "none" for n, mean, square in each)))
    return grid(("mean ± deviation", *classes), lines) if lines else None


def _number(value: float, digits: int = 4) -> str:
    return f"{value:,.0f}" if 10**digits <= abs(value) < 1e15 else f"{value:.{digits}g}"


def table_page(model: Model, column: str, most: int) -> Any:
    """The conditional table of one column: P(value given class), a family's parameters, or what a blend says."""
    from ..model.odds import shown_table

    table: Table = shown_table(model, column)
    shown = list(_rows(table, most))
    if len(table.rows) > most:
        shown.append((f"… {len(table.rows) - most:,} more", *("" for _ in table.classes[:MOST_CLASSES])))
    first = column if table.title.startswith("P(") else table.title
    return grid((first, *table.classes[:MOST_CLASSES]), shown)


def column_page(model: Model, column: str, most: int) -> Iterator[Any]:
    """The table of a column; where a correction is upon what was counted, also what its values add with it."""
    from ..model.odds import said_of_values

    said = said_of_values(model, column)
    if said is not None:
        paired = model.schema[column].kind == "pair"
        yield "Counted, how many times likelier together than apart:" if paired else "Counted, P(value given class):"
    yield table_page(model, column, most)
    if said is not None:
        yield "\nCorrected by held-out rows, what a value adds to the score (0 for the class it speaks for):"
        yield grid((column, *said.classes[:MOST_CLASSES]), _rows(said, most))


def _rows(table: Table, most: int) -> Iterator[tuple[str, ...]]:
    """The first rows, those that say most first where the rows are many."""
    from ..model.odds import order_of_many

    order = order_of_many(table) if len(table.rows) > most else range(len(table.rows))
    for i in order[:most]:
        yield (table.rows[i], *(f"{v:.4f}" if 1e-3 <= v <= 1 else f"{v:.4g}" for v in table.values[i][:MOST_CLASSES]))


def reveals_page(of: Revealed, most: int) -> Iterator[Any]:
    """What can be read of one column: sentences, and the lines that fewest rows stand behind."""
    from ..store.reveals import rows_of

    yield heading(of.column or "The whole model")
    yield "\n".join(of.summary)
    shown = list(rows_of(of.lines[:most] if len(of.lines) > most + 1 else of.lines))
    if shown:
        yield grid(("what", "value", "rows"), shown, left=2)
    if len(of.lines) > len(shown):
        yield f"… {len(of.lines) - len(shown):,} more lines: --top, or --json for all"


def model_page(model: Model, top: int) -> Iterator[Any]:
    """The pieces of the page about a model: classes, columns, tables, odds."""
    from ..model.counted import told

    yield heading("Classes")
    yield classes_page(model)
    if model.beliefs:
        yield heading("Columns")
        yield columns_page(model)
    if model.settings.calibrated is not None:
        yield f"Weights: {model.settings.calibrated}"
        if model.settings.calibrated.note:
            yield f"Noticed: {model.settings.calibrated.note}"
    elif counted := told(model.schema, model.settings):
        yield f"Weights: {counted}"
    left = [(c.name, c.reason) for c in model.schema.columns if c.kind == "ignore"]
    if left:
        yield heading("Left out")
        yield grid(("column", "why"), left, left=2, fold=1)
    numbers = numbers_page(model)
    if numbers is not None:
        yield heading("Numbers")
        yield numbers
    by = model.settings.weight_of
    for column in [c for c in model.beliefs if model.schema[c].like == "category" and by(c) > 0]:
        yield heading(f"P({column} given {model.schema.target})")
        yield table_page(model, column, 8)
    evidence = evidence_page(model, top)
    if evidence is not None:
        yield heading("Most telling")
        yield evidence
    if len(model.classes) > MOST_CLASSES:
        yield f"\nTables show the first {MOST_CLASSES} of {len(model.classes)} classes."
