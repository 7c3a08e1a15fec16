"""The words of a whole column by the kernels: cut on several threads, then numbered, counted by class, or scored.

Import only through `exact.text_kernels`, which knows when that repays loading Numba. Each thread learns the words of
its texts in a table of its own; the tables are united afterwards.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.lib.stride_tricks import sliding_window_view

from .arrow import array, numpy_of
from .countkernels import by_group, by_token, merged
from .numerics import Floats, Ints
from .textkernels import Texts, count, indexed, new_desk, not_ascii, score
from .wordtable import new_table, united
from .workers import parallel, threads

_BYTES_PER_THREAD = 1 << 20  # a thread and uniting two tables cost about as much as cutting this much text
_TOKENS_PER_THREAD = 1 << 18  # a thread costs about as much as counting this many
_BYTES_PER_WORD = 32  # of text for each distinct word, the fewest that there is room for; the tables grow
_MOST = 1 << 33  # bytes for one thread: it counts in 32 bits, and a word takes three bytes


def readable(texts: pa.Array, prepared: Callable[[str], str]) -> Texts:
    """The bytes of an array of strings; those with letters beyond ASCII as Python has prepared them."""
    texts = texts.cast(pa.large_string())
    _, offsets, raw = texts.buffers()
    data = np.frombuffer(raw if raw is not None and raw.size else b"\0", dtype=np.uint8)
    data.flags.writeable = False  # always the same type, and so one compiled kernel
    edges = np.frombuffer(offsets, dtype=np.uint64)[texts.offset : texts.offset + len(texts) + 1]
    begin, stop = edges[:-1].copy(), edges[1:].copy()
    if texts.null_count:
        gone = numpy_of(texts.is_null())
        stop[gone] = begin[gone]
    beyond = np.zeros(len(texts), dtype=np.bool_)
    parallel(
        [
            partial(not_ascii, data, begin[a:b], stop[a:b], beyond[a:b])
            for a, b in _stretches(stop - begin, _BYTES_PER_THREAD)
        ]
    )
    more = b"\0"
    if beyond.any():
        others = [prepared(t).encode() for t in texts.filter(array(beyond)).to_pylist()]
        place = np.cumsum([0, *map(len, others)])
        begin[beyond], stop[beyond] = place[:-1], place[1:]
        more = b"".join(others) or more
    return Texts(data, np.frombuffer(more, dtype=np.uint8), beyond, begin, stop)


def _stretches(sizes: Any, enough: int) -> list[tuple[int, int]]:
    """Stretches of texts of about equal size, one for each thread that has enough to do."""
    size = np.cumsum(sizes, dtype=np.int64)
    total = int(size[-1]) if len(size) else 0
    parts = max(min(threads(), 1 + total // enough), total // _MOST)
    return list(pairwise([0, *np.searchsorted(size, total * np.arange(1, parts) / parts).tolist(), len(size)]))


@dataclass(frozen=True)
class _Part:
    """What one thread found."""

    table: Any
    entries: Any
    labels: Ints  # of the groups
    numbers: Any
    ends: Any


def _cut(texts: Any, order: Ints, labels: Ints, keep: bool, lower: bool) -> _Part:
    """Some texts, class by class, cut and counted; the numbers of their tokens too if they are to be kept."""
    size = texts.stop[order] - texts.begin[order]
    total = int(size.sum())
    groups, names = _groups(labels, order)
    numbers = np.empty(total // 3 + len(order) + 1 if keep else 0, dtype=np.uint32)
    ends = np.zeros(len(texts.stop) if keep else 0, dtype=np.int64)
    desk = new_desk(int(size.max(initial=0)))
    table = new_table(total // _BYTES_PER_WORD + 1024, total // _BYTES_PER_WORD * 8, beside=2)
    table, entries = count(texts, order, groups, lower, word_characters(), desk, table, numbers, ends)
    return _Part(table, entries, names, numbers, ends[order] if keep else ends)


def _all_cut(texts: Any, order: Ints, labels: Ints, keep: bool, lower: bool) -> list[_Part]:
    """What each thread found."""
    return parallel([
        partial(_cut, texts, order[a:b], labels, keep, lower)
        for a, b in _stretches((texts.stop - texts.begin)[order], _BYTES_PER_THREAD)
    ])  # fmt: skip


def _united(parts: Sequence[_Part]) -> tuple[Any, list[Any]]:
    """The table of all words, and for each part which number in the table each of its words has; None: the same."""
    table, new = parts[0].table, [None]
    for part in parts[1:]:
        table, numbers = united(table, part.table)
        new.append(numbers)
    return table, new


def numbered(texts: Any, lower: bool) -> tuple[pa.Array, Any, Ints]:
    """The distinct words, the number of every token among them, and where each text's tokens end."""
    order, labels = np.arange(len(texts.begin)), np.zeros(len(texts.begin), dtype=np.int64)
    parts = _all_cut(texts, order, labels, True, lower)
    table, new = _united(parts)
    numbers, ends, start = [], [], 0
    for part, number in zip(parts, new, strict=True):
        length = int(part.ends[-1]) if len(part.ends) else 0
        found = part.numbers[:length]
        numbers.append(found - np.uint32(1) if number is None else (number - np.uint32(1))[found])
        ends.append(part.ends + start)
        start += length
    return words_of(table), np.concatenate(numbers), np.concatenate(ends)


def counted(texts: Any, labels: Ints, lower: bool) -> tuple[pa.Array, Ints, Ints, Ints]:
    """The distinct words, and entries sorted by word and class: the word's number, the class, (occurrences, texts)."""
    parts = _all_cut(texts, np.argsort(labels, kind="stable"), labels, False, lower)
    found = [(p.entries, p.labels, int(p.table.known[0])) for p in parts]
    entries, ends, (table, new) = _by_token(found, partial(_united, parts))
    return words_of(table), *_merged(entries, ends, new, int(table.known[0]))


def by_class(numbers: Any, ends: Ints, labels: Ints, words: int) -> tuple[Ints, Ints, Ints]:
    """The same entries for tokens that have their numbers already."""
    order = np.argsort(labels, kind="stable")

    def part(a: int, b: int) -> tuple[Any, Ints, int]:
        groups, names = _groups(labels, order[a:b])
        return by_group(numbers, ends, order[a:b], groups, words), names, words - 1

    sizes = np.diff(ends, prepend=0)[order]
    parts = parallel([partial(part, a, b) for a, b in _stretches(sizes, _TOKENS_PER_THREAD)])
    entries, token_ends, number = _by_token(parts, lambda: np.arange(1, words + 1))
    return _merged(entries, token_ends, [number] * len(parts), words)


def _groups(labels: Ints, order: Ints) -> tuple[Ints, Ints]:
    """Where each class ends among texts that stand class by class, and which class it is."""
    ends = np.flatnonzero(np.diff(labels[order], append=-1)) + 1
    return ends, labels[order[ends - 1]]


def _by_token(parts: Sequence[tuple[Any, Ints, int]], beside: Callable[[], Any]) -> tuple[Any, list[Ints], Any]:
    """The entries of all parts in one array, each part's in order of its tokens; where those of a token end; and what
    `beside` gives, which runs at the same time.

    A part is its entries, the labels of its groups, and the largest number that a token may have.
    """
    start = np.cumsum([0, *(int(e.ends[-1]) if len(e.ends) else 0 for e, _, _ in parts)]).tolist()
    entries = np.empty((start[-1], 3), dtype=np.uint32)
    ends = [np.zeros(known + 4, dtype=np.int64) for _, _, known in parts]
    jobs: list[Callable[[], Any]] = [
        partial(by_token, found, labels, end, entries[a:b])
        for (found, labels, _), end, (a, b) in zip(parts, ends, pairwise(start), strict=True)
    ]
    other = parallel([*jobs, beside])[-1]
    for end, a in zip(ends, start, strict=False):
        end += a
    return entries, ends, other


def _merged(entries: Any, ends: Sequence[Ints], new: Sequence[Any], words: int) -> tuple[Ints, Ints, Ints]:
    """Word, class and (occurrences, texts), by word and class; `new` numbers the tokens of each part from 1 on."""
    places = np.zeros((words + 1, len(ends), 2), dtype=np.int64)
    for p, (end, number) in enumerate(zip(ends, new, strict=True)):
        at = slice(len(end) - 3) if number is None else number
        places[at, p] = sliding_window_view(end[:-2], 2)
    count = min(threads(), 1 + len(entries) // _TOKENS_PER_THREAD)
    inner = np.searchsorted(ends[0], [ends[0][-1] * i // count for i in range(1, count)]).tolist()
    edges = list(pairwise([0, *inner, words + 1]))
    sizes = parallel([partial(merged, places, entries, a, b, *_room(0)) for a, b in edges])
    start = np.cumsum([0, *sizes]).tolist()
    out = _room(start[-1])
    parallel([
        partial(merged, places, entries, a, b, *(o[i:j] for o in out))
        for (a, b), (i, j) in zip(edges, pairwise(start), strict=True)
        if i < j
    ])  # fmt: skip
    return out


def _room(entries: int) -> tuple[Ints, Ints, Ints]:
    """Room for so many entries, by NumPy, which asks for large pages: filling small ones takes four times as long."""
    return np.empty(entries, np.int64), np.empty(entries, np.int64), np.empty((entries, 2), np.int64)


def words_of(table: Any) -> pa.Array:
    """The strings of a table, in the order of their numbers."""
    known = int(table.known[0])
    edges = table.edges[: known + 1].astype(np.int64)
    return strings(edges, table.letters[: edges[-1]].copy())  # a copy: the table has room that nobody needs any longer


def strings(edges: Ints, letters: Any) -> pa.Array:
    """An Arrow array of the strings letters[edges[0]:edges[1]], …"""
    out = pa.LargeStringArray.from_buffers(len(edges) - 1, pa.py_buffer(edges), pa.py_buffer(letters))
    return out.cast(pa.string()) if edges[-1] < 1 << 31 else out


@dataclass(frozen=True)
class Lookup:
    """Words with what each adds to the classes' scores, ready for the kernels."""

    table: Any
    weights: Floats  # a row for words not known, one for each word, and zeros; classes, and zeros up to eights
    classes: int

    @classmethod
    def of(cls, words: pa.Array, weights: Floats, unknown: Floats | None, often: Floats) -> Lookup:
        """The lookup of some words, each once; `unknown` is what any other word adds, `often` how frequent each is.

        Frequent words come first, so that what is read most lies together in the nearest caches.
        """
        order = np.argsort(-often, kind="stable")
        large = words.cast(pa.large_string()).take(array(order))
        _, offsets, raw = large.buffers()
        edges = np.frombuffer(offsets, dtype=np.uint64)[large.offset : large.offset + len(large) + 1].copy()
        data = np.zeros(int(edges[-1]) + 16, dtype=np.uint8)
        if raw is not None and raw.size:
            data[: int(edges[-1])] = np.frombuffer(raw, dtype=np.uint8)[: int(edges[-1])]
        classes = weights.shape[1]
        table = np.zeros((len(words) + 2, -(-classes // 8) * 8))
        table[1:-1, :classes] = weights[order]
        if unknown is not None:
            table[0, :classes] = unknown
        return cls(indexed(data, edges, new_table(len(words), int(edges[-1]))), table, classes)

    def dot(self, texts: Any, lower: bool, presence: bool) -> tuple[Floats, Floats]:
        """Σ weights of each text's words, of its distinct words with `presence`; and how many words it has in all."""
        lengths = np.zeros(len(texts.begin))
        out = np.zeros((len(texts.begin), self.weights.shape[1]))
        sizes = texts.stop - texts.begin
        parallel([
            partial(score, texts, a, b, lower, word_characters(),
                    new_desk(int(sizes[a:b].max(initial=0))), self.table, self.weights, presence, out, lengths)
            for a, b in _stretches(sizes, _BYTES_PER_THREAD)
        ])  # fmt: skip
        return out[:, : self.classes], lengths


@cache
def word_characters() -> Any:
    """For every code point whether Python's `re` calls it a word character."""
    out = np.zeros(sys.maxunicode + 1, dtype=np.uint8)
    everything = "".join(" " if 0xD800 <= i < 0xE000 else chr(i) for i in range(sys.maxunicode + 1))
    for match in re.finditer(r"\w+", everything):
        out[match.start() : match.end()] = 1
    return out
