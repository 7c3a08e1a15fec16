"""The DATA of a command: files, folders, patterns of files, databases, or `-` for standard input; how it is read."""

from __future__ import annotations

import contextlib
import functools
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from ..data.guess import Reading
    from ..data.sources import Source


class _Format(click.Choice[str]):
    """The name of a format: one of tallybayes' own, which are listed without loading them, or one registered here."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The name, if there is such a format."""
        loaded = sys.modules.get("tallybayes.data.files.file")
        return value if loaded is not None and value in loaded.FORMATS else super().convert(value, param, ctx)


_OPTIONS = (
    click.option(
        "--read-as",
        "read_format",
        type=_Format(["csv", "tsv", "jsonl", "parquet", "arrow", "sqlite", "duckdb", "excel", "xls"]),
        help="What DATA is, where its name does not say so.",
    ),
    click.option(
        "--delimiter",
        "read_delimiter",
        metavar="CHAR",
        help="What stands between fields; , ; tab and | are found without it.",
    ),
    click.option(
        "--encoding",
        "read_encoding",
        metavar="NAME",
        help="Of a text file that is not UTF-8, such as latin-1 or cp1252.",
    ),
    click.option(
        "--decimal", "read_decimal", type=click.Choice([".", ","]), help="How decimals are written, as in 3.14 or 3,14."
    ),
    click.option(
        "--bad-lines",
        "read_bad_lines",
        type=click.Choice(["error", "skip"]),
        help="Stop at lines that are no rows, or skip.",
    ),
    click.option("--table", "read_table", metavar="NAME", help="The table of a database, or the sheet of a workbook."),
    click.option("--query", "read_query", metavar="SQL", help="Ask a database for these rows."),
)
STANDARD_INPUT = "standard input"
_NAMES = ("format", "delimiter", "encoding", "decimal", "bad_lines", "table", "query")


@dataclass(frozen=True)
class Data:
    """Some rows by name, to be opened as often as a command needs them."""

    path: str | list[str]
    name: str  # as the user called it
    options: dict[str, Any]

    @contextlib.contextmanager
    def open(self, what: str = "reading", *, work: bool = False, hidden: bool = False) -> Iterator[Source]:
        """The rows; a person at a terminal sees a bar while they are read.

        With `work` there is more to do than reading, and the bar does not pretend to know how much.
        """
        from .terminal import bar

        with bar(what, hidden=hidden) as tell:
            yield self.source(None if tell is None else (lambda rows, share: tell(rows, None if work else share)))

    @property
    def spelt(self) -> str:
        """The rows and how they are read, as a shell takes them."""
        options = ((f"--{'read-as' if n == 'format' else n.replace('_', '-')}", v) for n, v in self.options.items())
        given = "-" if self.name == STANDARD_INPUT else self.name
        paths = [given] if isinstance(self.path, str) else map(_shown, self.path)
        return shlex.join([*paths, *(word for option in options for word in option)])

    def source(self, progress: Callable[[int, float | None], None] | None = None) -> Source:
        """The rows, without a bar."""
        from ..data.sources import read

        return read(self.path, progress=progress, **self.options)


@contextlib.contextmanager
def watched(data: Data, what: str, *, hidden: bool = False) -> Iterator[tuple[Source, Any]]:
    """The rows, and what `tb.fit(…, progress=…)` takes: one bar has the rows read, what is done and how much of it."""
    from .terminal import bar

    with bar(what, hidden=hidden) as tell:
        if tell is None:
            yield data.source(), False
            return
        draw, rows, share, now = tell, 0, 0.0, what

        def read(count: int, _: float | None) -> None:
            nonlocal rows
            rows = max(rows, count)
            draw(rows, share, now)

        def step(name: str, done: float) -> None:
            nonlocal share, now
            share, now = done, name
            draw(rows, share, now)

        yield data.source(read), step


def reads_data(command: Callable[..., Any], *, required: bool = True) -> Callable[..., Any]:
    """A command that takes DATA and the options about reading it; it is called with `data`, None if not given."""

    @functools.wraps(command)
    def wrapped(*arguments: Any, data: tuple[str, ...], **options: Any) -> Any:
        given = {n: v for n in _NAMES if (v := options.pop(f"read_{n}")) is not None}
        if not data:
            return command(*arguments, data=None, **options)
        if "-" in data[1:] or (len(data) > 1 and data[0] == "-"):
            raise click.UsageError("- is standard input, and stands alone")
        path, more = data[0] if len(data) == 1 else list(data), len(data) - 1
        with _named(Data(path, f"{_shown(data[0])} and {more} more" if more else _shown(data[0]), given)) as found:
            return command(*arguments, data=found, **options)

    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    return click.argument("data", type=click.Path(), nargs=-1, required=required)(wrapped)


def _shown(name: str) -> str:
    """The name of some data as a screen may have it: an address without its password."""
    if "://" not in name:
        return name
    from ..data.files.find import shown

    return shown(name)


_CELLS = (
    click.option(
        "--missing",
        multiple=True,
        metavar="TEXT",
        help='Means missing, beside NA, ? and such; --missing "": nothing does.',
    ),
    click.option("--strict", is_flag=True, help="Stop at a cell that is no number where the others are numbers."),
    click.option(
        "--date-format", metavar="[COLUMN=]FORMAT", multiple=True, help="How dates are written, as in %d/%m/%Y."
    ),
    click.option("--fold", is_flag=True, help="Letter case and blanks of values and labels mean nothing."),
)


def reads_cells(command: Callable[..., Any]) -> Callable[..., Any]:
    """A command that infers a schema and takes the options about cells; it is called with `reading`."""

    @functools.wraps(command)
    def wrapped(
        *arguments: Any, missing: Sequence[str], strict: bool, date_format: Sequence[str], fold: bool, **options: Any
    ) -> Any:
        if options.get("schema_file") and (missing or strict or date_format or fold):
            raise click.UsageError(
                "--schema says how cells are read: leave out --missing, --strict, --date-format, --fold"
            )
        return command(*arguments, reading=_reading(missing, strict, date_format, fold), **options)

    for option in reversed(_CELLS):
        wrapped = option(wrapped)
    return wrapped


def _reading(missing: Sequence[str], strict: bool, date_formats: Sequence[str], fold: bool) -> Reading:
    """How cells are read, as it was typed."""
    from ..data.guess import Reading

    formats: Any = None
    if len(date_formats) == 1 and "=" not in date_formats[0]:
        formats = date_formats[0]
    elif date_formats:
        formats = {column: form for column, _, form in (given.rpartition("=") for given in date_formats)}
    return Reading.of([m for m in missing if m] if missing else None, strict, formats, fold)


@contextlib.contextmanager
def _named(data: Data) -> Iterator[Data]:
    """The data as a file that can be read more than once: standard input is kept in a temporary one."""
    if data.path != "-":
        yield data
        return
    from ..base.temporary import folder_for_now
    from ..data.files.file import PACKED, PACKED_MAGIC
    from ..data.files.reader import FORMATS

    with folder_for_now() as folder:
        start = sys.stdin.buffer.read(1 << 16)
        packing = next((packing for magic, packing in PACKED_MAGIC.items() if start.startswith(magic)), "")
        packed = next((f".{end}" for end, name in PACKED.items() if name == packing), "")
        kind = data.options.get("format") or next(
            (f.name for f in FORMATS.values() if f.magic and start.startswith(f.magic)),
            "jsonl" if start.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"{" else "csv",
        )
        path = os.path.join(folder, f"standard-input.{FORMATS[kind].endings[0]}{packed}")
        with open(path, "wb") as file:
            file.write(start)
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield replace(data, path=path, name=STANDARD_INPUT)
