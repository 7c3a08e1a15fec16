"""How a file is read: what the user may say, checked."""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Callable
from dataclasses import dataclass

from ...base.errors import SettingsError, did_you_mean
from ...base.threads import threads

FORMATS = ("csv", "tsv", "jsonl", "parquet", "arrow")
BAD_LINES = ("error", "skip")
DEFAULT_MEMORY = 256 << 20  # enough for two threads to parse a wide CSV; more made no difference
LEAST_MEMORY = 32 << 20
_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40}

Progress = Callable[[int, float | None], None]  # rows read so far, and the share of the whole where it is known


@dataclass(frozen=True)
class Options:
    """Every choice about reading files; see `tallybayes.read`."""

    format: str | None = None
    delimiter: str | None = None
    encoding: str = "utf-8"
    decimal: str = "."
    bad_lines: str = "error"
    memory_limit: str | int | None = None
    progress: Progress | None = None

    def __post_init__(self) -> None:
        if self.format is not None and self.format not in FORMATS:
            raise SettingsError(
                f"format={self.format!r}",
                hint=did_you_mean(str(self.format), FORMATS) + "the formats are " + ", ".join(FORMATS) + ".",
            )
        if self.delimiter is not None and (len(self.delimiter) != 1 or self.delimiter in '\r\n"'):
            raise SettingsError(f"delimiter={self.delimiter!r}", hint="give one character, such as ';' or '\\t'.")
        if self.decimal not in (".", ","):
            raise SettingsError(f"decimal={self.decimal!r}", hint="decimals are written with '.' or ','.")
        if self.bad_lines not in BAD_LINES:
            raise SettingsError(f"bad_lines={self.bad_lines!r}", hint="take 'error' or 'skip'.")
        try:
            codecs.lookup(self.encoding)
        except (LookupError, TypeError):
            raise SettingsError(
                f"encoding={self.encoding!r} is not known", hint="take 'utf-8', 'latin-1', 'cp1252', 'utf-16', …"
            ) from None
        _ = self.memory

    @property
    def memory(self) -> int:
        """The bytes that reading may hold: memory_limit, else TALLYBAYES_MEMORY, else 256 MB."""
        for name, wish in (
            ("memory_limit", self.memory_limit),
            ("TALLYBAYES_MEMORY", os.environ.get("TALLYBAYES_MEMORY")),
        ):
            if wish is not None:
                return _size(name, wish)
        return DEFAULT_MEMORY

    @property
    def batch_bytes(self) -> int:
        """How large one batch may be: several are on their way at once."""
        return min(max(self.memory // 32, 1 << 20), 16 << 20)

    @property
    def block_bytes(self) -> int:
        """How much of a CSV is parsed at once: each thread reads one ahead. Halving it costs a sixth of the time."""
        return max(self.memory // (24 * max(threads(), 2)), 1 << 20)

    @property
    def longest_line(self) -> int:
        """How many bytes a line of a CSV may have; DuckDB holds several times as much for each thread."""
        return min(max(self.memory // 64, 1 << 20), 64 << 20)


def _size(name: str, wish: str | int) -> int:
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?I?B?)\s*", str(wish).upper())
    unit = _UNITS.get(found[2]) if found else None
    if found is None or unit is None or isinstance(wish, bool):
        raise SettingsError(
            f"{name}={wish!r} is no amount of memory", hint="write '200MB', '2GB' or a number of bytes."
        )
    size = int(float(found[1]) * unit)
    if size < LEAST_MEMORY:
        raise SettingsError(
            f"{name}={wish!r} is too little to read a file with",
            hint=f"give at least {LEAST_MEMORY >> 20}MiB.",
        )
    return size
