"""The few texts that the kernels of texts are checked with; what one kernel needs of another, Python has made.

The arrays are of the very types that `texts` and `data` give to the kernels: a kernel is compiled for these alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np

from . import fields, strings, tokens, words
from .checking import by_python
from .strings import NONE, Keys, StringTable, new_table
from .texts import word_characters
from .tokens import TOGETHER
from .words import MOST, TextBytes, new_bench

Given = tuple[Any, ...]
_LONG = " ".join(f"Word{i % 37} number_{i}" for i in range(40)) + " a sesquipedalian-antidisestablishmentarianism"
_PLAIN = (
    "The cat sat on the CAT",
    "",
    "a b c",
    "on, the mat: the_mat 42!",
    _LONG,
    "x" * 63 + " yy",
    "end of the buffer",
)
_BEYOND = ("straße é üb é", "日本語 the 日 x", "€ 5 ½½ naïve")


def _joined(parts: Sequence[str]) -> tuple[Any, Any, Any]:
    """Bytes that are only read, and where each text begins and stops."""
    edges = np.cumsum([0, *(len(t.encode()) for t in parts)]).astype(np.uint64)
    return np.frombuffer("".join(parts).encode() or b"\0", dtype=np.uint8), edges[:-1].copy(), edges[1:].copy()


@cache
def _texts() -> TextBytes:
    data, begin, stop = _joined(_PLAIN)
    more, more_begin, more_stop = _joined(_BEYOND)
    beyond = np.array([False] * len(_PLAIN) + [True] * len(_BEYOND))
    return TextBytes(data, more, beyond, np.concatenate((begin, more_begin)), np.concatenate((stop, more_stop)))


def _longest() -> int:
    return int((_texts().stop - _texts().begin).max())


def _numbered(table: StringTable, parts: Sequence[str]) -> StringTable:
    """The table with these strings put in, by Python."""
    edges = np.cumsum([0, *(len(t.encode()) for t in parts)]).astype(np.uint64)
    data = np.zeros(int(edges[-1]) + 16, dtype=np.uint8)
    data[: int(edges[-1])] = np.frombuffer("".join(parts).encode(), dtype=np.uint8)
    by_python(words.index_all.function, (data, edges, new_bench(0), table))
    return table


def _table(parts: Sequence[str], room: int = 64, beside: int = 0) -> StringTable:
    table = new_table(room, 1000, beside)
    table.keys[:], table.letters[:], table.edges[1:] = 0, 0, 0
    return _numbered(table, parts)


_KNOWN = ("the", "cat", "on", "mat", "word1", "a string of more than fifteen bytes", "another one of more than fifteen")
_OTHER = ("dog", "cat", "the", "another one of more than fifteen", "a string of more than fifteen bytez", "word2")


# ---- strings


def _fill() -> Iterator[Given]:
    table = _table(_KNOWN)
    yield table.keys, len(_KNOWN), np.zeros(64, np.uint32)


def _known_to() -> Iterator[Given]:
    given = np.array([NONE, *range(10, 10 + len(_KNOWN))], dtype=np.uint32)
    numbers = np.full(len(_OTHER) + 1, NONE)
    numbers[2] = 77
    yield _table(_KNOWN, beside=2), given, _table(_OTHER, beside=2), 1, len(_OTHER) + 1, numbers


# ---- tokens


def _tally() -> tuple[Any, Any]:
    """Tokens 1 … 4 of one class with their counts, and which of them there are."""
    tally = np.zeros((9, 2), np.uint64)
    tally[1:5, 0] = [(2 << 32) + 5, (1 << 32) + 1, (3 << 32) + 3, (1 << 32) + 9]
    return tally, np.array([3, 1, 4, 2, 0, 0, 0, 0, 0], dtype=np.uint32)


def _flush() -> Iterator[Given]:
    """Beside the keys of a table stands the tally where texts are cut; alone it stands where tokens have numbers."""
    tally, touched = _tally()
    yield np.zeros((8, 4), np.uint32), 2, 6, tally, touched, 4


def _by_group() -> Iterator[Given]:
    numbers = np.array([1, 2, 1, 3, 4, 4, 4, 2, 8, 1, 1, 7], dtype=np.uint32)
    ends, labels = np.array([3, 3, 7, 9, 12]), np.array([1, 0, 0, 2, 1])
    order = np.argsort(labels, kind="stable")
    for room in (20, 3):
        state = np.zeros(words.STATES, np.int64)
        state[tokens.LABEL] = -1
        yield (
            numbers, ends, order, labels, np.zeros((9, 2), np.uint64), np.zeros(9, np.uint32),
            np.zeros((room, 4), np.uint32), state,
        )  # fmt: skip


def _by_token() -> Iterator[Given]:
    entries = np.array([[0, 1, 5, 2], [0, 3, 1, 1], [1, 2, 7, 3], [1, 1, 2, 2], [2, 3, 9, 4], [0, 0, 0, 0]], np.uint32)
    number = np.array([4294967295, 2, 0, 1], np.uint32)
    for backward in (False, True):
        yield entries, 5, backward, number, np.zeros(6, np.int64), np.zeros((5, 3), np.uint32)


def _merged() -> Iterator[Given]:
    ends = np.array([[0, 2, 2, 3, 3, 3], [3, 4, 6, 7, 7, 7]])
    entries = np.array([[0, 1, 1], [1, 5, 2], [2, 3, 3], [1, 7, 4], [0, 2, 1], [2, 6, 2], [2, 8, 1]], np.uint32)
    for room in (0, 6):
        out = np.zeros(room, np.int64), np.zeros(room, np.int64), np.zeros((room, 2), np.int64)
        yield ends, entries, 0, 3, *out


def _rows() -> Iterator[Given]:
    numbers = np.array([0, 1, 0, 3, 3, 3, 2, 1, 0], dtype=np.uint32)
    ends, room = np.array([3, 3, 7, 9]), len(numbers)
    yield (
        numbers, ends, np.full(4, -1), np.zeros(4, np.uint64), np.zeros(5, np.int64), np.zeros(room, np.int64),
        np.zeros(room),
    )  # fmt: skip


def _grams() -> Iterator[Given]:
    data = np.frombuffer(" the  cat  é日x  straße ".encode(), np.uint8)
    letters = np.concatenate((data, np.zeros(16, np.uint8)))
    numbers = np.zeros(12, np.uint32)
    numbers[:8] = [1, 2, 1, 2, 3, 1, 2, 9]
    by_letters = letters, 1, np.array([5, 10, 19, len(data)]), np.array([2, 2, 4]), 2, 4
    by_words = numbers.view(np.uint8), 4, 4 * np.array([5, 5, 8]), np.array([1, 2, 3]), 1, 2
    for given, room in ((by_letters, 2048), (by_words, 2048), (by_letters, 64)):
        keys = Keys(*(np.zeros(TOGETHER, np.uint64) for _ in range(3)))
        state = np.zeros(tokens.STATES, np.int64)
        state[tokens.SIZE], state[tokens.UNITS] = given[4], -1
        yield (
            *given, np.zeros(60, np.int64), np.zeros(2 * TOGETHER, np.uint64), keys, _table((), room),
            np.zeros(200, np.uint32), np.zeros(len(given[3]), np.int64), state,
        )  # fmt: skip


def _spell() -> Iterator[Given]:
    letters, begin, stop = _joined(("the", "cat", "sat"))
    table = _table((), 64)
    grams = np.array([1, 2, 2, 3, 1], dtype="<u4")  # the cat, cat sat, the
    table.letters[:20], table.edges[:4], table.known[0] = grams.view(np.uint8), [0, 8, 16, 20], 3
    numbers = table.letters[: len(table.letters) // 4 * 4].view(np.uint32)
    edges = np.array([0, *stop.tolist()])
    for ends, size in (([0, 0, 0, 0], 0), ([0, 7, 15, 19], 19)):
        yield table, numbers, edges, letters, np.array(ends), np.full(size, ord(" "), np.uint8)
    assert int(begin[0]) == 0


def _padded() -> Iterator[Given]:
    texts = _texts()
    size, count = int((texts.stop - texts.begin).sum()), len(texts.begin)
    fold = np.zeros(256, np.uint8)
    fold[:128] = word_characters()[:128] * np.frombuffer(bytes(range(128)).lower(), np.uint8)
    for across in (False, True):
        room = np.zeros(2 * size + 18, np.uint8), np.zeros(count, np.int64), np.zeros(size + count + 1, np.int64)
        yield texts, fold, word_characters(), across, *room


# ---- words


def _not_ascii() -> Iterator[Given]:
    data, begin, stop = _joined((*_PLAIN, *_BEYOND))
    yield data, begin, stop, np.zeros(len(begin), np.bool_)


def _count() -> Iterator[Given]:
    texts = _texts()
    labels = np.array([0, 1, 1, 0, 2, 2, 0, 1, 2, 0])
    order = np.argsort(labels, kind="stable")
    for lower, keep, room, entries in (
        (True, True, 6000, 200),
        (False, False, 6000, 200),
        (True, False, 20, 200),
        (True, False, 6000, 8),
    ):
        table, state = _table((), room, beside=2), np.zeros(words.STATES, np.int64)
        state[tokens.LABEL] = -1
        yield (
            texts, order, labels, len(order), lower, word_characters(), new_bench(_longest()), table,
            np.zeros(len(table.keys), np.uint32), np.zeros((entries, 4), np.uint32),
            np.zeros(400 if keep else 0, np.uint32), np.zeros(len(order) if keep else 0, np.int64), state,
        )  # fmt: skip


def _index_all() -> Iterator[Given]:
    data, _, stop = _joined((*_KNOWN, "\0" * 16))
    edges = np.concatenate((np.zeros(1, np.uint64), stop[:-1]))
    yield data.copy(), edges, new_bench(0), _table((), 64)


def _score() -> Iterator[Given]:
    texts, table = _texts(), _table(_KNOWN)
    weights = np.zeros((len(_KNOWN) + 2, 16))
    weights[:-1, :11] = np.random.default_rng(4).normal(size=(len(_KNOWN) + 1, 11))
    for presence, lower in ((False, True), (True, True), (False, False)):
        stamps = np.zeros(len(table.edges) if presence else 0, np.int64)
        out = np.zeros((len(texts.begin), 16)), np.zeros(len(texts.begin))
        yield (
            texts, 0, len(texts.begin), lower, word_characters(), new_bench(_longest()), table, weights, stamps, *out
        )  # fmt: skip


# ---- fields

_LINES = "a,-1.5,\r\n,22,é\n\n\r\n" + "x" * 70 + ",3,b\r\n" + "c,,4\n" * 30
_NOT_PLAIN = ("a,b\n", "a,b,c,\n", "a,b,c", "a,b,c\r", "a\rb,c,d\n", "a\n", "a,b,c\r\r\n")


def _cut() -> Iterator[Given]:
    for lines in (_LINES, *(_LINES + more for more in _NOT_PLAIN), *_NOT_PLAIN):
        data = np.frombuffer(lines.encode(), np.uint8)
        room = np.zeros(64, np.uint8), np.zeros(50, np.int32), np.zeros((3, 50), np.int32)
        yield data, np.uint8(ord(",")), *room


def _column(cells: Sequence[str]) -> tuple[Any, ...]:
    """The second of three columns, as `numbers` and `texts` are given it."""
    data = np.frombuffer("".join(f"é,{cell},\n" for cell in cells).encode(), np.uint8)
    sizes = np.array([len(cell.encode()) for cell in cells])
    begins = np.cumsum(sizes + 5) - sizes - 3
    return data, begins.astype(np.int32), 1, (begins + sizes + 1).astype(np.int32)


def _read_numbers() -> Iterator[Given]:
    short = ["7", "", "-0", "0.5", "-12.25", "12345678", "-1.234567", "00001.10", "8", "3.14"]
    long = ["123456789", "-0.00000000000001", "9007199254740992", "90071992.54740992", "1" * 8 + "." + "2" * 8, "1.5"]
    odd = ["9007199254740993", "1e5", "1.", ".5", "-", "1.2.3", "12,5", "1/2", "1:2", "+1", "--1", "1" * 18,
           "12345678.", ".12345678", "1234.56.789", "1e-000005", "é", "0x1"]  # fmt: skip
    for cells in (short, short + long, *([*short, cell, "1"] for cell in odd)):
        yield *_column(cells), np.zeros(len(cells))
    yield np.frombuffer(b"12,", np.uint8), np.zeros(1, np.int32), 0, np.full(1, 2, np.int32), np.zeros(1)


def _read_texts() -> Iterator[Given]:
    for cells in (["a", "", "é", "x" * 64, "y" * 65, "b"], ["c" * 3] * 40):
        size = sum(len(cell.encode()) for cell in cells)
        yield *_column(cells), np.zeros(len(cells) + 1, np.int32), np.zeros(size + 64, np.uint8)


assert MOST < 6000  # the words for which `count` wants room
TEXT_PROBES: dict[str, Callable[[], Iterator[Given]]] = {
    f"{module.__name__.rpartition('.')[2]}.{name}": probe
    for module, each in (
        (strings, {"_fill": _fill, "known_to": _known_to}),
        (tokens, {
            "flush": _flush, "by_group": _by_group, "by_token": _by_token, "merged": _merged, "rows": _rows,
            "grams": _grams, "_spell": _spell, "padded": _padded,
        }),
        (fields, {"cut": _cut, "numbers": _read_numbers, "texts": _read_texts}),
        (words, {"not_ascii": _not_ascii, "count": _count, "index_all": _index_all, "score": _score}),
    )
    for name, probe in each.items()
}  # fmt: skip
