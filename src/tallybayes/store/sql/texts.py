"""Texts cut into words by the database, as the model's tokeniser cuts them.

Databases have letters and small letters of their own, by the release and the language they were set up with. So none of
theirs is asked: which characters make up a word, what is white space, and what each letter is in lower case stands in
the query, as Python has it.

    text → lower case → words or character n-grams → stop words → word n-grams
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from functools import cache

from ...data.text.tokeniser import WORDS, Tokeniser
from .dialects import Dialect

_SIGMA, _LAST_SIGMA = "Σ", "ς"  # the one letter whose lower case depends on its neighbours
_WORD, _SPACE = re.compile(r"\w"), re.compile(r"\s")


def why_not_cut(tokeniser: Tokeniser) -> str:
    """Why no database cuts texts like this; empty if some can."""
    if tokeniser.pattern != WORDS:
        return f"cut by the pattern {tokeniser.pattern[:40]!r}"
    if tokeniser.stem is not None or tokeniser.hash_bits is not None:
        return "stemmed words" if tokeniser.stem is not None else "hashed words"
    return "" if tokeniser.accents else "without accents"


def cut(d: Dialect, number: int, tokeniser: Tokeniser) -> list[str]:
    """WITH clauses that end in `tb_words<number>`: id and token of every word in the texts `tb_x<number>`."""
    name = {step: f"tb_{step}{number}" for step in ("text", "cut", "pieces", "kept", "words")}
    x = f"tb_x{number}"
    text = _lower(d, x) if tokeniser.lower else x
    out = [f"{name['text']} AS (\n  SELECT tb_row AS id, {text} AS text\n  FROM tb_read\n  WHERE {x} IS NOT NULL\n)"]
    if tokeniser.chars is None or not tokeniser.across:
        word = f"{_in_brackets(_WORD.match)}{{2,}}"  # a word has two characters or more
        out.append(f"{name['cut']} AS (\n  {d.matches(name['text'], word)}\n)")
    kept = name["cut"]
    if tokeniser.chars is not None:
        if tokeniser.across:
            space = d.text(f"{_in_brackets(_SPACE.match)}+")
            piece, source = f"regexp_replace(text, {space}, ' ', 'g')", name["text"]
        else:
            piece, source = "' ' || token || ' '", name["cut"]
        out.append(f"{name['pieces']} AS (\n  SELECT id, {piece} AS piece FROM {source}\n)")
        grams = [
            f"SELECT p.id, SUBSTR(p.piece, CAST(g.i AS INTEGER), {n}) AS token FROM {name['pieces']} AS p\n"
            f"    CROSS JOIN LATERAL (SELECT {d.up_to(f'LENGTH(p.piece) - {n - 1}')} AS i) AS g"
            for n in range(tokeniser.chars[0], tokeniser.chars[1] + 1)
        ]
        kept = name["kept"]
        out.append(f"{kept} AS (\n  " + "\n  UNION ALL ".join(grams) + "\n)")
    stop = ", ".join(d.text(w) for w in sorted(tokeniser.stop_words) if "\0" not in w)
    where = f" WHERE token NOT IN ({stop})" if stop else ""
    low, high = (1, 1) if tokeniser.chars is not None else tokeniser.ngrams
    if (low, high) == (1, 1):
        return [*out, f"{name['words']} AS (\n  SELECT id, token FROM {kept}{where}\n)"]
    following = [f"LEAD(token, {i}) OVER (PARTITION BY id ORDER BY place) AS next{i}" for i in range(1, high)]
    out.append(f"{name['kept']} AS (\n  SELECT id, {', '.join(['token', *following])} FROM {kept}{where}\n)")
    each = []
    for n in range(low, high + 1):
        gram = " || ' ' || ".join(["token", *(f"next{i}" for i in range(1, n))])
        there = f" WHERE next{n - 1} IS NOT NULL" if n > 1 else ""
        each.append(f"SELECT id, {gram} AS token FROM {name['kept']}{there}")
    return [*out, f"{name['words']} AS (\n  " + "\n  UNION ALL ".join(each) + "\n)"]


def _lower(d: Dialect, x: str) -> str:
    """What Python's `lower` gives."""
    letters, others = _small_letters()
    last = f"([{_ranges('cased')}][{_ranges('ignored')}]*){_SIGMA}"
    last += f"([{_ranges('ignored')}]*(?:[^{_ranges('cased')}{_ranges('ignored')}]|$))"
    instead = d.text(rf"\1{_LAST_SIGMA}\2")
    sigma = f"regexp_replace({x}, {d.text(last)}, {instead}, 'g')"
    out = f"CASE WHEN {x} LIKE {d.text(f'%{_SIGMA}%')} THEN {sigma} ELSE {x} END"
    for letter, small in others.items():
        out = f"REPLACE({out}, {d.text(letter)}, {d.text(small)})"
    out = f"TRANSLATE({out}, {d.text(''.join(letters))}, {d.text(''.join(letters.values()))})"
    return f"CASE WHEN {d.size(x)} = LENGTH({x}) THEN {d.lower(x)} ELSE {out} END"


def _all() -> Iterator[str]:
    """All characters that a text can have; NUL none can in a database."""
    return (chr(i) for i in range(1, sys.maxunicode + 1) if not 0xD800 <= i <= 0xDFFF)


@cache
def _small_letters() -> tuple[dict[str, str], dict[str, str]]:
    """Letters that become another in lower case, and those that become several."""
    small = {ch: ch.lower() for ch in _all() if ch.lower() != ch}
    return {a: b for a, b in small.items() if len(b) == 1}, {a: b for a, b in small.items() if len(b) > 1}


@cache
def _ranges(kind: str) -> str:
    """The characters that have a case, or that the rule for the last sigma looks past: as `lower` treats them."""

    def goes_on(after: str) -> bool:
        return ("a" + _SIGMA + after).lower()[1] != _LAST_SIGMA

    if kind == "cased":
        return _listed(ch for ch in _all() if goes_on(ch))
    return _listed(ch for ch in _all() if goes_on(ch + "a") and not goes_on(ch))


@cache
def _in_brackets(test: Callable[[str], object]) -> str:
    """The class of a regular expression with all characters that pass a test."""
    return f"[{_listed(ch for ch in _all() if test(ch))}]"


def _listed(characters: Iterator[str]) -> str:
    """Characters in their order as the inside of brackets, runs of them as ranges."""
    runs: list[list[str]] = []
    for ch in characters:
        if runs and ord(runs[-1][1]) + 1 == ord(ch):
            runs[-1][1] = ch
        else:
            runs.append([ch, ch])
    return "".join(_plain(a) if a == b else f"{_plain(a)}-{_plain(b)}" for a, b in runs)


def _plain(ch: str) -> str:
    """A character that means itself in brackets."""
    if ch.isalnum():
        return ch
    return f"\\{ch}" if ch.isascii() and ch.isprintable() and ch not in " _" else ch
