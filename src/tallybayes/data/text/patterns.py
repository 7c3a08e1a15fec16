"""Whether a regular expression is cut from a text without going back and forth over it.

A pattern may come with a model file from a stranger, and one of ten characters can take years over a line of text. So
each place where matching may go two ways is looked at in the parsed pattern:

    repeat        stop here, or once more: no question if what may follow begins with other characters than the repeat
    alternatives  no question if they begin with different characters

An open question is harmless by itself and ruinous in a repeat, or before another repeat: there it is refused. It is a
careful rule, not an exact one: it refuses some patterns that would be harmless, and lets none pass that takes more than
a few steps per character at each place where a token may begin.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any

_parser: Any = import_module("re._parser")  # Python's own, since a second reading of patterns would differ from it
LONGEST = 1_000  # characters of a pattern
_LONG = 16  # a repeat of more than so many is as good as endless
_MOST_WAYS = 64  # through the short repeats and alternatives of a pattern

# Characters as the bits of a whole number: ASCII one by one, all others by what they are
_DIGIT, _LETTER, _SPACE, _OTHER = (1 << (128 + i) for i in range(4))
_BEYOND = _DIGIT | _LETTER | _SPACE | _OTHER
_ALL = (1 << 128) - 1 | _BEYOND
_TESTS: dict[str, Callable[[str], bool]] = {
    "DIGIT": str.isdecimal,
    "SPACE": str.isspace,
    "WORD": lambda ch: ch.isalnum() or ch == "_",
}
_WIDER = {"DIGIT": _DIGIT, "SPACE": _SPACE, "WORD": _DIGIT | _LETTER}
_FOLDED = sum(1 << ord(ch) for ch in "ksiKSI")  # have letters beyond ASCII that differ from them only in case


class Unbounded(ValueError):
    """A pattern that may take more than a few steps per character; the text says why."""


@dataclass(frozen=True)
class Seen:
    """What was found of a piece of a pattern."""

    first: int  # the characters that it, or what follows if it may be empty, can begin with
    ways: int = 1  # to match one text
    loops: bool = False  # whether there is a long repeat in it


@lru_cache(256)
def check_pattern(pattern: str) -> None:
    """Refuse a regular expression that may take more than a few steps per character, with `Unbounded`.

    >>> check_pattern(r"\\w+(?:-\\w+)*")
    >>> check_pattern(r"(a+)+$")
    Traceback (most recent call last):
    tallybayes.data.text.patterns.Unbounded: a repeat that can go on in two ways, before or within another repeat
    """
    if len(pattern) > LONGEST:
        raise Unbounded(f"it has {len(pattern):,} characters, more than {LONGEST:,}")
    try:
        parsed = _parser.parse(pattern)
        seen = _Reader(parsed.state.flags | _flags_within(parsed)).sequence(parsed, 0, False)
    except (RecursionError, OverflowError):
        raise Unbounded("it is nested too deeply") from None
    _few(seen.ways)


def _few(ways: int) -> int:
    if ways > _MOST_WAYS:
        raise Unbounded("its repeats and alternatives can match the same text in very many ways")
    return ways


def _flags_within(items: Any) -> int:
    """The flags that parts of the pattern set for themselves; taken as if they were set for all of it."""
    out = 0
    for op, given in items:
        if str(op) == "SUBPATTERN":
            out |= given[1]
        for inner in _inner(str(op), given):
            out |= _flags_within(inner)
    return out


def _inner(op: str, given: Any) -> Sequence[Any]:
    """The pieces within a piece."""
    if op == "BRANCH":
        return list(given[1])
    if op in ("SUBPATTERN", "ASSERT", "ASSERT_NOT", *_REPEATS):
        return [given[-1]]
    return [given] if op == "ATOMIC_GROUP" else []


_REPEATS = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")
_CONSUMING = ("LITERAL", "NOT_LITERAL", "ANY", "IN")
_EMPTY = ("AT", "ASSERT", "ASSERT_NOT")


class _Reader:
    """Reads a parsed pattern from its end to its beginning, so that what follows a piece is known."""

    def __init__(self, flags: int) -> None:
        self.any_case = bool(flags & re.IGNORECASE)
        self.ascii = bool(flags & re.ASCII)

    def sequence(self, items: Any, after: int, loops: bool) -> Seen:
        """Pieces one after the other; `after` may follow them, with a long repeat in it or not."""
        ways, own = 1, False
        for op, given in reversed(list(items)):
            seen = self.piece(str(op), given, after, loops or own)
            after, own, ways = seen.first, own or seen.loops, _few(ways * seen.ways)
        return Seen(after, ways, own)

    def piece(self, op: str, given: Any, after: int, loops: bool) -> Seen:
        """One piece."""
        if op in _CONSUMING:
            return Seen(self.characters(op, given))
        if op in ("ASSERT", "ASSERT_NOT"):
            seen = self.sequence(given[1], 0, False)
            if seen.loops:
                raise Unbounded("it looks ahead over a repeat")
            return Seen(after, seen.ways)
        if op == "AT":
            return Seen(after)
        if op in ("SUBPATTERN", "ATOMIC_GROUP"):
            return self.sequence(given[-1] if op == "SUBPATTERN" else given, after, loops)
        if op == "BRANCH":
            return self.alternatives([self.sequence(branch, after, loops) for branch in given[1]])
        if op in _REPEATS:
            least, most, body = given
            return self.repeat(int(least), int(most), body, after, loops)
        if op == "FAILURE":
            return Seen(0)
        raise Unbounded("it refers back to a group")

    def alternatives(self, branches: Sequence[Seen]) -> Seen:
        """The ways add up where two of them can begin alike."""
        first, alike = 0, False
        for branch in branches:
            alike = alike or bool(first & branch.first)
            first |= branch.first
        ways = [branch.ways for branch in branches]
        return Seen(first, _few(sum(ways) if alike else max(ways)), any(branch.loops for branch in branches))

    def repeat(self, least: int, most: int, body: Any, after: int, loops: bool) -> Seen:
        """A piece several times."""
        first, empty = self.begins(body)
        if empty and most > 1:
            raise Unbounded("it repeats what may be empty")
        spread = most - least
        open_question = spread > 0 and bool(first & after)
        inner = self.sequence(body, after | (first if most > 1 else 0), loops or most > 1)
        if open_question and spread > _LONG and loops:
            raise Unbounded("a repeat that can go on in two ways, before or within another repeat")
        ways = 1 if inner.ways == 1 else _few(inner.ways ** min(most, _MOST_WAYS))
        if open_question and spread <= _LONG:
            ways = _few(ways * (spread + 1))
        return Seen(first | (after if least == 0 or empty else 0), ways, inner.loops or spread > _LONG)

    def begins(self, items: Any) -> tuple[int, bool]:
        """The characters that pieces can begin with, and whether they can be empty."""
        first = 0
        for op, given in items:
            name = str(op)
            if name in _CONSUMING:
                return first | self.characters(name, given), False
            if name in _EMPTY:
                continue
            parts = [self.begins(part) for part in _inner(name, given)]
            first |= _union(mask for mask, _ in parts)
            if name in _REPEATS and given[0] == 0:
                continue
            if parts and not any(empty for _, empty in parts):
                return first, False
        return first, True

    def characters(self, op: str, given: Any) -> int:
        """The characters that one piece takes; rather too many than too few."""
        if op == "ANY":
            return _ALL
        if op == "LITERAL":
            found = _one(given)
        elif op == "NOT_LITERAL":
            found = _ALL & ~(1 << given if given < 128 else 0)
        else:
            not_these = bool(given) and str(given[0][0]) == "NEGATE"
            found = _union(self.member(str(kind), value, sure=not_these) for kind, value in given[not_these:])
            found = _ALL & ~found if not_these else found
        return _any_case(found) if self.any_case else found

    def member(self, kind: str, value: Any, *, sure: bool) -> int:
        """One of the characters, ranges and classes in brackets; with `sure`, rather too few than too many."""
        if kind == "LITERAL":
            return 0 if sure and value >= 128 else _one(value)
        if kind == "RANGE":
            low, high = value
            here = _union(1 << code for code in range(low, min(high, 127) + 1))
            return here if sure or high < 128 else here | _beyond(max(low, 128), high)
        _, _, name = str(value).rpartition("CATEGORY_")
        test = _TESTS[name.removeprefix("NOT_")]
        here = _union(1 << code for code in range(128) if test(chr(code)))
        if not name.startswith("NOT_"):
            return here | (0 if self.ascii and sure else _WIDER[name])
        wider = _WIDER[name.removeprefix("NOT_")]
        return ((1 << 128) - 1 & ~here) | (_BEYOND if self.ascii else _BEYOND & ~wider)


def _union(masks: Iterable[int]) -> int:
    out = 0
    for mask in masks:
        out |= mask
    return out


def _one(code: int) -> int:
    if code < 128:
        return 1 << code
    ch = chr(code)
    return _DIGIT if ch.isdecimal() else _LETTER if ch.isalnum() else _SPACE if ch.isspace() else _OTHER


def _beyond(low: int, high: int) -> int:
    return _BEYOND if high - low > 4_000 else _union(_one(code) for code in range(low, high + 1))


def _any_case(mask: int) -> int:
    letters = [code for code in range(128) if mask >> code & 1 and chr(code).isalpha()]
    mask |= _union(1 << ord(chr(code).swapcase()) for code in letters)
    return mask | (_LETTER if mask & _FOLDED else 0) | (_FOLDED if mask & (_LETTER | _OTHER) else 0)
