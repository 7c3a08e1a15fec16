"""One learnt message as the state keeps it."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Learnt:
    """One learnt message: its id and class, and the row exactly as it was counted."""

    id: str
    label: str
    row: Mapping[str, Any]
    sender: str = ""
    fingerprint: str = ""


def pack(row: Mapping[str, Any]) -> bytes:
    """A row as compressed JSON with its keys in order.

    >>> unpack(pack({"b": 1.5, "a": ["x", None]}))
    {'a': ['x', None], 'b': 1.5}
    """
    return zlib.compress(json.dumps(row, sort_keys=True, separators=(",", ":")).encode("ascii"))


def unpack(packed: bytes) -> dict[str, Any]:
    """The inverse of `pack`."""
    return dict(json.loads(zlib.decompress(packed)))
