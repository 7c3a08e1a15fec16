"""Commands that keep a model up to date: `update`, `forget`, `merge`, `subtract`, `recalibrate`, and `shift`, which
asks whether the rows of today still come from what was learnt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from .data import Data, reads_data
from .models import MODEL, changing, holds_counts, load_counts, load_model, output_to, save_model
from .terminal import say, show, show_json

if TYPE_CHECKING:
    from ..model.model import Model
    from ..tally.tally import Tally

_INSTEAD = output_to("Write here and leave MODEL as it is; - for standard output.", metavar="MODEL")
_WEIGHTS = click.option("--weights", metavar="COLUMN", help="The column that holds the weight of each row.")


@click.command(short_help="Count more rows.")
@MODEL
@_WEIGHTS
@click.option(
    "--new-classes",
    type=click.Choice(["allow", "refuse"]),
    default="allow",
    show_default=True,
    help="What becomes of a label that MODEL has never seen: a class of its own, or nothing is counted.",
)
@_INSTEAD
@reads_data
def update(model: str, data: Data, weights: str | None, new_classes: str, output: str | None) -> None:
    """Count the rows of DATA, too. MODEL is replaced at once or not at all; two at once wait for each other."""
    with changing(output or model, model):
        known = load_model(model)
        with data.open("counting") as source:
            new = known.update(source, weights=weights, new_classes=new_classes)
        _save(known, new, output or model)
        _tell_new_classes(known, new, error=output == "-" or model == "-")


def _tell_new_classes(old: Model, new: Model, *, error: bool) -> None:
    """A line for every class that has come."""
    from ..base.canon import printable

    assert old.tally is not None and new.tally is not None
    weights = dict(zip(new.tally.classes, new.tally.class_weights().tolist(), strict=True))
    for label in new.tally.classes:
        if label not in old.tally.classes:
            say(f"new class of {new.schema.target}: {printable(label)} ({weights[label]:,.10g})", error=error)


@click.command(short_help="Uncount rows, as if never seen.")
@MODEL
@_WEIGHTS
@click.option(
    "--by", metavar="COLUMN", help="Says where a row comes from; with --source only rows of one are forgotten."
)
@click.option("--source", "value", metavar="VALUE", help="The value of --by whose rows are forgotten; others stay.")
@_INSTEAD
@reads_data
def forget(model: str, data: Data, weights: str | None, by: str | None, value: str | None, output: str | None) -> None:
    """Make a model as if the rows of DATA had never been counted. MODEL is replaced at once or not at all.

    With --by site --source north only the rows of DATA that have north as their site.
    Families and weights that were chosen with these rows stay; `fit` again to choose anew.
    """
    if (by is None) != (value is None):
        raise click.UsageError("--by COLUMN and --source VALUE go together")
    with changing(output or model, model):
        known = load_model(model)
        with data.open("forgetting") as source:
            if by is not None:
                from ..selection.audit.sources import rows_of_source

                source = rows_of_source(source, value, by)
            new = known.forget(source, weights=weights)
        _save(known, new, output or model)


@click.command(short_help="Add up models or tallies counted apart.")
@click.argument("models", nargs=-1, required=True, type=click.Path(), metavar="MODEL MODEL…")
@output_to("The file to write; - for standard output.", metavar="MODEL", required=True)
def merge(models: Sequence[str], output: str) -> None:
    """Add up models, or tallies that were saved, which were counted apart, as if one had counted all rows.

    They must have been counted under one schema: `fit --save-schema FILE` writes it, `fit --schema FILE --no-gaps
    --pairs no` counts by it alone. The settings are those of the first: weights and corrections know nothing of the
    rows of the others, and `recalibrate` fits them anew.
    """
    if len(models) < 2:
        raise click.UsageError("give at least two models to add up")
    with changing(output, *models):
        _merge(models, output)


def _merge(models: Sequence[str], output: str) -> None:
    from ..base.errors import warn
    from ..tally.tally import Tally, add_tallies

    each = [load_counts(path) for path in models]
    tallies = [_tally(path, kept) for path, kept in zip(models, each, strict=True)]
    known: dict[str, str] = {}
    for path, tally in zip(models, tallies, strict=True):
        if tally.rows and tally.digest in known:
            warn(f"{known[tally.digest]} and {path} hold the same counts: are their rows to be counted twice?")
        known.setdefault(tally.digest, path)
    total = add_tallies(tallies)
    first = each[0]
    if isinstance(first, Tally):
        _save(first, total, output)
        return
    if any(m.settings != first.settings for m in each[1:] if not isinstance(m, Tally)):
        warn(f"the models have different settings; those of {models[0]} are kept")
    rows = total.rows - _tally(models[0], first).rows
    history = first.history.merged([m.history for m in each[1:] if not isinstance(m, Tally)], rows)
    _save(first, first._changed(total, history=history), output, told=False)
    fitted = first.settings.calibrated
    if fitted is not None:
        say(
            f"its weights and corrections are those of {models[0]}, fitted on {fitted.rows:,} rows; {rows:,} rows of "
            f"the others had no part in them. Fit them anew: tallybayes recalibrate {output} DATA",
            error=output == "-",
        )


@click.command(short_help="Take away what was counted apart.")
@MODEL
@click.argument("other", type=click.Path())
@_INSTEAD
def subtract(model: str, other: str, output: str | None) -> None:
    """Take the rows of OTHER out of MODEL, both models or tallies that were saved: the rows themselves are not needed.

    A stream whose tallies are saved hour by hour drops its oldest hour so. MODEL is replaced at once or not at all, and
    stays as it is if the rows of OTHER cannot all be in it.
    """
    with changing(output or model, model):
        known = load_counts(model)
        new = known.forget(_tally(other, load_counts(other)))
        _save(known, new, output or model)


@click.command(short_help="Fit weights anew, counts stay.")
@MODEL
@_WEIGHTS
@click.option(
    "--effort", metavar="quick|default|thorough", help="How much is tried on held-out rows; unless said, as before."
)
@click.option(
    "--groups", metavar="COLUMN", help="Rows with equal values there are held out together; unless said, as before."
)
@click.option(
    "--order", metavar="COLUMN|yes|no", help="Times, of which stretches are held out; yes: the order of rows."
)
@_INSTEAD
@reads_data
def recalibrate(
    model: str,
    data: Data,
    weights: str | None,
    effort: str | None,
    groups: str | None,
    order: str | None,
    output: str | None,
) -> None:
    """Fit the weights and corrections of a model anew on the rows of DATA, which may be old ones, new ones or both.

    What was counted stays, and so do families and pairs. The rows of DATA have labels; they are not counted. MODEL is
    replaced at once or not at all.
    """
    with changing(output or model, model):
        known = load_model(model)
        with data.open("fitting weights", work=True) as source:
            by = {"yes": True, "no": False}.get(order or "", order)
            new = known.recalibrate(source, weights=weights, effort=effort, groups=groups, order=by)
        path = output or model
        say(save_model(new, path), error=path == "-")
        say(f"weights: {new.settings.calibrated}", error=path == "-")


@click.command(short_help="Make ready for sets of classes.")
@MODEL
@click.option(
    "--folds", metavar="N", type=click.IntRange(min=2), help="Leave rows out by so many folds, not one by one."
)
@click.option("--json", "as_json", is_flag=True, help="Print how large the sets are as JSON.")
@_INSTEAD
@reads_data
def sets(model: str, data: Data, folds: int | None, as_json: bool, output: str | None) -> None:
    """Make MODEL ready for predict --sets by the rows of DATA: all rows that it has counted, or rows it has never seen.

    Each row is scored by the model without it, and how strange its class was is kept with the model. Rows of an update
    are added; forget and recalibrate take the sets away. What is shown is how large sets are on average.
    """
    from ..model.sets import LEVELS, sets_of

    with changing(output or model, model):
        known = load_model(model)
        with data.open("calibrating", work=True) as source:
            new = known.with_sets(source, folds=folds)
        path, found = output or model, sets_of(new)
        say(save_model(new, path), error=path == "-" or as_json)
        if as_json:
            sizes = {f"{level:g}": size for level, size in zip(LEVELS, found.sizes, strict=True)}
            show_json({"rows": found.rows, "how": found.how, "sizes": sizes})
        else:
            show(found)


@click.command(short_help="Whether rows still come from what was learnt.")
@click.argument("old", type=click.Path(), metavar="OLD")
@click.option("--json", "as_json", is_flag=True, help="Print the same as JSON.")
@reads_data
def shift(old: str, data: Data, as_json: bool) -> None:
    """How DATA differs from OLD, column by column, with p-values that count how many columns were asked about.

    OLD is a model, or a tally that was saved. DATA is another one, or rows: with their labels if they have the column
    of labels, else without. Rows without labels are compared with the mixture of all classes, and it is said whether
    another mixture of the same classes would explain what has moved.
    """
    from ..model.joint.shift import shift as compared

    before = load_counts(old)
    if isinstance(data.path, str) and holds_counts(data.path):
        found = compared(before, load_counts(data.path))
    else:
        with data.open("counting") as source:
            found = compared(before, source)
    if as_json:
        columns = [asdict(s) | {"verdict": s.verdict, "reason": s.reason} for s in found]
        show_json({"rows": found.rows, "columns": columns, "mixture": found.mixture, "summary": found.summary})
        return
    show(found)


def _tally(path: str, kept: Model | Tally) -> Tally:
    """The counts of a file."""
    from ..base.errors import CannotEstimate
    from ..tally.tally import Tally

    tally = kept if isinstance(kept, Tally) else kept.tally
    if tally is None:
        raise CannotEstimate(f"{path} was written down without counts", hint="take models that were counted.")
    return tally


def _save(old: Model | Tally, new: Model | Tally, path: str, *, told: bool = True) -> None:
    from ..base.canon import many
    from ..tally.tally import Tally

    before, after = (_tally(path, kept) for kept in (old, new))
    note = save_model(new, path)
    say(f"{note}, {before.rows:,} → {many(after.rows, 'row')}", error=path == "-")
    if before.rows == after.rows:
        say("tallybayes: no rows with a label were given: the counts are as they were", error=True)
    if told and not isinstance(new, Tally) and (fitted := new.settings.calibrated) is not None and fitted.changed:
        changed = many(fitted.changed, "has", "have")
        say(f"its weights were fitted on {many(fitted.rows, 'row')}; {changed} changed since", error=path == "-")
