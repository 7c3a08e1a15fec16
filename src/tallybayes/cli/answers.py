"""Commands that ask a model about rows: `predict`, `evaluate`, `explain`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from .choices import parse_prior
from .data import Data, reads_data
from .models import MODEL, load_model, output_to
from .terminal import grid, heading, say, show, show_json

if TYPE_CHECKING:
    from ..data.sources import Source
    from ..model.model import Model
    from ..model.watch import Watch

_KEPT = 24  # characters of a column that is shown beside the answers
_SCREEN = 40  # rows of predictions that a terminal shows
_MOST_CONFUSION = 10  # classes of a confusion table
_PRIOR = click.option("--prior", help="Other class probabilities: uniform, or CLASS=PROBABILITY,… for every class.")


@click.command(short_help="Answer for every row.")
@MODEL
@output_to("Write to this file; - for standard output.")
@click.option(
    "--format",
    "out_format",
    type=click.Choice(["csv", "tsv", "jsonl", "parquet"]),
    help="What to write, where the name of FILE does not say so.",
)
@click.option("--proba", is_flag=True, help="Also the probability of every class.")
@click.option(
    "--keep", multiple=True, metavar="COLUMN", help="A column of DATA to write beside the answer; repeatable."
)
@_PRIOR
@reads_data
def predict(
    model: str,
    data: Data,
    output: str | None,
    out_format: str | None,
    proba: bool,
    keep: Sequence[str],
    prior: str | None,
) -> None:
    """The most probable class of every row of DATA, in the order of the rows.

    A terminal shows the first rows; a pipe gets all of them as CSV, or as --format says. MODEL may be a sealed scorer.
    """
    from ..model.predict_file import predict_file
    from ..model.watch import Watch

    watch = Watch(load_model(model, sealed=True), counting=False)
    asked = watch.answering
    given = None if prior is None else parse_prior(prior)
    with data.open("predicting") as source:
        if output is None and out_format is None and sys.stdout.isatty():
            show(*_first_rows(asked, source, keep, proba, given))
            _tell_outside(watch)
            return
        to_pipe = output in (None, "-")
        rows = predict_file(
            asked,
            source,
            sys.stdout.buffer if output is None or output == "-" else output,
            format=out_format or ("csv" if to_pipe else None),
            probabilities=proba,
            keep=keep,
            prior=given,
        )
    if not to_pipe:
        from ..base.canon import many

        say(f"{many(rows, 'row')} written to {output}")
    _tell_outside(watch)


def _tell_outside(watch: Watch) -> None:
    """One line on standard error about what rows had that was never learnt, if they had any."""
    found = watch.report().outside()
    if found:
        say(f"tallybayes: values that were never learnt: {found}", error=True)


def _first_rows(model: Model, source: Source, keep: Sequence[str], proba: bool, prior: Any) -> Iterator[Any]:
    """What fits a screen: row numbers, answers, and how probable they are."""
    import numpy as np

    from ..base.canon import printable

    total, lines = 0, []
    for batch in source.batches():
        first = batch.slice(0, max(_SCREEN - total, 0))
        if first.rows:
            p = model.predict_proba(first, prior=prior)
            kept = [[printable(v, _KEPT) for v in first[name]] for name in keep]
            for i in range(first.rows):
                best = int(np.argmax(p[i]))
                shown = p[i] if proba else p[i, [best]]
                beside = (column[i] for column in kept)
                lines.append((str(total + i), *beside, str(model.classes[best]), *(f"{v:.4f}" for v in shown)))
        total += batch.rows
    heads = [f"P({c})" for c in model.classes] if proba else ["probability"]
    yield grid(("row", *keep, model.schema.target, *heads), lines, left=2 + len(keep), fold=-1)
    if total > len(lines):
        yield f"\n{total - len(lines):,} more rows: all of them with -o FILE, or through a pipe"


@click.command(short_help="How good the answers are.")
@MODEL
@click.option("--weights", metavar="COLUMN", help="The column that holds the weight of each row.")
@click.option("--mistakes", default=5, show_default=True, help="How many of the surest mistakes to name.")
@click.option("--json", "as_json", is_flag=True, help="Print every metric with its interval as JSON.")
@reads_data
def evaluate(model: str, data: Data, weights: str | None, mistakes: int, as_json: bool) -> None:
    """How good the answers are on labelled rows, which should not be those the model was made of."""
    from ..selection.measure.cross_validate import evaluate as evaluate_rows
    from .screens import by_class_page, confusion_page, figures_page

    asked = load_model(model)
    with data.open("evaluating") as source:
        found = evaluate_rows(asked, source, weights=weights)
    if as_json:
        show_json(found.table.to_pylist()[0] | {"by_class": found.by_class().to_pylist()})
        return
    show(f"{data.name}: {found.title}", figures_page(found), heading("By class"), by_class_page(found))
    if len(found.classes) <= _MOST_CONFUSION:
        show(heading("How often which answer was given"), confusion_page(found))
    wrong = found.mistakes(mistakes, explain=False)
    if len(wrong):
        lines = [(str(m.row), str(m.truth), str(m.answer), f"{m.probability:.4f}") for m in wrong]
        show(
            heading(f"The {len(wrong)} surest of {wrong.of:,} mistakes"),
            grid(("row", "is", "answered", "probability"), lines, left=3),
            f"\nWhy: tallybayes explain {model} {data.name} --row {wrong[0].row}",
        )


@click.command(short_help="Why one row gets its answer.")
@MODEL
@click.option("--row", default=0, show_default=True, type=click.IntRange(min=0), help="Which row; the first is 0.")
@click.option(
    "--log",
    type=click.Choice(["natural", "2", "10", "decibans"]),
    default="natural",
    show_default=True,
    help="The unit of the evidence.",
)
@click.option("--against", metavar="CLASS", help="Show the odds of the answer against this class, with intervals.")
@click.option("--what-if", is_flag=True, help="Also the smallest change that gives another answer.")
@click.option("--fixed", metavar="COLUMN,…", help="Columns that --what-if leaves as they are.")
@_PRIOR
@click.option("--json", "as_json", is_flag=True, help="Print the same as JSON.")
@reads_data
def explain(
    model: str,
    data: Data,
    row: int,
    log: str,
    against: str | None,
    what_if: bool,
    fixed: str | None,
    prior: str | None,
    as_json: bool,
) -> None:
    """Why one row gets its answer: what the prior and every column and word add to each class, and the sum."""
    asked = load_model(model, sealed=not (what_if or against or fixed))
    given = None if prior is None else parse_prior(prior)
    with data.open() as source:
        found = asked.explain(source, row, log=log, prior=given)
        kept = fixed.split(",") if fixed else []
        change = asked.what_if(source, number=row, fixed=kept) if what_if or fixed else None
    if as_json:
        show_json(found.to_dict() | ({"what_if": change.to_dict()} if change is not None else {}))
        return
    show(f"{data.name}, row {row}\n", found if against is None else found.odds(None, against))
    if change is not None:
        show(heading("What would change the answer"), change)
