"""The words of a whole column by the kernels: cut on several threads, then numbered, counted by class, or scored.

Each thread learns the words of its texts in a table of its own; the tables are united afterwards.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa

from ...base.arrays import Floats, Ints
from ...base.arrow import array, numpy_of, utf8
from ...base.threads import parallel, threads
from .strings import NONE, StringTable, known_to, longer, new_table, roomier
from .tokens import FILLED, LABEL, SEEN, by_group, by_token, flush, merged
from .words import LACKS_WORDS, MOST, NEEDED, STATES, TextBytes, count, index_all, new_bench, not_ascii, score


def _edges(sizes: Any, parts: int) -> list[int]:
    """Where texts of such sizes are divided into parts of about equal size."""
    ends = np.cumsum(sizes, dtype=np.int64)
    total = int(ends[-1]) if len(ends) else 0
    return [0, *np.searchsorted(ends, total * np.arange(1, parts) / parts).tolist(), len(ends)]


class Meeting:
    """The texts of a stretch, which two threads take piece by piece, one from the front and one from the back.

    Neither has to wait for the other, whatever its texts hold, and each has classes of its own but the one where they
    meet.
    """

    def __init__(self, sizes: Any, pieces: int) -> None:
        self._edges: list[int] = np.unique(_edges(sizes, pieces)).tolist()
        self._first, self._last, self._lock = 0, len(self._edges) - 1, Lock()

    def stops(self, backward: bool) -> Iterator[int]:
        """How far to go, counted from the end where one has begun, as long as anything is left."""
        while True:
            with self._lock:
                if self._first >= self._last:
                    return
                self._first, self._last = self._first + (not backward), self._last - backward
                stop = self._edges[-1] - self._edges[self._last] if backward else self._edges[self._first]
            yield stop


class Ledger:
    """What one thread has counted by class: its entries, and the places where its kernel stands."""

    def __init__(self, tally: Any, room: int, backward: bool = False) -> None:
        self.tally = tally  # two numbers beside each token, as `add_up` has them
        self.backward = backward  # whether the classes come in falling order
        self.state = np.zeros(STATES, dtype=np.int64)
        self.state[LABEL] = -1
        self.entries = np.empty((room, 4), dtype=np.uint32)
        self.touched = np.empty(len(self.tally), dtype=np.uint32)

    @property
    def filled(self) -> int:
        """How many entries there are."""
        return int(self.state[FILLED])

    def grow(self) -> None:
        """Make room for the entries of one class more."""
        filled, seen = self.filled, int(self.state[SEEN])
        if filled + seen > len(self.entries):
            self.entries = longer(self.entries, filled, 2 * (filled + seen))

    def close(self) -> Ledger:
        """The ledger with the last class written down."""
        self.grow()
        _, seen, filled, label = self.state[: LABEL + 1].tolist()
        self.state[FILLED] = flush(self.entries, filled, label, self.tally, self.touched, seen)
        return self


_BYTES_PER_THREAD = 1 << 20  # a thread and uniting two tables cost about as much as cutting this much text
_TOKENS_PER_THREAD = 1 << 18  # a thread costs about as much as counting this many
_WORDS_PER_THREAD = 1 << 13  # … or looking up this many
_BYTES_PER_WORD = 64  # of text, for each distinct word that there is room for at first
_BYTES_PER_ENTRY = 64  # … and for each distinct word of a class
_MOST_BYTES = 1 << 32  # for one thread, which may take another's: it counts in 32 bits, a word takes three bytes
_PIECES = 32  # that two threads take from a stretch of texts, one from its front and one from its back


def readable(texts: pa.Array, prepared: Callable[[str], str]) -> TextBytes:
    """The bytes of an array of strings; those with letters beyond ASCII as Python has prepared them."""
    edges, data = utf8(texts)
    data.flags.writeable = False  # always the same type, and so one compiled kernel
    begin, stop = edges[:-1].astype(np.uint64), edges[1:].astype(np.uint64)
    if texts.null_count:
        gone = numpy_of(texts.is_null())
        stop[gone] = begin[gone]
    beyond = np.zeros(len(texts), dtype=np.bool_)
    shares = _stretches(stop - begin, _BYTES_PER_THREAD)
    parallel([partial(not_ascii, data, begin[a:b], stop[a:b], beyond[a:b]) for a, b in shares])
    more = b"\0"
    if beyond.any():
        others = [prepared(t).encode() for t in texts.filter(array(beyond)).to_pylist()]
        place = np.cumsum([0, *map(len, others)])
        begin[beyond], stop[beyond] = place[:-1], place[1:]
        more = b"".join(others) or more
    return TextBytes(data, np.frombuffer(more, dtype=np.uint8), beyond, begin, stop)


def _stretches(sizes: Any, enough: int) -> list[tuple[int, int]]:
    """Stretches of texts of about equal size, one for each thread that has enough to do."""
    total = int(sizes.sum())
    return list(pairwise(_edges(sizes, max(min(threads(), 1 + total // enough), total // _MOST_BYTES))))


@dataclass(frozen=True)
class _Part:
    """What one thread found."""

    table: StringTable
    ledger: Ledger
    numbers: Any
    ends: Any

    @property
    def known(self) -> int:
        """How many words."""
        return int(self.table.known[0])


def _cut(
    texts: Any, order: Ints, labels: Ints, keep: bool, lower: bool, stops: Iterable[int], backward: bool = False
) -> _Part:
    """Some texts, class by class, cut and counted; the numbers of their tokens too if they are to be kept."""
    order = order[::-1].copy() if backward else order
    size = texts.stop[order] - texts.begin[order]
    total = int(size.sum())
    numbers = np.empty(total // 3 + len(order) + 1 if keep else 0, dtype=np.uint32)
    ends = np.zeros(len(texts.stop) if keep else 0, dtype=np.int64)
    desk = new_bench(int(size.max(initial=0)))
    table = new_table(total // _BYTES_PER_WORD + 2 * MOST, total // _BYTES_PER_WORD * 8, beside=2)
    ledger = Ledger(table.keys, total // _BYTES_PER_ENTRY, backward)
    for stop in stops:
        while lacks := count(
            texts, order, labels, stop, lower, word_characters(), desk, table, ledger.touched, ledger.entries, numbers,
            ends, ledger.state,
        ):  # fmt: skip
            if lacks == LACKS_WORDS:
                table = roomier(table, MOST, int(ledger.state[NEEDED]))
                ledger.tally, ledger.touched = table.keys, longer(ledger.touched, len(ledger.touched), len(table.keys))
            else:
                ledger.grow()
    return _Part(table, ledger.close(), numbers, ends[order] if keep else ends)


def _all_cut(texts: Any, order: Ints, labels: Ints, lower: bool) -> list[_Part]:
    """What each thread found, classes in order from thread to thread."""
    sizes = (texts.stop - texts.begin)[order]
    edges = [0, *(b for _, b in _stretches(sizes, _BYTES_PER_THREAD))]
    jobs = []
    for k in range(0, len(edges) - 1, 2):  # two threads share two stretches; the last one may be alone
        a, b = edges[k], edges[min(k + 2, len(edges) - 1)]
        ways = (False, True)[: len(edges) - 1 - k]
        meeting = Meeting(sizes[a:b], _PIECES if len(ways) > 1 else 1)
        jobs += [partial(_cut, texts, order[a:b], labels, False, lower, meeting.stops(w), w) for w in ways]
    return parallel(jobs)


def _united(parts: Sequence[_Part]) -> tuple[list[Any], list[Any]]:
    """The number that each word of each part has among all words, and the words of each that no part before it has.

    Words of a part are numbered from 1, and among all from 0; what stands for 0 means nothing.
    """
    known = parts[0].known
    new, fresh = [np.arange(-1, known).astype(np.uint32)], [np.arange(known)]
    for p, part in enumerate(parts[1:], 1):
        numbers = np.full(part.known + 1, NONE)
        count = min(threads(), 1 + part.known // _WORDS_PER_THREAD)
        edges = pairwise(1 + part.known * i // count for i in range(count + 1))

        def look(a: int, b: int, table: Any = part.table, numbers: Any = numbers, p: int = p) -> None:
            for other, given in zip(parts[:p], new, strict=False):
                known_to(other.table, given, table, a, b, numbers)

        parallel([partial(look, a, b) for a, b in edges])
        unknown = np.flatnonzero(numbers[1:] == NONE)
        numbers[unknown + 1] = np.arange(known, known + len(unknown))
        known += len(unknown)
        new.append(numbers)
        fresh.append(unknown)
    return new, fresh


def _all_words(parts: Sequence[_Part], fresh: Sequence[Any]) -> pa.Array:
    """The distinct words, those of the first part first."""
    words = [words_of(part.table) for part in parts]
    if len(words) == 1:
        return words[0]
    each = [words[0], *(w.take(array(f)) for w, f in zip(words[1:], fresh[1:], strict=True))]
    if len({w.type for w in each}) > 1 or sum(w.nbytes for w in each) >= 1 << 31:
        each = [w.cast(pa.large_string()) for w in each]
    return pa.concat_arrays(each)


def numbered(texts: Any, lower: bool) -> tuple[pa.Array, Any, Ints]:
    """The distinct words, the number of every token among them, and where each text's tokens end."""
    order, labels = np.arange(len(texts.begin)), np.zeros(len(texts.begin), dtype=np.int64)
    parts = parallel([
        partial(_cut, texts, order[a:b], labels, True, lower, [b - a])
        for a, b in _stretches(texts.stop - texts.begin, _BYTES_PER_THREAD)
    ])  # fmt: skip
    new, fresh = _united(parts)
    numbers, ends, start = [], [], 0
    for part, number in zip(parts, new, strict=True):
        length = int(part.ends[-1]) if len(part.ends) else 0
        found = part.numbers[:length]
        numbers.append(number[found] if start else found - np.uint32(1))
        ends.append(part.ends + start)
        start += length
    return _all_words(parts, fresh), np.concatenate(numbers), np.concatenate(ends)


def counted(texts: Any, labels: Ints, lower: bool) -> tuple[pa.Array, Ints, Ints, Ints]:
    """The distinct words, and entries sorted by word and class: the word's number, the class, (occurrences, texts)."""
    few = labels.max(initial=0) < 1 << 16  # numbers of sixteen bits are sorted by counting them
    order = np.argsort(labels.astype(np.uint16) if few else labels, kind="stable")
    parts = _all_cut(texts, order, labels, lower)
    new, fresh = _united(parts)
    ledgers = [(part.ledger, number) for part, number in zip(parts, new, strict=True)]
    entries, ends, words = _by_token(ledgers, sum(map(len, fresh)), partial(_all_words, parts, fresh))
    return words, *_merged(entries, ends)


def by_class(numbers: Any, ends: Ints, labels: Ints, words: int) -> tuple[Ints, Ints, Ints]:
    """The same entries for tokens that have their numbers already."""
    order = np.argsort(labels, kind="stable")

    def part(a: int, b: int) -> Ledger:
        ledger = Ledger(np.zeros((words + 1, 2), dtype=np.uint64), int(sizes[a:b].sum()) // 8)
        while not by_group(
            numbers, ends, order[a:b], labels, ledger.tally, ledger.touched, ledger.entries, ledger.state
        ):
            ledger.grow()
        return ledger.close()

    sizes, number = np.diff(ends, prepend=0)[order], np.arange(words, dtype=np.uint32)
    parts = parallel([partial(part, a, b) for a, b in _stretches(sizes, _TOKENS_PER_THREAD)])
    entries, token_ends, _ = _by_token([(part, number) for part in parts], words, lambda: None)
    return _merged(entries, token_ends)


def _by_token(parts: Sequence[tuple[Ledger, Any]], words: int, beside: Callable[[], Any]) -> tuple[Any, Ints, Any]:
    """The entries of all parts in one array, each part's in order of its words; parts × words, where those of a word
    begin; and what `beside` gives, which runs at the same time.

    A part is its entries, and the number of the word for each of its tokens, of so many words.
    """
    start = np.cumsum([0, *(ledger.filled for ledger, _ in parts)]).tolist()
    entries, ends = np.empty((start[-1], 3), dtype=np.uint32), np.zeros((len(parts), words + 3), dtype=np.int64)
    jobs: list[Callable[[], Any]] = [
        partial(by_token, ledger.entries, ledger.filled, ledger.backward, number, end, entries[a:b])
        for (ledger, number), end, (a, b) in zip(parts, ends, pairwise(start), strict=True)
    ]
    other = parallel([*jobs, beside])[-1]
    ends += np.array(start[:-1])[:, None]
    return entries, ends, other


def _merged(entries: Any, ends: Ints) -> tuple[Ints, Ints, Ints]:
    """Word, class and (occurrences, texts), by word and class."""
    count, words = min(threads(), 1 + len(entries) // _TOKENS_PER_THREAD), ends.shape[1] - 3
    before = ends.sum(axis=0)  # how many entries come before each word, and the same for all
    inner = np.searchsorted(before - before[0], [len(entries) * i // count for i in range(1, count)]).tolist()
    edges = list(pairwise([0, *inner, words]))
    sizes = parallel([partial(merged, ends, entries, a, b, *_room(0)) for a, b in edges])
    start = np.cumsum([0, *sizes]).tolist()
    out = _room(start[-1])
    parallel([
        partial(merged, ends, entries, a, b, *(o[i:j] for o in out))
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
        edges, letters = utf8(words.cast(pa.large_string()).take(array(order)))
        size = int(edges[-1])
        data = np.zeros(size + 16, dtype=np.uint8)
        data[:size] = letters[:size]
        classes = weights.shape[1]
        table = np.zeros((len(words) + 2, -(-classes // 8) * 8))
        table[1:-1, :classes] = weights[order]
        if unknown is not None:
            table[0, :classes] = unknown
        index = roomier(new_table(len(words), size), len(words), size)
        index_all(data, edges.astype(np.uint64), new_bench(0), index)
        return cls(index, table, classes)

    def dot(self, texts: Any, lower: bool, presence: bool) -> tuple[Floats, Floats]:
        """Σ weights of each text's words, of its distinct words with `presence`; and how many words it has in all."""
        lengths = np.zeros(len(texts.begin))
        out = np.zeros((len(texts.begin), self.weights.shape[1]))
        sizes = texts.stop - texts.begin
        parallel([
            partial(score, texts, a, b, lower, word_characters(), new_bench(int(sizes[a:b].max(initial=0))), self.table,
                    self.weights, np.zeros(len(self.table.edges) if presence else 0, dtype=np.int64), out, lengths)
            for a, b in _stretches(sizes, _BYTES_PER_THREAD)
        ])  # fmt: skip
        return out[:, : self.classes], lengths


@cache
def word_characters() -> Any:
    """For every code point whether Python's `re` calls it a word character."""
    out = np.zeros(sys.maxunicode + 1, dtype=np.uint8)
    points = np.arange(sys.maxunicode + 1, dtype="<u4")
    points[0xD800:0xE000] = ord(" ")  # surrogates, which no text has
    for match in re.finditer(r"\w+", points.tobytes().decode("utf-32-le")):
        out[match.start() : match.end()] = 1
    return out
