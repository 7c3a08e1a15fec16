"""Texts → numbered tokens: the fast way where a batch repays it, the reference in `tokeniser` otherwise."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...base import canon
from ...base.arrays import Ints
from ...base.arrow import array, scalar
from ...exact.kernels import gate
from .tokeniser import Tokeniser, clean


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
    kernels = gate.kernels("texts", texts.nbytes) if tokeniser.plain else None
    found = _plain_words(texts, tokeniser) if kernels is None else _fast(texts, tokeniser, kernels)
    return _hashed(found, tokeniser.hash_bits) if tokeniser.hash_bits is not None else found


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
    found = kernels.readable(texts, tokeniser.flattened)
    if tokeniser.chars is not None:
        tokens = _fast_chars(found, tokeniser, kernels)
    else:
        tokens = Tokens(*kernels.numbered(found, tokeniser.lower))
    if tokeniser.stop or tokeniser.stem:
        tokens = _reworded(tokens, tokeniser)
    if tokeniser.chars is None and tokeniser.ngrams != (1, 1):
        tokens = _fast_grams(tokens, tokeniser.ngrams, kernels)
    return tokens


def _fast_chars(texts: Any, tokeniser: Tokeniser, kernels: Any) -> Tokens:
    from ...exact.kernels import tokens as gramkernels

    assert tokeniser.chars is not None
    low, high = tokeniser.chars
    count, size = len(texts.begin), int((texts.stop - texts.begin).sum())
    data, cuts = np.zeros(2 * size + 18, dtype=np.uint8), np.empty(size + count + 1, dtype=np.int64)
    piece_ends = np.empty(count, dtype=np.int64)
    is_word = kernels.word_characters()
    fold = _folding(tokeniser.lower, is_word)
    pieces = gramkernels.padded(texts, fold, is_word, tokeniser.across, data, piece_ends, cuts)
    total = int(cuts[pieces - 1]) if pieces else 0
    numbers, ends = np.empty(total * (high - low + 1) + 1, dtype=np.uint32), np.empty(count, dtype=np.int64)
    places = np.empty(total + 2, dtype=np.int64)
    table = kernels.new_table(total // 64 + 1024, total // 8)
    way = partial(gramkernels.chars, data, cuts, piece_ends, low, high, places)
    table = gramkernels.grown(way, table, numbers, ends, low)
    return Tokens(kernels.words_of(table), numbers[: ends[-1] if count else 0] - np.uint32(1), ends)


def _fast_grams(found: Tokens, sizes: tuple[int, int], kernels: Any) -> Tokens:
    from ...exact.kernels import tokens as gramkernels

    low, high = sizes
    data = np.zeros(len(found.numbers) + 4, dtype=np.uint32)
    data[:-4] = found.numbers + np.uint32(1)
    numbers = np.empty(len(found.numbers) * (high - low + 1) + 1, dtype=np.uint32)
    ends = np.empty(len(found.ends), dtype=np.int64)
    table = kernels.new_table(len(found.numbers) // 8 + 1024, len(found.numbers))
    way = partial(gramkernels.grams, data.view(np.uint8), found.ends, low, high)
    table = gramkernels.grown(way, table, numbers, ends, low)
    words = found.words.cast(pa.large_string())
    word_edges = np.frombuffer(words.buffers()[1], dtype=np.int64)[: len(words) + 1].copy()
    names = kernels.strings(*gramkernels.spelled(table, word_edges, _bytes_of(words)))
    return Tokens(names, numbers[: ends[-1] if len(ends) else 0] - np.uint32(1), ends)


def _bytes_of(words: pa.Array) -> Any:
    raw = words.buffers()[2]
    return np.frombuffer(raw if raw is not None and raw.size else b"\0", dtype=np.uint8)


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


def _folding(lower: bool, is_word: Any) -> Any:
    """For every byte: the folded ASCII word character, or 0 for anything else."""
    out = np.zeros(256, dtype=np.uint8)
    for i in np.flatnonzero(is_word[:128]).tolist():
        out[i] = ord(chr(i).lower()) if lower else i
    return out


def text_array(raw: Any, missing: Sequence[str]) -> pa.Array:
    """Any column as an Arrow array of strings: lone surrogates replaced, texts that mean "missing" null."""
    if isinstance(raw, pa.Array) and pa.types.is_dictionary(raw.type):
        raw = raw.dictionary_decode()
    if isinstance(raw, pa.Array) and (pa.types.is_string(raw.type) or pa.types.is_large_string(raw.type)):
        texts = raw
    else:
        values = raw.to_pylist() if isinstance(raw, pa.Array) else list(raw)
        given = [canon.text(v) for v in values]
        texts = array([None if t is None else clean(t) for t in given], pa.large_string())
    marked = [m for m in missing if m != ""]  # an empty text is a text without words, not a missing one
    if marked:
        found = pc.is_in(texts, value_set=array(marked, texts.type))
        texts = pc.if_else(found, scalar(None, texts.type), texts)
    return texts
