"""How good the answers are: what the fit found out, and what can be found out now, with what each figure means."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.canon import many
from ...explain.plots.scores import ReliabilityDisplay
from ...model.model import Model
from ...model.provenance import FitFigures
from ..judging import FIGURES, Judgement
from ..served import Served
from .frame import Fragment, GoTo, PageAnswer, PageRequest, sentence
from .html import Safe, join, table, tag
from .parts import drawn, fold, name, picture

_MEANS = {
    "accuracy": ("right answers", "the share of rows whose likeliest class is the right one"),
    "log_loss": ("log loss", "the mean of −log P(right class): 0 at best, and dear where a wrong answer was sure"),
    "brier": ("Brier score", "the mean squared distance of probabilities from what came: 0 at best"),
    "calibration_error": ("calibration error", "how far probabilities are from the shares that come true: 0 at best"),
    "roc_auc": (
        "area under ROC",
        "how often a row of a class is ranked above one that is not: 0.5 by chance, 1 at best",
    ),
}
_SHARES = ("accuracy",)
_MOST_CLASSES = 20
_MOST_MIXED = 10


def figures(asked: PageRequest) -> Safe:
    """The section of the page."""
    served, judging = asked.desk.served, asked.api.judging
    return tag(
        "section", tag("h2", "How good the answers are"), _of_fit(served.model),
        _of_journal(asked, served, judging.last), id="figures",
        data_poll="/model/figures" if judging.running else None, data_every="1500",
    )  # fmt: skip


def again(asked: PageRequest) -> PageAnswer:
    """The section by itself, for the script."""
    return Fragment(figures(asked))


def judge(asked: PageRequest) -> PageAnswer:
    """Begin to work the figures out."""
    asked.api.judging.begin()
    return GoTo("/model#figures")


def reliability(asked: PageRequest) -> PageAnswer:
    """The picture of forecasts and what came of them."""
    found = asked.api.judging.last
    if found is None:
        return GoTo("/model#figures")

    def display(served: Served) -> Any:
        e = found.evaluation
        return ReliabilityDisplay.from_predictions([e.classes[i] for i in e.labels], e.forecasts["model"][0], e.classes)

    return drawn(asked, ("reliability", found.version), display, "forecasts and what came of them")


def fit_figures(model: Model) -> FitFigures | None:
    """What the fit knows of rows that had no part in the model; None where it has not asked."""
    calibrated = model.settings.calibrated
    if model.history.held_out is None and calibrated is not None and calibrated.figures:
        known = {m: calibrated.interval(m) for m in calibrated.figures if m in _MEANS}
        return FitFigures("rows that were held out", calibrated.judged, known, calibrated.changed)
    return model.provenance.held_out


def _of_fit(model: Model) -> Safe:
    found = fit_figures(model)
    if found is None or not found.figures:
        return tag("p", "The file does not say how the model was judged when it was made.")
    since = (
        f" The counts have changed since, by {many(found.changed, 'row')}: the figures are of the model as it was then."
        if found.changed
        else " The counts are still the same."
    )
    said = f"When the model was made, by {found.rows:,} {found.how} from what answered them.{since}"
    lines = [_line(m, found.figures[m]) for m in _MEANS if m in found.figures]
    head = ["figure", "value", "95 % interval", "what it is"]
    return join(tag("h3", "When it was made"), tag("p", said), table(head, lines, caption=said, left=(0, 3)))


def _line(metric: str, found: tuple[float, float, float], known: float | None = None) -> list[Any]:
    said, means = _MEANS[metric]
    value, low, high = (_number(metric, v) for v in found)
    bounds = "" if np.isnan(found[1]) or found[1] == found[0] == found[2] else f"{low} to {high}"
    return [said, value, bounds, *([] if known is None else [_number(metric, known)]), means]


def _number(metric: str, value: float) -> str:
    if np.isnan(value):
        return "–"
    return f"{100 * value:.1f} %" if metric in _SHARES else f"{value:.3f}"


def _of_journal(asked: PageRequest, served: Served, found: Judgement | None) -> Safe:
    judging = asked.api.judging
    words = "Work them out" if found is None else "Work them out anew"
    form = asked.frame.form("/model/judge", tag("button", words, type="submit", id="judge"), class_="row")
    if judging.running:
        form = tag("p", "The figures are being worked out … (without the script, load this page again.)", role="status")
    problem = judging.problem
    refused = problem and tag("p", sentence(problem.found), " ", sentence(problem.hint or ""), class_="note warning")
    intro = tag(
        "p", "Of the rows that the journal holds, each is answered by a model that was counted without it: counts are "
        "taken away exactly. Where corrections or pairs were fitted, they are fitted anew, which takes longer.",
    )  # fmt: skip
    head = tag("h3", "As it is now" if found is None or found.version == served.version else "As it was lately")
    return join(head, intro if found is None else None, found and _judged(asked, served, found), refused, form)


def _judged(asked: PageRequest, served: Served, found: Judgement) -> Safe:
    e = found.evaluation
    lines = [_line(m, e.figure(m), e.known(m)) for m in FIGURES]
    which = f"These are of operation {found.version:,}"
    old = found.version != served.version
    state = f"{which}; the model is at operation {served.version:,} now." if old else f"{which}, which is the last one."
    shares = "The shares of the classes: the same figure of whoever knows nothing but how frequent the classes are."
    head = ["figure", "value", "95 % interval", "the shares of the classes", "what it is"]
    return join(
        tag("p", tag("strong", state), " ", found.said, class_="note warning" if old else "note", id="figures-of"),
        table(head, lines, caption="figures with intervals", left=(0, 4)), tag("p", shares, class_="soft"),
        e.rare and tag("p", e.rare, class_="note"),
        _calibration(asked, found), fold("Class by class, and what is mixed up", _by_class(found), _mixed_up(found)),
    )  # fmt: skip


def _calibration(asked: PageRequest, found: Judgement) -> Safe:
    e = found.evaluation
    two = len(e.classes) == 2
    curve = e.reliability(label=e.classes[1] if two else None)
    columns = zip(curve.forecast, curve.observed, curve.low, curve.high, curve.rows, strict=True)
    lines = [
        [f"{100 * f:.1f} %", f"{100 * o:.1f} %", f"{100 * a:.1f} to {100 * b:.1f} %", f"{n:,.0f}"]
        for f, o, a, b, n in columns
    ]
    of = join("of ", name(e.classes[1], 40)) if two else "of the answer"
    head = [join("forecast ", of), "came true", "95 % interval", "rows"]
    shown = picture("/model/picture/reliability", asked.desk.served, "Forecasts against the shares that came true.")
    listed = table(head, lines, caption="forecasts and what came of them", left=())
    return join(
        tag("h3", "Do probabilities come true?"),
        tag("div", shown and tag("figure", shown), listed, class_="columns"),
    )


def _by_class(found: Judgement) -> Safe:
    rows = found.evaluation.by_class().to_pylist()
    lines = [
        [name(r["class"]), f"{r['rows']:,.0f}", *(_between(r, m) for m in ("precision", "recall", "roc_auc"))]
        for r in rows[:_MOST_CLASSES]
    ]
    more = len(rows) > _MOST_CLASSES and tag("p", f"{len(rows) - _MOST_CLASSES} more classes are not shown.")
    head = ["class", "rows", "precision", "recall", "area under ROC"]
    says = "Precision: of the rows answered so, the share that is. Recall: of the rows that are, the share found."
    return join(tag("p", says), table(head, lines, caption="figures by class"), more)


def _between(row: dict[str, Any], metric: str) -> str:
    value, low, high = (row[metric + end] for end in ("", "_low", "_high"))
    if value is None or np.isnan(value):
        return "–"
    return f"{value:.3f}" + ("" if low is None or np.isnan(low) else f" ({low:.3f} to {high:.3f})")


def _mixed_up(found: Judgement) -> Safe | None:
    e = found.evaluation
    n = np.zeros((len(e.classes), len(e.classes)), dtype=np.int64)
    np.add.at(n, (e.labels, e.forecasts["model"][0].argmax(axis=1)), 1)
    of = n.sum(axis=1)
    np.fill_diagonal(n, 0)
    order = [divmod(int(i), len(n)) for i in np.argsort(-n, axis=None, kind="stable")[:_MOST_MIXED]]
    lines = [[name(e.classes[a]), name(e.classes[b]), f"{n[a, b]:,} of {of[a]:,}"] for a, b in order if n[a, b]]
    if not lines:
        return tag("p", "Every answer was right.")
    return table(["is", "was taken for", "rows"], lines, caption="what is mixed up most", left=(0, 1))
