"""The report as one page of HTML that needs nothing but itself."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from typing import Any

import numpy as np

from ...base.canon import many, printable
from ...base.disk import write_atomically
from ...base.errors import FileError
from ...base.show import signed, times
from ...model.model import Model
from ..plots.columns import column_display
from ..plots.evidence import NomogramDisplay, WaterfallDisplay, nomogram
from ..plots.paper import matplotlib, svg
from ..plots.scores import ConfusionDisplay, PrecisionRecallDisplay, ReliabilityDisplay, RocDisplay
from .facts import Judged, judged, report_facts
from .html import HtmlPage, escape, figure, fold, number, paragraph, table

_OPEN = 8  # column pictures that are seen at once
_MOST_PICTURES = 40  # column pictures in all
_MANY = 30  # classes in a table before it is folded


def report(model: Model, data: Any = None, path: str | os.PathLike[str] | None = None, *, y: Any = None) -> str:
    """One self-contained page about a model and how it does on some data; written to `path` if there is one.

    The data need not have labels: without them the page has no figures of merit and no mistakes. Without data it tells
    of what was counted alone. It needs matplotlib (else MissingExtra), and a folder to write to (else FileError).

    >>> rows = {"Sky": ["sunny", "rainy", "sunny", "rainy"], "Play": ["yes", "no", "yes", "yes"]}
    >>> page = tb.report(tb.textbook(rows, "Play"), rows, "report.html")
    >>> "<h1" in page, "<script src" in page  # nothing is loaded from elsewhere
    (True, False)
    """
    matplotlib()  # what is lacking is said before the work, not after it
    if path is not None and not os.path.isdir(folder := os.path.dirname(os.path.abspath(path))):
        raise FileError.of(FileNotFoundError(errno.ENOENT, f"there is no folder {folder}"), path, "written")
    seen = judged(model, data, y)
    facts = report_facts(model, data, seen=seen)
    page = HtmlPage(f"{facts['target']}: a naive Bayes model")
    _opening(page, facts)
    _columns(page, model, facts)
    if seen.evaluation is not None:
        _scores(page, model, seen, facts)
        _mistakes(page, model, seen, facts)
    _nomogram(page, model)
    _words(page, facts)
    _tally(page, model, facts)
    text = page.text()
    if path is not None:
        write_atomically(path, text.encode())
    return text


def _opening(page: HtmlPage, facts: dict[str, Any]) -> None:
    data, tally = facts["data"], facts["model"]["tally"]
    counted = "written down by hand, not counted" if tally is None else f"counted from {many(tally['rows'], 'row')}"
    page.lead(
        f"Which <b>{escape(facts['target'], 60)}</b>? {many(len(facts['classes']), 'class', 'classes')}, "
        f"{many(len(facts['columns']), 'column')}, {counted}."
        f"{' This page looks at ' + many(data['rows'], 'row') + '.' if data['rows'] else ''}"
    )
    if "metrics" in facts:
        m = facts["metrics"]
        most, auc = f"{100 * m['accuracy_of_most_frequent']:.1f} %", m["roc_auc"]
        page.tiles([
            ("right answers", f"{100 * m['accuracy']:.1f} %", f"the most frequent class: {most}"),
            ("log loss", f"{m['log_loss']:.3f}", f"the shares of the classes: {m['log_loss_of_shares']:.3f}"),
            ("calibration error", f"{m['calibration_error']:.3f}", "0 if forecasts come true as often as they say"),
            ("area under ROC", "–" if auc is None else f"{auc:.3f}", "0.5 by chance, 1 at best"),
        ])  # fmt: skip
        if m["rare_classes"]:
            page.note("info", m["rare_classes"])
    for kind, text in _warnings(data):
        page.note(kind, text)


def _warnings(data: dict[str, Any]) -> Iterable[tuple[str, str]]:
    if not data["rows"]:
        yield "info", "No rows were given: this page tells what was counted, and not how good the answers are."
    elif not data["labelled"]:
        yield "info", "The data have no labels that the model knows, so nothing is said about how good the answers are."
    elif data["trained_on"] == "yes":
        yield (
            "warning",
            "These are rows that the model was counted from: the figures below flatter it. Give rows that it has not "
            "seen, or cross-validate.",
        )
    elif data["trained_on"] == "partly":
        yield (
            "warning",
            "The model was counted from some of these rows, by all signs: the figures below flatter it. Give rows that "
            "it has not seen, or cross-validate.",
        )
    elif data["trained_on"] == "no sign":
        yield "info", "There is no sign that the model has learnt from these rows."
    elif data["trained_on"] == "unknown":
        yield (
            "info",
            "Whether the model was counted from some of these rows cannot be told from its tally. If it was, the "
            "figures below flatter it.",
        )
    if data["unknown_class"]:
        yield (
            "warning",
            f"{many(data['unknown_class'], 'row')} left out, of a class that the model does not know.",
        )
    if data["without_label"] and data["labelled"]:
        yield "info", f"{many(data['without_label'], 'row')} without a label left out of the figures."


def _columns(page: HtmlPage, model: Model, facts: dict[str, Any]) -> None:
    page.section("data", "The data, and what was made of them")
    rows = [["column", "bits", "weight", "corrections", "missing", "kind", "read as", "why"]]
    lost = [["column", "log loss", "95 % interval", "accuracy", "95 % interval", ""]]
    for c in facts["columns"]:
        share = "" if not c["missing"] else "< 1 %" if c["missing"] < 0.01 else f"{100 * c['missing']:.0f} %"
        weight = f"{c['weight']:.3g}" if c["weight"] != 1 or c["corrections"] else ""
        added = f"{c['corrections']:,}" if c["corrections"] else ""
        bits = "" if c["bits"] is None else f"{c['bits']:.3f}"
        rows.append([c["name"], bits, weight, added, share, c["kind"], c["family"], c["reason"]])
        figures = [cell for metric in ("log_loss", "accuracy") for cell in _lost(c, metric)]
        lost.append([c["name"], *figures, c["remark"]])
    page.add(
        paragraph(
            "Columns by how much they say about the class alone, in bits: the mean distance from the prior that one "
            "column brings. A column that repeats another says it twice."
        )
    )
    page.add(table(rows, left=(0, 5, 6, 7), shown=20))
    if "metrics" in facts:
        page.add(
            paragraph(
                f"What is lost without a column, and the pairs it is one of, by {facts['importance']}. A column whose "
                "interval of the log loss holds 0 may be worth nothing."
            )
        )
        order = sorted(range(1, len(lost)), key=lambda i: -facts["columns"][i - 1]["log_loss"])
        page.add(table([lost[0], *(lost[i] for i in order)], left=(0, 5), shown=20))
    if facts["ignored"]:
        lines = [["left out", "why"], *([c["name"], c["reason"]] for c in facts["ignored"])]
        page.add(fold(f"{many(len(facts['ignored']), 'column')} left out", table(lines, left=(0, 1))))
    page.section("columns", "Column by column")
    pictures = []
    for i, c in enumerate(facts["columns"][:_MOST_PICTURES]):
        drawn = svg(column_display(model, c["name"]), f"c{i}", f"{c['name']} by class")
        pictures.append(figure(drawn, f"{printable(c['name'], 50)} · {c['family']}"))
    page.add(f'<div class="gallery">{"".join(pictures[:_OPEN])}</div>')
    if len(pictures) > _OPEN:
        rest = f'<div class="gallery">{"".join(pictures[_OPEN:])}</div>'
        page.add(fold(f"{many(len(pictures) - _OPEN, 'more column')} of those that say less", rest))
    if len(facts["columns"]) > _MOST_PICTURES:
        page.add(
            paragraph(f"{many(len(facts['columns']) - _MOST_PICTURES, 'column')} saying still less, without a picture.")
        )


def _lost(column: dict[str, Any], metric: str) -> list[str]:
    """A figure with its interval, as far as there are any."""
    value, low, high = (column[metric + end] for end in ("", "_low", "_high"))
    bounds = "" if low is None else f"{signed(low, 4)} to {signed(high, 4)}"
    return ["" if value is None else signed(value, 4), bounds]


def _scores(page: HtmlPage, model: Model, seen: Judged, facts: dict[str, Any]) -> None:
    page.section("answers", "How good the answers are")
    right = seen.labels[seen.labels >= 0]
    labels, p = [model.classes[i] for i in right], seen.probabilities
    pictures: list[tuple[Any, str, str]] = [
        (ReliabilityDisplay, "reliability", "Do probabilities come true? On the dotted line they do."),
    ]
    if len(np.unique(right)) > 1 and len(model.classes) > 1:
        pictures += [
            (RocDisplay, "roc", "ROC: the class found against others let in."),
            (PrecisionRecallDisplay, "pr", "Precision against recall."),
        ]
    pictures.append((ConfusionDisplay, "confusion", "Which class is taken for which."))
    drawn = []
    for kind, name, text in pictures:
        drawing = svg(kind.from_predictions(labels, p, model.classes), name, text)
        drawn.append(figure(drawing, text, wide=kind is ConfusionDisplay and len(model.classes) > 8))
    large = drawn.pop() if len(model.classes) > 8 else ""
    page.add(f'<div class="gallery">{"".join(drawn)}</div>{large}')
    head = ["class", *(k.replace("_", " ") for k in facts["by_class"])]
    values = list(facts["by_class"].values())
    lines = [
        [str(c), *(_figure(v[i], k) for k, v in zip(facts["by_class"], values, strict=True))]
        for i, c in enumerate(facts["classes"])
    ]
    page.add(table([head, *lines], left=(0,), shown=_MANY))


def _figure(value: float | None, name: str) -> str:
    return "–" if value is None else f"{value:,.10g}" if name == "rows" else f"{value:.3f}"


def _mistakes(page: HtmlPage, model: Model, seen: Judged, facts: dict[str, Any]) -> None:
    page.section("mistakes", "The most confident mistakes")
    if not facts["mistakes"]:
        page.add(paragraph("There are none: every answer was right."))
        return
    page.add(
        paragraph("What spoke for the wrong answer hints at columns that repeat each other, or at one that is lacking.")
    )
    for i, m in enumerate(facts["mistakes"]):
        odds = model.explain(seen.source, m["row"]).odds(m["answer"], m["right"])
        drawn = svg(WaterfallDisplay(odds), f"m{i}", f"evidence of row {m['row']}")
        title = (
            f"Row {m['row']}: <b><bdi>{escape(m['answer'], 40)}</bdi></b> with probability {m['probability']:.4f}, "
            f"but it was <b><bdi>{escape(m['right'], 40)}</bdi></b>"
        )
        inside = figure(drawn, "") + f"<pre>{escape(m['what_if'], 2000, lines=True)}</pre>"
        page.add(
            f'<div class="card"><p>{title}</p>{inside}{fold("numbers, intervals and counts", _odds_table(odds))}</div>'
        )


def _odds_table(odds: Any) -> str:
    return f'<div class="scroll">{odds._page().html()}</div>'


def _nomogram(page: HtmlPage, model: Model) -> None:
    if not model.beliefs or len(model.classes) < 2:
        return
    page.section("model", "The model as a nomogram")
    display = nomogram(model, None, None, 16)
    for told in nomogram_said(display):
        page.add(paragraph(told))
    if display.scales:
        page.add(figure(svg(display, "nomogram", "nomogram"), "", wide=True))
    if len(model.beliefs) <= _MOST_PICTURES:
        page.add(
            fold("the graph, with the tables behind it", f'<div class="scroll paper">{model.graph().to_svg()}</div>')
        )


def nomogram_said(display: NomogramDisplay) -> tuple[str, str]:
    """What a nomogram shows, and how it is read."""
    whose = printable(display.label, 40)
    shown = f"What the values of each column add for {whose}, in log-odds, from the start that the prior gives."
    if not display.adds_up:
        reading = "Points show what speaks for what. Their sum is not the answer, since not all of the model is on it."
    elif display.pairwise:
        reading = (
            "Find the value of each column and add up the points: the sum is the log-odds. What is missing adds 0."
        )
    else:
        reading = "Points are against the average of all classes; the class with the highest sum wins."
    return shown, reading


def _words(page: HtmlPage, facts: dict[str, Any]) -> None:
    if not facts["words"]:
        return
    page.section("words", "Words of each class")
    for name, classes in facts["words"].items():
        lines = [["class", "words, and how many times likelier they are there than elsewhere"]]
        for c, words in classes.items():
            lines.append(
                [c, ", ".join(f"{printable(w['word'], 24)} {times(np.log(float(w['times'])))}" for w in words)]
            )
        page.add(f"<h3><bdi>{escape(name, 60)}</bdi></h3>" + table(lines, left=(0, 1), shown=_MANY, widest=600))


def _tally(page: HtmlPage, model: Model, facts: dict[str, Any]) -> None:
    page.section("tally", "What was counted, merged and forgotten")
    t = facts["model"]["tally"]
    if t is None:
        page.add(paragraph("The model was written down by hand and has no tally: nothing was counted."))
    else:
        page.add(
            paragraph(
                "The tally holds exact integers. Whatever was merged into it or forgotten, in any order, it has the "
                "bytes that counting the remaining rows once would give: its digest says so."
            )
        )
        lines = [["rows counted", number(t["rows"])], ["rows without a label, skipped", number(t["skipped"])]]
        lines += [[f"of class {c}", number(n)] for c, n in list(t["classes"].items())[:_MANY]]
        lines += [
            ["forgetting", "every row is known (receipts)" if t["receipts"] else "guarded by counts (no receipts)"],
            ["SHA-256 of the tally", t["digest"]],
        ]
        page.add(table([["", ""], *lines], left=(0, 1)))
    told = [[word, said] for word, said in model.provenance.lines() if word not in ("counted", "digest")]
    page.add(table([["where it comes from", ""], *told], left=(0, 1)))
    raw, free = facts["model"]["parameters"]["raw"], facts["model"]["parameters"]["free"]
    page.add(paragraph(f"{number(raw)} parameters, {number(free)} of them free."))
    if facts["model"]["calibrated"] is not None:
        page.add(paragraph(f"The weights of the columns: {printable(facts['model']['calibrated'], 500)}."))
    settings = [[k, v] for k, v in facts["model"]["settings"].items()]
    if settings:
        page.add(fold("settings that differ from the defaults", table([["setting", "value"], *settings], left=(0, 1))))
