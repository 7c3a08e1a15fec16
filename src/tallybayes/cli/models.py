"""The MODEL of a command: a file, or `-` for standard input and output."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

from .terminal import say

if TYPE_CHECKING:
    from ..model.model import Model
    from ..tally.tally import Tally


def place(context: click.Context, option: click.Parameter, path: str | None) -> str | None:
    """The path to write to, refused before the work is done rather than after it."""
    if path is None or path == "-":
        return path
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise click.BadParameter(f"there is no folder {folder}", context, option)
    if os.path.isdir(path) or not os.access(folder, os.W_OK):
        raise click.BadParameter(f"{path} is a folder, or in one that cannot be written to", context, option)
    return path


def output_to(help: str, *, metavar: str = "FILE", required: bool = False) -> Callable[[Any], Any]:
    """The option -o: where a command writes."""
    return click.option(
        "-o", "--output", type=click.Path(), callback=place, metavar=metavar, required=required, help=help
    )


MODEL = click.argument("model", type=click.Path())
OUT_MODEL = output_to("The file to write; - for standard output.", metavar="MODEL")


def _bytes_of(path: str) -> bytes:
    from ..base.disk import file_errors, names_beside, read_whole
    from ..base.errors import FileError, ModelFileError, unknown

    try:
        with file_errors("-", "read"):
            return sys.stdin.buffer.read() if path == "-" else read_whole(path)
    except FileError as error:
        found = f"the model {error.found}"
        hint = "tallybayes fit DATA --target COLUMN -o MODEL makes one."
        raise unknown(ModelFileError, found, os.path.basename(path), names_beside(path), hint) from None


def load_counts(path: str) -> Model | Tally:
    """The model in a file, or the tally that was saved by itself."""
    from ..base.errors import ModelFileError
    from ..store.model_file import stored_from_bytes

    raw = _bytes_of(path)
    try:
        stored = stored_from_bytes(raw)
        return stored.model() if stored.kind == "model" or stored.tally is None else stored.tally
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error.found}", hint=error.hint) from None


def holds_counts(path: str) -> bool:
    """Whether a file is that of a model or a tally, and no table of rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from ..store.parquet import PREFIX

    try:
        with open(path, "rb") as file:
            if file.read(4) != b"PAR1":
                return False
        metadata = pq.read_schema(path).metadata or {}
    except (OSError, ValueError, pa.ArrowException):
        return False
    return f"{PREFIX}format".encode() in metadata


def load_model(path: str, *, sealed: bool = False) -> Model:
    """The model in a file; with `sealed` also that of a sealed scorer, which has no counts."""
    from ..base.errors import ModelFileError
    from ..store.model_file import from_bytes
    from ..store.sealed import sealed_from_bytes

    raw = _bytes_of(path)
    try:
        return from_bytes(raw)
    except ModelFileError as error:
        if sealed and error.found.startswith("a sealed scorer"):
            return sealed_from_bytes(raw)._model
        raise ModelFileError(f"{path}: {error.found}", hint=error.hint) from None


@contextlib.contextmanager
def changing(output: str, *models: str) -> Iterator[None]:
    """Let no other command change a model between its reading and its writing; only where it is both."""
    from ..base.disk import locked

    files = {os.path.realpath(path) for path in models if path != "-"}
    if output == "-" or os.path.realpath(output) not in files or not os.path.exists(output):
        yield
        return
    with locked(output, lambda: say(f"tallybayes: another command is changing {output}; waiting", error=True)):
        yield


def save_bytes(path: str, content: bytes) -> None:
    """Put the content into a file at once or not at all; `-` is standard output."""
    from ..base.disk import write_atomically

    if path == "-":
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    else:
        write_atomically(path, content)


def save_model(model: Any, path: str) -> str:
    """Write the model, or a tally; a line that says so."""
    from ..store import model_file
    from ..tally.tally import Tally

    raw = model_file.tally_to_bytes(model) if isinstance(model, Tally) else model_file.to_bytes(model)
    if path == "-":
        model_file.check(raw)
        save_bytes(path, raw)
    else:
        model_file.save(path, raw)
    return f"{path}: {len(raw):,} bytes"
