"""Texts → numbered tokens: the fast way where a batch repays it, the reference in `text` otherwise."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from . import canon
from .arrow import array, numpy_of, scalar
from .exact import text_kernels
from .numerics import Ints
from .text import Tokeniser, clean
from .workers import parallel, threads

_FEW_WORDS = 1 << 14  # the smallest table of tokens
_BYTES_PER_THREAD = 1 << 20  # a thread and a merge of tables cost about as much as cutting this much text


@dataclass(frozen=True)
class Tokens:
    """The tokens of some texts: numbers into `words`, one text after the other; `ends` says where each text ends."""

    words: pa.Array  # strings, each once
    numbers: np.ndarray[tuple[int], np.dtype[np.uint32]]
    ends: Ints

    def of(self, text: int) -> Ints:
        """The token numbers of one text, in order."""
        start = int(self.ends[text - 1]) if text else 0
        return self.numbers[start : self.ends[text]].astype(np.int64)


def tokenised(texts: pa.Array, tokeniser: Tokeniser) -> Tokens:
    """The tokens of an Arrow array of strings; a null text has none."""
    texts = texts if pa.types.is_large_string(texts.type) else texts.cast(pa.large_string())
    kernels = text_kernels(_bytes(texts)) if tokeniser.plain else None
    found = _plain_words(texts, tokeniser) if kernels is None else _fast(texts, tokeniser, kernels)
    return _hashed(found, tokeniser.hash_bits) if tokeniser.hash_bits is not None else found


def _bytes(texts: pa.Array) -> int:
    if len(texts) == 0:
        return 0
    offsets = np.frombuffer(texts.buffers()[1], dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    return int(offsets[-1] - offsets[0])


def _plain_words(texts: pa.Array, tokeniser: Tokeniser) -> Tokens:
    """The reference: Python's own `re`, a dict for the numbers."""
    seen: dict[str, int] = {}
    numbers: list[int] = []
    ends = np.empty(len(texts), dtype=np.int64)
    known: dict[str, str | None] = {}  # stop words and stems act once per distinct piece
    for i, text in enumerate(texts.to_pylist()):
        if text is not None:
            pieces = tokeniser.pieces(tokeniser.prepared(text))
            for piece in pieces:
                if piece not in known:
                    known[piece] = tokeniser.word(piece)
            words = [w for p in pieces if (w := known[p]) is not None]
            numbers += [seen.setdefault(t, len(seen)) for t in tokeniser.grams(words)]
        ends[i] = len(numbers)
    return Tokens(array(list(seen), pa.string()), np.array(numbers, dtype=np.uint32), ends)


# ---- the fast way


def _fast(texts: pa.Array, tokeniser: Tokeniser, kernels: Any) -> Tokens:
    data, begin, stop = _buffers(texts, tokeniser, kernels)
    if tokeniser.chars is None:
        found = _fast_words(data, begin, stop, tokeniser.lower, kernels)
    else:
        found = _fast_chars(data, begin, stop, tokeniser, kernels)
    if tokeniser.stop or tokeniser.stem:
        found = _reworded(found, tokeniser)
    if tokeniser.chars is None and tokeniser.ngrams != (1, 1):
        found = _fast_grams(found, tokeniser.ngrams)
    return found


def _buffers(texts: pa.Array, tokeniser: Tokeniser, kernels: Any) -> tuple[Any, Any, Any]:
    """The bytes, and where each text begins and stops; texts beyond ASCII are prepared by Python and put behind."""
    _, offsets, bytes_ = texts.buffers()
    data = np.frombuffer(bytes_, dtype=np.uint8) if bytes_ is not None and bytes_.size else np.zeros(1, dtype=np.uint8)
    edges = np.frombuffer(offsets, dtype=np.uint64)[texts.offset : texts.offset + len(texts) + 1]
    begin, stop = edges[:-1].copy(), edges[1:].copy()
    if texts.null_count:
        gone = numpy_of(texts.is_null())
        stop[gone] = begin[gone]
    beyond = np.zeros(len(texts), dtype=np.bool_)
    wide = data[: len(data) // 8 * 8].view(np.uint64)
    kernels.not_ascii(data, wide, begin.astype(np.int64), stop.astype(np.int64), beyond)
    if beyond.any():
        prepared = [_prepared(t, tokeniser) for t in texts.filter(array(beyond)).to_pylist()]
        place = len(data) + np.concatenate(([0], np.cumsum([len(p) for p in prepared])))
        begin[beyond], stop[beyond] = place[:-1], place[1:]
        data = np.concatenate([data, np.frombuffer(b"".join(prepared), dtype=np.uint8)])
    return data, begin, stop


def _prepared(text: str, tokeniser: Tokeniser) -> bytes:
    text = tokeniser.prepared(text)
    if tokeniser.chars is not None and tokeniser.across:
        text = re.sub(r"\s+", " ", text)
    return text.encode()


def _fast_words(data: Any, begin: Any, stop: Any, lower: bool, kernels: Any) -> Tokens:
    """Each thread cuts a stretch of the texts with a table of its own; the tables are put together afterwards."""
    folded = np.zeros((len(data) + 31) // 8 * 8, dtype=np.uint8)  # room to look two windows of eight bytes ahead
    kernels.fold(data, lower, folded)
    size = np.cumsum(stop - begin)
    total = int(size[-1]) if len(size) else 0
    count = min(threads(), 1 + total // _BYTES_PER_THREAD)
    cuts = [0, *np.searchsorted(size, total * np.arange(1, count) / count).tolist(), len(begin)]
    found = parallel([partial(_cut, folded, begin[a:b], stop[a:b], kernels) for a, b in pairwise(cuts)])
    first = found[0]
    numbers, ends = [first.numbers], [first.ends]
    table, at, length, known = first.table, first.at, first.length, first.known
    for part in found[1:]:
        while len(table) // 4 < known + part.known:
            table, at, length = kernels.rehashed(table), _doubled(at), _doubled(length)
        new = np.empty(max(part.known, 1), dtype=np.uint32)
        wide = folded.view(np.uint64)
        known = int(
            kernels.merge(folded, wide, table, at, length, known, part.at[: part.known], part.length[: part.known], new)
        )
        kernels.renumber(part.numbers, new)
        ends.append(part.ends + sum(map(len, numbers)))
        numbers.append(part.numbers)
    words = _spelled(folded, at[:known], length[:known], kernels)
    return Tokens(words, np.concatenate(numbers), np.concatenate(ends))


@dataclass(frozen=True)
class _Part:
    """What one thread found: its tokens, and its table of distinct ones."""

    numbers: Any
    ends: Any
    table: Any
    at: Any
    length: Any
    known: int


def _cut(folded: Any, begin: Any, stop: Any, kernels: Any) -> _Part:
    size = int((stop - begin).sum())
    numbers, ends = np.empty(size // 2 + 1, dtype=np.uint32), np.empty(len(begin), dtype=np.int64)
    room = _FEW_WORDS
    while room < size // 64:
        room *= 2
    table = np.zeros(2 * room, dtype=np.uint64)
    at, length = np.empty(room, dtype=np.uint64), np.empty(room, dtype=np.uint64)
    state, wide = np.zeros(6, dtype=np.int64), folded.view(np.uint64)
    while not kernels.words(
        folded, wide, begin, stop, word_characters(), lowest_bits(), numbers, ends, table, at, length, state
    ):
        table, at, length = kernels.rehashed(table), _doubled(at), _doubled(length)
    return _Part(numbers[: state[1]], ends, table, at, length, int(state[2]))


def _doubled(array: Any) -> Any:
    return np.concatenate([array, np.empty_like(array)])


def _fast_chars(data: Any, begin: Any, stop: Any, tokeniser: Tokeniser, kernels: Any) -> Tokens:
    from . import gramkernels

    assert tokeniser.chars is not None
    low, high = tokeniser.chars
    size = int((stop - begin).sum())
    out, cuts = np.empty(2 * size + 2, dtype=np.uint8), np.empty(size + len(begin) + 1, dtype=np.int64)
    piece_ends = np.empty(len(begin), dtype=np.int64)
    fold = _folding(tokeniser.lower)
    pieces = gramkernels.padded(data, begin, stop, fold, word_characters(), tokeniser.across, out, piece_ends, cuts)
    total = int(cuts[pieces - 1]) if pieces else 0
    numbers = np.empty(total * (high - low + 1) + 1, dtype=np.uint32)
    ends, places = np.empty(len(begin), dtype=np.int64), np.empty(total + 2, dtype=np.int64)
    cuts = cuts[: max(pieces, 1)]

    def cut(keys: Any, ids: Any, at: Any, length: Any, state: Any) -> bool:
        return bool(
            gramkernels.chars(out, cuts, piece_ends, low, high, places, numbers, ends, keys, ids, at, length, state)
        )

    n, at, length = _grow_until_done(cut, gramkernels, total // 64)
    return Tokens(_spelled(out, at, length, kernels), numbers[:n], ends)


def _fast_grams(found: Tokens, sizes: tuple[int, int]) -> Tokens:
    from . import gramkernels

    low, high = sizes
    numbers = np.empty(len(found.numbers) * (high - low + 1) + 1, dtype=np.uint32)
    ends = np.empty(len(found.ends), dtype=np.int64)

    def cut(keys: Any, ids: Any, at: Any, size: Any, state: Any) -> bool:
        return bool(gramkernels.grams(found.numbers, found.ends, low, high, numbers, ends, keys, ids, at, size, state))

    n, at, size = _grow_until_done(cut, gramkernels, len(found.numbers) // 4)
    words = found.words.to_pylist()
    names = [
        " ".join([words[j] for j in found.numbers[a : a + k]]) for a, k in zip(at.tolist(), size.tolist(), strict=True)
    ]
    return Tokens(array(names, pa.string()), numbers[:n], ends)


def _grow_until_done(cut: Callable[..., bool], kernels: Any, guess: int) -> tuple[int, Any, Any]:
    """Run a kernel that stops when its table of tokens is half full, with ever larger tables."""
    size = _FEW_WORDS
    while size < guess:
        size *= 2
    keys, ids = np.zeros(size, dtype=np.uint64), np.empty(size, dtype=np.uint32)
    at, length = np.empty(size, dtype=np.uint64), np.empty(size, dtype=np.uint32)
    state = np.zeros(6, dtype=np.int64)  # text, tokens so far, distinct ones, and where in the text to go on
    while not cut(keys, ids, at, length, state):
        keys, ids = kernels.grown(keys, ids)
        at = np.concatenate([at, np.empty_like(at)])
        length = np.concatenate([length, np.empty_like(length)])
    return int(state[1]), at[: state[2]], length[: state[2]]


def _spelled(data: Any, at: Any, length: Any, kernels: Any) -> pa.Array:
    offsets = np.zeros(len(at) + 1, dtype=np.int64)
    np.cumsum(length, out=offsets[1:])
    out = np.empty(int(offsets[-1]), dtype=np.uint8)
    kernels.spelled(data, at, length, offsets, out)
    large = pa.LargeStringArray.from_buffers(len(at), pa.py_buffer(offsets), pa.py_buffer(out))
    return large.cast(pa.string())


def _reworded(found: Tokens, tokeniser: Tokeniser) -> Tokens:
    """Stop words left out, stems put together: each distinct word is looked at once."""
    seen: dict[str, int] = {}
    new = np.full(max(len(found.words), 1), -1, dtype=np.int64)
    for i, piece in enumerate(found.words.to_pylist()):
        word = tokeniser.word(piece)
        if word is not None:
            new[i] = seen.setdefault(word, len(seen))
    return _renumbered(found, new, list(seen))


def _renumbered(found: Tokens, new: Ints, words: Sequence[str]) -> Tokens:
    numbers = new[found.numbers]
    kept = numbers >= 0
    before = np.concatenate(([0], np.cumsum(kept)))
    return Tokens(array(words, pa.string()), numbers[kept].astype(np.uint32), before[found.ends])


def _hashed(found: Tokens, bits: int) -> Tokens:
    """The tokens under 2^bits slots: the first bytes of a BLAKE2 hash of each."""
    seen: dict[str, int] = {}
    new = np.empty(max(len(found.words), 1), dtype=np.int64)
    for i, word in enumerate(found.words.to_pylist()):
        digest = hashlib.blake2b(word.encode(), digest_size=8).digest()
        new[i] = seen.setdefault(f"#{int.from_bytes(digest, 'little') % (1 << bits)}", len(seen))
    return _renumbered(found, new, list(seen))


@cache
def lowest_bits() -> Any:
    """For each product of a lone bit with the kernels' de Bruijn number, the place of the bit."""
    out = np.zeros(64, dtype=np.uint64)
    for place in range(64):
        out[((1 << place) * 0x03F79D71B4CB0A89 & (1 << 64) - 1) >> 58] = place
    return out


@cache
def word_characters() -> Any:
    """For every code point whether Python's `re` calls it a word character."""
    out = np.zeros(sys.maxunicode + 1, dtype=np.uint8)
    everything = "".join(" " if 0xD800 <= i < 0xE000 else chr(i) for i in range(sys.maxunicode + 1))
    for match in re.finditer(r"\w+", everything):
        out[match.start() : match.end()] = 1
    return out


@cache
def _folding(lower: bool) -> Any:
    """For every byte: the folded ASCII word character, or 0 for anything else."""
    out = np.zeros(256, dtype=np.uint8)
    for i in range(128):
        if word_characters()[i]:
            out[i] = ord(chr(i).lower()) if lower else i
    return out


def text_array(raw: Any, missing: Sequence[str]) -> pa.Array:
    """Any column as an Arrow array of strings: lone surrogates replaced, texts that mean "missing" null."""
    if isinstance(raw, pa.Array) and pa.types.is_dictionary(raw.type):
        raw = raw.dictionary_decode()
    if isinstance(raw, pa.Array) and (pa.types.is_string(raw.type) or pa.types.is_large_string(raw.type)):
        texts = raw.cast(pa.large_string())
    else:
        values = raw.to_pylist() if isinstance(raw, pa.Array) else list(raw)
        given = [canon.text(v) for v in values]
        texts = array([None if t is None else clean(t) for t in given], pa.large_string())
    marked = [m for m in missing if m != ""]  # an empty text is a text without words, not a missing one
    if marked:
        found = pc.is_in(texts, value_set=array(marked, pa.large_string()))
        texts = pc.if_else(found, scalar(None, pa.large_string()), texts)
    return texts
