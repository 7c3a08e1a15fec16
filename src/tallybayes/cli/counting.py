"""Commands that add to a model or take away from it: `update`, `forget`, `merge`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from .data import Data, reads_data
from .models import MODEL, changing, load_model, output_to, save_model
from .terminal import say

if TYPE_CHECKING:
    from ..model.model import Model

_INSTEAD = output_to("Write here and leave MODEL as it is; - for standard output.", metavar="MODEL")
_WEIGHTS = click.option("--weights", metavar="COLUMN", help="The column that holds the weight of each row.")


@click.command(short_help="Count more rows.")
@MODEL
@_WEIGHTS
@_INSTEAD
@reads_data
def update(model: str, data: Data, weights: str | None, output: str | None) -> None:
    """Count the rows of DATA, too. MODEL is replaced at once or not at all; two at once wait for each other."""
    with changing(output or model, model):
        known = load_model(model)
        with data.open("counting") as source:
            new = known.update(source, weights=weights)
        _save(known, new, output or model)


@click.command(short_help="Uncount rows, as if never seen.")
@MODEL
@_WEIGHTS
@_INSTEAD
@reads_data
def forget(model: str, data: Data, weights: str | None, output: str | None) -> None:
    """Make a model as if the rows of DATA had never been counted. MODEL is replaced at once or not at all.

    Families and weights that were chosen with these rows stay; `fit` again to choose anew.
    """
    with changing(output or model, model):
        known = load_model(model)
        with data.open("forgetting") as source:
            new = known.forget(source, weights=weights)
        _save(known, new, output or model)


@click.command(short_help="Add up models counted apart.")
@click.argument("models", nargs=-1, required=True, type=click.Path(), metavar="MODEL MODEL…")
@output_to("The file to write; - for standard output.", metavar="MODEL", required=True)
def merge(models: Sequence[str], output: str) -> None:
    """Add up models that were counted apart, as if one had counted all rows.

    They must have been counted under one schema: `fit --save-schema FILE` writes it, `fit --schema FILE` shares it. The
    settings are those of the first.
    """
    if len(models) < 2:
        raise click.UsageError("give at least two models to add up")
    with changing(output, *models):
        _merge(models, output)


def _merge(models: Sequence[str], output: str) -> None:
    from ..base.errors import CannotEstimate, warn
    from ..tally.tally import add_tallies

    each = [load_model(path) for path in models]
    tallies = [m.tally for m in each if m.tally is not None]
    if len(tallies) < len(each):
        path = next(p for p, m in zip(models, each, strict=True) if m.tally is None)
        raise CannotEstimate(f"{path} was written down without counts", hint="merge models that were counted.")
    if any(m.settings != each[0].settings for m in each[1:]):
        warn(f"the models have different settings; those of {models[0]} are kept")
    _save(each[0], each[0]._changed(add_tallies(tallies)), output)


def _save(old: Model, new: Model, path: str) -> None:
    from ..base.canon import many

    assert old.tally is not None and new.tally is not None
    note = save_model(new, path)
    say(f"{note}, {old.tally.rows:,} → {many(new.tally.rows, 'row')}", error=path == "-")
    if new.settings.calibrated is not None and new.settings.calibrated.changed:
        changed, of = new.settings.calibrated.changed, new.settings.calibrated.rows
        say(
            f"its weights were fitted on {many(of, 'row')}; {many(changed, 'has', 'have')} changed since",
            error=path == "-",
        )
