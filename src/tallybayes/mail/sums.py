"""Check sums of a state file: whatever bit of it changes on the disk, either nothing changes or it is noticed.

    counts    Σ amount · 2^(32·limb) · h(sheet, slot, class, amount) modulo a prime: a sum like the counts themselves,
              so a change adds what it adds to the counts, and neither a carry nor a zero makes a difference
    messages  Σ h(message), which learning adds to and forgetting subtracts from
    rest      SHA-256 of the tables' definitions, their settings and the names of the sheets

They are no protection from somebody who means harm, who can write sums as well. SQLite itself checks that an index
says what its table says.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import struct
from collections.abc import Iterable
from operator import mul
from typing import Any

from ..base import canon
from ..exact.limbs import LIMB_BITS

KEY = "sums"  # of the table `meta`
PRIME = (1 << 61) - 1  # no power of 2 is a multiple of it, so every limb counts
_WHOLE = {int}


def counts_sum(entries: Iterable[tuple[Any, ...]]) -> int:
    """The sum of some entries of `counts`: sheet, slot, limb, class and amounts."""
    total, powers = 0, {0: 1}
    for sheet, slot, limb, label, *amounts in entries:
        if set(map(type, amounts)) != _WHOLE or type(limb) is not int:
            raise ValueError(f"no whole number where a count should be, in {canon.printable(slot)!r}")
        if limb not in powers:
            powers[limb] = pow(2, LIMB_BITS * limb, PRIME)
        places = hashlib.blake2b(_plain((sheet, slot, label)), digest_size=8 * len(amounts)).digest()
        weights = struct.unpack(f"<{len(amounts)}Q", places)
        total += sum(map(mul, amounts, weights)) * powers[limb]
    return total % PRIME


def messages_sum(messages: Iterable[tuple[Any, ...]]) -> int:
    """The sum of some rows of `messages`."""
    digests = (hashlib.blake2b(_plain(message), digest_size=8).digest() for message in messages)
    return sum(map(int.from_bytes, digests)) % PRIME


def rest_sum(db: sqlite3.Connection) -> str:
    """The digest of what is neither a count nor a message."""
    tables = db.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name").fetchall()
    meta = db.execute("SELECT key, value FROM meta WHERE key <> ? ORDER BY key", (KEY,)).fetchall()
    sheets = db.execute("SELECT * FROM sheets ORDER BY number").fetchall()
    return hashlib.sha256(_plain((tables, meta, sheets))).hexdigest()


def all_sums(db: sqlite3.Connection) -> dict[str, Any]:
    """Every sum, from all that the file holds."""
    return {
        "counts": counts_sum(db.execute("SELECT * FROM counts")),
        "messages": messages_sum(db.execute("SELECT * FROM messages")),
        "rest": rest_sum(db),
    }


def write_sums(db: sqlite3.Connection, sums: dict[str, Any]) -> None:
    """Keep sums in the file."""
    db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (KEY, json.dumps(sums, sort_keys=True)))


def add_to_sums(db: sqlite3.Connection, *, counts: int, messages: int) -> None:
    """Let the sums follow a change."""
    said = json.loads(_said(db))
    grown = {"counts": (said["counts"] + counts) % PRIME, "messages": (said["messages"] + messages) % PRIME}
    write_sums(db, {**grown, "rest": rest_sum(db)})


def _said(db: sqlite3.Connection) -> str:
    found = db.execute("SELECT value FROM meta WHERE key = ?", (KEY,)).fetchone()
    return "" if found is None else str(found[0])


def damage(db: sqlite3.Connection) -> str | None:
    """What is wrong with a file, or None."""
    (found,) = db.execute("PRAGMA integrity_check(1)").fetchone()
    if found != "ok":
        return str(found)
    try:
        there = all_sums(db)
    except ValueError as error:
        return str(error)
    if _said(db) == json.dumps(there, sort_keys=True):
        return None
    return "its check sums are others than when it was written"


def _plain(values: Any) -> bytes:
    return repr(values).encode("utf-8", "surrogatepass")
