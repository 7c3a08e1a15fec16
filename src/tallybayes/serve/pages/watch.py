"""What came in lately beside what was learnt: drift, values never seen, answers over time, labels that came later."""

from __future__ import annotations

from typing import Any

from ...base.canon import many, printable
from ...explain.plots.paper import colour
from ...families.moments import read_moments
from ...model.joint.dependence import LEVEL
from ...model.joint.shift import Shift, Shifts
from ...tally.tally import Tally
from ..lately import EXACT, FEWEST, FEWEST_LABELS, MOST_LABELS, PART, WINDOW, Later, Promise, Slice, moment
from ..served import Served
from .frame import PageAnswer, PageRequest, View
from .html import Safe, join, natural, table, tag, text
from .parts import fold, name

_NOW = 10  # columns without a sign of a shift that are listed at once
_CLASSES = 6  # answers with a colour of their own
_VALUES = 8  # of a column that has shifted
_SLICES = 12  # of time, listed at once
_REST = "#8b949e"


def show(asked: PageRequest) -> PageAnswer:
    """The page."""
    served, lately = asked.desk.served, asked.api.lately
    slices = lately.slices()
    rows = sum(each.rows for each in slices)
    intro = join(
        tag("p", f"Since {moment(lately.began)} UTC, when the server began, programs have asked about ",
            tag("strong", many(rows, "row")), " through the API."),
        tag("p", "No row is kept: rows are counted by slices of time, without labels, in memory alone. A slice has at "
            f"least 10 minutes and 200 rows; beyond {EXACT:,} rows of a slice, one in {PART} is counted. What was "
            "counted is gone when the server ends, and when something is erased.", class_="soft"),
    )  # fmt: skip
    body = join(
        intro, _drift(asked, served, rows), _unseen(asked), _answers(slices), _later(lately.later(), lately.unknown)
    )
    return View("/watch", "Watch", body)


# ---- drift


def _drift(asked: PageRequest, served: Served, rows: int) -> Safe:
    every = asked.one("rows") == "all"
    lately = asked.api.lately
    found = lately.drift(served, every=every)
    head = tag("h2", "Do rows still come from what was learnt?")
    if found is None:
        said = f"{many(rows, 'row')} so far: too few to tell, {FEWEST} are needed."
        if not any(c.like in ("category", "number") for c in served.model.schema.counted):
            said = "Categories and numbers are tested, and the model reads neither."
        return tag("section", head, tag("p", said), id="drift")
    window = lately.window(every=every)
    assert window is not None and window.tally is not None
    moved = [s for s in found if s.verdict == "shifted"]
    which = (
        f"The {many(found.rows[1], 'row')} counted since {moment(window.began)} UTC, held against the "
        f"{many(found.rows[0], 'row')} that were learnt."
    )
    level = (
        "Every column is tested, and the level is held over all of them: if nothing has changed, about "
        f"{100 * LEVEL:.0f} % of such pages claim that anything has."
    )
    tested = any(s.p_corrected is not None for s in found)
    says = found.summary if tested else "Nothing could be tested: that needs whole rows, without weights."
    verdict = tag("p", tag("strong", says), class_="note warning" if moved else "note", id="drift-says")
    newest, whole = f"the newest rows, about {WINDOW:,}", "all since the server began"
    links = [tag("strong", newest), tag("a", whole, href="/watch?rows=all#drift")]
    if every:
        links = [tag("a", newest, href="/watch#drift"), tag("strong", whole)]
    choose = tag("p", "Looked at: ", links[0], " · ", links[1])
    return tag(
        "section", head, tag("p", which, " ", level), choose, verdict, _columns(found, moved),
        tag("div", [_moved(served, window.tally, s) for s in moved[:_VALUES]], class_="columns"), _mixture(found),
        id="drift",
    )  # fmt: skip


def _columns(found: Shifts, moved: list[Shift]) -> Safe:
    head = ["column", "verdict", "corrected p", "p", "divergence", "mean difference", "new values"]
    order = sorted(found, key=lambda s: (2.0 if s.p_corrected is None else s.p_corrected, -s.size))
    lines = [_line(s) for s in order]
    shown = max(len(moved), _NOW)
    more = lines[shown:] and fold(
        many(len(lines) - shown, "more column"), table(head, lines[shown:], caption="more columns", left=(0, 1))
    )
    means = (
        "p: how often chance alone parts the rows as far; corrected: for so many columns. Divergence in nats, 0.693 is "
        "nothing in common; mean difference in standard deviations. Texts are not tested."
    )
    return join(
        table(head, lines[:shown], caption="drift by column", left=(0, 1)), more, tag("p", means, class_="soft")
    )


def _line(s: Shift) -> list[Any]:
    said = f"{s.verdict}: {s.reason}" if s.reason else s.verdict
    gap = s.marginal
    return [
        name(s.column), tag("strong", said) if s.verdict == "shifted" else said, _p(s.p_corrected), _p(s.p_value),
        "–" if gap.divergence is None else f"{gap.divergence:.4f}",
        "–" if gap.mean_difference is None else f"{gap.mean_difference:+.2f}",
        "–" if s.new is None else f"{100 * s.new:.1f} %",
    ]  # fmt: skip


def _p(value: float | None) -> str:
    return "–" if value is None else "< 0.0001" if value < 1e-4 else f"{value:.2g}"


def _moved(served: Served, lately: Tally, s: Shift) -> Safe | None:
    """How a column was, and how it is."""
    tallies = (served.tally, lately)
    sheets = [t.columns[s.column].sheets.get("values") for t in tallies]
    caption = f"{printable(s.column, 60)}: learnt, and lately"
    if all(sheets):
        shares = []
        for t in tallies:
            sheet = t.columns[s.column].sheet("values", ("n",))
            total = max(float(sheet.by_slot("n").sum()), 1.0)
            shares.append(dict(zip(sheet.slot_names, (sheet.by_slot("n") / total).tolist(), strict=True)))
        gap = {v: shares[1].get(v, 0.0) - shares[0].get(v, 0.0) for v in {*shares[0], *shares[1]}}
        top = sorted(gap, key=lambda v: (-abs(gap[v]), v))[:_VALUES]
        lines = [[name(v), *(f"{100 * each.get(v, 0.0):.1f} %" for each in shares)] for v in top]
        return tag("div", tag("h3", name(s.column)), table(["value", "learnt", "lately"], lines, caption=caption))
    if s.marginal.mean_difference is None:
        return None
    moments = [read_moments(t.columns[s.column], len(t.classes)) for t in tallies]
    lines = [
        ["mean", *(f"{float(m.all_mean[0]):.4g}" for m in moments)],
        ["standard deviation", *(f"{float(m.all_sd[0]):.4g}" for m in moments)],
    ]
    return tag("div", tag("h3", name(s.column)), table(["figure", "learnt", "lately"], lines, caption=caption))


def _mixture(found: Shifts) -> Safe | None:
    if not found.mixture:
        return None
    pairs = sorted(found.mixture.items(), key=lambda item: -abs(item[1][1] - item[1][0]))
    lines = [[name(c), f"{100 * a:.1f} %", f"{100 * b:.1f} %"] for c, (a, b) in pairs[:30]]
    said = (
        "The mixture of the learnt classes that fits the newest rows best; it is no more than a guess without labels."
    )
    listed = table(["class", "learnt", "lately, at a guess"], lines, caption="classes")
    return fold("Shares of the classes, at a guess", tag("p", said), listed)


# ---- values that were never learnt


def _unseen(asked: PageRequest) -> Safe:
    report = asked.api.live.report()
    lines = []
    for each in report.table:
        figures = [each[what] for what in ("unseen", "below", "above", "missing", "odd")]
        if any(figures):
            lines.append([name(each["column"]), *(f"{n:,}" if n else "" for n in figures), text(each["learnt"], 60)])
    head = ["column", "never seen", "below", "above", "missing", "cannot be read", "learnt"]
    listed = table(head, lines[:200], caption="values beyond what was learnt", left=(0, 6))
    more = len(lines) > 200 and tag("p", f"{len(lines) - 200} more columns are not shown.")
    counted = report.counted
    said = (
        f"Of {many(counted.rows, 'row')}: values that no learnt row has, numbers beyond the range that was learnt, and "
        "cells that are empty or cannot be read."
    )
    if counted.judged:
        share = f"{100 * counted.unsure / counted.judged:.1f} %"
        those = "the answers" if counted.judged == counted.rows else f"the {counted.judged:,} answers judged"
        said += f" {share} of {those} had a probability below {report.unsure_below:g}, and"
        said += f" {many(counted.failed, 'request')} could not be answered at all."
    nothing = tag("p", "Nothing of that kind has come." if counted.rows else "Nothing has been asked yet.")
    return tag(
        "section", tag("h2", "Values never learnt"), tag("p", said), listed if lines else nothing, more, id="unseen"
    )


# ---- answers over time


def _answers(slices: list[Slice]) -> Safe:
    head = tag("h2", "Answers over time")
    if not slices:
        return tag("section", head, tag("p", "Nothing has been asked yet."), id="answers")
    total: dict[str, int] = {}
    for each in slices:
        for c, n in each.answers.items():
            total[c] = total.get(c, 0) + n
    classes = sorted(total, key=lambda c: (-total[c], natural(c)))
    shown, others = classes[:_CLASSES], len(classes) - _CLASSES
    key = [
        tag("span", tag("svg", tag("rect", width="10", height="10", fill=colour(i)), viewBox="0 0 10 10", class_="key",
                        aria_hidden="true"), " ", name(c, 30))
        for i, c in enumerate(shown)
    ]  # fmt: skip
    if others > 0:
        key.append(tag("span", tag("svg", tag("rect", width="10", height="10", fill=_REST), viewBox="0 0 10 10",
                                   class_="key", aria_hidden="true"), f" {many(others, 'other')}"))  # fmt: skip
    lines = []
    for each in reversed(slices):
        counts = [each.answers.get(c, 0) for c in shown]
        rest = each.rows - sum(counts)
        cells = [f"{k:,} ({100 * k / each.rows:.0f} %)" for k in counts] + ([f"{rest:,}"] if others > 0 else [])
        lines.append([f"{moment(each.began)} to {moment(each.ended)[11:]}", f"{each.rows:,}", *cells,
                      f"{100 * each.sure / each.rows:.1f} %"])  # fmt: skip
    columns = ["time, UTC", "rows", *(name(c, 30) for c in shown), *(["others"] if others > 0 else [])]
    columns.append("mean probability of the answer")
    listed = table(columns, lines[:_SLICES], caption="answers by slice of time")
    older = lines[_SLICES:] and fold(
        f"{len(lines) - _SLICES} older", table(columns, lines[_SLICES:], caption="older answers by slice of time")
    )
    said = "The share of each answer in each slice of time, the oldest left; a bar is as wide as its slice has rows."
    return tag(
        "section",
        head,
        tag("p", said),
        tag("p", key, class_="row"),
        _stacked(slices, shown),
        listed,
        older,
        id="answers",
    )


def _stacked(slices: list[Slice], shown: list[str]) -> Safe:
    """Bars side by side, each cut by the shares of its answers."""
    rows, x, parts = sum(s.rows for s in slices), 0.0, []
    for each in slices:
        width, y = 100 * each.rows / rows, 0.0
        told = ", ".join(f"{printable(c, 30)} {each.answers.get(c, 0):,}" for c in shown)
        title = tag("title", f"{moment(each.began)} UTC, {many(each.rows, 'row')}: {told}")
        bars = []
        for i, c in enumerate([*shown, None]):
            n = each.rows - sum(each.answers.get(k, 0) for k in shown) if c is None else each.answers.get(c, 0)
            height = 40 * n / each.rows
            if n:
                place = {"x": f"{x:.3f}", "y": f"{y:.3f}", "width": f"{width * 0.985:.3f}", "height": f"{height:.3f}"}
                bars.append(tag("rect", **place, fill=_REST if c is None else colour(i)))
            y += height
        parts.append(tag("g", title, bars))
        x += width
    return tag(
        "svg", parts, viewBox="0 0 100 40", preserveAspectRatio="none", class_="over-time", role="img",
        aria_label="Shares of the answers over time; the table below has the numbers.",
    )  # fmt: skip


# ---- labels that came later


def _later(found: Later | None, unknown: int) -> Safe:
    head = tag("h2", "Labels that came later")
    intro = (
        "When a row is learnt or labelled, what the model said of it just before is held against its label. The model "
        "promises something with every probability: if 70 % is right, seven of ten such answers are."
    )
    if found is None:
        return tag("section", head, tag("p", intro), tag("p", "No label has come since the server began."), id="later")
    lines = [
        _promised("right answers", found.accuracy, found.enough, lambda v: f"{100 * v:.1f} %"),
        _promised("log loss", found.log_loss, found.enough, lambda v: f"{v:.3f}"),
    ]
    columns = ["figure", "came", "promised", "95 % of chance, if the promise holds", "verdict"]
    newest = "the newest" if found.rows == MOST_LABELS else "since the server began"
    which = f"{many(found.rows, 'row')}, {newest}."
    if unknown:
        out = "is" if unknown == 1 else "are"
        which += f" {many(unknown, 'more row')} had a class that the model did not know, and {out} left out."
    chosen = (
        "Rows that were chosen for labelling are no sample of all rows, so the share of right answers says little by "
        "itself: what counts is whether it is what was promised of these rows."
    )
    c = found.curve
    each = zip(c.forecast, c.observed, c.low, c.high, c.rows, strict=True)
    curve = [
        [f"{100 * f:.1f} %", f"{100 * o:.1f} %", f"{100 * a:.1f} to {100 * b:.1f} %", f"{n:,.0f}"]
        for f, o, a, b, n in each
    ]
    listed = table(
        ["the answer was sure by", "came true", "95 % interval", "rows"], curve, caption="reliability", left=()
    )
    return tag(
        "section", head, tag("p", intro),
        tag("p", tag("strong", _sum_up(found)), " ", which, class_="note", id="later-says"),
        table(columns, lines, caption="promises and what came", left=(0, 4)), tag("p", chosen, class_="soft"), listed,
        id="later",
    )  # fmt: skip


def _promised(what: str, p: Promise, enough: bool, said: Any) -> list[Any]:
    verdict = ("kept" if p.kept else "not kept") if enough else "too few rows"
    return [what, said(p.came), said(p.promised), f"{said(p.low)} to {said(p.high)}" if enough else "–", verdict]


def _sum_up(found: Later) -> str:
    """One verdict, by the figure that looks at every probability."""
    loss = found.log_loss
    if not found.enough:
        return f"Too few rows to tell whether the model keeps what it promises: {FEWEST_LABELS} are needed."
    if loss.kept:
        return "The model keeps what it promises, as far as these rows tell."
    if loss.came > loss.high:
        return "The model is surer than it should be."
    return "The model does better than it promises: it could be surer."


PAGES = [("GET", "/watch", show)]
