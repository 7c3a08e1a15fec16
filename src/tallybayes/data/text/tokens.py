"""Texts → numbered tokens: the fast way where a batch repays it, the reference in `tokeniser` otherwise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...base import canon
from ...base.arrays import Ints
from ...base.arrow import array, scalar, utf8
from ...base.arrow import texts as spelled
from ...exact.kernels import gate
from .tokeniser import Tokeniser, clean


@dataclass(frozen=True)
class Tokens:
    """The tokens of some texts: numbers into `words`, one text after the other; `ends` says where each text ends."""

    words: pa.Array  # strings, each once
    numbers: np.ndarray[tuple[int], np.dtype[np.uint32]]
    ends: Ints

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, text: int) -> list[int]:
        """The token numbers of one text, in order."""
        out: list[int] = self.numbers[self.ends[text - 1] if text else 0 : self.ends[text]].tolist()
        return out


@gate.guarded
def tokenised(texts: pa.Array, tokeniser: Tokeniser) -> Tokens:
    """The tokens of an Arrow array of strings; a null text has none."""
    kernels = gate.kernels("texts", texts.nbytes) if tokeniser.plain else None
    found = _plain_words(texts, tokeniser) if kernels is None else _fast(texts, tokeniser, kernels)
    return found if tokeniser.hash_bits is None else _renamed(found, tokeniser.slot)


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
        tokens = _renamed(tokens, tokeniser.word)
    if tokeniser.chars is None and tokeniser.ngrams != (1, 1):
        tokens = _fast_grams(tokens, tokeniser.ngrams, kernels)
    return tokens


def _fast_chars(texts: Any, tokeniser: Tokeniser, kernels: Any) -> Tokens:
    from ...exact.kernels import tokens as gramkernels

    assert tokeniser.chars is not None
    count, size = len(texts.begin), int((texts.stop - texts.begin).sum())
    data, cuts = np.zeros(2 * size + 18, dtype=np.uint8), np.empty(size + count + 1, dtype=np.int64)
    piece_ends = np.empty(count, dtype=np.int64)
    is_word = kernels.word_characters()
    letters, fold = bytes(range(128)), np.zeros(256, dtype=np.uint8)  # word characters of ASCII, folded, or 0
    fold[:128] = is_word[:128] * np.frombuffer(letters.lower() if tokeniser.lower else letters, dtype=np.uint8)
    pieces = gramkernels.padded(texts, fold, is_word, tokeniser.across, data, piece_ends, cuts)
    total = int(cuts[pieces - 1]) if pieces else 0
    table = kernels.new_table(total // 64 + 1024, total // 8)
    table, *found = gramkernels.numbered(data, 1, cuts[:pieces], piece_ends, tokeniser.chars, table)
    return Tokens(kernels.words_of(table), *found)


def _fast_grams(found: Tokens, sizes: tuple[int, int], kernels: Any) -> Tokens:
    from ...exact.kernels import tokens as gramkernels

    total, texts = len(found.numbers), np.arange(1, len(found) + 1)
    data = np.zeros(total + 4, dtype=np.uint32)
    data[:-4] = found.numbers + np.uint32(1)
    table = kernels.new_table(total // 8 + 1024, total)
    table, *numbered = gramkernels.numbered(data.view(np.uint8), 4, 4 * found.ends, texts, sizes, table)
    edges, letters = utf8(found.words)
    names = kernels.strings(*gramkernels.spelled(table, edges.copy(), letters))
    return Tokens(names, *numbered)


def _renamed(found: Tokens, name: Callable[[str], str | None]) -> Tokens:
    """The tokens under other names, left out where that is None: each distinct word is looked at once."""
    seen: dict[str, int] = {}
    new = np.full(max(len(found.words), 1), -1, dtype=np.int64)
    for i, word in enumerate(map(name, found.words.to_pylist())):
        if word is not None:
            new[i] = seen.setdefault(word, len(seen))
    numbers = new[found.numbers]
    kept = numbers >= 0
    before = np.concatenate(([0], np.cumsum(kept)))
    return Tokens(array(list(seen), pa.string()), numbers[kept].astype(np.uint32), before[found.ends])


def text_array(raw: Any, missing: Sequence[str]) -> pa.Array:
    """Any column as an Arrow array of strings: lone surrogates replaced, texts that mean "missing" null."""
    if isinstance(raw, pa.Array) and pa.types.is_dictionary(raw.type):
        raw = raw.dictionary_decode()
    if isinstance(raw, pa.Array) and (pa.types.is_string(raw.type) or pa.types.is_large_string(raw.type)):
        texts = raw
    else:
        given = spelled(raw) if isinstance(raw, pa.Array) else [canon.text(v) for v in raw]
        texts = array([None if t is None else clean(t) for t in given], pa.large_string())
    marked = [m for m in missing if m != ""]  # an empty text is a text without words, not a missing one
    if marked:
        found = pc.is_in(texts, value_set=array(marked, texts.type))
        texts = pc.if_else(found, scalar(None, texts.type), texts)
    return texts
