"""An answer on the page: the probability of every class, what it is the sum of, and what would change it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...base.canon import many, number_text, printable
from ...base.canon import text as canonical
from ...base.show import running, signed
from ...explain.explanation import Contribution, Explanation
from ...explain.odds import WORTH_SAYING, by_strength, the_rest
from ...explain.what_if import WhatIf
from ..asking import AskAnswer, AskForm
from .frame import sentence
from .html import Safe, bar, join, leaning, natural, table, tag

_CLASSES = 8  # that are shown at once
_LINES = 12
_MOST_LINES = 200  # that are listed behind a fold
_NAME, _DIGITS = 60, 2


def answer(
    form: AskForm, found: AskAnswer, given: Sequence[str], right: str, label: str = "", against: str = ""
) -> Safe:
    """The piece that is shown anew while one types; `given` is in the fields.

    `right` is on the button for who agrees, "" for none.
    """
    explained = found.explained
    order = np.argsort(-explained.probabilities, kind="stable").tolist()
    best = printable(explained.classes[order[0]], _NAME)
    sure = _chances(explained)[order[0]]
    target = printable(form.served.model.schema.target, _NAME)
    head = tag("p", tag("strong", f"{target}: {best}"), f" {sure}", class_="said", id="said", role="status")
    agree = right and tag(
        "button", right, type="submit", formaction="/ask/learn", name="right", value=str(order[0]), id="right",
        class_="plain",
    )  # fmt: skip
    return tag(
        "section", tag("h2", "Answer"), head, _bars(explained, order), agree, _sum(explained, label, against),
        _every(explained), _remarks(form, found, given), id="answer",
    )  # fmt: skip


def percent(p: float) -> str:
    """A probability in per cent, with as many digits as it takes to be told from 0 and from 100.

    >>> percent(0.934), percent(0.0), percent(1e-9), percent(0.999999), percent(1.0)
    ('93.4 %', '0 %', '< 0.01 %', '> 99.99 %', '100 %')
    """
    if p in (0.0, 1.0):
        return f"{p:.0%}".replace("%", " %")
    if p < 0.0001:
        return "< 0.01 %"
    if p > 0.9999:
        return "> 99.99 %"
    return f"{100 * p:.2f} %" if p < 0.01 or p > 0.99 else f"{100 * p:.1f} %"


def _chances(explained: Explanation) -> list[str]:
    """The probability of each class in per cent: 0 and 100 only where that is not a matter of rounding."""
    possible = np.isfinite(explained.total)
    near = [percent(min(max(p, 1e-9), 1 - 1e-9)) for p in explained.probabilities.tolist()]
    if not possible.any():  # then the prior answers
        return near
    alone = np.count_nonzero(possible) == 1
    return [percent(float(is_possible)) if alone or not is_possible else told for is_possible, told in
            zip(possible.tolist(), near, strict=True)]  # fmt: skip


def _bars(explained: Explanation, order: Sequence[int]) -> Safe:
    told = _chances(explained)
    shares = explained.probabilities.tolist()
    rest = sorted(order[1:], key=lambda i: (-shares[i], natural(explained.classes[i])))  # the first is the answer
    each = [order[0], *rest]
    rows = [[printable(explained.classes[i], _NAME), bar(shares[i], label=told[i]), told[i]] for i in each]
    return _folded(["class", "share", "probability"], rows, "Probability of every class", _CLASSES)


def _folded(head: list[Any], rows: list[list[Any]], caption: str, most: int) -> Safe:
    first = table(head, rows[:most], caption=caption)
    if len(rows) <= most:
        return first
    rest = table(head, rows[most:], caption=f"{caption}: the rest")
    return join(first, tag("details", tag("summary", f"{len(rows) - most:,} more"), rest))


# ---- the sum


def _sum(explained: Explanation, label: str, against: str) -> Safe | None:
    """What speaks for a class against another, line by line."""
    if len(explained.classes) < 2:
        return None
    at, other = _compared(explained, label, against)
    one, two = (printable(explained.classes[i], 30) for i in (at, other))
    with np.errstate(invalid="ignore"):
        odds = [float(line.parts[at] - line.parts[other]) if at != other else 0.0 for line in explained.contributions]
    lines = list(zip(explained.contributions, odds, strict=True))
    kept, rest = by_strength(lines[1:], odds[1:], _LINES)
    quiet = [each for each in kept if abs(each[1]) < WORTH_SAYING]
    if len(quiet) + len(rest) > 1:
        kept, rest = kept[: len(kept) - len(quiet)], [*quiet, *rest]  # they are the last
    shown = [lines[0], *kept]
    if rest:
        shown.append((Contribution("", the_rest(len(rest)), np.zeros(0)), _added(o for _, o in rest)))
    terms, totals, remark = running(np.array([[o] for _, o in shown]), _DIGITS)
    most = max((abs(o) for _, o in (lines[0], *kept) if math.isfinite(o)), default=1.0) or 1.0
    rows = [_line(line, odd, float(term), most) for (line, odd), term in zip(shown, terms[:, 0], strict=True)]
    total = float(totals[-1, 0])
    rows.append([tag("strong", "together"), "", tag("strong", signed(total, _DIGITS))])
    words = ""
    if any(_is_corrected(line) for line, _ in shown):
        words = "Corrected is what says more or less than its counts, because held-out rows did."
    every = None
    if rest:
        all_rows = [_line(line, odd, odd, most) for line, odd in rest[:_MOST_LINES]]
        inside = table(["term", "against · for", "log-odds"], all_rows, caption="The rest of the sum")
        every = tag("details", tag("summary", many(len(rest), "weaker line")), inside)
    return join(
        tag("h3", f"Why: {one} against {two}"),
        table(["term", "against · for", "log-odds"], rows, caption=f"What speaks for {one} against {two}"),
        tag("p", _meaning(total, one, two), words and f" {words}", class_="soft"),
        remark and tag("p", sentence(remark), class_="soft"), every,
    )  # fmt: skip


def _compared(explained: Explanation, label: str, against: str) -> tuple[int, int]:
    """The numbers of two classes, by their texts: the likeliest and the next where none is named."""
    names = [str(canonical(c)) for c in explained.classes]
    order = np.argsort(-explained.probabilities, kind="stable").tolist()
    at = names.index(label) if label in names else order[0]
    return at, names.index(against) if against in names else next(i for i in order if i != at)


def _added(odds: Any) -> float:
    out = 0.0
    for each in odds:
        out += each
    return out


def _line(line: Contribution, odds: float, shown: float, most: float) -> list[Any]:
    split = " (corrected)" if _is_corrected(line) else ""
    share = 0.0 if math.isnan(odds) else max(-1.0, min(1.0, odds / most))
    says = "for" if odds > 0 else "against" if odds < 0 else "neither for nor against"
    number = signed(shown, _DIGITS)
    return [f"{line}{split}", leaning(share, label=f"{number}, {says}"), number]


def _is_corrected(line: Contribution) -> bool:
    return line.corrected is not None and float(np.ptp(line.corrected)) >= WORTH_SAYING


def _meaning(total: float, one: str, two: str) -> str:
    """What a sum of log-odds means."""
    if math.isnan(total):
        return "Both are impossible by the counts alone, so the prior answers."
    if math.isinf(total):
        return f"By the counts alone {two if total > 0 else one} is impossible."
    if abs(total) < 10**-_DIGITS / 2:
        return "As much speaks for one as for the other."
    ahead, behind = (one, two) if total > 0 else (two, one)
    times = math.exp(min(abs(total), 700.0))
    told = "more than a million" if times > 1e6 else f"{times:,.0f}" if times >= 10 else f"{times:.2g}"
    return f"+0.69 doubles the odds, -0.69 halves them. Together: {ahead} is {told} times as likely as {behind}."


def _every(explained: Explanation) -> Safe:
    """The sum for each of the likeliest classes."""
    at, lines = explained.shown()
    names = [printable(explained.classes[i], 20) for i in at]
    rows = [[str(line), *(signed(float(v), _DIGITS) for v in line.parts[at])] for line in lines]
    rows.append([tag("strong", "score"), *(tag("strong", signed(float(v), _DIGITS)) for v in explained.total[at])])
    told = _chances(explained)
    rows.append(["probability", *(told[i] for i in at)])
    hidden = len(explained.classes) - len(at)
    more = tag("p", f"{many(hidden, 'less likely class is', 'less likely classes are')} not shown.") if hidden else None
    inside = table(["term", *names], rows, caption="The score of each class as a sum of logarithms")
    return tag("details", tag("summary", "The sum of each class"), inside, more)


def _remarks(form: AskForm, found: AskAnswer, given: Sequence[str]) -> Safe:
    """What stands beside the fields, and where their sliders stand, whatever way a number is written."""
    each = [
        tag("p", found.remarks[field.name], data_into=f"n{i}")
        for i, field in enumerate(form.fields)
        if field.name in found.remarks
    ]
    for i, (field, text) in enumerate(zip(form.fields, given, strict=True)):
        if text and (at := field.number(text)) is not None and field.slider is not None:
            each.append(tag("p", data_slid=f"v{i}", data_at=number_text(at)))
    return tag("template", each, data_remarks=True)


# ---- another answer


def other_answer(found: WhatIf) -> Safe:
    """The fewest changes for another answer."""
    old, new = printable(found.answer, _NAME), printable(found.becomes, _NAME)
    if not found.changes:
        asked = "any other class" if found.becomes is None else new
        none = "no change of" if found.smallest else "no small set of changes was found among"
        said = f"{old} stays: {none} the values that were counted turns it into {asked}."
        return tag("section", tag("h2", "What would change it"), tag("p", said), id="what-if")
    before, after = (percent(p) for p in found.probability)
    rows = [[str(change), signed(change.log_odds, _DIGITS)] for change in found.changes]
    fewest = "" if found.smallest else " Fewer may do."
    take = tag("button", "Take these values", type="submit", formaction="/ask/take", class_="plain", id="take")
    n = number_text(float(len(found.changes)))
    turns = "change turns" if len(found.changes) == 1 else "changes turn"
    return tag(
        "section", tag("h2", "What would change it"),
        tag("p", f"{n} {turns} {old} into {new}, whose probability goes from {before} to {after}.{fewest}"),
        _folded(["change", "log-odds"], rows, "Changes for another answer", _LINES),
        take if found.row is not None else None, id="what-if",
    )  # fmt: skip
