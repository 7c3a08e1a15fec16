"""Commands that measure: `evaluate` one model on rows, `compare` several, or naive Bayes with other classifiers."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from .data import Data, reads_cells, reads_data
from .fitting import JSON, SCHEMA, TARGET, WEIGHTS, by_folds, schema_of
from .models import MODEL, load_model, place, save_bytes
from .terminal import grid, heading, picture_of, say, show, show_json

if TYPE_CHECKING:
    from ..data.guess import Reading
    from ..data.sources import Source
    from ..model.model import Model
    from ..selection.measure.evaluation import Evaluation
    from ..tally.overlap import Overlap

_MOST_CONFUSION = 10  # classes of a confusion table
_SHOWN = 10  # rows on which models disagree


@click.command(short_help="How good the answers are.")
@MODEL
@click.option("--target", metavar="COLUMN", help="The column of the labels, where DATA call it otherwise.")
@click.option("--weights", metavar="COLUMN", help="The column that holds the weight of each row.")
@click.option("--mistakes", default=5, show_default=True, help="How many of the surest mistakes to name.")
@click.option("--no-intervals", is_flag=True, help="Leave out how sure the figures are.")
@click.option(
    "--cross-validate",
    "folds",
    type=click.IntRange(min=2),
    metavar="N",
    help="For rows that the model was made of: score each by a model of the other folds, of N.",
)
@click.option("--plot", "plotted", is_flag=True, help="Also draw reliability, ROC and confusion.")
@click.option("--json", "as_json", is_flag=True, help="Print every metric with its interval as JSON.")
@reads_data
def evaluate(
    model: str,
    data: Data,
    target: str | None,
    weights: str | None,
    mistakes: int,
    no_intervals: bool,
    folds: int | None,
    plotted: bool,
    as_json: bool,
) -> None:
    """How good the answers are on labelled rows, which should not be those the model was made of.

    Whether they are is told as far as the counts show it. MODEL may be a sealed scorer.
    """
    from ..selection.measure.saved import evaluate as evaluate_rows
    from .screens import by_class_page, confusion_page, figures_page

    asked = load_model(model, sealed=folds is None)
    if folds is not None:
        found = _cross_validated(data, asked, folds, target, weights)
        found = replace(found, intervals=not no_intervals)
    else:
        with data.open("evaluating") as source:
            found = evaluate_rows(asked, source, target=target, weights=weights, intervals=not no_intervals)
    seen = found.learnt_from
    if as_json:
        learnt = {} if seen is None else {"learnt_from": seen.verdict, "learnt_from_says": seen.says}
        show_json(found.table.to_pylist()[0] | {"by_class": found.by_class().to_pylist()} | learnt)
        return
    show(f"{data.name}: {found.title}", *_learnt_page(seen), figures_page(found))
    show(heading("By class"), by_class_page(found))
    if len(found.classes) <= _MOST_CONFUSION:
        show(heading("How often which answer was given"), confusion_page(found))
    if plotted:
        show("", picture_of(found))
    wrong = found.mistakes(mistakes, explain=False)
    if len(wrong):
        lines = [(str(m.row), str(m.truth), str(m.answer), f"{m.probability:.4f}") for m in wrong]
        show(
            heading(f"The {len(wrong)} surest of {wrong.of:,} mistakes"),
            grid(("row", "is", "answered", "probability"), lines, left=3),
            f"\nWhy: tallybayes explain {shlex.quote(model)} {data.spelt} --row {wrong[0].row}",
        )


def _learnt_page(seen: Overlap | None) -> list[str]:
    """What the counts say of whether the model has learnt from the rows, and what to do about it."""
    if seen is None or seen.verdict in ("none", "no sign"):
        return []
    advice = "Figures on such rows flatter: hold rows out, or let --cross-validate 10 score each by the others."
    return [f"{seen.says[0].upper()}{seen.says[1:]}.", *([advice] if seen.flatters else []), ""]


def _cross_validated(data: Data, model: Model, folds: int, target: str | None, weights: str | None) -> Evaluation:
    """Every row forecast by a model of the other folds, made as this one was: of the same columns, chosen anew."""
    from ..base.errors import SchemaError
    from ..selection.choose.fit import fit as fit_rows
    from ..tally.tally import Tally

    if model.tally is None:
        raise click.UsageError("a model without counts says nothing of how it was made: leave out --cross-validate")
    if target not in (None, model.schema.target):
        raise SchemaError(
            f"the model was made of the target {model.schema.target!r}, not {target!r}", hint="leave --target out."
        )
    schema = model.schema.with_weights(weights) if weights else model.schema
    bare = schema._with(columns=[c for c in schema.columns if c.of is None])  # pairs and gaps are chosen by each fold

    def fitted(rows: Source) -> Model:
        if model.settings.calibrated is None:  # nothing was chosen by rows
            return Tally.of(schema, rows).model(model.settings)
        return fit_rows(rows, schema=bare)

    return by_folds(data, model, bare, folds, fitted)


@click.command(short_help="Compare models, or with other classifiers.")
@click.option("--model", "models", multiple=True, type=click.Path(), metavar="MODEL", help="A saved model; repeatable.")
@TARGET
@SCHEMA
@click.option("--folds", default=5, show_default=True, help="Folds for classifiers; saved models need none.")
@WEIGHTS
@click.option(
    "--disagree", type=click.Path(), callback=place, metavar="FILE.csv", help="Write the rows on which models disagree."
)
@click.option("--plot", "plotted", is_flag=True, help="Also draw the figures with their intervals.")
@JSON
@reads_cells
@reads_data
def compare(
    data: Data,
    models: Sequence[str],
    target: str | None,
    schema_file: str | None,
    folds: int,
    weights: str | None,
    disagree: str | None,
    plotted: bool,
    as_json: bool,
    reading: Reading,
) -> None:
    """Saved models on the same rows, or naive Bayes beside its rivals on the same folds.

    With --model A --model B: figures of each, their differences with intervals, in pairs, and the rows on which they
    disagree. Without: majority class, exact match, neighbours, logistic twin, …, and classifiers of scikit-learn where
    it is installed.
    """
    from ..selection.rivals.compare import compare as compare_all
    from .screens import compared_page

    if models:
        if schema_file:
            raise click.UsageError("saved models have schemas of their own: leave out --schema")
        _compare_models(data, models, target, weights, disagree, plotted, as_json)
        return
    if disagree:
        raise click.UsageError("--disagree is about saved models: name them with --model")
    with data.open("looking") as source:
        schema = schema_of(source, schema_file, target, reading, weights)
    with data.open("comparing", work=True) as source:
        found = compare_all(source, schema, folds=folds)
    if as_json:
        show_json(found.table.to_pylist())
    else:
        show(found.evaluation.title, compared_page(found))
        if plotted:
            show("", picture_of(found))


def _compare_models(
    data: Data, models: Sequence[str], target: str | None, weights: str | None, disagree: str | None, plotted: bool,
    as_json: bool,
) -> None:  # fmt: skip
    from ..selection.measure.saved import compare_models
    from .screens import apart_page, models_page

    if len(models) < 2:
        raise click.UsageError("one --model has nothing to be compared with: give another, or use tallybayes evaluate")
    named = {name: load_model(path, sealed=True) for name, path in zip(_names(models), models, strict=True)}
    with data.open("comparing") as source:
        found = compare_models(named, source, target=target, weights=weights)
    written = ""
    if disagree:
        import io

        from pyarrow import csv

        table, sink = found.disagreements(), io.BytesIO()
        csv.write_csv(table, sink, csv.WriteOptions(quoting_style="needed"))
        save_bytes(disagree, sink.getvalue())
        written = f"{table.num_rows:,} rows written to {disagree}"
    if as_json:
        seen = {name: o.verdict for name, o in found.evaluation.learnt.items()}
        figures = {"models": found.table.to_pylist(), "differences": found.differences.to_pylist()}
        show_json({**figures, "disagreements": found.disagreements().num_rows, "learnt_from": seen})
        return
    show(f"{data.name}: {found.evaluation.title}", *(f"{note}." for note in found.notes), "")
    show(*models_page(found))
    if plotted:
        show("", picture_of(found))
    differ = found.disagreements(_SHOWN)
    show(heading(found.disagree_said().capitalize() + (", furthest apart on" if differ.num_rows else "")))
    if differ.num_rows:
        show(apart_page(found, _SHOWN))
    if written:
        say(written)


def _names(paths: Sequence[str]) -> list[str]:
    """What to call the models of some files: the names of the files, as far as these tell them apart."""
    short = [os.path.basename(path).split(".")[0] or path for path in paths]
    names = short if len({*short}) == len(paths) else list(paths)
    return names if len({*names}) == len(paths) else [f"{name} ({i})" for i, name in enumerate(names, 1)]
