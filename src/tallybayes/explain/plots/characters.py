"""The same pictures for a terminal, made of characters; matplotlib is not needed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...base.canon import number_text, printable
from ...base.draw import Drawing, Drawn, LabelledLines, Room, curve, ends, fitted, heights
from ...base.errors import SettingsError
from ...base.show import signed, width
from ...base.times import moment_text
from ..odds import LogOdds
from .columns import CategoryDisplay, NumberDisplay, VectorDisplay, WordsDisplay, column_display
from .evidence import WaterfallDisplay
from .scores import (
    ConfusionDisplay,
    CurvesDisplay,
    FigureCurveDisplay,
    PeriodsDisplay,
    ReliabilityDisplay,
    RocDisplay,
)

if TYPE_CHECKING:
    from ...model.model import Model

_TALL, _TALL_CURVE = 4, 10  # lines of a histogram, of a curve
_MOST_CLASSES = 12  # of a confusion table
_MOST_CURVES = 2  # classes whose curves are drawn, the worst
_MOST_WIDE = 60  # columns of a curve
_MOST_POSITIONS = 12  # of a vector
_DIGITS = 6  # of a mean


@dataclass(frozen=True)
class SpansDisplay:
    """Figures with their intervals, one line each, on a common scale."""

    title: str
    lines: Sequence[tuple[str, float, float, float]]  # label, lower, figure, upper
    marks: Sequence[float] = ()  # a figure beside each


def terminal(thing: Any, column: str | None = None, *, label: Any = None, against: Any = None) -> Drawing:
    """A picture made of characters: `print(tb.plots.terminal(model.explain(row)))`.

    Of an explanation or its odds it is the waterfall, of a model one `column` by class, of an evaluation reliability,
    ROC and confusion, of comparisons and curves the figures with their intervals, of changes and judged periods a line
    over time. Displays of `tb.plots` are drawn as well. `label` and `against` name the classes of a waterfall.

    >>> import tallybayes as tb
    >>> days = tb.datasets.play()
    >>> model = tb.textbook(days, "Play")
    >>> print(tb.plots.terminal(model.explain(days.truth["asked"]["today"])).text(60))
    yes against no: probability 0.7216
                   ← no          log-odds           yes →
    prior             ███████████████████████████████████  +1.10
    Sky: rainy     ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒  -1.20
    Temp: warm     ████████████████████████████            +0.88
    Humid: normal     │                        █████       +0.18
    together          ██████████████████████████████       +0.95
    """
    pictures = list(_pictures_of(thing, column, label, against))

    def draw(room: Room) -> list[Drawn]:
        out: list[Drawn] = []
        for picture in pictures:
            out += [*([[("", "")]] if out else []), *_DRAWN_BY[type(picture)](picture, room)]
        return out

    return Drawing(draw)


def _pictures_of(thing: Any, column: str | None, label: Any, against: Any) -> list[Any]:
    """The displays behind a thing, none of them drawn."""
    from ...model.model import Model
    from ...selection.measure.evaluation import Evaluation
    from ...selection.measure.figure_curves import FigureCurve
    from ...selection.measure.saved import ModelComparison
    from ...selection.over_time.prequential import Prequential
    from ...selection.over_time.scan import Changes
    from ...selection.rivals.compare import Comparison
    from ..explanation import Explanation

    if type(thing) in _DRAWN_BY:
        return [thing]
    if isinstance(thing, Explanation):
        return [WaterfallDisplay(thing.odds(label, against))]
    if isinstance(thing, LogOdds):
        return [WaterfallDisplay(thing)]
    if isinstance(thing, Model):
        return [_of_column(thing, column)]
    if isinstance(thing, Evaluation):
        return _of_evaluation(thing)
    if isinstance(thing, (Comparison, ModelComparison)):
        return [_of_figures(thing.evaluation, metric) for metric in ("log_loss", "accuracy")]
    if isinstance(thing, FigureCurve):
        metric = next(iter(thing.held_out))
        return [FigureCurveDisplay(thing.over, thing.values, metric, thing.held_out[metric], thing.counted[metric])]
    if isinstance(thing, (Changes, Prequential)):
        return [thing.picture()]
    raise SettingsError(
        f"there is no picture in characters of a {type(thing).__name__}",
        hint="give an explanation, a model with column='…', an evaluation, a comparison, a curve, changes, or a "
        "display of tb.plots.",
    )


def _of_column(model: Model, column: str | None) -> Any:
    if column is None:
        raise SettingsError("which column of the model?", hint="name it: tb.plots.terminal(model, column='…').")
    found = column_display(model, column)
    if type(found) not in _DRAWN_BY:
        raise SettingsError(
            f"column {column!r} is of a kind that has no picture in characters",
            hint="matplotlib draws it, in the report.",
        )
    return found


def _of_evaluation(found: Any) -> list[Any]:
    s = found._scored(found._name(None))[0]
    label = None if len(found.classes) != 2 else found.classes[1]
    what = "of the answer given" if label is None else f"of {printable(label, 20)}"
    out: list[Any] = [ReliabilityDisplay(found.reliability(label=label), what)]
    names = [found.classes[i] for i in s.labels]
    curves = RocDisplay.from_predictions(names, s.p, found.classes)
    if curves.curves:
        out.append(curves)
    if len(found.classes) <= _MOST_CLASSES:
        table = found.confusion()
        out.append(ConfusionDisplay(np.array([c.to_numpy() for c in table.columns[1:]]).T, found.classes))
    return out


def _of_figures(found: Any, metric: str) -> SpansDisplay:
    figures = [(name, *found.figure(metric, name)) for name in found.names]
    figures.sort(key=lambda f: f[1] if metric == "log_loss" else -f[1])
    lines = [(name, low, value, high) for name, value, low, high in figures]
    return SpansDisplay(f"{metric.replace('_', ' ')}, with 95 % intervals", lines)


# ---- one picture after the other


def _title(text: str, room: Room) -> Drawn:
    return [(fitted(text, room.columns).rstrip(), "strong")]


def _soft(text: str, room: Room) -> Drawn:
    return [(fitted(text, room.columns).rstrip(), "soft")]


def _waterfall(picture: WaterfallDisplay, room: Room) -> list[Drawn]:
    odds, lines = picture.odds, picture._lines()
    finite = [abs(v) for _, v, _ in lines if np.isfinite(v)]
    most = 2 * max([1.0, *finite])
    sizes = [0.0 if np.isnan(v) else float(np.clip(v, -most, most)) for _, v, _ in lines]
    ends_at = np.concatenate([[0.0], np.cumsum(sizes)])
    low, high = min(float(ends_at.min()), 0.0), max(float(ends_at.max()), 0.0)
    reach = (high - low) or 1.0
    end = odds.total
    labels = [*(name for name, _, _ in lines), "both impossible" if np.isnan(end) else "together"]
    rows = LabelledLines(room, labels, [*(signed(v, 2) for _, v, _ in lines), signed(end, 2)])
    zero = -low / reach
    title = f"{printable(odds.label)} against {printable(odds.against)}: probability {odds.probability:.4f}"
    if odds.label == odds.against:
        return [_title(f"{printable(odds.label)}: the only class, so that nothing speaks against it", room)]
    out = [_title(title, room)]
    out.append(rows.ends(f"← {printable(odds.against, 18)}", f"{printable(odds.label, 18)} →", "log-odds"))
    for i, size in enumerate(sizes):
        first, last = sorted(((ends_at[i] - low) / reach, (ends_at[i + 1] - low) / reach))
        out.append(rows.line(i, rows.floating(first, last, zero, "for" if size > 0 else "against")))
    first, last = sorted((zero, (float(ends_at[-1]) - low) / reach))
    together: Drawn = (
        [] if np.isnan(end) or end == 0 else rows.floating(first, last, zero, "for" if end > 0 else "against")
    )
    return [*out, rows.line(len(sizes), together, "strong")]


def _legend(room: Room, names: Sequence[str]) -> list[Drawn]:
    """What the inks of the classes are, on as many lines as that takes."""
    lines: list[Drawn] = [[]]
    used = 0
    for i, name in enumerate(names):
        text = printable(name, 24)
        if used and used + width(text) + 4 > room.columns:
            lines.append([])
            used = 0
        lines[-1] += [(room.fill(str(i)) * 2, str(i)), (f" {text}  ", "")]
        used += width(text) + 5
    return lines


def _category(picture: CategoryDisplay, room: Room) -> list[Drawn]:
    shares = np.nan_to_num(picture.believed)
    top = float(shares.max(initial=0.0)) or 1.0
    in_percent = picture.unit.startswith("share")
    labels, figures = [], []
    for value, line in zip(picture.values, shares, strict=True):
        labels += [str(value), *[""] * (len(line) - 1)]
        figures += [f"{v:.1%}" if in_percent else f"×{v:.3g}" for v in line]
    rows = LabelledLines(room, labels, figures)
    out = [_title(f"{picture.column}: {picture.unit}", room), *_legend(room, picture.names)]
    for i, line in enumerate(shares):
        for j, v in enumerate(line):
            out.append(rows.line(i * len(line) + j, [(rows.bar(float(v) / top, str(j)), str(j))]))
    return [*out, *([[(f"{picture.hidden} others not shown", "soft")]] if picture.hidden else [])]


def _number(picture: NumberDisplay, room: Room) -> list[Drawn]:
    counted = picture.shares is not None and picture.edges is not None
    values = np.asarray(picture.shares if counted else picture.believed)
    places = np.asarray(picture.edges if counted else picture.x)
    wide = min(room.columns - 2, 2 * _MOST_WIDE)
    each = max(wide // len(values), 1)
    if len(values) > wide:
        values = values[np.linspace(0, len(values) - 1, wide).astype(int)]
    out = [_title(f"{picture.column}: {'what was counted' if counted else 'what is believed'}, by class", room)]
    top = float(np.nan_to_num(values).max(initial=0.0))
    for i, name in enumerate(picture.names):
        out.append([(fitted(name, min(room.columns, 60)).rstrip(), "")])
        out += heights(room, np.repeat(values[:, i], each), _TALL, top, str(i))
    told = picture.told
    low, high = (
        number_text(round(end, 6)) if told is None else told(float(math.floor(end)) if told is moment_text else end)
        for end in (float(places[0]), float(places[-1]))
    )
    return [*out, [(ends(each * len(values), low, high), "soft")]]


def _vector(picture: VectorDisplay, room: Room) -> list[Drawn]:
    """A line per position and class: its mean and one deviation around it, on one scale for all."""
    title = _title(f"{picture.column}: mean and deviation by position", room)
    if not len(picture.positions):
        return [title, _soft("no position varies", room)]
    apart = np.ptp(picture.location, axis=1) / picture.scale.mean(axis=1)
    shown = np.sort(np.argsort(-apart, kind="stable")[:_MOST_POSITIONS]).tolist()
    mean, deviation = picture.location[shown], picture.scale[shown]
    low, high = float((mean - deviation).min()), float((mean + deviation).max())
    reach, many = (high - low) or 1.0, len(picture.names)
    labels = [text for i in shown for text in (str(picture.positions[i]), *[""] * (many - 1))]
    digits = int(np.clip(1 - np.floor(np.log10(deviation.min())), 0, _DIGITS))
    told = ([_to_digits(v, digits) for v in values.ravel().tolist()] for values in (mean, deviation))
    figures = [f"{m} {room.mark('±', '+-')} {s}" for m, s in zip(*told, strict=True)]
    rows = LabelledLines(room, labels, figures)
    out = [title, *_legend(room, picture.names), rows.ends(_to_digits(low, digits), _to_digits(high, digits))]
    for at, (m, s) in enumerate(zip(mean.ravel(), deviation.ravel(), strict=True)):
        a, v, b = ((x - low) / reach for x in (m - s, m, m + s))
        out.append(rows.line(at, rows.span(a, v, b, None, str(at % many), filled=True)))
    hidden = len(picture.positions) - len(shown)
    return [*out, *([_soft(f"{hidden} positions where classes differ less not shown", room)] if hidden else [])]


def _to_digits(value: float, digits: int) -> str:
    """A number to so many digits behind the point; a very large or small one to six in all."""
    plain = abs(value) < 10**_DIGITS and (digits < _DIGITS or abs(value) >= 10**-_DIGITS)
    return f"{round(value, digits) + 0.0:.{digits}f}" if plain else f"{value:.{_DIGITS}g}"


def _words(picture: WordsDisplay, room: Room) -> list[Drawn]:
    each = [(i, r) for i, table in enumerate(picture.tables) for r in table.rows]
    ratios = [float(np.clip(r.ratio, 1e-6, 1e6)) for _, r in each]
    top = max([np.log(v) for v in ratios if v > 1], default=1.0)
    rows = LabelledLines(room, [r.value for _, r in each], [f"×{r.ratio:.3g}" for _, r in each])
    out = [_title(f"{picture.column}: times likelier than in the other classes", room)]
    out += _legend(room, [str(table.label) for table in picture.tables])
    for at, ((i, _), v) in enumerate(zip(each, ratios, strict=True)):
        out.append(rows.line(at, [(rows.bar(float(np.log(v)) / top if v > 1 else 0.0, str(i)), str(i))]))
    return out


def _reliability(picture: ReliabilityDisplay, room: Room) -> list[Drawn]:
    c = picture.curve
    labels = [f"{f:.2f}" for f in c.forecast]
    rows = LabelledLines(room, ["forecast", *labels], ["rows", *(f"{n:,.0f}" for n in c.rows)])
    key = f"{room.mark('●', 'o')} came true, {room.mark('─', '-')} 95 % interval, {room.mark('│', '|')} as forecast"
    out = [
        _title(f"Reliability {picture.what}", room),
        _soft(key, room),
        rows.line(0, [(ends(rows.wide, "0", "1"), "soft")]),
    ]
    for i, (f, o, a, b) in enumerate(zip(c.forecast, c.observed, c.low, c.high, strict=True), 1):
        out.append(rows.line(i, rows.span(float(a), float(o), float(b), float(f))))
    return out


def _roc(picture: CurvesDisplay, room: Room) -> list[Drawn]:
    """One curve after the other, each in its own frame: in one frame they would cover each other."""
    wide = min(room.columns - 4, _MOST_WIDE)
    out: list[Drawn] = []
    for name, each, area, number in picture.curves[:_MOST_CURVES]:
        out.append(_title(f"ROC of {printable(name, 24)}, area {area:.3f}", room))
        side, corner = room.mark("│", "|"), room.mark("└", "+")
        ink = str(number)
        points = curve(room, np.concatenate([[0.0], each.x]), np.concatenate([[0.0], each.y]), wide, _TALL_CURVE)
        for i, line in enumerate(points):
            tick = "1" if i == 0 else "0" if i == _TALL_CURVE - 1 else " "
            out.append([(f"{tick} {side}", "soft"), (line, ink)])
        out.append([(f"  {corner}{room.mark('─', '-') * wide}", "soft")])
        out.append([("   " + ends(wide, "0", "1", each.names[0]), "soft")])
    left = len(picture.curves) - _MOST_CURVES + picture.hidden
    return [*out, *([[(f"{left} better ones not shown", "soft")]] if left > 0 else [])]


def _confusion(picture: ConfusionDisplay, room: Room) -> list[Drawn]:
    counts = picture.counts
    total = counts.sum(axis=1, keepdims=True)
    share = np.divide(counts, total, out=np.zeros_like(counts), where=total > 0)
    texts = [[f"{v:,.10g}" for v in line] for line in counts]
    first = min(max(width(printable(c, 40)) for c in picture.classes), max(room.columns // 4, 6))
    most = (room.columns - first) // max(len(picture.classes), 1) - 4
    cell = min(max(max(len(t) for line in texts for t in line), 5), max(most, 3))
    shades = " .:+#" if room.ascii else " ░▒▓█"
    title = "Answers (columns) by right class (lines)"
    out = [_title(title, room)]
    heads = [(fitted(c, cell + 3, right=True) + " ", "soft") for c in picture.classes]
    out.append([(" " * first, ""), *heads])
    for name, line, shown in zip(picture.classes, share, texts, strict=True):
        pieces: Drawn = [(fitted(name, first), "")]
        for v, text in zip(line, shown, strict=True):
            shade = shades[0 if v == 0 else min(int(v * 4) + 1, 4)]
            pieces += [(" " + shade * 2, "0"), (fitted(text, cell, right=True) + " ", "")]
        out.append(pieces)
    return out


def _spans(picture: SpansDisplay, room: Room) -> list[Drawn]:
    figures = [v for _, low, value, high in picture.lines for v in (low, value, high) if np.isfinite(v)]
    figures += [v for v in picture.marks if np.isfinite(v)]
    low, high = (min(figures), max(figures)) if figures else (0.0, 1.0)
    reach = (high - low) or 1.0
    rows = LabelledLines(
        room, [name for name, *_ in picture.lines], [f"{value:.4f}" for _, _, value, _ in picture.lines]
    )
    out = [_title(picture.title, room), rows.ends(f"{low:.3g}", f"{high:.3g}")]
    for i, (_, *ends_) in enumerate(picture.lines):
        mark = (picture.marks[i] - low) / reach if i < len(picture.marks) else None
        a, v, b = ((x - low) / reach for x in ends_)
        out.append(rows.line(i, rows.span(a, v, b, mark)))
    return out


def _figure_curve(picture: FigureCurveDisplay, room: Room) -> list[Drawn]:
    labels = [f"{v:,g}" if isinstance(v, (int, float)) and not isinstance(v, bool) else str(v) for v in picture.values]
    lines = [(name, float(a), float(v), float(b)) for name, (v, a, b) in zip(labels, picture.held_out, strict=True)]
    key = f"{room.mark('●', 'o')} rows held out, 95 % interval; {room.mark('│', '|')} rows counted"
    title = f"{picture.metric.replace('_', ' ')} by {picture.over}: {key}"
    return _spans(SpansDisplay(title, lines, [float(v) for v in picture.counted]), room)


def _periods(picture: PeriodsDisplay, room: Room) -> list[Drawn]:
    if not picture.curves:
        return [_title(picture.what, room), _soft("there is nothing to draw", room)]
    place = {period: i for i, period in enumerate(picture.periods)}
    changed: Mapping[str, str] = dict(picture.marks)
    names = [f"{name} (from {changed[name]})" if name in changed else name for name in picture.curves]
    known = [v for _, values in picture.curves.values() for v in values if np.isfinite(v)]
    top = max([*known, *([picture.level] if picture.level is not None else [])], default=1.0)
    largest = [max([v for v in values if np.isfinite(v)], default=np.nan) for _, values in picture.curves.values()]
    rows = LabelledLines(room, names, ["–" if np.isnan(v) else f"{v:.3g}" for v in largest])
    wide = min(rows.wide, len(picture.periods) * max(rows.wide // len(picture.periods), 1))
    sure = "" if picture.level is None else f"; a change is sure above {picture.level:.3g}"
    out = [_title(picture.what, room), _soft(f"the largest on the right{sure}", room)]
    for i, (periods, values) in enumerate(picture.curves.values()):
        line = np.zeros(len(picture.periods))
        line[[place[p] for p in periods]] = np.nan_to_num(values)
        at = np.linspace(0, len(line) - 1e-9, wide).astype(int)
        *above, last = heights(room, line[at], 2, top, str(i))
        out += [[(" " * (width(rows.line(i, [])[0][0]) + 2), ""), *piece] for piece in above]
        out.append(rows.line(i, last))
    return [*out, rows.under(ends(wide, picture.periods[0], picture.periods[-1]))]


_DRAWN_BY: Mapping[type, Callable[[Any, Room], list[Drawn]]] = {
    WaterfallDisplay: _waterfall,
    CategoryDisplay: _category,
    NumberDisplay: _number,
    VectorDisplay: _vector,
    WordsDisplay: _words,
    ReliabilityDisplay: _reliability,
    RocDisplay: _roc,
    ConfusionDisplay: _confusion,
    SpansDisplay: _spans,
    FigureCurveDisplay: _figure_curve,
    PeriodsDisplay: _periods,
}
