"""Texts cut into words, and what is done with the words at once.

A text is UTF-8 bytes; one with letters beyond ASCII was lowered by Python before. 64 bytes at a time become 64 bits
that say which belong to words; where the bits change, a word begins or ends. So there is no loop over letters, whose
end a processor could not foresee: of two kilobytes first all words are found, then all keys, then all numbers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .compiling import helper, kernel
from .llvm import add_table_rows, fold_block, ones, trailing_zeros
from .strings import ONE, ZERO, Keys, code_point, has_room, key_them, learn, look_up
from .tokens import FILLED, LABEL, SEEN, TEXT, add_up, write_class

_BLOCKS = np.int64(32)  # of 64 bytes, whose words are handled together: they and their keys stay in the nearest cache
MOST = 64 * int(_BLOCKS) // 2 + 4  # words that these can have, and a few to spare
_ROOM = np.uint64(MOST)
_SIX, _LAST, _EIGHT = np.uint64(6), np.uint64(63), np.uint64(8)
_FOURS = np.uint64(16)  # of words, whose weights are added together
TOTAL, BLOCK, BLOCKS, OPEN, BESIDE, NEEDED, STATES = range(
    LABEL + 1, LABEL + 8
)  # where `count` stands, besides the entries
DONE, LACKS_WORDS, LACKS_ENTRIES = range(3)


class Bench(NamedTuple):
    """Room to work on one text at a time, or on some short ones side by side, each from a block of its own on."""

    folded: Any  # uint8: the text, in lower case if asked for
    bits: Any  # uint64: which bytes belong to words
    tail: Any  # uint8: the last bytes of a text that ends with the buffer
    runs: Any  # uint64: begin and end of words, in turns
    keys: Any
    numbers: Any  # uint32: of the words found together
    blocks: Any  # int64: where the blocks of each text end
    words: Any  # uint64: … and its words among those found together


class TextBytes(NamedTuple):
    """Bytes, and where each text begins and stops; texts with letters beyond ASCII stand in bytes of their own."""

    data: Any
    more: Any
    beyond: Any
    begin: Any
    stop: Any


def new_bench(longest: int) -> Bench:
    """Room for texts of up to so many bytes."""
    longest = max(longest, 64 * int(_BLOCKS))
    return Bench(
        np.zeros(longest + 160, np.uint8), np.zeros(longest // 64 + 3, np.uint64), np.zeros(64, np.uint8),
        np.zeros(2 * MOST + 60, np.uint64), Keys(*(np.zeros(MOST, np.uint64) for _ in range(3))),
        np.zeros(MOST, np.uint32), np.zeros(_BLOCKS, np.int64), np.zeros(_BLOCKS, np.uint64),
    )  # fmt: skip


@kernel
def not_ascii(data: Any, begin: Any, stop: Any, out: Any) -> None:
    """Which texts hold a byte above 127."""
    for d in range(begin.shape[0]):
        high = np.uint8(0)
        for i in range(begin[d], stop[d]):
            high |= data[i]
        out[d] = high > 127


@helper
def _words(texts: Any, d: Any, lower: bool, is_word: Any, desk: Any, first: Any) -> Any:
    """Fold a text and mark its words of two or more characters, from a block on; returns the block behind its last.

    The last bit of its last block is never set: no word goes on in the next text.
    """
    data = texts.more if texts.beyond[d] else texts.data
    begin, size = texts.begin[d], texts.stop[d] - texts.begin[d]
    whole, rest, at = size >> _SIX, size & _LAST, np.uint64(first) << _SIX
    for b in range(whole):
        place = np.uint64(b) << _SIX
        desk.bits[np.uint64(first) + np.uint64(b)] = fold_block(data, begin + place, desk.folded, at + place, lower)
    place, end = whole << _SIX, np.uint64(first) + whole
    if begin + place + np.uint64(64) <= np.uint64(data.shape[0]):
        last = fold_block(data, begin + place, desk.folded, at + place, lower)
    else:  # not to read behind the buffer
        for i in range(rest):
            desk.tail[i] = data[begin + place + np.uint64(i)]
        last = fold_block(desk.tail, ZERO, desk.folded, at + place, lower)
    desk.bits[end] = last & ((ONE << rest) - ONE)
    desk.bits[end + ONE] = ZERO
    blocks = np.int64(end) + 1
    if texts.beyond[d]:
        _unmark(desk.folded, at, at + size, is_word, desk.bits, np.bool_(False))
        _unmark(desk.folded, at, at + size, is_word, desk.bits, np.bool_(True))
    before = ZERO
    for b in range(first, blocks):  # a character alone is no word
        m = desk.bits[b]
        beside = (m << ONE) | (before >> _LAST) | (m >> ONE) | (desk.bits[b + 1] << _LAST)
        desk.bits[b] = m & beside
        before = m
    return blocks


@helper
def _unmark(folded: Any, i: Any, end: Any, is_word: Any, marks: Any, lone: Any) -> None:
    """Take away the bits of characters beyond ASCII that are no word characters; or then of those that stand alone."""
    while i < end:
        if folded[i] < 128:
            i += ONE
            continue
        point, step = code_point(folded, i)
        beside = lone and ((i > ZERO and _marked(marks, i - ONE)) or _marked(marks, i + step))
        if not beside if lone else is_word[point] == 0:
            for j in range(i, i + step):
                marks[j >> _SIX] &= ~(ONE << (j & _LAST))
        i += step


@helper
def _marked(marks: Any, i: Any) -> Any:
    return (marks[i >> _SIX] >> (i & _LAST)) & ONE != ZERO


@helper
def _eight_places(runs: Any, k: Any, base: Any, edges: Any) -> Any:
    """Write down the places of the eight lowest bits, whether there are as many or not; returns the others."""
    for _ in range(8):
        runs[k] = base + trailing_zeros(edges)
        edges &= edges - ONE
        k += ONE
    return edges


@helper
def _runs(desk: Any, first: Any, last: Any, n: Any) -> Any:
    """Write down where the bits of some blocks change, behind the `n` places that stand there already.

    Eight places at a time, more than there are if need be: a loop for each would end unforeseen in every block.
    """
    before = desk.bits[first - 1] if first > 0 else ZERO
    for b in range(first, last):
        m = desk.bits[b]
        edges = m ^ ((m << ONE) | (before >> _LAST))
        before = m
        base, k = np.uint64(b) << _SIX, n
        n += ones(edges)
        edges = _eight_places(desk.runs, k, base, edges)
        while edges != ZERO:
            k += _EIGHT
            edges = _eight_places(desk.runs, k, base, edges)
    return n


@helper
def _goes_beside(texts: Any, d: Any, labels: Any, label: Any, blocks: Any) -> Any:
    """Whether a text is of this class and short enough to stand behind so many blocks of others."""
    return labels[d] == label and np.uint64(blocks) + ((texts.stop[d] - texts.begin[d]) >> _SIX) < np.uint64(_BLOCKS)


@kernel
def count(
    texts: Any, order: Any, labels: Any, stop: Any, lower: bool, is_word: Any, desk: Any, table: Any, touched: Any,
    entries: Any, numbers: Any, ends: Any, state: Any,
) -> Any:  # fmt: skip
    """Cut texts and count their words by class, as far as the place `stop` of `order`, which lists them by class.

    A word's counts stand beside its key, which has just been read. If `numbers` has room, it gets the number of every
    token, and `ends` where the tokens of each text end. Returns what there is too little room for, and goes on from
    there when called again: `state` has all it knows. The last class is left to be flushed.
    """
    o, seen, filled, label = state[TEXT], np.uint64(state[SEEN]), state[FILLED], state[LABEL]
    total, b, blocks, n = np.uint64(state[TOTAL]), state[BLOCK], state[BLOCKS], np.uint64(state[OPEN])
    keep, lacks, beside = numbers.shape[0] > 0, DONE, state[BESIDE]
    while o < stop and lacks == DONE:
        if blocks == 0:
            if labels[order[o]] != label and seen > ZERO:
                if filled + np.int64(seen) > entries.shape[0]:
                    lacks = LACKS_ENTRIES
                    break
                filled = write_class(entries, filled, label, table.keys, touched, np.int64(seen))
                seen = ZERO
            label = labels[order[o]]
            beside, b, n = 0, 0, ZERO
            while beside == 0 or (o + beside < stop and _goes_beside(texts, order[o + beside], labels, label, blocks)):
                blocks = _words(texts, order[o + beside], lower, is_word, desk, blocks)
                desk.blocks[beside] = blocks
                beside += 1
        while b < blocks:
            end = min(b + _BLOCKS, blocks)
            size = (np.uint64(end) << _SIX) - (desk.runs[0] if n > ZERO else np.uint64(b) << _SIX)
            if not has_room(table, _ROOM, size):
                state[NEEDED] = np.int64(size)
                lacks = LACKS_WORDS
                break
            for t in range(beside):
                last = min(desk.blocks[t], end)
                n = _runs(desk, b, last, n)
                desk.words[t] = n >> ONE
                b = last
            words, first = n >> ONE, ZERO
            found, at = (numbers, total) if keep else (desk.numbers, ZERO)
            key_them(table, desk.folded, desk.runs, words, desk.keys)
            learn(table, desk.folded, desk.runs, words, desk.keys, found, at)
            for t in range(beside):
                seen = add_up(found, at + first, at + desk.words[t], table.keys, touched, seen, np.uint64(o + t + 1))
                first = desk.words[t]
                if keep:
                    ends[order[o + t]] = total + first
            total += words
            if n & ONE != ZERO:  # a word that goes on in the next blocks
                desk.runs[0] = desk.runs[n - ONE]
            n &= ONE
        if lacks == DONE:
            o, blocks = o + beside, 0
    state[TEXT], state[SEEN], state[FILLED], state[LABEL] = o, np.int64(seen), filled, label
    state[TOTAL], state[BLOCK], state[BLOCKS], state[OPEN] = np.int64(total), b, blocks, np.int64(n)
    state[BESIDE] = beside
    return lacks


@kernel
def index_all(data: Any, edges: Any, desk: Any, table: Any) -> None:
    """Put the strings data[edges[0]:edges[1]], …, each once, into a table with room for them; see `key_them`."""
    count = edges.shape[0] - 1
    for first in range(0, count, 256):
        some = min(256, count - first)
        for k in range(some):
            desk.runs[2 * k], desk.runs[2 * k + 1] = edges[first + k], edges[first + k + 1]
        key_them(table, data, desk.runs, np.uint64(some), desk.keys)
        learn(table, data, desk.runs, np.uint64(some), desk.keys, desk.numbers, ZERO)


@kernel
def score(
    texts: Any, first: Any, last: Any, lower: bool, is_word: Any, desk: Any, table: Any, weights: Any, stamps: Any,
    out: Any, lengths: Any,
) -> None:  # fmt: skip
    """Add up the weights of each text's words: out[d] = Σ weights[number], the number 0 for words not in the table.

    `lengths` gets how many words each text has. Weights and sums have a width of a multiple of eight, and the last row
    of weights is zero. With a zero in `stamps` for each word, each counts once in a text.
    """
    presence = stamps.shape[0] > 0
    for d in range(first, last):
        n = ZERO
        blocks = _words(texts, d, lower, is_word, desk, 0)
        for b in range(0, blocks, _BLOCKS):
            n = _runs(desk, b, min(b + _BLOCKS, blocks), n)
            words = n >> ONE
            lengths[d] += words
            key_them(table, desk.folded, desk.runs, words, desk.keys)
            look_up(table, desk.folded, desk.runs, words, desk.keys, desk.numbers)
            if presence:
                words = _distinct(desk.numbers, words, stamps, d + 1)
            _add_rows(weights, desk.numbers, words, out[d])
            if n & ONE != ZERO:
                desk.runs[0] = desk.runs[n - ONE]
            n &= ONE


@helper
def _distinct(numbers: Any, words: Any, stamps: Any, stamp: Any) -> Any:
    """Keep the numbers that the text did not have before, in place; returns how many. Unknown words all stay."""
    kept = ZERO
    for k in range(words):
        t = numbers[k]
        numbers[kept] = t
        kept += np.uint64(stamps[t] != stamp)
        stamps[t] = stamp if t > 0 else 0
    return kept


@helper
def _add_rows(weights: Any, numbers: Any, words: Any, out: Any) -> None:
    """out += Σ weights[number], eight classes at a time; the last row, which is zero, fills fours of words up."""
    width = np.uint64(weights.shape[1])
    fours = (words + np.uint64(3)) >> np.uint64(2)
    for i in range(words, fours << np.uint64(2)):
        numbers[i] = weights.shape[0] - 1
    for first in range(ZERO, fours, _FOURS):  # the rows of some words stay in the nearest cache for the next eight
        stop = min(first + _FOURS, fours)
        for left in range(ZERO, width, np.uint64(8)):
            add_table_rows(weights, numbers, first, stop, width, left, out, left)
