"""In no picture does a text lie outside it or upon another, at its own size and as wide as a phone."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from strategies import ALL

import tallybayes as tb
from tallybayes.explain.plots import (
    ConfusionDisplay,
    DirichletDisplay,
    FigureCurveDisplay,
    JointTableDisplay,
    PrecisionRecallDisplay,
    ReliabilityDisplay,
    RocDisplay,
)

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("agg")

from matplotlib import pyplot as plt  # noqa: E402
from matplotlib.text import Text  # noqa: E402

PHONE = 3.9  # inches, of 100 dots each
NAMES = ("window glass, float", "window glass, not float", "containers", "headlamps", "tableware", "vehicle windows")


@cache
def rows() -> dict[str, Any]:
    rng = np.random.default_rng(8)
    y = np.arange(360) % 6
    return {
        "index of refraction": 1.517 + 0.002 * rng.normal(y / 3, 1.0),
        "years": np.round(rng.gamma(2 + y, 4.0)),
        "place where it was found": rng.choice([f"a long name of a place, number {i}" for i in range(20)], 360),
        "text": [" ".join(rng.choice([f"word{v}", "another", "thelongestwordofall", "w"], 6)) for v in y],
        "y": [NAMES[v] for v in y],
    }


@cache
def many(pairs: bool = False) -> tb.Model:
    """Six classes of long names."""
    schema = tb.infer(rows(), "y").with_column("text", kind="text")
    if pairs:
        sides = (
            tb.PairColumn("years", "number", cuts=(10.25, 20.125, 30.0625)),
            tb.PairColumn("place where it was found"),
        )
        schema = schema.with_column("years × place", kind="pair", of=sides)
    return tb.count(rows(), schema).model(tb.Settings(families={"years": "kernel"}))


@cache
def two() -> tb.Model:
    """Two classes."""
    own = np.array(rows()["y"])
    kept = np.isin(own, NAMES[:2])
    data = {name: list(np.array(values, dtype=object)[kept]) for name, values in rows().items()}
    return tb.count(data, many().schema).model()


def asked(name: str) -> dict[str, Any]:
    return (
        {k: [v[7]] for k, v in rows().items() if k != "y"}
        if name == "one"
        else {k: v for k, v in rows().items() if k != "y"}
    )


def scored(display: Any) -> Callable[[Any], Any]:
    return lambda ax: display.from_predictions(rows()["y"], many().predict_proba(asked("all")), many().classes).plot(ax)


def curve(*values: Any) -> Callable[[Any], Any]:
    figures = np.linspace(0.3, 0.5, 3 * len(values)).reshape(-1, 3)
    return lambda ax: FigureCurveDisplay("family", values, "log_loss", figures, figures[:, 0]).plot(ax)


PICTURES: dict[str, Callable[[Any], Any]] = {
    "waterfall": lambda ax: many().plot.waterfall(asked("one"), ax=ax),
    "category": lambda ax: many().plot.column("place where it was found", ax=ax),
    "number": lambda ax: many().plot.column("index of refraction", ax=ax),
    "whole number": lambda ax: many().plot.column("years", ax=ax),
    "words": lambda ax: many().plot.words(ax=ax),
    "pair": lambda ax: many(pairs=True).plot.column("years × place", ax=ax),
    "reliability": scored(ReliabilityDisplay),
    "confusion": scored(ConfusionDisplay),
    "roc": scored(RocDisplay),
    "precision": scored(PrecisionRecallDisplay),
    "curve": curve("gaussian", "gaussian-shared", "kernel", "bins", "student"),
    "regions": lambda ax: many().plot.regions("index of refraction", "years", rows(), ax=ax),
    "densities": lambda ax: many().plot.densities("years", ax=ax),
    "beta": lambda ax: two().plot.beta("place where it was found", "a long name of a place, number 3", ax=ax),
    "dirichlet": lambda ax: DirichletDisplay.of_counts({f"a long name of a value, {i}": i for i in range(3)}).plot(ax),
    "joint": lambda ax: JointTableDisplay.of(
        tb.JointDistribution.of({"a long name": ["u", "v"], "and another": ["a long value", "b"], "C": [1, 2]})
    ).plot(ax),
}


def shown(figure: Any) -> list[Text]:
    """The texts that can be seen; of ticks only those within the axes."""
    hidden: set[Text] = set()
    for ax in figure.axes:
        for axis in (ax.xaxis, ax.yaxis):
            low, high = sorted(axis.get_view_interval())
            ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
            hidden |= {t for k in ticks for t in (k.label1, k.label2) if not low <= k.get_loc() <= high}
    return [t for t in figure.findobj(Text) if t.get_visible() and t.get_text().strip() and t not in hidden]


def faults(figure: Any) -> list[str]:
    """Texts outside the picture, and pairs of texts that cover each other."""
    figure.canvas.draw()
    wide, high = figure.canvas.get_width_height()
    boxes = [(t, t.get_window_extent()) for t in shown(figure)]
    out = [
        f"{t.get_text()!r} is outside" for t, b in boxes if b.x0 < -1 or b.y0 < -1 or b.x1 > wide + 1 or b.y1 > high + 1
    ]
    flat = [(t, b) for t, b in boxes if t.get_rotation() % 90 == 0]  # the box of a slanting text is wider than it is
    for (t, a), (u, b) in itertools.combinations(flat, 2):
        if min(a.x1, b.x1) - max(a.x0, b.x0) > 2 and min(a.y1, b.y1) - max(a.y0, b.y0) > 2:
            out.append(f"{t.get_text()!r} is upon {u.get_text()!r}")
    return out


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.mark.parametrize("name", PICTURES)
def test_texts_have_room(name: str) -> None:
    assert faults(PICTURES[name](None).figure_) == []


@pytest.mark.parametrize("name", PICTURES if ALL else ("waterfall", "pair", "curve", "beta", "joint"))
def test_texts_have_room_on_a_phone(name: str) -> None:
    ax = plt.subplots(figsize=(PHONE, 5.0), dpi=100, layout="constrained")[1]
    assert faults(PICTURES[name](ax).figure_) == []


@pytest.mark.parametrize("wide", [None, 6.4, PHONE])
def test_the_scales_of_a_nomogram_have_room(wide: float | None) -> None:
    for model in (many(), two()):
        ax = None if wide is None else plt.subplots(figsize=(wide, 5.0), dpi=100, layout="constrained")[1]
        assert faults(model.plot.nomogram(ax=ax).figure_) == []


def test_a_nomogram_that_is_too_small_says_what_it_leaves_out() -> None:
    def texts(high: float) -> tuple[set[str], str]:
        ax = plt.subplots(figsize=(PHONE, high), dpi=100, layout="constrained")[1]
        figure = two().plot.nomogram(ax=ax).figure_
        assert faults(figure) == []
        return {t.get_text() for t in shown(figure)}, ax.get_xlabel()

    whole, foot = texts(12.0)
    assert {s.column for s in two().plot.nomogram().scales} < whole and "taller" not in foot
    fewer, foot = texts(5.0)
    assert fewer < {*whole, foot} and "labels have no room: it must be taller" in foot and len(fewer) < len(whole)
    least, foot = texts(3.5)
    assert "years" in fewer - least and "columns for which it must be taller" in foot


def test_what_covers_another_is_found() -> None:
    figure, ax = plt.subplots()
    ax.text(0.5, 0.5, "one")
    ax.text(0.5, 0.5, "another")
    ax.text(2.0, 0.5, "far away")
    assert faults(figure) == ["'far away' is outside", "'one' is upon 'another'"]


def test_whole_numbers_are_asked_at_whole_numbers() -> None:
    """A curve over points has nothing between them: the plane is that of the nearest points."""
    rng = np.random.default_rng(1)
    y = np.arange(600) % 2
    data = {"n": np.round(rng.normal(8 * y, 4.0)), "x": rng.normal(size=600), "y": y}
    model = tb.textbook(data, "y", families="kernel")
    plane = model.plot.regions("n", "x", data)
    lead = plane.p[..., 1].mean(axis=0)
    assert lead[plane.x < -4].max() < 0.1 and lead[plane.x > 12].min() > 0.9
    curves = model.plot.densities("n", prior=False)
    assert np.allclose(curves.heights.sum(axis=0), 1.0, atol=0.01) and set(curves.x) <= set(data["n"])


def test_a_plane_of_two_numbers_has_their_pair_in_it() -> None:
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(2, 800))
    data = {"a": a, "b": b, "y": np.where(a * b > 0, "same", "other")}
    sides = (tb.PairColumn("a", "number", cuts=(0.0,)), tb.PairColumn("b", "number", cuts=(0.0,)))
    schema = tb.infer(data, "y").with_column("a × b", kind="pair", of=sides)
    plane = (
        tb.count(data, schema).model(tb.Settings(families={"a": "gaussian", "b": "gaussian"})).plot.regions("a", "b")
    )
    same = plane.p[..., plane.names.index("same")]
    corner = {(i, j): same[i, j] for i in (10, -10) for j in (10, -10)}
    assert corner[10, 10] > 0.9 < corner[-10, -10] and corner[10, -10] < 0.1 > corner[-10, 10]
    apart = tb.textbook(data, "y").plot.regions("a", "b").p[..., 0]
    assert np.ptp(apart) < 0.5
