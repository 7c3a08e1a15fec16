"""Numbered tokens, counted by text and by class, and n-grams of words and of characters.

An n-gram of characters is a string of bytes, and so is one of words: the four bytes of each word's number. Both are
numbered by the table of `strings`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .compiling import helper, kernel
from .strings import ONE, ZERO, Keys, StringTable, code_point, has_room, key_them, learn, roomier

TOGETHER = 512  # n-grams whose keys are made, and then looked up
TEXT, SEEN, FILLED, LABEL = range(4)  # where a kernel stands: texts done, and of the entries; see `by_group`
SIZE, FIRST, TOTAL, PIECE, UNITS, WAITING, NEEDED, STATES = range(1, 9)  # … and of the n-grams; see `grams`


@helper
def add_up(numbers: Any, start: Any, stop: Any, tally: Any, touched: Any, seen: Any, stamp: Any) -> Any:
    """Count the tokens of a text. Returns how many distinct ones the group has, which `touched` lists.

    Each token has a row in `tally` whose last two numbers are its own: occurrences and, 32 bits higher, texts; and the
    stamp of its last text.
    There is no branch, since whether a token is new to a text or a group nobody can foresee.
    """
    last = np.uint64(tally.shape[1]) - ONE
    for k in range(start, stop):
        t = np.uint64(numbers[k])
        both = tally[t, last - ONE]
        touched[seen] = t
        seen += np.uint64(both == ZERO)
        tally[t, last - ONE] = both + ONE + (np.uint64(tally[t, last] != stamp) << np.uint64(32))
        tally[t, last] = stamp
    return seen


@helper
def write_class(entries: Any, filled: Any, label: Any, tally: Any, touched: Any, seen: Any) -> Any:
    """Write down the tokens of a class, and set its counts back to zero; returns how many entries there are then.

    An entry is the class, the number of the token, how often it occurs, and in how many texts.
    """
    column = tally.shape[1] - 2
    for k in range(seen):
        t, e = np.uint64(touched[k]), np.uint64(filled + k)
        both = tally[t, column]
        tally[t, column] = ZERO
        entries[e, 0], entries[e, 1] = label, t
        entries[e, 2], entries[e, 3] = both & np.uint64(0xFFFFFFFF), both >> np.uint64(32)
    return filled + seen


@kernel
def flush(entries: Any, filled: Any, label: Any, tally: Any, touched: Any, seen: Any) -> Any:
    """The same for Python to call; see `write_class`."""
    return write_class(entries, filled, label, tally, touched, seen)


@kernel
def by_group(
    numbers: Any, ends: Any, order: Any, labels: Any, tally: Any, touched: Any, entries: Any, state: Any
) -> Any:
    """The entries of numbered tokens; `order` lists the texts, class after class.

    Returns whether all is done; if not, the entries need more room. The last class is left to be flushed.
    """
    o, seen, filled, label = state[TEXT], np.uint64(state[SEEN]), state[FILLED], state[LABEL]
    done = True
    while done and o < order.shape[0]:
        d = order[o]
        if labels[d] != label and seen > ZERO:
            done = filled + np.int64(seen) <= entries.shape[0]
            if done:
                filled = write_class(entries, filled, label, tally, touched, np.int64(seen))
                seen = ZERO
        if done:
            label = labels[d]
            o += 1
            start = np.uint64(ends[d - 1]) if d > 0 else ZERO
            seen = add_up(numbers, start, np.uint64(ends[d]), tally, touched, seen, np.uint64(o))
    state[TEXT], state[SEEN], state[FILLED], state[LABEL] = o, np.int64(seen), filled, label
    return done


@kernel
def by_token(entries: Any, filled: Any, backward: Any, number: Any, ends: Any, out: Any) -> None:
    """Entries, which stand class by class, put in order of number[token]: a counting sort that keeps the order of the
    classes, or turns it round.

    `out` gets the class, the occurrences and the texts of each; `ends`, zeros for all numbers and three more, gets the
    place where those of number t begin in ends[t], and where they end in ends[t + 1].
    """
    for e in range(filled):
        ends[np.uint64(number[np.uint64(entries[e, 1])]) + np.uint64(2)] += 1
    for t in range(1, ends.shape[0]):
        ends[t] += ends[t - 1]
    for k in range(filled):
        e = filled - 1 - k if backward else k
        after = np.uint64(number[np.uint64(entries[e, 1])]) + ONE
        p = np.uint64(ends[after])
        ends[after] += 1
        out[p, 0], out[p, 1], out[p, 2] = entries[e, 0], entries[e, 2], entries[e, 3]


@kernel
def merged(ends: Any, entries: Any, first: Any, last: Any, slot: Any, label: Any, amount: Any) -> Any:
    """How many entries the words first … last − 1 have, those of several threads for one word and class added up.

    `ends` says for each thread where the entries of each word begin; classes are in order from thread to thread. They
    are written down if there is room.
    """
    n, write = ZERO, slot.shape[0] > 0
    for t in range(first, last):
        before = np.int64(-1)
        for p in range(ends.shape[0]):
            e, end = np.uint64(ends[p, t]), np.uint64(ends[p, t + 1])
            if e == end:
                continue
            if np.int64(entries[e, 0]) == before:  # only the first class of a thread may be the last of another
                if write:
                    amount[n - ONE, 0] += entries[e, 1]
                    amount[n - ONE, 1] += entries[e, 2]
                e += ONE
            before = np.int64(entries[end - ONE, 0])
            if write:
                for k in range(end - e):
                    i, j = e + np.uint64(k), n + np.uint64(k)
                    slot[j], label[j], amount[j, 0], amount[j, 1] = t, entries[i, 0], entries[i, 1], entries[i, 2]
            n += end - e
    return n


@kernel
def rows(tokens: Any, ends: Any, stamp: Any, place: Any, indptr: Any, indices: Any, amounts: Any) -> Any:
    """Each text as distinct tokens with their counts, in order of first appearance (CSR); returns how many entries.

    `stamp` has a −1 for each token, `place` room for as many.
    """
    n, i = ZERO, ZERO
    for d in range(ends.shape[0]):
        end = np.uint64(ends[d])
        while i < end:
            t = tokens[i]
            i += ONE
            if stamp[t] != d:
                stamp[t] = d
                place[t] = n
                indices[n] = t
                amounts[n] = 1.0
                n += ONE
            else:
                amounts[place[t]] += 1.0
        indptr[d + 1] = n
    return n


def numbered(
    data: Any, step: int, cuts: Any, piece_ends: Any, sizes: tuple[int, int], table: StringTable
) -> tuple[StringTable, Any, Any]:
    """The n-grams of units: a table of them, the number of each, from 0 on, and where those of each text end.

    Units are numbers of words, with a step of four bytes, or characters, with a step of one. `cuts` says where each
    stretch of bytes ends that no n-gram crosses, and `piece_ends` where the stretches of each text end. The table that
    is given grows.
    """
    low, high = sizes
    most = int(cuts[-1]) // step if len(cuts) else 0
    out, places = np.empty(most * (high - low + 1) + 1, np.uint32), np.empty(most + 2, np.int64)
    ends = np.empty(len(piece_ends), np.int64)
    runs, keys = np.zeros(2 * TOGETHER, np.uint64), Keys(*(np.zeros(TOGETHER, np.uint64) for _ in range(3)))
    state = np.zeros(STATES, np.int64)
    state[SIZE], state[UNITS] = low, -1
    while not grams(data, step, cuts, piece_ends, low, high, places, runs, keys, table, out, ends, state):
        table = roomier(table, TOGETHER, int(state[NEEDED]))
    return table, out[: ends[-1] if len(ends) else 0] - np.uint32(1), ends


def spelled(table: StringTable, word_edges: Any, letters: Any) -> tuple[Any, Any]:
    """The n-grams of words written out, with a space between words: where each ends, and the bytes."""
    numbers = table.letters[: len(table.letters) // 4 * 4].view(np.uint32)
    edges = np.zeros(int(table.known[0]) + 1, np.int64)
    _spell(table, numbers, word_edges, letters, edges, np.zeros(0, np.uint8))
    out = np.full(edges[-1], ord(" "), np.uint8)
    _spell(table, numbers, word_edges, letters, edges, out)
    return edges, out


@helper
def _number(table: Any, data: Any, runs: Any, count: Any, keys: Any, out: Any, at: Any, state: Any) -> Any:
    """Number some n-grams; False where the table has no room for them."""
    size = np.uint64(0)
    for k in range(count):
        size += runs[2 * k + 1] - runs[2 * k]
    some = np.uint64(count)  # one type of number for all callers, so that these are compiled once
    if not has_room(table, some, size):
        state[NEEDED] = np.int64(size)
        return False
    key_them(table, data, runs, some, keys)
    learn(table, data, runs, some, keys, out, np.uint64(at))
    return True


@kernel
def _spell(table: Any, numbers: Any, word_edges: Any, letters: Any, edges: Any, out: Any) -> None:
    """Where each n-gram of words ends, and its bytes if there is room, which is all spaces.

    `numbers` are the letters of the table as numbers of words.
    """
    for t in range(1, edges.shape[0]):
        first, last = table.edges[t - 1] >> np.uint64(2), table.edges[t] >> np.uint64(2)
        at = edges[t - 1]
        for i in range(first, last):
            word = numbers[i]
            for j in range(word_edges[word - 1], word_edges[word]):
                if out.shape[0] > 0:
                    out[at] = letters[j]
                at += 1
            at += 1
        edges[t] = at - 1


@kernel
def padded(texts: Any, fold: Any, is_word: Any, across: bool, out: Any, out_ends: Any, cuts: Any) -> Any:
    """What character n-grams are taken of: each word with a space on either side, or the text with its spaces folded.

    `cuts` gets the end of every stretch that no n-gram crosses; returns how many there are.
    """
    n, pieces = 0, 0
    for d in range(texts.begin.shape[0]):
        data = texts.more if texts.beyond[d] else texts.data
        i, end = texts.begin[d], texts.stop[d]
        if across:
            space = False
            while i < end:
                b = data[i]
                blank = b == 32 or (b >= 9 and b <= 13) or (b >= 28 and b <= 31)
                if not blank or not space:
                    folded = fold[b]
                    out[n] = 32 if blank else (folded if folded != 0 else b)
                    n += 1
                space = blank
                i += ONE
            cuts[pieces] = n
            pieces += 1
        else:
            while i < end:
                s, chars = i, 0
                while i < end:
                    b = data[i]
                    if b < 128:
                        if fold[b] == 0:
                            break
                        i += ONE
                    else:
                        point, size = code_point(data, i)
                        if is_word[point] == 0:
                            break
                        i += size
                    chars += 1
                if chars >= 2:
                    out[n] = 32
                    n += 1
                    while s < i:
                        b = data[s]
                        out[n] = fold[b] if fold[b] != 0 else b
                        n += 1
                        s += ONE
                    out[n] = 32
                    n += 1
                    cuts[pieces] = n
                    pieces += 1
                if i < end:  # step over the character that is no part of a word
                    i += ONE
                    while i < end and (data[i] & 0xC0) == 0x80:
                        i += ONE
        out_ends[d] = pieces
    return pieces


@kernel
def grams(
    data: Any, step: Any, cuts: Any, piece_ends: Any, low: Any, high: Any, places: Any, runs: Any, keys: Any,
    table: Any, out: Any, ends: Any, state: Any,
) -> Any:  # fmt: skip
    """n-grams of each stretch, all sizes low … high in turn; see `numbered`.

    Returns whether all is done; if not, the table needs room for TOGETHER strings and state[NEEDED] bytes more, and the
    next call goes on.
    """
    d, n, c, total = state[TEXT], state[SIZE], state[FIRST], state[TOTAL]
    piece, count, waiting = state[PIECE], state[UNITS], state[WAITING]
    done = True
    while done and d < piece_ends.shape[0]:
        if piece == piece_ends[d]:
            ends[d] = total + waiting
            d += 1
        elif count < 0:  # a new stretch: where its units begin
            count = 0
            for i in range(cuts[piece - 1] if piece > 0 else 0, cuts[piece], step):
                if step > 1 or (data[i] & 0xC0) != 0x80:
                    places[count] = i
                    count += 1
            places[count] = cuts[piece]
        elif n > high:
            piece, count, n = piece + 1, -1, low
        else:
            while done and c <= count - n:
                if waiting == TOGETHER:
                    done = _number(table, data, runs, waiting, keys, out, total, state)
                    if done:
                        total, waiting = total + waiting, 0
                if done:
                    runs[2 * waiting], runs[2 * waiting + 1] = places[c], places[c + n]
                    waiting, c = waiting + 1, c + 1
            if done:
                n, c = n + 1, 0
    if done and waiting > 0:
        done = _number(table, data, runs, waiting, keys, out, total, state)
        if done:
            total, waiting = total + waiting, 0
    state[TEXT], state[SIZE], state[FIRST], state[TOTAL] = d, n, c, total
    state[PIECE], state[UNITS], state[WAITING] = piece, count, waiting
    return done
