"""A folder of windows: a Parquet file per period, and an index that says which files are meant.

    windows.json                        how periods are told, the schema, and file, rows and digest of each period
    2024-05-31T18.1f6c0a92.parquet      the tally of a period, as tally.save writes it; named by its digest

A change writes the new files of the periods that it touches, then the index, each whole or not at all, and last takes
away what the index no longer names. So whoever pulls the plug finds all periods before the change or all after it;
files that no index names are litter, which the next change clears up.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass, replace
from typing import Any

from ..base.canon import printable
from ..base.disk import file_errors, locked, named, read_whole, write_atomically
from ..base.errors import FileError, ModelFileError, in_our_words
from ..data.schema import Schema
from ..tally.tally import Tally
from ..tally.windows import Windows
from . import model_file

INDEX = "windows.json"
_FORMAT = 1
_FILE = re.compile(r"[-0-9TW]+\.[0-9a-f]{16}\.parquet")
_DAMAGED = "the folder was not written by tallybayes, or is damaged: take a copy of all its files."
_CHANGED = "load the folder again, and repeat what was changed."


@dataclass(frozen=True)
class _File:
    """What the index says of one period."""

    name: str
    rows: int
    digest: str


class StoredPeriods(MutableMapping[int, Tally]):
    """The tallies of a folder by the number of their period: read when asked for, and then kept."""

    def __init__(self, folder: str, files: dict[int, _File], made: str) -> None:
        self.folder, self.files, self.made = folder, files, made  # made: the checksum of the index they come from
        self.read: dict[int, Tally] = {}
        self.changed: set[int] = set()  # since the index was written
        self._schema: Schema | None = None

    def __getitem__(self, k: int) -> Tally:
        if k not in self.read:
            if k in self.changed or k not in self.files:
                raise KeyError(k)
            self.read[k] = self._loaded(self.files[k])
        return self.read[k]

    def _loaded(self, file: _File) -> Tally:
        path = os.path.join(self.folder, file.name)
        try:
            tally = model_file.load_tally(path)
        except FileError:
            if not os.path.exists(path) and _checksum_at(self.folder) != self.made:
                raise ModelFileError(f"{printable(self.folder, 200)} has changed meanwhile", hint=_CHANGED) from None
            raise
        if tally.digest != file.digest:
            raise ModelFileError(f"{printable(path, 200)} is not the tally that the index names", hint=_DAMAGED)
        if self._schema is None or tally.schema != self._schema:
            self._schema = tally.schema
        return replace(tally, schema=self._schema)  # tallies of one and the same schema are added without comparing it

    def __setitem__(self, k: int, tally: Tally) -> None:
        self.read[k] = tally
        self.changed.add(k)

    def __delitem__(self, k: int) -> None:
        self.read.pop(k, None)
        self.changed.add(k)

    def __contains__(self, k: object) -> bool:
        return k in self.read or (k in self.files and k not in self.changed)

    def __iter__(self) -> Iterator[int]:
        return iter(sorted({*self.read, *(self.files.keys() - self.changed)}))

    def __len__(self) -> int:
        return len({*self.read, *(self.files.keys() - self.changed)})


def save_folder(windows: Windows, path: str | os.PathLike[str]) -> None:
    """Put the periods that have changed into a folder, all at once or not at all."""
    folder = os.path.realpath(named(path))
    with file_errors(folder, "written"):
        os.makedirs(folder, exist_ok=True)
    with locked(os.path.join(folder, INDEX)):
        parts, there = windows._sums.parts, is_folder(folder)
        own = parts if isinstance(parts, StoredPeriods) and parts.folder == folder and there else None
        if there and (own is None or _checksum_at(folder) != own.made):
            raise ModelFileError(
                f"{printable(folder, 200)} holds windows that are not these, or have changed since these were loaded",
                hint=f"save to another folder, or {_CHANGED}",
            )
        files = {} if own is None else {k: f for k, f in own.files.items() if k not in own.changed}
        for k in parts if own is None else own.changed & own.read.keys():
            files[k] = _written(folder, windows.name(k), parts[k])
        made = _write_index(folder, windows, files)
        _clear_up(folder, {f.name for f in files.values()})
    stored = StoredPeriods(folder, files, made)
    stored.read = dict(parts.read if isinstance(parts, StoredPeriods) else parts)
    windows._sums.parts = stored


def _written(folder: str, period: str, tally: Tally) -> _File:
    file = _File(f"{period}.{tally.digest[:16]}.parquet", tally.rows, tally.digest)
    path = os.path.join(folder, file.name)
    if not os.path.exists(path):  # else it is there already: files are put there whole, and named by what they hold
        model_file.save(path, model_file.tally_to_bytes(tally, {"period": period}))
    return file


def _write_index(folder: str, windows: Windows, files: dict[int, _File]) -> str:
    content = {
        "format": _FORMAT,
        "by": windows.by,
        "time": windows.time,
        "arrived": windows._arrived,
        "schema": windows.schema.to_dict(),
        "periods": {str(k): [f.name, f.rows, f.digest] for k, f in sorted(files.items())},
    }
    text = json.dumps(content, sort_keys=True, allow_nan=False)
    made = hashlib.sha256(text.encode()).hexdigest()
    write_atomically(os.path.join(folder, INDEX), f"{made}\n{text}\n".encode())
    return made


def _clear_up(folder: str, kept: set[str]) -> None:
    for name in os.listdir(folder):
        if _FILE.fullmatch(name) and name not in kept:
            with contextlib.suppress(OSError):  # litter does no harm
                os.unlink(os.path.join(folder, name))


def _checksum_at(folder: str) -> str:
    return read_whole(os.path.join(folder, INDEX))[:64].decode("ascii", "replace")


def is_folder(path: str | os.PathLike[str]) -> bool:
    """Whether there are windows at a path."""
    return os.path.exists(os.path.join(named(path), INDEX))


def there_are(path: str | os.PathLike[str]) -> None:
    """Refuse a folder without windows."""
    if not is_folder(path):
        raise ModelFileError(
            f"there are no windows in {printable(os.fspath(path), 200)}",
            hint="windows.save(path) writes such a folder.",
        )


def load_folder(path: str | os.PathLike[str]) -> Windows:
    """The windows of a folder; periods are read when they are asked for."""
    there_are(path)
    folder = os.path.realpath(named(path))
    raw = read_whole(os.path.join(folder, INDEX))
    made, _, text = raw.decode("utf-8", "replace").partition("\n")
    if hashlib.sha256(text.removesuffix("\n").encode()).hexdigest() != made:
        raise ModelFileError(f"the index of {printable(folder, 200)} does not have its checksum", hint=_DAMAGED)
    with in_our_words(ModelFileError, f"the index of {printable(folder, 200)} means nothing", hint=_DAMAGED):
        return _interpreted(folder, made, json.loads(text))


def _interpreted(folder: str, made: str, content: dict[str, Any]) -> Windows:
    if content["format"] != _FORMAT:
        raise ModelFileError(
            f"windows of format {content['format']!r}; this release reads format {_FORMAT}",
            hint="a newer release of tallybayes wrote the folder: update tallybayes to read it.",
        )
    files = {int(k): _File(str(name), int(rows), str(digest)) for k, (name, rows, digest) in content["periods"].items()}
    for file in files.values():
        if not _FILE.fullmatch(file.name):
            raise ModelFileError(f"a period in a file called {file.name[:80]!r}", hint=_DAMAGED)
    schema = Schema.from_dict(content["schema"])
    parts = StoredPeriods(folder, files, made)
    return Windows(schema, content["by"], content["time"], parts=parts, arrived=int(content["arrived"]))


def rows_by_period(windows: Windows) -> dict[str, int]:
    """How many rows each period has counted, which a folder says without reading them."""
    parts = windows._sums.parts
    if isinstance(parts, StoredPeriods):
        return {
            windows.name(k): parts.files[k].rows if k in parts.files and k not in parts.changed else parts[k].rows
            for k in parts
        }
    return {name: tally.rows for name, tally in windows}
