"""Commands that look for bad rows: `suspicious` labels, and `sources` whose labels the others contradict."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from .data import Data, reads_cells, reads_data
from .fitting import JSON, SCHEMA, TARGET, WEIGHTS, schema_of
from .models import output_to, place, save_bytes
from .terminal import say, show, show_json

if TYPE_CHECKING:
    from ..data.guess import Reading

_EFFORT = click.option(
    "--effort", default="default", metavar="quick|default|thorough", help="How much is tried on held-out rows."
)


def _confidence(default: float, help: str) -> Callable[[Any], Any]:
    return click.option(
        "--confidence",
        type=click.FloatRange(0, 1, min_open=True, max_open=True),
        default=default,
        show_default=True,
        help=help,
    )


@click.command(short_help="Labels that the other rows contradict.")
@TARGET
@output_to("Write the rows to review, with all columns: .csv, .tsv, .jsonl or .parquet; - for standard output (CSV).")
@click.option(
    "--top", type=click.IntRange(min=1), metavar="N", help="How many rows to write; all flagged, at least 20."
)
@_confidence(0.9, "The share of flagged labels that is wrong, at least.")
@SCHEMA
@WEIGHTS
@click.option("--textbook", is_flag=True, help="Choose nothing: α = 1, Gaussians; each row is left out by itself.")
@click.option("--folds", type=click.IntRange(min=2), metavar="N", help="Hold rows out in N parts.  [default: 10]")
@click.option("--groups", metavar="COLUMN", help="Rows with equal values there are held out together; no evidence.")
@_EFFORT
@JSON
@reads_cells
@reads_data
def suspicious(
    data: Data,
    target: str | None,
    output: str | None,
    top: int | None,
    confidence: float,
    schema_file: str | None,
    weights: str | None,
    textbook: bool,
    folds: int | None,
    groups: str | None,
    effort: str,
    as_json: bool,
    reading: Reading,
) -> None:
    """Rows of DATA whose label the other rows contradict, the most suspicious first, with the terms that do.

    Every row is scored by counts that it is not in. How many labels are wrong is estimated from all rows, and as many
    are flagged as keep the share of right ones below 1 − confidence. Review FILE and correct its column of labels, then
    `forget MODEL FILE` as it was written and `update MODEL CORRECTED`.
    """
    from ..data.files.writer import output_format
    from ..selection.audit.suspicious import suspicious as found_in

    form = "csv" if output in (None, "-") else output_format(output, None)[0]
    held_out = folds or ("leave-one-out" if textbook and groups is None else 10)
    given = _given(data, target, schema_file, weights, reading, textbook)
    with data.open("auditing", work=True) as source:
        found = found_in(source, confidence=confidence, effort=effort, folds=held_out, groups=groups, **given)
    written = None
    if output is not None:
        table = found.review(top)
        save_bytes(output, _bytes_of(table, form))
        written = f"{output}: {table.num_rows:,} rows to review"
    if as_json:
        figures: dict[str, Any] = {"labels": len(found.rows), "unjudged": found.unjudged, "flagged": found.flagged}
        figures |= {"contradicted": found.contradicted, "expected_wrong": found.expected}
        figures |= {"p_value": found.noise.p_value, "rows": found.flagged_rows}
        show_json({**figures, "by_class": found.by_class().to_pylist()})
    elif output != "-":
        show(found)
    if written is not None:
        say(written, error=output == "-" or as_json)


def _given(
    data: Data, target: str | None, schema_file: str | None, weights: str | None, reading: Reading, textbook: bool
) -> dict[str, Any]:
    """What the library is told of the columns."""
    settings = {"settings": {"smoothing": 1, "families": "gaussian"} if textbook else None}
    if schema_file is None:
        if target is None:
            raise click.UsageError("say which column holds the labels: --target COLUMN (or give a --schema)")
        return {"target": target, "weights": weights, **settings, **reading.options}
    with data.open("looking") as source:
        return {"schema": schema_of(source, schema_file, target, reading, weights), **settings}


def _bytes_of(table: Any, form: str) -> bytes:
    """A table as a file has it."""
    import io

    from ..data.files.writer import row_writer

    sink = io.BytesIO()
    with row_writer(form, sink) as write:
        write({name: table[name].combine_chunks() for name in table.column_names})
    return sink.getvalue()


@click.command(short_help="What each source of rows gives or costs.")
@TARGET
@click.option("--by", metavar="COLUMN", required=True, help="Says where a row comes from: site, annotator, day.")
@click.option(
    "-o", "--output", type=click.Path(), callback=place, metavar="FILE.csv", help="Write the figures of all sources."
)
@_confidence(0.95, "Of the intervals and of calling a source suspect, for all sources at once.")
@SCHEMA
@WEIGHTS
@click.option("--textbook", is_flag=True, help="Choose nothing: α = 1, Gaussians.")
@click.option("--folds", type=click.IntRange(min=2), default=5, show_default=True, metavar="N", help="Held-out parts.")
@_EFFORT
@JSON
@reads_cells
@reads_data
def sources(
    data: Data,
    target: str | None,
    by: str,
    output: str | None,
    confidence: float,
    schema_file: str | None,
    weights: str | None,
    textbook: bool,
    folds: int,
    effort: str,
    as_json: bool,
    reading: Reading,
) -> None:
    """What each source of DATA gives or costs the others on held-out rows, and whose labels the others contradict.

    Each source is left out in turn by subtraction, exactly as if it had never been counted.
    `forget MODEL DATA --by COLUMN --source VALUE` takes one out of a model.
    """
    from ..selection.audit.sources import sources as found_in

    given = _given(data, target, schema_file, weights, reading, textbook)
    with data.open("auditing", work=True) as source:
        found = found_in(source, confidence=confidence, effort=effort, folds=folds, by=by, **given)
    if output is not None:
        save_bytes(output, _bytes_of(found.table, "csv"))
    if as_json:
        show_json({"by": by, "suspects": found.suspects, "sources": found.table.to_pylist()})
    elif output != "-":
        show(found)
        if found.suspects:
            from shlex import quote

            first = quote(found.suspects[0])
            show(f"\nTo take one out: tallybayes forget MODEL {data.spelt} --by {quote(by)} --source {first}")
