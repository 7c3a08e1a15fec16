"""Commands of counts by period: `windows add | show | model | forget | drop | judge`, and `change` over all of them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from .choices import SMOOTHING_HELP, Choices
from .data import Data, reads_cells, reads_data
from .models import output_to, place, save_model
from .terminal import picture_of, say, show, show_json

if TYPE_CHECKING:
    from ..data.guess import Reading
    from ..tally.windows import Windows

_FOLDER = click.argument("folder", type=click.Path())
_JSON = click.option("--json", "as_json", is_flag=True, help="Print the same as JSON.")


def _stretch(command: Callable[..., Any]) -> Callable[..., Any]:
    """A command that asks for a model of some periods, or of all as they decay."""
    life = click.option(
        "--half-life", type=click.IntRange(1), metavar="N", help="Rows weigh half as much every N periods."
    )
    return click.option("--last", type=click.IntRange(1), metavar="N", help="Only the last N periods.")(life(command))


@click.group(short_help="Counts by period, for any stretch of time.")
def windows() -> None:
    """Counts by period, in a folder: a model of any stretch of time without reading its rows again.

    A folder has a Parquet file per hour, day, week, month, number, or so many rows. Rows that come late are counted
    where they belong, forgotten rows leave their own period, and a command that is stopped halfway changes nothing.
    """


@windows.command("add", short_help="Count rows, each in its period.")
@_FOLDER
@click.option(
    "--by", metavar="hour|day|week|month|number|N", help="What a period is, of a new folder; N: so many rows each."
)
@click.option("--time", metavar="COLUMN", help="The column of times, or of whole numbers; it is not counted itself.")
@click.option("--target", metavar="COLUMN", help="The column to predict, of a new folder.")
@click.option("--schema", "schema_file", type=click.Path(), metavar="FILE", help="Count by this schema.")
@click.option(
    "--set", "sets", multiple=True, metavar="COLUMN=KIND", help="What a column is, where it is not to be inferred."
)
@click.option("--weights", metavar="COLUMN", help="The column that holds the weight of each row.")
@reads_cells
@reads_data
def add(
    folder: str, data: Data, by: str | None, time: str | None, target: str | None, schema_file: str | None,
    sets: Sequence[str], weights: str | None, reading: Reading,
) -> None:  # fmt: skip
    """Count the rows of DATA, each in the period that its time lies in, in UTC.

    The first time --by, --time and --target (or --schema) say what the folder FOLDER is to hold. All rows are counted,
    or none.
    """
    from ..store.windows import is_folder
    from ..tally.windows import Windows
    from .fitting import schema_of

    with _changing(folder, new=True):
        if is_folder(folder):
            if by or time or target or schema_file or sets:
                raise click.UsageError(
                    f"{folder} knows its periods and columns: leave out --by, --time, --target, --schema and --set"
                )
            found = Windows.load(folder)
        else:
            if by is None:
                raise click.UsageError(f"there are no windows in {folder} yet: say what a period is with --by")
            choices, each = Choices.of(sets), int(by) if by.isdigit() else by
            if time is not None:
                choices.kinds.setdefault(time, "ignore")
            with data.open("looking") as source:
                schema = schema_of(source, schema_file, target, choices.read(reading), weights)
            schema = schema if schema_file else choices.applied(schema)
            found = Windows(schema, each, time)
            if time is None and found.time is not None and not schema_file and found.time not in choices.kinds:
                choices.kinds[found.time] = "ignore"
                found = Windows(choices.applied(schema), each, found.time)
        before = _rows(found)
        with data.open("counting") as source:
            found.add(source, weights=None if weights == found.schema.weights else weights)
        _save(found, folder, before)


@windows.command("show", short_help="Which periods there are, and their rows.")
@_FOLDER
@_JSON
def show_periods(folder: str, as_json: bool) -> None:
    """The periods of FOLDER and how many rows each has, without reading them."""
    from ..base.show import Page
    from ..store.windows import rows_by_period
    from ..tally.windows import Windows

    found = Windows.load(folder)
    rows = rows_by_period(found)
    if as_json:
        show_json({"by": found.by, "time": found.time, "periods": rows})
        return
    lines = [["period", "rows"], *([name, f"{n:,}"] for name, n in rows.items())]
    show(Page(repr(found), lines, [0], indent=2, foot=f"{sum(rows.values()):,} rows in all").rich())


@windows.command("model", short_help="The model of a stretch of time.")
@_FOLDER
@click.option("--start", metavar="PERIOD", help="The first period of it, such as 2024-05-31.")
@click.option("--end", metavar="PERIOD", help="The period before which it ends.")
@_stretch
@click.option("--smoothing", multiple=True, metavar="[COLUMN=]SMOOTHING", help=f"{SMOOTHING_HELP}.")
@output_to("The file to write; - for standard output.", metavar="MODEL", required=True)
def model_of(
    folder: str, start: str | None, end: str | None, last: int | None, half_life: int | None,
    smoothing: Sequence[str], output: str,
) -> None:  # fmt: skip
    """Write the model of some periods of FOLDER, or of all rows as they decay, to a file that all commands take."""
    from ..tally.windows import Windows

    found = Windows.load(folder).model(
        Choices.of((), smoothing).settings, start=start, end=end, last=last, half_life=half_life
    )
    show(str(found)) if output != "-" else None
    say(f"model written to {save_model(found, output)}", error=output == "-")


@windows.command("forget", short_help="Uncount rows, each in its period.")
@_FOLDER
@click.option("--period", metavar="PERIOD", help="Where the rows were counted, if they do not say so themselves.")
@click.option("--weights", metavar="COLUMN", help="The column that holds the weight of each row.")
@reads_data
def forget_rows(folder: str, data: Data, period: str | None, weights: str | None) -> None:
    """Make FOLDER as if the rows of DATA had never been counted."""
    from ..tally.windows import Windows

    with _changing(folder):
        found = Windows.load(folder)
        before = _rows(found)
        with data.open("forgetting") as source:
            found.forget(source, weights=None if weights == found.schema.weights else weights, period=period)
        _save(found, folder, before)


@windows.command("drop", short_help="Leave out old periods.")
@_FOLDER
@click.argument("before", metavar="PERIOD")
def drop(folder: str, before: str) -> None:
    """Take all periods before PERIOD out of FOLDER, with their files."""
    from ..tally.windows import Windows

    with _changing(folder):
        found = Windows.load(folder)
        rows = _rows(found)
        found.drop(before)
        _save(found, folder, rows)


@windows.command("judge", short_help="Each period by the model before it.")
@_FOLDER
@_stretch
@click.option("--plot", "plotted", is_flag=True, help="Also draw the log loss over time.")
@_JSON
@reads_data
def judge(folder: str, data: Data, last: int | None, half_life: int | None, plotted: bool, as_json: bool) -> None:
    """How the rows of each period of DATA would have been answered at the time: by the model of the periods before it.

    --last and --half-life say what that model is made of, so that the best of them can be chosen.
    """
    from ..selection.over_time.prequential import prequential
    from ..tally.windows import Windows

    with data.open("judging") as source:
        found = prequential(Windows.load(folder), source, last=last, half_life=half_life)
    if as_json:
        show_json({"model": found.model, "periods": [asdict(j) for j in found], "total": asdict(found.total)})
        return
    show(found)
    if plotted:
        show("", picture_of(found))


@click.command(short_help="What changed over time, and when.")
@_FOLDER
@click.option("--start", metavar="PERIOD", help="The first period that is looked at.")
@click.option("--end", metavar="PERIOD", help="The period before which looking ends.")
@click.option(
    "--plot", "picture", type=click.Path(), callback=place, is_flag=False, flag_value="-", metavar="[FILE]",
    help="Draw it, too: as PNG, SVG or PDF, or here if no file is named.",
)  # fmt: skip
@_JSON
def change(folder: str, start: str | None, end: str | None, picture: str | None, as_json: bool) -> None:
    """Which columns of the windows in FOLDER changed from one period to a later one, and when.

    Every column is asked at every time, over all classes and within each. The corrected p counts all of that: where
    nothing changes it is below 0.05 in about one folder of twenty. Rows are taken to come independently of each other.
    """
    from ..selection.over_time.scan import change as scanned
    from ..tally.windows import Windows

    found = scanned(Windows.load(folder), start=start, end=end)
    if picture not in (None, "-"):
        found.plot().figure_.savefig(picture)
    if as_json:
        columns = [asdict(c) | {"verdict": c.verdict} for c in found]
        show_json({"periods": found.periods, "rows": found.rows, "columns": columns, "summary": found.summary})
        return
    show(found)
    if picture == "-":
        show("", picture_of(found))
    elif picture is not None:
        say(f"picture written to {picture}")


@contextlib.contextmanager
def _changing(folder: str, *, new: bool = False) -> Iterator[None]:
    """Let no other command change the windows of a folder meanwhile; a new folder stays only if it gets any."""
    from ..base.disk import file_errors, locked
    from ..store.windows import there_are

    made = new and not os.path.exists(folder)
    if made:
        with file_errors(folder, "written"):
            os.makedirs(folder)
    elif not new:
        there_are(folder)
    try:
        lock = os.path.join(folder, "change")
        with locked(lock, lambda: say(f"tallybayes: another command is changing {folder}; waiting", error=True)):
            yield
    finally:
        if made:
            with contextlib.suppress(OSError):  # it holds windows now
                os.rmdir(folder)


def _rows(found: Windows) -> int:
    from ..store.windows import rows_by_period

    return sum(rows_by_period(found).values())


def _save(found: Windows, folder: str, before: int) -> None:
    from ..base.canon import many

    after = _rows(found)
    found.save(folder)
    say(f"{folder}: {before:,} → {many(after, 'row')}, {many(len(found), 'period')}")
