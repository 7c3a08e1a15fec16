"""`tallybayes datasets`: data to begin with, listed or written to a file."""

from __future__ import annotations

import inspect
import os
from typing import TYPE_CHECKING

import click

from .models import save_bytes
from .terminal import grid, say, show

if TYPE_CHECKING:
    from ..data.made.dataset import Dataset

_MAIL = ("inbox", "mails")  # their messages can be written as files, a folder for each label


@click.command(short_help="Data to begin with: list it, or write it to a file.")
@click.argument("name", required=False)
@click.option("--rows", type=click.IntRange(min=1), help="How many, of those that are generated.")
@click.option("--seed", type=click.IntRange(min=0), help="Which draw, of those that are generated.  [default: 0]")
@click.option(
    "-o", "--output", type=click.Path(), metavar="FILE", help="Write the rows to a CSV, TSV, JSON lines or Parquet "
    "file; of mail, also to a FOLDER of messages. - for CSV on standard output.",
)  # fmt: skip
def datasets(name: str | None, rows: int | None, seed: int | None, output: str | None) -> None:
    """Tables of the lectures, examples, and generators whose truth is known; all of them invented.

    Without NAME all of them are listed, without -o one of them is described. The same seed gives the same rows
    everywhere.
    """
    if name is None:
        if rows is not None or seed is not None or output is not None:
            raise click.UsageError("which data set? tallybayes datasets lists them")
        _list_all()
        return
    from ..data.made.datasets import load

    options = {key: value for key, value in (("rows", rows), ("seed", seed)) if value is not None}
    found = load(name, **options)
    if output is None:
        show(found)
        return
    _write(found, output)


def _list_all() -> None:
    from ..data.made.datasets import load, names

    lines = []
    for name in names():
        found = load(name)
        lines.append((name, _rows(name, found), found.target or "none", found.about))
    show(grid(("name", "rows", "target", "what it is"), lines, left=(0, 2, 3), fold=3))
    show(
        "\ntallybayes datasets NAME -o FILE.csv writes one; any rows: tallybayes datasets mixed --rows 5000 -o FILE.csv"
    )


def _rows(name: str, found: Dataset) -> str:
    from ..data.made import datasets as made

    return "any" if "rows" in inspect.signature(getattr(made, name)).parameters else f"{found.rows:,}"


def _write(found: Dataset, output: str) -> None:
    folder = found.name in _MAIL and output != "-" and (os.path.isdir(output) or not os.path.splitext(output)[1])
    if folder:
        from ..data.made.datasets import write_messages

        write_messages(found, output)
        say(f"{output}: {found.rows:,} messages, in {_folders(found)}")
        return
    save_bytes(output, found.content(None, "csv") if output == "-" else found.content(output))
    if output != "-":
        aim = "" if found.target is None else f" --target {found.target}"
        say(f"{output}: {found.rows:,} rows. {found.about}")
        if aim:
            say(f"Next: tallybayes fit {output}{aim} -o MODEL")


def _folders(found: Dataset) -> str:
    return " and ".join(f"{label}/" for label in sorted(set(found["label"])))
