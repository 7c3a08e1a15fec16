"""A row as a person reads it: long texts first, with the words that speak marked, the other columns as a table."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...base.arrays import Floats
from ...base.wording import printable
from ...data.schema import Schema
from ...data.text.tokeniser import clean, without_spaces
from ...explain.explanation import Explanation
from ...explain.odds import WORTH_SAYING
from ..asking import LONGEST
from ..journal import POOL, SKIPPED, KeptRow
from .html import Safe, join, table, tag, text

_LONG = 60  # characters: a text that is shown by itself
_TALL = 1_200  # characters: a text that is scrolled through, so that the buttons stay near
_FOLDED = 14  # columns in the table before the rest is folded away
_STEPS = (0.15, 0.35, 0.65)  # of the strongest: marked faintly, plainly, strongly
_STRONGEST = 60.0  # log-odds: what is impossible for one class counts as so much
_MOST_LISTED = 12  # words


@dataclass(frozen=True)
class Speech:
    """What the parts of a row say for its likeliest class against the next, in log-odds."""

    label: Any
    against: Any
    columns: Mapping[str, float]  # of the data
    words: Mapping[str, Sequence[tuple[int, int, float]]]  # of texts: from, to, log-odds

    @classmethod
    def of(cls, schema: Schema, explanation: Explanation, values: Mapping[str, Any]) -> Speech:
        """What an explanation says of a row; a term of several words is shared out among their characters."""
        order = np.argsort(-explanation.probabilities, kind="stable")
        at, other = order[0], order[min(1, len(order) - 1)]
        with np.errstate(invalid="ignore"):
            odds = [float(c.parts[at] - c.parts[other]) for c in explanation.contributions]
        odds = np.clip(np.nan_to_num(odds, nan=0.0, posinf=np.inf, neginf=-np.inf), -_STRONGEST, _STRONGEST).tolist()
        columns: dict[str, float] = {}
        by_token: dict[str, dict[str, float]] = {}
        counted = {c.name: c for c in schema.counted}
        for term, each in zip(explanation.contributions[1:], odds[1:], strict=True):  # the first is the prior
            column = counted.get(term.column)
            if column is None:
                continue  # offsets, calibration
            if column.text is not None:
                said = by_token.setdefault(term.column, {})
                said[term.label] = said.get(term.label, 0.0) + each
            for name in column.inputs:
                columns[name] = columns.get(name, 0.0) + each / len(column.inputs)
        words: dict[str, Sequence[tuple[int, int, float]]] = {}
        for name, value in values.items():
            if isinstance(value, str):
                own = [c for c in schema.counted if c.text is not None and c.inputs == (name,) and c.name in by_token]
                if own:
                    words[name] = _by_word(clean(value), [(c.text, by_token[c.name]) for c in own])
        return cls(explanation.classes[at], explanation.classes[other], columns, words)


def _by_word(said: str, readings: Sequence[tuple[Any, Mapping[str, float]]]) -> list[tuple[int, int, float]]:
    """Words and signs of a text with the log-odds of all that stands on them, whichever way the text is read.

    A token's odds are shared out evenly among the places where it stands, and there among what is no white space.
    """
    steps: Floats = np.zeros(len(said) + 1)
    seen = np.array([not ch.isspace() for ch in said], dtype=np.float64)
    before = np.concatenate(([0.0], np.cumsum(seen))).tolist()
    for tokeniser, odds in readings:
        places: dict[str, list[tuple[int, int]]] = {}
        for token, start, end in tokeniser.placed(said):
            places.setdefault(tokeniser.slot(token), []).append((start, end))
        for label, each in odds.items():
            where = places.get(label) or places.get(label.rpartition(" ×")[0], [])
            for start, end in where:
                share = each / len(where) / max(before[end] - before[start], 1.0)
                steps[start] += share
                steps[end] -= share
    total = np.concatenate(([0.0], np.cumsum(np.cumsum(steps[:-1]) * seen)))
    return [(start, end, float(total[end] - total[start])) for start, end in _units(said)]


def _units(said: str) -> list[tuple[int, int]]:
    """Where words and signs stand, or characters where a script has no spaces; accents stay with their letters."""
    out: list[tuple[int, int]] = []
    before = ""  # what stands there: a word, signs, a character by itself, or nothing
    for i, ch in enumerate(said):
        if ch.isspace():
            before = ""
        elif before and ch > "\u02ff" and unicodedata.category(ch).startswith("M"):
            out[-1] = out[-1][0], i + 1
        else:
            alone = ch > "\u0dff" and without_spaces(ch) > 0
            now = "alone" if alone else "word" if ch.isalnum() or ch == "_" else "signs"
            out[-1:] = [(out[-1][0], i + 1)] if now == before and not alone else [*out[-1:], (i, i + 1)]
            before = now
    return out


def card(row: KeptRow, schema: Schema, speech: Speech | None = None) -> Safe:
    """A row to be read: long texts first, then a table of the other columns, those that nobody reads at its end."""
    inputs = {name for column in schema.counted for name in column.inputs}
    texts = {name for column in schema.counted if column.text is not None for name in column.inputs}
    long = [n for n, v in row.values.items() if isinstance(v, str) and (len(v) > _LONG or n in texts)]
    long.sort(key=lambda name: (name not in inputs, -len(row.values[name])))
    rest = [n for n in row.values if n not in long and not (row.values[n] is None and n not in inputs)]
    rest.sort(key=lambda name: name not in inputs)
    lines = []
    for name in rest:
        line: list[Any] = [named(name, 80), _value(row.values[name])]
        if speech is not None:
            line.append(_says(speech, name) if name in inputs else tag("span", "not read", class_="soft"))
        lines.append(line)
    head = ["column", "value", *(["speaks"] if speech is not None else [])]
    shown = table(head, lines[:_FOLDED], caption="The columns of this row", left=(0, 1, 2)) if lines else None
    more = None
    if len(lines) > _FOLDED:
        inside = table(head, lines[_FOLDED:], caption="Further columns of this row", left=(0, 1, 2))
        more = tag("details", tag("summary", f"{len(lines) - _FOLDED:,} more columns"), inside)
    several = len(long) + len(lines) > 1
    return tag(
        "article", [_long(name, row.values[name], speech, several) for name in long], shown, more,
        class_="card", id="card", aria_label=f"Row {row.id}",
    )  # fmt: skip


def _long(name: str, value: str, speech: Speech | None, several: bool) -> Safe:
    words = speech.words.get(name) if speech is not None else None
    said = _marked(clean(value), words, speech) if words and speech is not None else text(_spaced(value.rstrip()))
    head = tag("p", named(name, 80), class_="soft") if several else None
    cut = tag("p", f"… {len(value) - LONGEST:,} more characters", class_="soft") if len(value) > LONGEST else None
    tall = {"tabindex": "0", "role": "region", "aria_label": "The text"} if len(value) > _TALL else {}
    return join(head, tag("div", said or "(empty)", class_="text tall" if tall else "text", dir="auto", **tall), cut)


def _marked(said: str, words: Sequence[tuple[int, int, float]], speech: Speech) -> Safe:
    """A text with the words that speak marked; a mark says by its title what it is worth."""
    most = max((abs(odds) for *_, odds in words), default=0.0)
    out: list[Any] = []
    end = 0
    for start, stop, odds in words:
        strength = sum(abs(odds) >= step * most for step in _STEPS) if abs(odds) >= WORTH_SAYING else 0
        if not strength or stop > LONGEST:
            continue
        how = "for" if odds > 0 else "against"
        out.append(_spaced(said[end:start]))
        title = f"{how} {printable(speech.label, 40)}, beside {printable(speech.against, 40)}: {odds:+.2f}"
        out.append(tag("mark", said[start:stop], class_=f"{how} w{strength}", title=title))
        end = stop
    return join(out, _spaced(said[end:LONGEST]).rstrip())


def spoken(row: KeptRow, speech: Speech) -> Safe | None:
    """The words that speak, as a list with their weights: what the marks say by colour and line."""
    total: dict[str, float] = {}
    for name, words in speech.words.items():
        said = clean(row.values[name])
        for start, end, odds in words:
            word = said[start:end].lower()
            total[word] = total.get(word, 0.0) + odds
    listed = sorted((w for w in total if abs(total[w]) >= WORTH_SAYING), key=lambda w: -abs(total[w]))[:_MOST_LISTED]
    if not listed:
        return None
    lines = [[text(w, 40), tag("span", "for" if total[w] > 0 else "against"), f"{abs(total[w]):.2f}"] for w in listed]
    head = ["word", f"{printable(speech.label, 40)}?", "log-odds"]
    shown = table(head, lines, caption="The words that speak most", left=(0, 1))
    return tag("details", tag("summary", "The words that speak, with their weights"), shown)


def _says(speech: Speech, name: str) -> Safe | str:
    odds = speech.columns.get(name, 0.0)
    if abs(odds) < WORTH_SAYING:
        return tag("span", "nothing", class_="soft")
    how = "for" if odds > 0 else "against"
    return tag("span", f"{how} {abs(odds):.2f}", class_=how)


def _value(value: Any) -> Safe:
    if value is None:
        return tag("span", "missing", class_="soft")
    if isinstance(value, float):
        return text(f"{value:.15g}" if value.is_integer() else f"{value:.7g}")
    return text(_spaced(value) if isinstance(value, str) else value, 300) or tag("span", "(empty)", class_="soft")


def _spaced(said: str) -> str:
    return said.replace("\t", "    ") if "\t" in said else said


def short(row: KeptRow, most: int = 100) -> Safe:
    """The beginning of a row, for a line of a list: its longest text, or its first values."""
    texts = [v for v in row.values.values() if isinstance(v, str) and len(v) > _LONG]
    if texts:
        said = max(texts, key=len)
    else:
        said = ", ".join(f"{n}: {'missing' if v is None else v}" for n, v in list(row.values.items())[:8])
    return text(" ".join(said[: 4 * most].split()), most)


def named(value: object, most: int = 40) -> Safe:
    """A name from outside, of a class or a column; one that nobody would see is told."""
    said = text(value, most)
    return said if said.strip() else Safe("(blank)")


def standing(said: str) -> Safe:
    """A standing of the journal in words."""
    known = {POOL: "waits for a label", SKIPPED: "skipped", "gone": "not counted", "=": "counted, label wiped"}
    return tag("span", known[said], class_="soft") if said in known else tag("strong", named(said[1:], 60))
