"""What a person at a terminal sees: lines, tables, errors and a progress bar, never a raw control character.

Hints of the library are put into the words of the command line: `tb.read(path, encoding='cp1252')` is
`--encoding cp1252`. Colours, wrapping and the bar are for a terminal; a pipe gets plain lines, and no bar.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

from ..base.errors import TallybayesError
from ..base.wording import printable

_WIDE = 100  # columns of a page that no terminal bounds
_LONGEST = 500  # characters of one line of a message
_PATIENCE = 1.0  # seconds before a bar is worth looking at
# Python in hints, and what of the command line it is. A hint may also name both: `fold=True (--fold)`
_WORDS = {
    "target='…'": "--target COLUMN",
    "model.save(path)": "tallybayes fit -o MODEL",
    "schema.save(path)": "tallybayes fit --save-schema FILE",
    "schema.save('schema.json') on one machine, Schema.load on the other": "--save-schema FILE for the one, --schema "
    "FILE for the other",
    "tb.count(a, schema) + tb.count(b, schema)": "tallybayes fit each with --schema FILE, then tallybayes merge",
    "tb.fit(data, target, calibrate='isotonic')": "tallybayes fit",
    "leave calibrate='counted' away in tb.fit": "fit without --counted-weights",
    "calibrate='counted' needs": "--counted-weights needs",
    "leave calibrate away": "leave --counted-weights away",
    "let tb.infer make the schema (it looks at the data for cells)": "leave --schema out (fit looks at the data)",
    "give them to tb.infer, which makes the schema": "make the schema with them (--save-schema FILE)",
    "model = model.with_sets(rows)": "tallybayes sets MODEL DATA",
    "model.recalibrate(rows) fits weights without it": "tallybayes fit chooses weights without it",
    "take 'counted', 'uniform', {class: probability} or Dirichlet({class: rows})": "--prior is counted, uniform or "
    "CLASS=PROBABILITY,…",
    "take 'auto', True, False, or a list of two different columns each: [('sex', 'class')]": "--pairs is auto, no, or "
    "two different columns: sex:class",
    ", or shuffle with stratify=True": "",
    "; stratify=True gives every fold its share of every class": "",
    "smooth the counts, e.g. tally.model(tb.Settings(smoothing=tb.Laplace(1.0)))": "smooth the counts: tallybayes fit "
    "--smoothing laplace:1",
    "smoothing=tb.Laplace(alpha)": "--smoothing laplace:ALPHA",
    ", or tb.Dirichlet({…})": "",
    ", or tb.Dirichlet({word: alpha})": "",
    "tb.Beta(1, 9)": "--smoothing beta:1:9",
    "; a DuckDB relation is data, too: duckdb.sql('SELECT … FROM …')": "",
    "; model.to_sql(table) is for SQL": ", 'sql' (.sql)",
    "tb.Laplace(1.0)": "--smoothing laplace:1",
    "tb.Laplace(α)": "--smoothing laplace:ALPHA",
    ", or open it with DuckDB's httpfs and give the relation: con.sql('FROM …')": "",
    "; others by a query and a connection of Python's: tb.read('SELECT …', connection)": "",
    "read it with tb.load_sealed(path)": "predict, explain, evaluate, importance and compare answer by it; what "
    "asks for counts needs the model that it was made of",
    "tb.load(path) reads a model; tb.load_sealed(path) reads what model.export(path) sealed": "tallybayes export MODEL "
    "-o FILE makes one",
    "source='…' lets": '"source" in the file of the schema lets',
    "take tb.Beta for columns read by 'bernoulli' words, tb.Dirichlet({value: rows}) for others": "take it for columns "
    "read by 'bernoulli' words: --smoothing COLUMN=beta:A:B",
    "use tb.families.Poisson() with its prior": "use the family poisson with its prior",
    "give rows: model.importance(rows)": "name DATA",
    "the model file alone opens with tb.load": "the model file alone opens with all other commands",
    "keep=[…] names": "--keep names",
    "or name it in the schema's missing=[…]": "leave it empty, or fit with --missing TEXT",
    "name it in the schema's missing=[…]": "leave it empty, fit with --missing TEXT",
    "missing=[…]": "--missing TEXT",
    "with schema=…, gaps=False and pairs=False": "by the schema of the first: --schema FILE --no-gaps --pairs no",
    "fold=True makes": "--fold makes",
    "take odd cells as missing: strict=False": "leave out --strict, which takes odd cells as missing",
    'say which column tells them: by="site"': "say which column tells them: --by site",
    "give settings=tb.Settings(…), or folds=10": "take --textbook, or --folds 10",
    "mend date_format": "mend --date-format",
    "in the order of model.classes": "in the order of the classes",
    ": tb.Model.written(prior, tables, strength=100)": " (in Python)",
    "tb.Model.written(prior, tables, strength=100) makes one that counts": "a model written with a strength counts",
    "or give format=": "or give --format ",
    "tb.load(path, trusted=True) reads a file you know to be right": "take it anew from where it came",
    "tb.Tally.load(path) reads the counts alone; tb.load(path, trusted=True) makes the model": "take it anew from "
    "where it came, or read its counts alone in Python",
    ": tb.load(path, like='model.tb.parquet')": " (in Python, like=)",
    "name it: tb.Windows(schema, by, time='…')": "name it: --time COLUMN",
    "windows.save(path) writes such a folder": "tallybayes windows add FOLDER DATA --by day --time COLUMN --target "
    "COLUMN makes one",
    "time='…' names": "--time names",
    "'number' (time= names a column of whole numbers)": "'number' (--time names a column of whole numbers)",
    "say so: forget(rows, period=3)": "say so: --period 3",
    "rows are numbered as they come: leave time out": "rows are numbered as they come: leave --time out",
    "a window begins at start, or has the last periods": "take one of --start, --last and --half-life",
    "load the folder again, and repeat what was changed": "repeat the command",
    "add files with tb.load(path, like=model) instead": "merge models that were fitted with one --schema",
}
Tell = Callable[..., None]  # (rows read, share done or None, and what is being done)
_OPTIONS = (
    *("keep", "delimiter", "encoding", "decimal", "bad_lines", "memory_limit", "table", "query", "new_classes"),
    *("date_format", "kind", "effort", "smoothing", "prior", "pairs", "unlabelled"),
)
_BOTH = re.compile(r"[\w.]+(?:\([^()]*\)|=[^\s()]+) \((--[^()]+)\)")  # Python, and the option in brackets
_EITHER = re.compile(r"(\w+)=(['\"])(.*?)\2 or (['\"])(.*?)\4 \(--[^()]+\)")
# where standard input is kept to be read twice
_KEPT = re.compile(r"[^\s('\"]*[/\\]tallybayes-\w+[/\\]standard-input\.[\w.]*\w")
_CUT = re.compile(r"data\['high'\] = data\[(['\"])(.*?)\1\] >= (\S+),")


def say(line: str, *, error: bool = False) -> None:
    """One line of text, without the control characters that names, values and mail may hold."""
    echo(printable(line, _LONGEST) + "\n", error=error)


def echo(text: str, *, error: bool = False) -> None:
    """A text as it is, written at once: whoever reads the other end may wait for it."""
    stream = sys.stderr if error else sys.stdout
    if stream is not None:  # a program without a console has none
        stream.write(text)
        stream.flush()


def from_click(error: BaseException, name: str) -> bool:
    """Whether an error is of this class of click, which need not be loaded to tell."""
    return any(kind.__name__ == name and kind.__module__.startswith("click.") for kind in type(error).__mro__)


def complain(error: BaseException) -> None:
    """An error in plain words on standard error, where whoever called can read them."""
    if isinstance(error, KeyboardInterrupt) or from_click(error, "Abort"):
        text = "stopped; no file was changed"
    elif from_click(error, "ClickException"):
        context = getattr(error, "ctx", None)
        text = error.format_message()  # type: ignore[attr-defined]
        text += f"\n{context.get_usage()}" if context and "Usage:" not in text else ""
    elif isinstance(error, (TallybayesError, OSError)):
        text = for_commands(str(error))
    else:
        text = f"{type(error).__name__}: {error}"
    for line in f"tallybayes: {text}".split("\n"):
        if line:
            say(line, error=True)


def show(*pieces: Any) -> None:
    """Each piece on standard output: a rich table, or a text, taken as it is. Colours on a terminal only.

    Pages are as wide as the terminal; where there is none, as COLUMNS says, or 100.
    """
    from rich.console import Console

    terminal = sys.stdout.isatty()
    width = None if terminal or os.environ.get("COLUMNS", "").isdigit() else _WIDE
    out = Console(file=sys.stdout, highlight=False, markup=False, emoji=False, width=width)
    if out.legacy_windows:  # a console that would show the signs for colours
        out = Console(file=sys.stdout, highlight=False, markup=False, emoji=False, width=width, color_system=None)
    for piece in pieces:
        with out.capture() as drawn:
            out.print(
                clean(piece) if isinstance(piece, str) else piece, soft_wrap=isinstance(piece, str) and not terminal
            )
        lines = drawn.get().split("\n")
        echo("\n".join(lines if terminal else (line.rstrip() for line in lines)))


def clean(text: Any, most: int = _LONGEST, style: str = "") -> Any:
    """A text for rich, made safe to show."""
    from rich.text import Text

    if isinstance(text, Text):
        return text
    return Text("\n".join(printable(line, most) for line in str(text).split("\n")), style=style)


def show_json(value: Any) -> None:
    """A value as JSON on standard output; what is no number is null, what has no end "Infinity" or "-Infinity".

    JSON is UTF-8: where standard output is not, as in a pipe of Windows, letters beyond ASCII are escaped.
    """
    import codecs
    import json

    from ..base.wording import jsonable

    plain = codecs.lookup(getattr(sys.stdout, "encoding", None) or "utf-8").name != "utf-8"
    echo(json.dumps(jsonable(value), ensure_ascii=plain, indent=1, allow_nan=False, default=str) + "\n")


def heading(text: str) -> Any:
    """The heading of a part of a page."""
    from rich.text import Text

    return Text.assemble("\n", clean(text, style="bold"))


def grid(
    heads: Sequence[str], rows: Iterable[Sequence[Any]], left: int | Collection[int] = 1, *, fold: int | None = None
) -> Any:
    """A table: the first `left` columns, or these, flush left; the column `fold` takes what room there is and wraps."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(
        box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="dim", show_header=any(map(bool, heads))
    )
    for i, head in enumerate(heads):
        table.add_column(
            clean(head, 40),
            justify="left" if (i < left if isinstance(left, int) else i in left) else "right",
            no_wrap=fold is not None and i != fold,
            overflow="fold" if i == fold else "ellipsis",
            ratio=1 if i == fold else None,
        )
    for row in rows:
        table.add_row(
            *(cell if isinstance(cell, Text) else clean(" ".join(str(cell).split("\n")), 300) for cell in row)
        )
    return table


def picture_of(thing: Any, column: str | None = None, *, against: Any = None) -> Any:
    """A picture made of characters, for whatever terminal there is."""
    from ..explain.plots.characters import terminal

    return terminal(thing, column, against=against)


class FirstThatFits:
    """The first of some tables for which a terminal has room as they stand; the last where it has for none."""

    def __init__(self, *tables: Any) -> None:
        self.tables = tables

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        from rich.measure import Measurement

        wide = options.update(max_width=_LONGEST)
        fits = (t for t in self.tables if Measurement.get(console, wide, t).maximum <= options.max_width)
        yield next(fits, self.tables[-1])


def for_commands(text: str) -> str:
    """The text with Python calls that an option stands for replaced by that option.

    >>> for_commands("say it: tb.read(path, encoding='latin-1').")
    'say it: --encoding latin-1.'
    >>> for_commands("count it with schema.with_column('my boat', kind='category').")
    "count it with --set 'my boat=category'."
    >>> for_commands("where numbers only name classes: kinds={'y': 'category'}.")
    'where numbers only name classes: --set y=category.'
    >>> for_commands("fold=True (--fold) makes them one.")
    '--fold makes them one.'
    >>> for_commands("say which: date_format='%d/%m/%Y' or '%m/%d/%Y' (--date-format).")
    'say which: --date-format %d/%m/%Y or --date-format %m/%d/%Y.'
    >>> for_commands("1 of 9 cells (/tmp/tallybayes-ab1_c/standard-input.csv, line 2)")
    '1 of 9 cells (standard input, line 2)'
    """
    text = _EITHER.sub(lambda m: f"{_option(m[1], m[3])} or {_option(m[1], m[5])}", text)
    text = _KEPT.sub("standard input", _BOTH.sub(r"\1", text))
    for words, ours in _WORDS.items():
        text = text.replace(words, ours)
    text = re.sub(r"schema\.with_column\([^()]*, levels=L\)", '"levels": L for it in a --schema FILE', text)
    text = _CUT.sub(r"a new column high that says whether \2 is at least \3,", text)
    text = re.sub(r"tb\.read\([^()=]*?, (\w+)=(['\"])(.*?)\2\)", lambda m: _option(m[1], m[3]), text)
    text = re.sub(
        r"(?:schema\.with_column\(|kinds=\{)(['\"])(.*?)\1(?:, kind=|: )(['\"])(\w+)\3[)}]",
        lambda m: f"--set {shlex.quote(f'{m[2]}={m[4]}')}",
        text,
    )
    text = re.sub(r"\b(" + "|".join(_OPTIONS) + r")=(['\"])(.*?)\2", lambda m: _option(m[1], m[3]), text)
    return re.sub(r"\b(folds|repeats|seed)=(\d+)", lambda m: _option(m[1], m[2]), text)


def _option(name: str, value: str) -> str:
    name = "read-as" if name == "format" else name.replace("_", "-")
    return f"--{name} {shlex.quote(value)}"


@contextlib.contextmanager
def bar(what: str = "reading", stream: Any = None, hidden: bool = False) -> Iterator[Tell | None]:
    """A callback for `tb.read(…, progress=…)` that draws a bar on standard error, or None where nobody watches.

    The bar appears after a second and leaves no trace. Reading again, as `fit` does, starts it again.

    >>> import io
    >>> with bar("counting", io.StringIO()) as tell:
    ...     print(tell)
    None
    """
    stream = sys.stderr if stream is None else stream
    if hidden or not stream.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[rows]:,} rows"))
    shown = Progress(*columns, TimeRemainingColumn(), console=Console(file=stream), transient=True)
    task = shown.add_task(what, total=None, rows=0)
    begun = time.monotonic()
    before = 0

    def tell(rows: int, share: float | None, now: str = what) -> None:
        nonlocal before
        if rows < before:
            shown.reset(task, rows=0)
        before = rows
        if not shown.live.is_started and time.monotonic() - begun > _PATIENCE:
            shown.start()
        total = None if share is None else 1.0
        shown.update(task, total=total, completed=share or 0.0, rows=rows, description=now)

    try:
        yield tell
    finally:
        if shown.live.is_started:
            shown.stop()
