"""Texts as points: a number for each word, by how often it occurs and in how many texts.

    counts      how often the word occurs
    presence    1 if it occurs
    tf-idf      how often · (log(texts / texts with the word) + 1), so that a word which all texts have says least

Each point is then made one long (norm "l2"), so that long and short texts of the same words are the same. Naive Bayes
itself wants the counts, see `Tokeniser`; points are for whoever measures distances, and for embeddings' sake.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..base.arrays import Floats
from ..base.errors import DataError, SettingsError, unknown
from ..base.lazy import scipy
from . import encode
from .blocks import Bag
from .schema import Column, Schema
from .sources import open_source
from .text.tokeniser import Tokeniser

WEIGHTINGS = ("tf-idf", "counts", "presence")
NORMS = ("l2", "l1", None)
_TEXT = "text"


@dataclass(frozen=True, eq=False)
class WordVectors:
    """The words of some texts, and what each weighs; `matrix(texts)` has a row per text and a column per word.

    >>> vectors = tb.WordVectors.of(["I am spam", "spam I am", "you like it"], tokeniser=tb.Tokeniser(pattern=r"\\w+"))
    >>> vectors.words
    ('am', 'i', 'it', 'like', 'spam', 'you')
    >>> vectors.matrix(["spam and I"]).toarray().round(3).tolist()
    [[0.0, 0.707, 0.0, 0.0, 0.707, 0.0]]
    """

    words: tuple[str, ...]
    idf: Floats  # of each word
    weighting: str = "tf-idf"
    norm: str | None = "l2"
    tokeniser: Tokeniser = field(default_factory=Tokeniser)

    @classmethod
    def of(
        cls,
        texts: Sequence[str],
        *,
        weighting: str = "tf-idf",
        norm: str | None = "l2",
        tokeniser: Tokeniser | None = None,
    ) -> WordVectors:
        """The words of these texts; a word of other texts is left out later."""
        if weighting not in WEIGHTINGS:
            raise unknown(SettingsError, f"weighting={weighting!r}", weighting, WEIGHTINGS)
        if norm not in NORMS:
            raise SettingsError(f"norm={norm!r}", hint="take 'l2', 'l1' or None.")
        own = tokeniser or Tokeniser()
        bags = _bags(texts, own)
        there: dict[str, int] = {}
        for bag in bags:
            n = np.bincount(bag.matrix.indices, minlength=len(bag.slots))
            for word, k in zip(bag.slots, n.tolist(), strict=True):
                there[word] = there.get(word, 0) + k
        words = tuple(sorted(w for w, k in there.items() if k > 0))
        with_word = np.array([there[w] for w in words], dtype=np.float64)
        idf = np.log(max(sum(b.rows for b in bags), 1) / with_word) + 1.0
        return cls(words, idf, weighting, norm, own)

    def matrix(self, texts: Sequence[str]) -> Any:
        """A sparse matrix, texts × words; a text without any of the words is a row of zeros."""
        place, found = {w: i for i, w in enumerate(self.words)}, []
        for bag in _bags(texts, self.tokeniser):
            at = np.array([place.get(s, -1) for s in bag.slots], dtype=np.int64)
            known = np.flatnonzero(at >= 0)
            pick = scipy.sparse.csr_array(
                (np.ones(len(known)), (known, at[known])), shape=(len(bag.slots), len(self.words))
            )
            found.append(bag.matrix @ pick)
        empty = scipy.sparse.csr_array((0, len(self.words)))
        out = scipy.sparse.csr_array(scipy.sparse.vstack([empty, *found], format="csr"))
        if self.weighting == "presence":
            out.data[:] = 1.0
        elif self.weighting == "tf-idf":
            out = scipy.sparse.csr_array(out @ scipy.sparse.diags_array(self.idf))
        if self.norm is None:
            return out
        size = np.sqrt(out.multiply(out).sum(axis=1)) if self.norm == "l2" else out.sum(axis=1)
        by = 1.0 / np.where(np.asarray(size).ravel() > 0, np.asarray(size).ravel(), 1.0)
        return scipy.sparse.csr_array(scipy.sparse.diags_array(by) @ out)


def _bags(texts: Sequence[str], tokeniser: Tokeniser) -> list[Bag]:
    """The words of each text, some texts at a time."""
    if isinstance(texts, str):
        raise DataError("one text where several are wanted", hint="give a list of texts: [text].")
    schema = Schema([Column(_TEXT, "text", text=tokeniser)], target="(none)")
    out = []
    for batch in open_source({_TEXT: texts}).batches():
        block = encode.bags(encode.blocks(schema, batch))[_TEXT]
        assert isinstance(block, Bag)
        out.append(block)
    return out
