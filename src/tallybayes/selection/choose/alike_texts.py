"""Whether texts that stand beside each other belong together: one thread, one author, one review cut into sentences.

The same question as for other columns (`alike`), asked of words. A row is compared with the two rows to either side of
it in its class, and with sixteen others of the class: in a shuffled file the one that shares most with it stands beside
it once in five times. Frequent words weigh less. Names, and what stands in the order of the alphabet, are not asked:
sorting makes neighbours alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, pairwise
from math import sqrt
from typing import Any

import numpy as np
import pyarrow as pa

from ...base.arrays import Floats, Ints
from ...data.copies import Hashes, of_class
from ...data.encode import Labelled
from ...data.texts import Texts

SAMPLE = 400  # rows asked
OTHERS = 16  # rows of the class that each is compared with, beside its neighbours
REACH = 2  # rows to either side that count as beside
APART = 8  # rows from which on another is not beside
LONGEST = 1_000  # characters of a text that are looked at
DEVIATIONS = 4.0  # beyond chance that say something
EXCESS = 0.1  # of the rows, at least, beyond chance: neighbours held out together cost next to nothing
SENTENCE = 6  # words on average: less is a name or a place, and lists of those are sorted
SORTED = 0.8  # of neighbours in the order of the alphabet, from which a file was sorted by its texts
_FEWEST = 60  # rows asked, or nothing is said


def of_texts(rows: Labelled, hashes: Hashes) -> tuple[float, float, float, int] | None:
    """(share of rows whose likest stands beside them, by chance, deviations, rows asked); None if that says nothing."""
    kept = np.sort(np.unique(of_class(hashes, rows.labels), return_index=True)[1])  # copies are no neighbours
    at = kept[np.argsort(rows.labels[kept], kind="stable")]
    texts = [b.texts for b in rows.blocks.values() if isinstance(b, Texts) and b.tokeniser.chars is None]
    texts = [each for each in texts if _are_told(each, at[:: max(1, len(at) // SAMPLE)])]
    if not texts:
        return None
    labels, content = rows.labels[at], hashes[at]
    edges = np.searchsorted(labels, np.arange(len(rows.classes) + 1))
    drawn = {y: _drawn(content, *edges[y : y + 2].tolist()) for y in range(len(rows.classes))}
    asked = [int(i) for i in np.argsort(content, kind="stable").tolist() if drawn[int(labels[i])] is not None][:SAMPLE]
    if len(asked) < _FEWEST:
        return None
    compared = []
    for i in asked:
        first, last = edges[labels[i] : labels[i] + 2].tolist()
        beside = [j for j in range(max(first, i - REACH), min(last, i + REACH + 1)) if j != i]
        some = drawn[int(labels[i])]
        assert some is not None
        others = some[np.abs(some - i) > APART][:OTHERS].tolist()
        compared.append((i, beside, others))
    used = sorted({j for i, beside, others in compared for j in (i, *beside, *others)})
    words, weight = _weighed(texts, at[used])
    size = {j: max(float(weight[w].sum()), 1e-9) for j, w in zip(used, words, strict=True)}
    known, own = dict(zip(used, words, strict=True)), np.zeros(len(weight))
    hit, chance = [], []
    for i, beside, others in compared:
        own[known[i]] = weight[known[i]]
        each = [known[j] for j in (*beside, *others)]
        whose = np.repeat(np.arange(len(each)), [len(w) for w in each])
        both = np.bincount(whose, own[np.concatenate(each)], len(each)).tolist()
        shared = {j: b / sqrt(size[i] * size[j]) for j, b in zip((*beside, *others), both, strict=True)}
        own[known[i]] = 0.0
        most = max(shared.values()) - 1e-9
        best = [j for j in shared if shared[j] >= most]
        hit.append(sum(j in beside for j in best) / len(best))
        chance.append(len(beside) / len(shared))
    by_chance = np.array(chance)
    spread = float(np.sqrt(2 * np.sum(by_chance * (1 - by_chance))))
    z = float(sum(hit) - by_chance.sum()) / spread if spread else 0.0
    excess = float(np.mean(hit) - by_chance.mean())
    return (float(np.mean(hit)), float(by_chance.mean()), z, len(hit)) if z >= DEVIATIONS and excess >= EXCESS else None


def _weighed(texts: Sequence[Any], rows: Ints) -> tuple[list[Ints], Floats]:
    """The numbers of the different words of some rows, and how much each word says: −log of the share that has it."""
    some = zip(*(each.take(pa.array(rows)).to_pylist() for each in texts), strict=True)
    whole = [" ".join((text or "")[:LONGEST] for text in row).lower() for row in some]
    words = [list(dict.fromkeys(text.split())) for text in whole]
    every = pa.array(list(chain.from_iterable(words)), pa.string()).dictionary_encode()
    numbers = every.indices.to_numpy().astype(np.int64)
    weight = np.log((1 + len(rows)) / np.bincount(numbers, minlength=len(every.dictionary)))
    return np.split(numbers, np.cumsum([len(w) for w in words])[:-1]), weight


def _are_told(texts: Any, some: Ints) -> bool:
    """Whether texts are sentences at least, in no order of the alphabet."""
    each = [text or "" for text in texts.take(pa.array(some)).to_pylist()]
    rising = sum(a <= b for a, b in pairwise(each))
    return sum(len(text.split()) for text in each) >= SENTENCE * len(each) and rising < SORTED * len(each)


def _drawn(content: Hashes, first: int, last: int) -> Ints | None:
    """Rows of a class to be compared with, whatever the order of the file; None if it has too few."""
    if last - first < 2 * (OTHERS + APART):
        return None
    return first + np.argsort(content[first:last], kind="stable")[: 3 * OTHERS]
