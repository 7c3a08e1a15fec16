"""A text column of a batch: its strings, cut into tokens when somebody asks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from ..base.arrays import Bools, Floats, Ints
from ..base.arrow import array, numpy_of, utf8
from ..base.lazy import scipy
from ..exact.kernels import gate
from ..exact.sheet import Sheet
from ..exact.sums import exact_sums
from .blocks import WORDS, Bag, Groups, N
from .text.tokeniser import Tokeniser
from .text.tokens import Tokens, tokenised

_ENDINGS = ("", "e", "s", "ing")  # one makes a word of nearly any stem: "agre" is no stem of itself, but of "agree"
_SHORT = 1 << 10  # bytes of text that Python cuts in the time that it takes to call a kernel


def texts_of(tokens: pa.Array, tokeniser: Tokeniser) -> pa.Array | None:
    """Texts that are cut into these tokens, a list of them for each; None where there are no such texts.

    >>> texts_of(pa.array([["agre", "ball"], []]), Tokeniser(stem="english")).to_pylist()
    ['agree ball', '']
    """
    flat = tokens.flatten().dictionary_encode()
    ways = ([word + end for end in _ENDINGS] for word in flat.dictionary.to_pylist())
    spelled = [
        next((way for way in each if tokeniser.tokens(way) == [word]), None)
        for word, each in zip(flat.dictionary.to_pylist(), ways, strict=True)
    ]
    if tokeniser.hash_bits is not None or None in spelled:
        return None
    words, ends = [spelled[i] for i in flat.indices.to_pylist()], numpy_of(tokens.offsets).tolist()
    texts = array([" ".join(words[a:b]) for a, b in pairwise(ends)], pa.string())
    found = tokenised(texts, tokeniser)  # pairs of words are tokens, too, of some tokenisers
    same = found.ends.tolist() == ends[1:] and found.words.take(array(found.numbers)).equals(flat.dictionary_decode())
    return texts if same else None


@dataclass(frozen=True)
class Texts:
    """Strings, null for missing, and how to cut them."""

    texts: pa.Array
    tokeniser: Tokeniser
    levels: int | None = None

    @property
    def rows(self) -> int:
        """How many rows."""
        return len(self.texts)

    def take(self, rows: Ints | Bools) -> Texts:
        """The block of some of the rows."""
        kept = self.texts.filter(array(rows)) if rows.dtype == bool else self.texts.take(array(rows))
        return Texts(kept, self.tokeniser, self.levels)

    def present(self) -> Bools:
        """Which rows have a text, empty ones included."""
        return np.asarray(numpy_of(self.texts.is_valid()))

    def text(self, row: int) -> str | None:
        """The text."""
        value: str | None = self.texts[row].as_py()
        return value

    def receipts(self) -> list[bytes]:
        """The text itself."""
        edges, letters = utf8(self.texts)
        raw, there = memoryview(letters), self.present().tolist()
        return [b"=" + raw[a:b] if has else b"-" for (a, b), has in zip(pairwise(edges.tolist()), there, strict=True)]

    @cached_property
    def tokens(self) -> Tokens:
        """The tokens of every row."""
        return tokenised(self.texts, self.tokeniser)

    @cached_property
    @gate.guarded
    def bag(self) -> Bag:
        """The same as a bag, ready to be scored."""
        found = self.tokens
        width, indptr = len(found.words), np.zeros(self.rows + 1, dtype=np.int64)
        kernels = gate.kernels("tokens", len(found.numbers))
        if kernels is not None:
            indices, amounts = np.empty(len(found.numbers), dtype=np.int64), np.empty(len(found.numbers))
            stamp, place = np.full(width, -1, dtype=np.int64), np.empty(width, dtype=np.uint64)
            n = kernels.rows(found.numbers, found.ends, stamp, place, indptr, indices, amounts)
            indices, amounts = indices[:n], amounts[:n]
        else:
            row = np.repeat(np.arange(self.rows), np.diff(found.ends, prepend=0))
            key, first, n = np.unique(row * width + found.numbers, return_index=True, return_counts=True)
            order = np.argsort(first)  # as they stand in the texts, which is how sums over them are rounded
            of_row, indices = np.divmod(key[order], max(width, 1))
            amounts = n[order].astype(np.float64)
            np.cumsum(np.bincount(of_row, minlength=self.rows), out=indptr[1:])
        matrix = scipy.sparse.csr_array((amounts, indices, indptr), shape=(self.rows, width))
        return Bag(found.words.to_pylist(), matrix, self.present(), self.levels, found)

    @gate.guarded
    def sum_by(self, groups: Groups) -> dict[str, Sheet]:
        """Occurrences and texts under each token, and a one for the row."""
        plain = groups.weights is None and self.levels is None and self.tokeniser.plain
        kernels = gate.kernels("texts", self.texts.nbytes) if plain else None
        if kernels is None:
            return self.bag.sum_by(groups)
        if self.tokeniser.simple:  # counted while they are cut: the tokens are never written down
            texts = kernels.readable(self.texts, self.tokeniser.flattened)
            words, slot, label, amount = kernels.counted(texts, groups.labels, self.tokeniser.lower)
        else:
            words, numbers, ends = self.tokens.words, self.tokens.numbers, self.tokens.ends
            slot, label, amount = kernels.by_class(numbers, ends, groups.labels, len(words))
        rows = groups.take(self.present())
        count = exact_sums(rows.labels, groups.n_labels, [])
        return {
            "words": Sheet(WORDS, words, slot, np.zeros(len(slot), dtype=np.int64), label, amount),
            "rows": Sheet.dense([""], groups.n_labels, dict(zip(N, [count], strict=True))),
        }

    @gate.guarded
    def dot(self, belief: Any) -> Floats | None:
        """Σ weights of each text's words, as the belief has them, without a bag; None where that is no quicker.

        Short texts are cut by Python; long ones are scored by the kernels while they are cut.
        """
        size = self.texts.nbytes
        if size < _SHORT and self.tokeniser.hash_bits is None:
            found = [[] if t is None else self.tokeniser.tokens(t) for t in self.texts.to_pylist()]
            self.__dict__["_lengths"] = np.array([len(t) for t in found], dtype=np.float64)
            short: Floats = belief.summed(found)
            return short
        kernels = gate.kernels("texts", size) if self.tokeniser.simple else None
        if kernels is None or (belief.presence and belief.reserve):  # distinct words that nobody has numbered
            return None
        texts = kernels.readable(self.texts, self.tokeniser.flattened)
        out: Floats
        out, self.__dict__["_lengths"] = belief.lookup(kernels).dot(texts, self.tokeniser.lower, belief.presence)
        return out

    def lengths(self) -> Floats:
        """How many tokens each text has."""
        return self._lengths

    @cached_property
    def _lengths(self) -> Floats:  # `dot` puts them here when it has cut the texts anyway
        return self.bag.lengths()

    # ---- what a bag has, for those who read one

    slots = property(lambda self: self.bag.slots, doc="The distinct tokens.")
    matrix = property(lambda self: self.bag.matrix, doc="Rows × tokens.")
    has = property(present, doc="Which rows have a text.")
    given = property(lambda self: self.bag.given, doc="Per row, the numbers of its tokens in the order of the text.")

    def entries(self) -> tuple[Ints, Ints, Floats]:
        """Row, token and how often it occurs."""
        return self.bag.entries()
