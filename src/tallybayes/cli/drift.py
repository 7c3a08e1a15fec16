"""The command that asks whether rows still come from what was learnt: `shift`."""

from __future__ import annotations

from dataclasses import asdict

import click

from .data import Data, reads_data
from .models import holds_counts, load_counts
from .terminal import show, show_json


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
