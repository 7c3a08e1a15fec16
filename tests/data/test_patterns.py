"""Patterns of tokens that a stranger may have written: what can take long is refused, and what people use is taken."""

from __future__ import annotations

import random
import re
import time

import pytest
from strategies import ALL

import tallybayes as tb
from tallybayes.data.text.patterns import Unbounded, check_pattern

USED = [
    r"\w+", r"\w{2,}", r"\w{3,20}", r"(?u)\b\w\w+\b", r"\S+", r"x*", r"\b", r".", r".+", r"..?", r"(a)|b", r"[^,]+",
    r"[a-z]+|[$!]", r"\w+|[^\w\s]", r"\w+|\S", r"#\w+|@\w+|\w+", r"\w+(?:['-]\w+)*", r"\b\w+(?:['’-]\w+)*\b",
    r"\d+(?:[.,]\d+)?|\w+", r"\$?\d+(?:\.\d\d)?%?", r"(?:\d{1,3}\.){3}\d{1,3}", r"https?://\S+|\w+",
    r"[\w.+-]+@[\w-]+\.[\w.-]+", r"(?i)[a-z]+", r"[A-Z][a-z]+", r"[a-z]+(?:[A-Z][a-z]+)*", r"[à-ÿa-z]+", r"[一-鿿]|\w+",
    r"(?<!\w)\w+(?!\w)", r"(?<=\()[^)]*(?=\))", r"<[^>]*>|\w+", r"[^\W\d_]+", r"\w+'\w+|\w+", r"(?P<word>\w+)",
    r"\w+\s+\w+", r"\w+(?=\s|$)", r"(?:\w|\d)+x",
]  # fmt: skip
RUINOUS = [
    r"(a+)+$", r"(a|aa)+$", r"(.*)*x", r"(a*)*", r"([a-zA-Z]+)*!", r"(\w+\s?)+$", r"(x+x+)+y", r"(?:.|a.)*x",
    r"^(([a-z])+.)+[A-Z]([a-z])+$", r"a+a+b", r"\w+\d+x", r".*a.*b.*c", r"(?i)([a-z]+k?)+!", "a?" * 30 + "a" * 30,
    r"(?:a?){30}a{30}", r"(?:(?:a{0,999}){0,999}){0,999}b", "(a|ab|abc)(a|b|c)" * 9, r"(\w)\1", r"(a)?(?(1)b|c)",
    r"(?=(a+)+b)", r"(?:\b){1000000000}", r"(?:(?:){60000}){60000}", "(" * 400 + "a" + ")*" * 400, "a" * 2_000,
]  # fmt: skip


@pytest.mark.parametrize("pattern", USED)
def test_what_people_use_is_taken(pattern: str) -> None:
    assert tb.Tokeniser(pattern=pattern).pattern == pattern


@pytest.mark.parametrize("pattern", RUINOUS, ids=lambda pattern: pattern[:30])
def test_what_can_take_long_is_refused_where_it_is_made_and_where_it_is_read(pattern: str) -> None:
    with pytest.raises(tb.SchemaError, match=r"may take very long.*\n\nHint: "):
        tb.Tokeniser(pattern=pattern)
    schema = tb.Schema([tb.Column("t", "text", text=tb.Tokeniser(pattern="[a-z]+"))], target="y").to_dict()
    schema["columns"][0]["text"]["pattern"] = pattern
    with pytest.raises(tb.SchemaError, match="may take very long"):
        tb.Schema.from_dict(schema)


def written(rng: random.Random, depth: int) -> str:
    """A pattern at random, rich in repeats within repeats."""
    form = rng.random() if depth else 0.0
    if form < 0.3:
        return rng.choice([r"a", r"b", r"\w", r"\d", r"[ab]", r"[^a]", r".", r"\s", r"\b", r"é", r"[^\W\d]"])
    one, two = written(rng, depth - 1), written(rng, depth - 1)
    if form < 0.55:
        return one + two
    if form < 0.65:
        return f"(?:{one}|{two})"
    if form < 0.7:
        return rng.choice(["(?=", "(?!"]) + one + ")"
    return f"(?:{one})" + rng.choice(["*", "+", "?", "*?", "+?", "{0,3}", "{2}", "{1,40}", "{2,}"])


def test_no_pattern_that_is_taken_takes_long() -> None:
    """An endless one would not come back; a pattern that is taken needs some milliseconds."""
    rng, taken = random.Random(0), 0
    for _ in range(20_000 if ALL else 1_500):
        pattern = written(rng, 5)
        try:
            check_pattern(pattern)
        except Unbounded:
            continue
        taken += 1
        for text in ("a" * 200 + "!", "ab" * 100 + "!", "aab " * 50 + "!", "a1" * 100 + " "):
            before = time.process_time()
            re.findall(pattern, text)
            assert time.process_time() - before < 0.5, pattern
    assert taken > 500


@pytest.mark.parametrize("width", [-1, 10**12, 2.5, "3", True])
def test_widths_and_levels_that_nothing_has_are_refused(width: object) -> None:
    with pytest.raises(tb.SchemaError, match="at most 16,777,216"):
        tb.Column("v", "vector", width=width)  # type: ignore[arg-type]
    with pytest.raises(tb.SchemaError, match="from 1 to 1,000"):
        tb.Column("t", "text", levels=width)  # type: ignore[arg-type]
