"""Check sums of a state file: whatever bit of it changes on the disk, either nothing changes or it is noticed.

    counts    Σ amount · 2^(32·limb) · h(sheet, slot, class, amount) modulo a prime, for each place (sheet, slot): a sum
              like the counts themselves, so a change adds what it adds to the counts, and neither a carry nor a zero
              makes a difference
    messages  h(message), for each id
    rest      SHA-256 of the tables' definitions, their settings and the names of the sheets

The sums of places stand in a table of their own, so whoever reads a place knows whether it is whole, and whether it is
missing. They are no protection from somebody who means harm, who can write sums as well. SQLite itself checks that an
index says what its table says.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import struct
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter, mul
from typing import Any

from ..base.wording import printable

KEY = "sums"  # of the table `meta`
PRIME = (1 << 61) - 1  # no power of 2 is a multiple of it, so every limb counts
FORMAT = 3
WITHOUT_PLACES = 2  # the format before: one sum of all counts, one of all messages
WITHOUT_SUMS = 1  # and the first
_WHOLE = {int}
_WHERE = itemgetter(0, 1)  # of an entry: sheet and slot


def place(sheet: int | None, slot: str) -> int:
    """The number under which the check sum of a place is kept; of a message, the place (None, id)."""
    return int.from_bytes(hashlib.blake2b(_plain((sheet, slot)), digest_size=8).digest(), "big") % PRIME


def counts_sum(entries: Iterable[tuple[Any, ...]]) -> int:
    """The sum of some entries of `counts`: sheet, slot, limb, class and amounts."""
    total, powers = 0, {0: 1}
    for sheet, slot, limb, label, *amounts in entries:
        if set(map(type, amounts)) != _WHOLE or type(limb) is not int:
            raise ValueError(f"no whole number where a count should be, in {printable(slot)!r}")
        if limb not in powers:
            from ..exact.limbs import LIMB_BITS  # loads NumPy, which no count of words needs

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


def counted_places(entries: Iterable[tuple[Any, ...]]) -> Iterator[tuple[int, int]]:
    """The number and the sum of each place of some entries, which must be in the order of places."""
    for (sheet, slot), some in groupby(entries, key=_WHERE):
        yield place(sheet, slot), counts_sum(some)


def all_places(db: sqlite3.Connection) -> Iterator[tuple[int, int]]:
    """The same of everything that the file holds, messages last."""
    yield from counted_places(db.execute("SELECT * FROM counts ORDER BY sheet, slot"))
    for message in db.execute("SELECT * FROM messages"):
        yield place(None, message[0]), messages_sum([message])


def add_to_places(db: sqlite3.Connection, grown: Iterable[tuple[int, int]]) -> None:
    """Let the sums of places follow a change. A place where nothing is has none."""
    change = sorted((number, by % PRIME) for number, by in grown if by % PRIME)
    db.executemany(
        f"INSERT INTO checks VALUES (?, ?) ON CONFLICT (place) DO UPDATE SET sum = (sum + excluded.sum) % {PRIME}",
        change,
    )


def write_rest(db: sqlite3.Connection) -> None:
    """Keep the digest of the rest in the file."""
    db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (KEY, json.dumps({"rest": rest_sum(db)})))


def said(db: sqlite3.Connection) -> str:
    """The sums as the file has them, "" if it has none. They are others after every change."""
    found = db.execute("SELECT value FROM meta WHERE key = ?", (KEY,)).fetchone()
    return "" if found is None else str(found[0])


def rest_is_whole(db: sqlite3.Connection) -> bool:
    """Whether all that is neither a count nor a message is as it was written."""
    return said(db) == json.dumps({"rest": rest_sum(db)})


def damage(db: sqlite3.Connection, version: int) -> str | None:
    """What is wrong with a file of some format, or None."""
    if version == WITHOUT_SUMS:
        return None
    (found,) = db.execute("PRAGMA integrity_check(1)").fetchone()
    if found != "ok":
        return str(found)
    try:
        whole = _as_before(db) if version == WITHOUT_PLACES else rest_is_whole(db) and _places_fit(db)
    except (ValueError, TypeError) as error:
        return str(error)
    return None if whole else OTHERS


OTHERS = "its check sums are others than when it was written"


def _places_fit(db: sqlite3.Connection) -> bool:
    """Whether every place has its sum, and no sum is without a place: Σ number · sum tells, in one pass."""
    there = sum(number * total for number, total in all_places(db))
    kept = sum(int(number) * int(total) for number, total in db.execute("SELECT place, sum FROM checks"))
    return (there - kept) % PRIME == 0


def _as_before(db: sqlite3.Connection) -> bool:
    """The same of a file with one sum of all counts and one of all messages."""
    there = {
        "counts": counts_sum(db.execute("SELECT * FROM counts")),
        "messages": messages_sum(db.execute("SELECT * FROM messages")),
        "rest": rest_sum(db),
    }
    return said(db) == json.dumps(there, sort_keys=True)


def _plain(values: Any) -> bytes:
    return repr(values).encode("utf-8", "surrogatepass")
