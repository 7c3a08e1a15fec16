"""Commands that write a model down for others: `show`, `report`, `export`, `share`."""

from __future__ import annotations

import functools
import hashlib
import os
import re
from typing import TYPE_CHECKING, Any

import click

from .data import Data, reads_data
from .models import MODEL, load_model, output_to, save_bytes, save_model
from .terminal import heading, picture_of, say, show, show_json

if TYPE_CHECKING:
    from ..model.model import Model

FORMATS = ("sealed", "json", "onnx", "card", "sql")


@click.command("show", short_help="Read a model like a page.")
@MODEL
@click.option(
    "--column", "columns", multiple=True, metavar="COLUMN", help="The whole table of this column; repeatable."
)
@click.option("--top", default=5, show_default=True, help="How many of the most telling values per class.")
@click.option("--plot", "plotted", is_flag=True, help="With --column: also draw the column, class by class.")
@click.option("--reveals", is_flag=True, help="What others can read out of the file: --top lines of each column.")
@click.option("--json", "as_json", is_flag=True, help="Print the same as JSON.")
def show_(model: str, columns: tuple[str, ...], top: int, plotted: bool, reveals: bool, as_json: bool) -> None:
    """A model as a page to read: classes, columns, tables, and what is most telling."""
    from .screens import column_page, model_page, provenance_page

    if plotted and not columns:
        raise click.UsageError("which column is to be drawn? --plot goes with --column COLUMN")
    found = load_model(model)
    if reveals:
        _show_revealed(found, columns, top, as_json)
        return
    if as_json:
        show_json(_facts(found, columns))
        return
    from ..base.canon import many

    rows = "written by hand" if found.tally is None else many(found.tally.rows, "row")
    show(heading(f"{model}: {found.schema.target} from {many(len(found.beliefs), 'column')}, {rows}"))
    if columns:
        for column in columns:
            show(heading(f"{column}: {found.schema[column].reason}"), *column_page(found, column, 1_000))
            if plotted:
                show("", picture_of(found, column))
    else:
        show(*model_page(found, top))
        show(heading("Where it comes from"), provenance_page(found.provenance))
        if found.tally is not None and found.tally.least_rows:
            show(f"\nA copy for others, without what fewer than {found.tally.least_rows} rows had.")


def _show_revealed(model: Model, columns: tuple[str, ...], top: int, as_json: bool) -> None:
    from .screens import reveals_page

    found = model.reveals()
    for column in columns:
        if column != model.schema.target:
            model.schema[column]  # an unknown name is an error with a hint
    some = [c for c in found.columns if not columns or c.column in columns]
    if as_json:
        show_json(found.to_dict() | {"columns": [c.to_dict() for c in some]})
        return
    show(f"{found.title}\n(values, words and cells are listed where fewer than {found.below} rows have them)")
    for each in some:
        show(*reveals_page(each, top))


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
        "provenance": model.provenance.to_dict(),
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

    The page needs no network. Its pictures need matplotlib: pip install matplotlib.
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
@click.option(
    "--keep", multiple=True, metavar="COLUMN", help="sql: a column to return with the answers, such as a key; "
    "repeatable. Without it, the columns that the model reads.",
)  # fmt: skip
@click.option(
    "--weights-table", metavar="NAME", help="sql: the table that the script makes or replaces; by default called after "
    "the file MODEL.",
)  # fmt: skip
def export(
    model: str, out_format: str | None, output: str | None, table: str, dialect: str, keep: tuple[str, ...],
    weights_table: str | None,
) -> None:  # fmt: skip
    """Write MODEL in a form that others use: a sealed scorer without counts, JSON, ONNX, a model card, SQL.

    The format follows from the end of FILE: .sealed.parquet, .json, .onnx, .md or .sql. SQL is a script that makes a
    table of weights in one transaction, where one is needed, and returns the answers to all rows of --table.
    """
    known = load_model(model)
    path = output or "-"
    if out_format == "sql" or (out_format is None and path.endswith(".sql")):
        named = weights_table if weights_table is not None else _called_after(model)
        content = str(known.to_sql(table, dialect, keep=keep or None, weights_table=named)).encode()
    elif keep or weights_table is not None:
        raise click.UsageError("--keep and --weights-table are for --format sql")
    elif out_format is None and path == "-":
        raise click.UsageError("say what to write: --format " + "|".join(FORMATS) + ", or -o FILE")
    else:
        content = known.export(None, out_format or _ending(path))
    save_bytes(path, content)
    if path != "-":
        say(f"{path}: {len(content):,} bytes")


@click.command(short_help="A copy for others, without what few rows have.")
@MODEL
@click.option(
    "--at-least", default=5, show_default=True, type=click.IntRange(min=2), metavar="ROWS", help="What fewer have goes."
)
@output_to("The copy; - for standard output.", metavar="COPY", required=True)
@functools.partial(reads_data, required=False)
def share(model: str, data: Data | None, at_least: int, output: str) -> None:
    """A copy of MODEL without classes, values, words, pairs and cells of numbers that few rows have.

    It says what was left out and, with labelled rows as DATA, how the answers change. The copy can be updated and
    merged; rows that had what was left out cannot be forgotten from it. `show MODEL --reveals` lists what a file gives
    away.
    """
    if output != "-" and model != "-" and os.path.realpath(output) == os.path.realpath(model):
        raise click.UsageError(f"the copy would take the place of {model}: give another file with -o")
    from ..base.canon import many

    shared = load_model(model).share(at_least)
    lines = [str(shared)]
    if data is not None:
        with data.open("comparing") as source:
            found = shared.measured(source)
        lines.append(
            f"{data.name}: {many(int(found['rows']), 'row')}, log loss {found['log_loss']:.4f} → "
            f"{found['log_loss_of_copy']:.4f}, "
            f"{found['other_answers']:.2%} of the answers are others"
        )
    lines.append(save_model(shared.model, output))
    if output == "-":
        for line in "\n".join(lines).split("\n"):
            say(line, error=True)
    else:
        show(*lines)


def _called_after(path: str) -> str | None:
    """A name for the table of weights that stays when the model is updated, and no other file's model has.

    What is no plain letter of the file's name is replaced, and a digest tells such names apart.
    """
    name = os.path.basename(path).removesuffix(".parquet").removesuffix(".tb")
    plain = re.sub("[^a-z0-9_]+", "_", name.lower())[:30]
    told = "" if plain == name else "_" + hashlib.sha256(name.encode()).hexdigest()[:6]
    return None if path == "-" else f"tallybayes_{plain}{told}"


def _ending(path: str) -> str:
    from ..store.export import FORMATS as endings

    return next((form for form, end in endings.items() if path.endswith(end)), path)
