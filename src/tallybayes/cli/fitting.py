"""Commands that make a model of rows: `fit`, `tune`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from .choices import SMOOTHING_HELP, Choices, parse_pairs, parse_prior
from .data import Data, reads_cells, reads_data, watched
from .models import OUT_MODEL, place, save_model
from .terminal import heading, say, show, show_json

if TYPE_CHECKING:
    from ..data.guess import Reading
    from ..data.schema import Schema
    from ..data.sources import Source
    from ..model.model import Model
    from ..selection.measure.evaluation import Evaluation

_FOLDS = 5  # where nothing was chosen, and so nothing judged
_ANEW = 20_000  # rows up to which cross-validation fits anew on every fold; beyond, folds are subtracted
TARGET = click.option("--target", metavar="COLUMN", help="The column to predict.")
SCHEMA = click.option("--schema", "schema_file", type=click.Path(), metavar="FILE", help="Count by this schema.")
_SET = click.option(
    "--set", "sets", multiple=True, metavar="COLUMN=WORD", help="A kind, as in zip=category, or a family, age=kernel."
)
WEIGHTS = click.option("--weights", metavar="COLUMN", help="The column that holds the weight of each row.")
JSON = click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")


@click.command(short_help="Make a model of rows.")
@TARGET
@OUT_MODEL
@SCHEMA
@click.option(
    "--save-schema", type=click.Path(), callback=place, metavar="FILE", help="Write the schema, to be shared or edited."
)
@_SET
@click.option("--smoothing", multiple=True, metavar="[COLUMN=]NAME[:AMOUNT]", help=SMOOTHING_HELP + ".")
@click.option("--prior", help="counted, uniform, or CLASS=PROBABILITY,… for every class.")
@click.option(
    "--no-calibrate", is_flag=True, help="Believe the counts as they are: choose no weights on held-out rows."
)
@click.option(
    "--counted-weights", is_flag=True, help="Work weights out of counts alone, so that forget renews them, too."
)
@click.option("--pairs", multiple=True, metavar="auto|no|A:B", help="Columns counted together where that helps (auto).")
@click.option("--no-gaps", is_flag=True, help="Do not count whether a value is missing as evidence.")
@WEIGHTS
@click.option(
    "--unlabelled", metavar="FILE|missing", help="More rows, without labels, or those of DATA that have none."
)
@click.option("--receipts", is_flag=True, help="Count a hash of each row, so that forget knows every row.")
@click.option(
    "--folds", type=int, metavar="N", help="Fit anew on N folds for the figures, N times the work; 0 for no figures."
)
@click.option(
    "--effort", default="default", metavar="quick|default|thorough", help="How much is tried on held-out rows."
)
@click.option("--groups", metavar="COLUMN", help="Rows with equal values there are held out together; no evidence.")
@click.option("--order", metavar="COLUMN|yes", help="Times, of which stretches are held out; yes: the order of rows.")
@reads_cells
@click.option("--no-progress", is_flag=True, help="Show no bar, also in a terminal.")
@reads_data
def fit(
    data: Data,
    target: str | None,
    output: str | None,
    schema_file: str | None,
    save_schema: str | None,
    sets: Sequence[str],
    smoothing: Sequence[str],
    prior: str | None,
    no_calibrate: bool,
    counted_weights: bool,
    pairs: Sequence[str],
    no_gaps: bool,
    weights: str | None,
    unlabelled: str | None,
    receipts: bool,
    folds: int | None,
    effort: str,
    groups: str | None,
    order: str | None,
    no_progress: bool,
    reading: Reading,
) -> None:
    """Make a model of DATA: infer what each column is, choose families and weights on held-out rows, count.

    Prints what was inferred and why, how good the model is on the held-out rows that judged it, and its most telling
    evidence. `evaluate` and --folds N measure more strictly, and take longer.
    DATA is a file, several files, a folder, a quoted pattern of files, or - for standard input.
    """
    from ..base.errors import DataError
    from ..selection.choose.chosen import check_effort
    from ..selection.choose.fit import by_all_rows
    from ..selection.choose.fit import fit as fit_rows
    from ..selection.parts import apart, by_target, without_columns
    from .screens import evidence_page, figures_page, judged_page, schema_page

    check_effort(effort)
    choices = Choices.of(sets, smoothing, prior)
    wanted = parse_pairs(pairs)
    others = {
        "--no-calibrate": no_calibrate,
        "--groups": groups,
        "--order": order,
        "--pairs": wanted not in ("auto", False),
    }
    if counted_weights and (clash := [name for name, given in others.items() if given]):
        raise click.UsageError(
            f"{clash[0]} with --counted-weights, which holds out no rows and counts every two columns together: leave "
            "one of them out"
        )
    settings = choices.settings
    with data.open("looking", hidden=no_progress) as source:
        _there(source, groups, "which holds the groups")
        _there(source, None if order == "yes" else order, "to order the rows by")
        deciding = [groups] if groups is not None else []
        if groups is not None and groups == target:
            raise by_target(groups)
        looked = source
        if unlabelled not in (None, "missing") and target is not None:
            from ..data.sources import read
            from ..selection.unlabelled.fit import joined

            looked = joined(source, read(unlabelled), target)
        looked = without_columns(looked, deciding)
        read_as = choices.read(reading).beside(deciding)
        schema = choices.applied(
            apart(schema_of(looked, schema_file, target, read_as, weights, receipts, True), deciding)
        )
    quiet = output == "-"

    def tell(*pieces: Any) -> None:
        nonlocal quiet
        if not quiet:
            try:
                show(*pieces)
            except BrokenPipeError:  # of `| head`, which has seen enough; the files are still wanted
                if not (output or save_schema):
                    raise
                quiet = True

    tell(f"{data.name}: what is counted, and why", schema_page(schema))

    calibrate = "counted" if counted_weights else not no_calibrate

    def fitted(rows: Source, progress: Any = False) -> Model:
        return fit_rows(
            rows, schema=schema, settings=settings, calibrate=calibrate, pairs=wanted, effort=effort,
            groups=groups, order=order == "yes" or order, progress=progress, gaps=not no_gaps, unlabelled=unlabelled,
        )  # fmt: skip

    def attempt(found: Schema) -> Model:
        nonlocal schema
        schema = found
        return fitted(source, progress)

    shown = schema
    with watched(data, "counting and choosing", hidden=no_progress) as (source, progress):
        model = attempt(schema) if schema_file else by_all_rows(schema, source, reading, attempt)
    for now, before in zip(schema.columns, shown.columns, strict=True):
        if now != before:
            tell(f"the whole of the data shows more: {now.name} {now.kind}, {now.reason}")
    tell(*_what_was_chosen(model, schema))
    calibrated = model.settings.calibrated
    if folds is None and calibrated is not None:
        held = f"{calibrated.judged:,} held-out rows, which judged what was chosen"
        tell(heading(f"On rows it has not seen: {held}"), judged_page(model))
    elif folds is None or folds:
        try:
            evaluation = by_folds(data, model, schema, folds or _FOLDS, fitted, groups, no_progress)
        except DataError as error:  # of a few rows, or equal ones: there is a model, if nobody asked for figures
            if folds:
                raise
            tell(f"not measured on rows it has not seen: {error.found}")
        else:
            tell(heading(f"On rows it has not seen: {evaluation.title}"), figures_page(evaluation))
            model = _judged(model, evaluation)
    evidence = evidence_page(model)
    if evidence is not None:
        tell(heading("Most telling"), evidence)
    tell("")
    if save_schema:
        model.schema.save(save_schema)
        say(f"schema written to {save_schema}", error=quiet)
    if output:
        say(f"model written to {save_model(model, output)}", error=quiet)


def _judged(model: Model, evaluation: Evaluation) -> Model:
    """The model, whose history knows how it was judged."""
    from dataclasses import replace

    import numpy as np

    from ..model.provenance import FitFigures

    found = {metric: evaluation.figure(metric) for metric in ("accuracy", "log_loss")}
    figures = {metric: each for metric, each in found.items() if np.isfinite(each).all()}  # a loss may have no end
    assert model.tally is not None
    held = FitFigures("rows, each by a model of the other folds", model.tally.rows, figures)
    return replace(model, history=replace(model.history, held_out=held))


def _there(source: Source, column: str | None, what: str) -> None:
    """Refuses the name of a column that the data do not have, before anything is printed."""
    from ..base.errors import DataError, unknown

    first = next(iter(source.batches()), None) if column is not None else None
    if first is not None and column not in first:
        comma = "," if what.startswith("which") else ""
        raise unknown(DataError, f"there is no column {column!r}{comma} {what}", column, first.names())


def schema_of(
    source: Source, file: str | None, target: str | None, reading: Reading, weights: str | None = None,
    receipts: bool = False, counted: bool = False,
) -> Schema:  # fmt: skip
    """The schema of a file, or the inferred one; odd cells are told of unless they are when they are `counted`."""
    from ..base.errors import FileError, SchemaError
    from ..data.infer import first_look, looked_at
    from ..data.schema import Schema

    if file is None:
        if target is None:
            raise click.UsageError("say which column to predict: --target COLUMN (or give a --schema)")
        found, odd = looked_at(first_look(source), target, weights, receipts, reading)
        if not counted:
            odd.warn()
        return found
    try:
        schema = Schema.load(file)
    except FileError as error:
        raise SchemaError(f"the schema {error.found}", hint="tallybayes fit --save-schema FILE writes one.") from None
    if target not in (None, schema.target):
        raise SchemaError(f"the schema predicts {schema.target!r}, not {target!r}", hint="leave --target out.")
    schema = schema.with_weights(weights) if weights else schema
    return schema.with_receipts() if receipts else schema


def _what_was_chosen(model: Model, schema: Schema) -> list[Any]:
    """How many rows, and which families, weights and pairs held-out rows support."""
    from ..base.canon import many
    from ..base.wording import visible
    from ..model.counted import told

    tally = model.tally
    assert tally is not None
    skipped = f", {tally.skipped:,} without a label skipped" if tally.skipped else ""
    each = list(zip(tally.classes, tally.class_weights(), strict=True))[:8]
    counts = ", ".join(f"{visible(c)} {n:,.10g}" for c, n in each)
    more = ", …" if len(tally.classes) > 8 else ""
    out: list[Any] = [f"\n{many(tally.rows, 'row')}{skipped}: {model.schema.target} {counts}{more}"]
    if model.settings.calibrated is not None:
        out.append(f"chosen on held-out rows: {model.settings.calibrated}")
        out += [model.settings.calibrated.note] if model.settings.calibrated.note else []
    elif counted := told(model.schema, model.settings):
        out.append(f"weights: {counted}")
    for kind, what in (("pair", "counted together"), ("gap", "whether a value is missing is counted")):
        added = [c.inputs[0] if kind == "gap" else c.name for c in model.schema.counted if c.kind == kind]
        if added := [name for name in added if kind == "gap" or name not in schema.names]:
            out.append(f"{what}: {', '.join(added[:12])}{', …' if len(added) > 12 else ''}")
    return out


def by_folds(
    data: Data, model: Model, schema: Schema, folds: int, fitted: Callable[[Source], Model], groups: str | None = None,
    hidden: bool = False,
) -> Evaluation:  # fmt: skip
    """Every row forecast by a model of the other folds: fitted anew, or for many rows by subtraction."""
    from dataclasses import replace

    from ..selection.measure.cross_validate import cross_validate
    from .terminal import bar

    assert model.tally is not None
    rows, done = model.tally.rows, 0
    if rows > _ANEW:
        with data.open("cross-validating", work=True, hidden=hidden) as source:
            found = cross_validate(source, model.schema, folds=folds, settings=model.settings, groups=groups)
        flatters = "; families and weights were chosen with all rows, which flatters a little"
        return replace(found, title=found.title + (flatters if model.settings.calibrated is not None else ""))
    with bar("cross-validating", hidden=hidden) as tell:

        def counted(training: Source) -> Model:
            nonlocal done
            if tell is not None:
                tell(rows * done // folds, done / folds)
            done += 1
            return fitted(training)

        return cross_validate(data.source(), schema, folds=folds, fitter=counted, groups=groups)


@click.command(short_help="Choose smoothing and families, column by column.")
@TARGET
@OUT_MODEL
@SCHEMA
@_SET
@click.option(
    "--smoothing", multiple=True, metavar="NAME[:AMOUNT]", help="One to try, instead of laplace:0.01 to laplace:3."
)
@click.option("--try", "families", multiple=True, metavar="COLUMN=FAMILY,…", help="Families to try for a column.")
@click.option("--prior", "priors", multiple=True, help="One to try: counted, uniform, or CLASS=PROBABILITY,…")
@click.option("--folds", default=5, show_default=True, help="Folds of held-out rows.")
@click.option(
    "--nested", is_flag=True, help="Also tune anew inside each fold: the honest figure, as many times the work."
)
@JSON
@reads_cells
@reads_data
def tune(
    data: Data,
    target: str | None,
    output: str | None,
    schema_file: str | None,
    sets: Sequence[str],
    smoothing: Sequence[str],
    families: Sequence[str],
    priors: Sequence[str],
    folds: int,
    nested: bool,
    as_json: bool,
    reading: Reading,
) -> None:
    """Choose smoothing and family of each column by held-out rows; -o writes the model that was chosen.

    Every row is counted once, and folds are subtracted. Weights are chosen besides, as `fit` does, and what was found
    is kept only where it loses less than `fit` does by itself.
    """
    from ..selection.choose.tune import Tuned
    from ..selection.choose.tune import tune as tune_rows
    from .screens import figures_page, tuned_page

    choices = Choices.of(sets)
    with data.open("looking") as source:
        schema = choices.applied(schema_of(source, schema_file, target, choices.read(reading)))
    wanted = {column: word.split(",") for column, _, word in (given.rpartition("=") for given in families)}
    with data.open("tuning", work=True) as source:
        found = tune_rows(
            source,
            schema,
            settings=choices.settings,
            families=wanted,
            smoothing=smoothing or None,
            prior=[parse_prior(p) for p in priors] or ("counted",),
            folds=folds,
            nested=nested,
        )
    assert isinstance(found, Tuned)  # settings alone come back where a tally is given
    note = f"model written to {save_model(found.model, output)}" if output else ""
    if output == "-":
        say(note, error=True)
    elif as_json:
        figures = {"before": found.before, "after": found.after, "kept": found.kept, "losses": dict(found.losses)}
        show_json({**figures, "tried": found.table.to_pylist()})
    else:
        show(f"{data.name}: held-out log loss {found.before:.4f} → {found.after:.4f}", tuned_page(found))
        if found.losses:
            way = "as fit chooses them by itself, which the search did not better" if found.kept == "fit" else "added"
            show(f"\nwith weights and corrections: {found.losses[found.kept]:.4f}, {way}")
        if found.nested is not None:
            show(heading(f"On rows it has not seen: {found.nested.title}"), figures_page(found.nested))
        show(*([f"\n{note}"] if note else []))
