"""Commands that ask a model about rows: `predict`, `explain`, `importance`."""

from __future__ import annotations

import functools
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from .choices import parse_costs, parse_keep, parse_prior
from .data import Data, reads_data
from .models import MODEL, load_model, output_to
from .terminal import grid, heading, picture_of, say, show, show_json

if TYPE_CHECKING:
    from ..data.sources import Source
    from ..model.model import Model
    from ..model.predict_file import Question
    from ..model.watching.watch import Watch

_KEPT = 24  # characters of a column that is shown beside the answers
_SCREEN = 40  # rows of predictions that a terminal shows
_BECAUSE = 30  # characters that reasons need before they are cut into lines
_TERMS = 3  # of a row that --explain tells without a number
_PRIOR = click.option("--prior", help="Other class probabilities: uniform, or CLASS=PROBABILITY,… for every class.")


class _Terms(click.IntRange):
    """A number that may be left out where the option stands last."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number."""
        if isinstance(value, str) and not value.lstrip("+-").isdigit():
            self.fail(f"{value!r} is no number of terms: say --explain {_TERMS}, or put --explain last", param, ctx)
        return super().convert(value, param, ctx)


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
    "--keep",
    multiple=True,
    metavar="COLUMN,…",
    help="Columns of DATA to write beside the answer: their names, all, or none. A file has all, a pipe none.",
)
@click.option(
    "--costs", metavar="COSTS", help="What wrong answers cost, ACTUAL:PREDICTED=COST,… or JSON, or a file of it."
)
@click.option(
    "--unsure-below", type=click.FloatRange(0, 1), metavar="P", help="Leave rows open whose answer is less probable."
)
@click.option(
    "--explain",
    "terms",
    is_flag=False,
    flag_value=_TERMS,
    default=0,
    type=_Terms(min=0, max=1000),
    metavar="[N]",
    help=f"Also the N strongest terms of each row, {_TERMS} if no number is given.",
)
@click.option(
    "--sets",
    "coverage",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    metavar="COVERAGE",
    help="Also a set of classes that holds the right one so often, as in 0.9.",
)
@click.option("--by-class", is_flag=True, help="Let --sets hold the right class so often in every class by itself.")
@click.option(
    "--calibration",
    metavar="FILE",
    type=click.Path(),
    help="Rows for --sets to go by, those that MODEL has counted, where it has no sets of its own.",
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
    costs: str | None,
    unsure_below: float | None,
    terms: int,
    coverage: float | None,
    by_class: bool,
    calibration: str | None,
    prior: str | None,
) -> None:
    """The most probable class of every row of DATA, in the order of the rows.

    A terminal shows the first rows; a pipe gets all of them as CSV, or as --format says. With --costs the answer is the
    one that costs least on average. JSON lines are objects with the keys row (the first is 0), then what is kept,
    prediction, set with --sets, P(CLASS) with --proba, and because 1, log-odds 1, … with --explain. MODEL may be a
    sealed scorer, which has no sets.
    """
    from ..model.predict_file import Question, write_answers
    from ..model.watching.watch import Watch

    to_pipe = output in (None, "-")
    in_json = out_format == "jsonl" or (out_format is None and not to_pipe and ".jsonl" in str(output).lower())
    known = load_model(model, sealed=coverage is None)
    watch = Watch(_with_sets(known, model, coverage, by_class, calibration), counting=False)
    asked = Question(
        watch.answering,
        probabilities=proba,
        prior=None if prior is None else parse_prior(prior),
        costs=None if costs is None else parse_costs(costs),
        unsure_below=unsure_below,
        explain=terms,
        row_numbers=in_json,
        coverage=coverage,
        by_class=by_class,
    )
    kept = parse_keep(keep, "none" if to_pipe else "all")
    with data.open("predicting") as source:
        if output is None and out_format is None and sys.stdout.isatty():
            show(*_first_rows(asked, source, kept))
            _tell_outside(watch)
            return
        rows, unsure = write_answers(
            asked,
            source,
            sys.stdout.buffer if to_pipe else str(output),
            kept,
            format=out_format or ("csv" if to_pipe else None),
        )
    if not to_pipe:
        from ..base.canon import many

        left = f", {unsure:,} of them left open" if unsure_below is not None else ""
        say(f"{many(rows, 'row')} written to {output}{left}")
    _tell_outside(watch)


def _with_sets(model: Model, path: str, coverage: float | None, by_class: bool, calibration: str | None) -> Model:
    """The model with prediction sets, if they are asked for."""
    if coverage is None:
        if by_class or calibration is not None:
            raise click.UsageError(f"{'--by-class' if by_class else '--calibration'} is about sets: add --sets 0.9")
        return model
    if calibration is not None:
        with Data(calibration, calibration, {}).open("calibrating", work=True) as source:
            return model.with_sets(source)
    from ..base.errors import ModelFileError, SettingsError
    from ..model.sets import sets_of

    try:
        sets_of(model)
    except (ModelFileError, SettingsError) as error:
        hint = f"tallybayes sets {path} DATA takes them from the rows it has counted, or add --calibration DATA."
        raise SettingsError(f"{path}: {error.found}", hint=hint) from None
    return model


def _tell_outside(watch: Watch) -> None:
    """One line on standard error about what rows had that was never learnt, if they had any."""
    found = watch.report().outside()
    if found:
        say(f"tallybayes: values that were never learnt: {found}", error=True)


def _first_rows(asked: Question, source: Source, keep: Sequence[str] | str) -> Iterator[Any]:
    """What fits a screen: row numbers, what is kept as far as there is room, answers, how probable they are and why."""
    from ..base.canon import many, printable
    from ..base.errors import excerpt
    from ..base.show import signed
    from ..model.predict_file import Kept

    beside: dict[str, list[str]] = {}
    answers: list[list[str]] = []
    fits: list[str] = []
    total = 0
    kept = Kept.of(keep, asked.names, ragged=False)
    for batch in source.batches():
        first = kept.checked(batch.slice(0, max(_SCREEN - total, 0)))
        if first.rows:
            found = asked.answer(first)
            for name, column in kept.columns(first, total).items():
                texts = ["" if v is None else printable(v, _KEPT) for v in column.to_pylist()]
                beside.setdefault(name, []).extend(texts)
            for i, best in enumerate(found.best.tolist()):
                shown = found.p[i] if asked.probabilities else [found.p[i].max() if best < 0 else found.p[i, best]]
                told = () if found.terms is None else zip(*found.terms, strict=True)
                why = [f"{texts[i]} {signed(odds[i], 2)}" for texts, odds in told if texts[i] is not None]
                label = "–" if best < 0 else str(asked.model.classes[best])
                held = [] if found.sets is None else [" | ".join(printable(c, _KEPT) for c in found.sets[i])]
                answers.append([label, *held, *(f"{v:.4f}" for v in shown), ", ".join(why)])
        total += batch.rows
    chances = [f"P({c})" for c in asked.model.classes] if asked.probabilities else ["probability"]
    heads = [asked.model.schema.target, *(["set"] if asked.coverage else []), *chances, "because"]
    if not asked.explain:
        heads, answers = heads[:-1], [line[:-1] for line in answers]
    numbers = [str(i) for i in range(len(answers))]
    taken = [min(_width(column), _BECAUSE) for column in zip(heads, *answers, strict=True)]
    room = shutil.get_terminal_size().columns - _width(("row", *numbers)) - sum(taken)
    for name, column in beside.items():
        room -= _width((name, *column))
        if room >= 0 or keep != "all":
            fits.append(name)
    lines = [(n, *(beside[k][i] for k in fits), *answers[i]) for i, n in enumerate(numbers)]
    last = len(fits) + len(heads)
    flush = (*range(2 + len(fits) + bool(asked.coverage)), *((last,) if asked.explain else ()))
    yield grid(("row", *fits, *heads), lines, left=flush, fold=last if asked.explain else -1)
    if len(fits) < len(beside):
        yield f"\nno room for {excerpt([n for n in beside if n not in fits])}: all of it with -o FILE"
    if total > len(lines):
        yield f"\n{many(total - len(lines), 'more row')}: all of them with -o FILE, or through a pipe"


def _width(cells: Iterable[str]) -> int:
    return max(map(len, cells)) + 3  # and what parts it from the next column


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
@click.option(
    "--top", type=click.IntRange(min=1), metavar="N", help="The N strongest lines first, and the rest as one."
)
@click.option("--plot", "plotted", is_flag=True, help="Also draw the sum as bars: for the answer, and against it.")
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
    top: int | None,
    plotted: bool,
    prior: str | None,
    as_json: bool,
) -> None:
    """Why one row gets its answer: what the prior and every column and word add to each class, and the sum."""
    asked = load_model(model, sealed=not (what_if or against or fixed))
    given = None if prior is None else parse_prior(prior)
    with data.open() as source:
        found = asked.explain(source, row, log=log, prior=given)
        found = found if top is None else found.top(top)
        kept = fixed.split(",") if fixed else []
        change = asked.what_if(source, number=row, fixed=kept) if what_if or fixed else None
    if as_json:
        show_json(found.to_dict() | ({"what_if": change.to_dict()} if change is not None else {}))
        return
    show(f"{data.name}, row {row}\n", found if against is None else found.odds(None, against))
    if plotted:
        show("", picture_of(found, against=against))
    if change is not None:
        show(heading("What would change the answer"), change)


@click.command(short_help="What each column is worth.")
@MODEL
@click.option("--weights", metavar="COLUMN", help="The column that holds the weight of each row.")
@click.option("--json", "as_json", is_flag=True, help="Print the same as JSON.")
@functools.partial(reads_data, required=False)
def importance(model: str, data: Data | None, weights: str | None, as_json: bool) -> None:
    """What each column is worth: bits that it says alone, and what log loss and accuracy lose without it.

    DATA should be labelled rows that the model has not seen. If they are the rows that it was counted from, each is
    scored without its share of them. Without DATA there are only bits, by what was counted.
    """
    asked = load_model(model, sealed=data is not None)
    if data is None:
        found = asked.importance()
    else:
        with data.open("leaving out columns", work=True) as source:
            found = asked.importance(source, weights=weights)
    if as_json:
        show_json(found.to_dict())
    else:
        show(found)
