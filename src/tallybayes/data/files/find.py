"""Which files, or which database, a path, a pattern, a folder or an address means.

`path#table` is one table of a database, or one sheet of a workbook; sqlite:///path is a file by its format.
"""

from __future__ import annotations

import glob
import os
import re
from dataclasses import dataclass
from typing import Any

from ...base import canon
from ...base.disk import named
from ...base.errors import DataError
from .file import FORMATS, PACKED, SERVERS


@dataclass(frozen=True)
class Found:
    """A file, or the address of a server, as it was given: with what its address says of format and table."""

    path: str
    format: str | None = None
    table: str | None = None


def find(given: Any) -> list[Found]:
    """The files that a path or a pattern means, in the order of their names; a path that exists is never a pattern.

    A folder means the files in it whose names end as those of a format do, a list of paths all that each of them means.
    `path#table` is one table of a database or a sheet of a workbook, sqlite:///path a file by its format.
    """
    if isinstance(given, (list, tuple)):
        return [found for each in given for found in find(each)]
    path, format = os.path.expanduser(named(given)), None
    if (address := _ADDRESS.match(path)) is not None:
        if (scheme := address[1].lower().partition("+")[0]) in SERVERS:
            return [Found(path, scheme)]
        path, format = _path_of(path, address[2], scheme)
    path, table = _parted(path, format is not None)
    if os.path.isdir(path):
        packed = ("", *(f".{end}" for end in PACKED))
        one = [end for f in FORMATS.values() if not f.tables for end in f.endings]
        endings = tuple(f".{end}{more}" for end in one for more in packed)
        inside = sorted(n for n in os.listdir(path) if n[0] not in "._" and n.lower().endswith(endings))
        if not inside:
            raise DataError(f"{path} is a folder without files of rows", hint="give files, such as 'folder/*.csv'.")
        return [Found(_openable(os.path.join(path, name))) for name in inside]
    if os.path.lexists(path) or not glob.has_magic(path):
        return [Found(_openable(path), format, table)]
    found = sorted(p for p in glob.glob(path, recursive=True) if not os.path.isdir(p))
    if not found:
        raise DataError(f"no file matches {path}", hint="check the pattern; it is relative to the current directory.")
    return [Found(_openable(p), format, table) for p in found]


_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://(.*)", re.DOTALL)  # one letter is a drive of Windows
_SECRET = re.compile(r"(?<=://).*@|\?[^#]*", re.DOTALL)


def shown(given: str) -> str:
    """A path or address as it may be printed and kept: without user, password and what stands behind a ?.

    >>> shown("mysql://me:secret@db.example/shop?ssl=1"), shown("people?.csv")
    ('mysql://db.example/shop', 'people?.csv')
    """
    address = _ADDRESS.match(given)
    if address is None or address[2].startswith("/"):
        return given
    return _SECRET.sub("", given.partition("#")[0] if "password" in given else given)


def _path_of(address: str, rest: str, scheme: str) -> tuple[str, str]:
    """The path and the format that an address such as sqlite:///shop.db means."""
    formats = {f.scheme: f.name for f in FORMATS.values() if f.scheme}
    if scheme not in formats:
        raise DataError(
            f"{shown(address)[:80]} is an address, not a file",
            hint="fetch its rows into a file first (CSV, JSON lines, Parquet, Arrow or a workbook), or open it with "
            "DuckDB's httpfs and give the relation: con.sql('FROM …'). Databases are read from "
            f"{', '.join(f'{s}:///path' for s in formats)} and {', '.join(f'{s}://…' for s in SERVERS)}; others by a "
            "query and a connection of Python's: tb.read('SELECT …', connection).",
        )
    path = os.path.expanduser(rest.removeprefix("/"))
    if not rest.startswith("/") or not path:
        raise DataError(
            f"{address[:80]} names no file",
            hint=f"{scheme}:///shop.db is a file of this folder, {scheme}:////data/shop.db one from the root.",
        )
    if not os.path.lexists(path.partition("#")[0]) and "?" in path:
        raise DataError(
            f"there is no file {path[:80]}", hint=f"a table is named behind a #, {scheme}:///shop.db#orders, or with "
            "table='…'; a query is given with query='SELECT …'."
        )  # fmt: skip
    if not os.path.lexists(path.partition("#")[0]) and os.path.lexists("/" + path.partition("#")[0]):
        raise DataError(
            f"there is no file {path[:80]} in this folder",
            hint=f"four slashes mean a path from the root: {scheme}:////{path[:80]}.",
        )
    return path, formats[scheme]


def _parted(path: str, database: bool) -> tuple[str, str | None]:
    """The path, and the table behind a #: what is a file with it is one, and the table has the rest."""
    if "#" not in path or os.path.lexists(path):
        return path, None
    places = [i for i, c in enumerate(path) if c == "#"]
    at = next((i for i in reversed(places) if os.path.isfile(path[:i])), places[0])
    ending = path[:at].rpartition(".")[2].lower()
    if not (database or os.path.isfile(path[:at]) or any(ending in f.endings for f in FORMATS.values() if f.tables)):
        return path, None
    return path[:at], path[at + 1 :] or None


def _openable(path: str) -> str:
    """The path, refused if its name is no text that Arrow and DuckDB could open it by."""
    if canon.text(path) != path and os.path.lexists(path):
        raise DataError(
            f"the name of {path!r} is not UTF-8, and such a file cannot be opened by Arrow or DuckDB",
            hint="rename the file, or make a link of another name to it: os.symlink(path, 'rows.csv').",
        )
    return path
