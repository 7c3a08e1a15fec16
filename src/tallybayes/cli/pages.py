"""Commands that write a model down for others: `show`, `report`, `export`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from .data import Data, reads_data
from .models import MODEL, load_model, output_to, save_bytes
from .terminal import heading, say, show, show_json

if TYPE_CHECKING:
    from ..model.model import Model

FORMATS = ("sealed", "json", "onnx", "card", "sql")


@click.command("show", short_help="Read a model like a page.")
@MODEL
@click.option(
    "--column", "columns", multiple=True, metavar="COLUMN", help="The whole table of this column; repeatable."
)
@click.option("--top", default=5, show_default=True, help="How many of the most telling values per class.")
@click.option("--json", "as_json", is_flag=True, help="Print the same as JSON.")
def show_(model: str, columns: tuple[str, ...], top: int, as_json: bool) -> None:
    """A model as a page to read: classes, columns, tables, and what is most telling."""
    from .screens import model_page, table_page

    found = load_model(model)
    if as_json:
        show_json(_facts(found, columns))
        return
    from ..base.canon import many

    rows = "written by hand" if found.tally is None else many(found.tally.rows, "row")
    show(heading(f"{model}: {found.schema.target} from {many(len(found.beliefs), 'column')}, {rows}"))
    if columns:
        for column in columns:
            show(heading(f"{column}: {found.schema[column].reason}"), table_page(found, column, 1_000))
    else:
        show(*model_page(found, top))
        if found.tally is not None:
            show(f"\nDigest of the counts: {found.tally.digest}")


def _facts(model: Model, columns: tuple[str, ...]) -> dict[str, Any]:
    """The page as plain values."""
    tables = {}
    for name in columns or model.beliefs:
        table = model.table(name)
        tables[name] = {"title": table.title, "rows": table.rows, "values": table.values.tolist()}
    families = {name: family.describe() for name, family in model.families.items()}
    return {
        "target": model.schema.target,
        "rows": None if model.tally is None else model.tally.rows,
        "digest": None if model.tally is None else model.tally.digest,
        "classes": list(model.classes),
        "prior": list(model.prior().values()),
        "columns": [
            {
                "name": c.name,
                "kind": c.kind,
                "why": c.reason,
                "family": families.get(c.name),
                "weight": model.settings.weight_of(c.name),
            }
            for c in model.schema.columns
        ],
        "tables": tables,
    }


@click.command(short_help="One HTML page about a model.")
@MODEL
@output_to("The page; - for standard output.", required=True)
@reads_data
def report(model: str, data: Data, output: str) -> None:
    """One page of HTML about MODEL on the rows of DATA: figures, pictures, mistakes, the model as a nomogram.

    The page needs no network. Its pictures need the extra `plot`: pip install 'tallybayes[plot]'.
    """
    from ..explain.report.page import report as write_report

    known = load_model(model)
    with data.open("reading") as source:
        page = write_report(known, source)
    save_bytes(output, page.encode())
    if output != "-":
        say(f"{output}: {len(page):,} characters")


@click.command(short_help="Write a model for other programs.")
@MODEL
@click.option("--format", "out_format", type=click.Choice(FORMATS), help="What to write, where FILE does not say so.")
@output_to("Write to this file; - for standard output.")
@click.option("--table", default="rows", show_default=True, help="sql: the table that holds the rows.")
@click.option(
    "--dialect",
    type=click.Choice(["duckdb", "sqlite", "spark", "postgres"]),
    default="duckdb",
    show_default=True,
    help="sql: the database.",
)
def export(model: str, out_format: str | None, output: str | None, table: str, dialect: str) -> None:
    """Write MODEL in a form that others use: a sealed scorer without counts, JSON, ONNX, a model card, SQL.

    The format follows from the end of FILE: .sealed.parquet, .json, .onnx, .md or .sql.
    """
    known = load_model(model)
    path = output or "-"
    if out_format == "sql" or (out_format is None and path.endswith(".sql")):
        scorer = known.to_sql(table, dialect)
        content = "".join(
            f"{statement.rstrip().rstrip(';')};\n" for statement in (*scorer.setup, scorer.query)
        ).encode()
    elif out_format is None and path == "-":
        raise click.UsageError("say what to write: --format " + "|".join(FORMATS) + ", or -o FILE")
    else:
        content = known.export(None, out_format or _ending(path))
    save_bytes(path, content)
    if path != "-":
        say(f"{path}: {len(content):,} bytes")


def _ending(path: str) -> str:
    from ..store.export import FORMATS as endings

    return next((form for form, end in endings.items() if path.endswith(end)), path)
