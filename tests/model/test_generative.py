"""What a model says of rows is one distribution: densities add up to one, samples come from it, or both are refused.

Every registered family is asked about every kind of column that it reads, so a new family is asked without a line here.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from strategies import ALL

import tallybayes as tb
from tallybayes.exact.cells import REACH
from tallybayes.families import Auto, Bins, Family, Kernel, Levels, family_for, family_names

N = 400
MANY = 100_000 if ALL else 2_000  # rows that are drawn
FOLDS = 20 if ALL else 10  # of them, to see how far counting them is off
RNG = np.random.default_rng(17)
Y = RNG.choice(["u", "v", "w"], N, p=[0.5, 0.3, 0.2])
PLACE = np.array([{"u": 0.0, "v": 1.5, "w": -1.0}[c] for c in Y])
LINE = RNG.normal(PLACE, 1.0)
COUNTS = RNG.poisson(2 + PLACE - PLACE.min()).astype(float)
COLOURS = np.where(RNG.random(N) < 0.4, "red", RNG.choice(["red", "green", "blue"], N))
COLOURS = np.where((Y == "v") & (RNG.random(N) < 0.5), "green", COLOURS)
NAMES = ("ball", "tax", "the")
WORDS = [list(RNG.choice(NAMES, 4, p=[0.6, 0.1, 0.3] if c == "u" else [0.2, 0.5, 0.3])) for c in Y]
SIDE = np.where(RNG.random(N) < 0.3, Y, RNG.choice(["u", "v", "w"], N))  # a second column, for pairs


@dataclass(frozen=True, eq=False)
class Asked:
    """A column of data for the families that can read it."""

    name: str
    values: Any
    column: tb.Column

    @property
    def schema(self) -> tb.Schema:
        return tb.Schema([self.column, tb.Column("c", "category")], target="y")

    @property
    def rows(self) -> dict[str, Any]:
        return {"x": self.values, "c": SIDE, "y": Y}

    @cached_property
    def tally(self) -> tb.Tally:
        return tb.count(self.rows, self.schema)

    def with_pair(self) -> tb.Schema:
        sides = (tb.PairColumn("x", self.column.kind, cuts=(0.0, 1.0) if self.column.kind == "number" else ()),)
        pair = tb.Column("x × c", "pair", of=(*sides, tb.PairColumn("c")))
        return tb.Schema([*self.schema.columns, pair], target="y")


def number(name: str, values: np.ndarray) -> Asked:
    return Asked(name, values, tb.Column("x", "number", cells=tb.Cells.fitted(values)))


COLUMNS = [
    number("line", LINE),
    number("line with an atom", np.where(RNG.random(N) < 0.3, 0.0, LINE)),
    number("counts", COUNTS),
    number("yes or no", (COUNTS > 2).astype(float)),
    Asked("category", COLOURS, tb.Column("x", "category")),
    Asked("category of two", np.where(COLOURS == "red", "red", "other"), tb.Column("x", "category")),
    Asked("bag", WORDS, tb.Column("x", "bag", levels=4)),
    Asked("text", [" ".join(words) for words in WORDS], tb.Column("x", "text", levels=4)),
    Asked("vector", np.column_stack([LINE, RNG.normal(PLACE, 2.0)]), tb.Column("x", "vector", width=2)),
]
EVERY = [
    (asked, family)
    for asked in COLUMNS
    for family in family_names()
    if family_for(family, asked.column.kind).reads(asked.column.kind)
]
SPECIAL = {  # columns that have something for these families alone
    "line with an atom": ("kernel", "bins"),
    "yes or no": ("bernoulli",),
    "category of two": ("bernoulli",),
    "text": ("multinomial", "levels"),
}
BOTH = EVERY if ALL else [each for each in EVERY if each[1] in SPECIAL.get(each[0].name, (each[1],))]
ONE_EACH = [each for i, each in enumerate(BOTH) if each[1] not in {family for _, family in BOTH[:i]}]
AS_IT_IS = {"": {}, "predictive": {"predictive": True}, "zeros": {"smoothing": tb.MaximumLikelihood()}}
BENT = {
    "weights": {"weights": {"x": 0.5}},
    "offsets": {"offsets": {"u": 0.3}},
    "correction": {"corrections": {"c": tb.Correction(0.5, ("u", "v", "w"), [[0.1, 0.0, 0.0]], cells=["u"])}},
}


def each(values: list) -> Any:
    return pytest.mark.parametrize(("asked", "family"), values, ids=lambda v: getattr(v, "name", str(v)))


@cache
def believed(asked: Asked, family: str, reading: str = "") -> tb.Model | None:
    """The model; None where the family refuses the column, with a hint, or the settings change nothing of it."""
    settings = tb.Settings(families={"x": family}, **AS_IT_IS[reading])
    try:
        model = asked.tally.model(settings)
    except tb.SettingsError:
        with pytest.raises(tb.SettingsError, match="Hint: "):
            asked.tally.model(settings)
        return None
    plain = believed(asked, family) if reading else None
    same = plain is not None and np.array_equal(model.log_joint(asked.rows), plain.log_joint(asked.rows))
    return None if same else model


def densities(model: tb.Model, values: Any) -> np.ndarray:
    """exp(log_density) of values of x, that of c summed out; 0 of those that are, too, since no class knows them."""
    many = values.num_rows if isinstance(values, pa.Table) else len(values)
    rows = {"x": values, "c": [None] * many}
    found = np.exp(model.log_density(rows))
    return np.where((model.parts(rows)["x"] == 0).all(axis=1), 0.0, found)


def totals(model: tb.Model, asked: Asked) -> list[float]:
    """What the densities of all values add up to, in each of the ways in which they may."""
    if asked.column.kind == "category":
        return [densities(model, sorted(set(asked.values))).sum()]
    if asked.column.kind == "number":
        turn, step = np.linspace(-np.pi / 2, np.pi / 2, 5_001, retstep=True)
        turn = turn[1:-1] + 1e-7  # x = 2·tan(turn) goes over the whole line
        on_line = (densities(model, 2 * np.tan(turn)) * 2 / np.cos(turn) ** 2).sum() * step
        points = densities(model, np.array(asked.column.cells.points)).sum()
        return [on_line, on_line + points, densities(model, np.arange(200.0)).sum()]
    if asked.column.kind == "vector":
        at = np.linspace(-10, 12, 67)
        x = np.array(list(itertools.product(at, at)))
        return [densities(model, x).sum() * (at[1] - at[0]) ** 2]
    often = np.array(list(itertools.product(range(5), repeat=3)))
    bags = [[w for w, k in zip(NAMES, row, strict=True) for _ in range(k)] for row in often.tolist()]
    p = densities(model, bags if asked.column.kind == "bag" else [" ".join(bag) for bag in bags])
    p[0] = np.exp(model.log_density([{"x": bags[0] if asked.column.kind == "bag" else "", "c": None}]))[0]
    by_length = np.bincount(often.sum(axis=1), weights=p)[:5]
    return [by_length.mean() if np.ptp(by_length) < 1e-9 else np.inf, p.sum(), p[(often <= 1).all(axis=1)].sum()]


@pytest.mark.parametrize("reading", AS_IT_IS)
@each(BOTH)
def test_densities_add_up_to_one_or_are_refused(asked: Asked, family: str, reading: str) -> None:
    model = believed(asked, family, reading)
    if model is None:
        return
    if not model.beliefs["x"].density:
        refuses(model)
        model = model.generative
    if not model.parts(asked.rows)["x"].any():  # no value says anything: none is known, or one that all classes have
        assert len(model.sample(20, seed=1)["x"].unique()) == 1
        return
    found = totals(model, asked)
    assert min(abs(total - 1) for total in found) < (1e-3 if asked.column.kind == "number" else 1e-6), found


def test_every_family_was_asked_and_only_readings_refuse() -> None:
    """So that neither test above passes by refusals alone."""
    answers: dict[str, set[bool]] = {}
    for asked, family in BOTH:
        if (model := believed(asked, family)) is not None:
            answers.setdefault(family, set()).add(model.beliefs["x"].density)
    without = {family for family in family_names() if True not in answers.get(family, ())}
    assert without == {"blend", "complement", "interaction"}


def refuses(model: tb.Model) -> None:
    """All three questions, and with a hint that works."""
    rows = {"x": [], "c": [], "y": []}
    for asked in (lambda: model.sample(3), lambda: model.log_density(rows), lambda: model.log_likelihood(rows)):
        with pytest.raises(tb.SettingsError, match=r"Hint: model.generative"):
            asked()


def as_promised(model: tb.Model, table: pa.Table) -> None:
    """The classes of drawn rows come as often as the model says, in tenths of rows by what it says."""
    p, label = model.predict_proba(table), np.array(table["y"].to_pylist())
    for i, c in enumerate(model.classes):
        for part in np.array_split(np.argsort(p[:, i], kind="stable"), 10):
            hit, said = np.count_nonzero(label[part] == c), p[part, i]
            assert abs(hit - said.sum()) <= 4 * math.sqrt(max(float((said * (1 - said)).sum()), 1.0)), (c, hit)


def counted_again(model: tb.Model, table: pa.Table) -> None:
    """Counting drawn rows gives the answers back within four standard errors, which folds of the rows tell."""
    settings = model.settings_for_drawn
    folds = [tb.count(table.take(np.arange(k, len(table), FOLDS)), model.schema) for k in range(FOLDS)]
    asked = table.slice(0, 8)
    each = np.stack([fold.model(settings).predict_proba(asked) for fold in folds])
    error = each.std(axis=0, ddof=1) / math.sqrt(FOLDS)
    again = sum(folds[1:], folds[0]).model(settings).predict_proba(asked)
    off = np.abs(again - model.predict_proba(asked))
    assert (off <= 4 * error + 1e-12).all(), (off / np.maximum(error, 1e-12)).max()


def drawn_back(model: tb.Model, many: int) -> pa.Table:
    """Drawn rows, after they were counted and predicted."""
    table = model.sample(many, seed=3)
    assert tb.count(table, model.schema).rows == many
    assert len(model.predict(table)) == many
    assert np.isfinite(model.log_density(table)).all()
    return table


@pytest.mark.parametrize("reading", AS_IT_IS)
@each(BOTH)
def test_what_is_drawn_and_counted_answers_as_the_model_does(asked: Asked, family: str, reading: str) -> None:
    model = believed(asked, family, reading)
    if model is None:
        return
    model = model.generative
    table = drawn_back(model, MANY)
    assert set(table.column_names) == {"x", "c", "y"}
    as_promised(model, table)
    if reading == "" and not isinstance(model.settings_for_drawn.families["x"], Kernel):  # curves are asked below
        counted_again(model, table)


# ---- curves: each cell has one density, so that all there is to know of a model is how likely each of its cells is


def curve(name: str, family: str | Family) -> tb.Model:
    return next(a for a in COLUMNS if a.name == name).tally.model(tb.Settings(families={"x": family})).generative


CURVES = [
    (name, family)
    for name, families in {
        "line": ("kernel", Kernel(0.5), Kernel("silverman"), "bins", Bins("frequency", 10), Bins("width", 8)),
        "line with an atom": ("auto", "blend", Kernel(0.5), "bins", Bins("frequency", 10)),
        "counts": ("kernel", Kernel(0.7), "bins", Bins("width", 5)),
    }.items()
    for family in families
]
if not ALL:
    CURVES = [each for each in CURVES if str(each[1]) not in {str(Kernel("silverman")), str(Bins("width", 8))}]
LONG_RUNS = (1e3, 1e6, 1e8) if ALL else (1e3, 1e6)
curves = pytest.mark.parametrize(("name", "family"), CURVES, ids=str)
SMOOTH = [each for each in CURVES if isinstance(curve(*each).settings_for_drawn.families["x"], Kernel)]


def all_cells(model: tb.Model) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Every cell but the outermost: its ends, a value in it that is no point, and P(cell, class)."""
    cells = model.schema["x"].cells
    assert cells is not None
    low, high = cells.edges(np.concatenate([np.arange(-REACH, REACH), cells.point_codes()]))
    x = low + 0.382 * (high - low)
    rows = {"x": x, "c": [None] * len(x)}
    width = np.where(low == high, 1.0, high - low)
    return low, high, x, (np.exp(model.log_density(rows)) * width)[:, None] * model.predict_proba(rows)


def in_the_long_run(model: tb.Model, rows: float, families: Any) -> tb.Model:
    """The model of so many drawn rows, were they exactly as often as they are likely."""
    _, _, x, p = all_cells(model)
    cell, y = np.nonzero(rows * p >= 0.5)
    schema = tb.Schema([model.schema["x"]], target="y", weights="w")
    counted = {"x": x[cell], "y": np.array(model.classes)[y], "w": rows * p[cell, y]}
    return tb.count(counted, schema).model(tb.Settings(families={"x": families["x"]}))


@curves
def test_as_many_numbers_are_drawn_of_each_cell_as_its_density_says(name: str, family: str | Family) -> None:
    model = curve(name, family)
    low, high, _, p = all_cells(model)
    assert p.sum() == pytest.approx(1.0, abs=1e-9)
    table = model.sample(20_000 if not ALL else 400_000, seed=8)
    label = np.array([model.classes.index(y) for y in table["y"].to_pylist()])
    value, point, cells = np.array(table["x"]), low == high, model.schema["x"].cells
    code = cells.codes(value)
    at = np.where(cells.is_point(code), 2 * REACH + np.searchsorted(low[2 * REACH :], value), code + REACH)
    for y in range(len(model.classes)):
        n, likely = np.bincount(at[label == y], minlength=len(low)), p[:, y] / p[:, y].sum()
        order = np.lexsort((point, low))  # from left to right, forty stretches and those points that are common
        alone = point & (likely > 0.02)
        stretch = np.where(alone, 40 + np.arange(len(low)), 0)
        stretch[order] = np.where(alone[order], stretch[order], (40 * np.cumsum(likely[order])).astype(int).clip(0, 39))
        wanted = np.bincount(stretch, weights=likely) * n.sum()
        found, there = np.bincount(stretch, weights=n), wanted >= 5
        rest = [(found[~there].sum() - wanted[~there].sum()) ** 2 / max(wanted[~there].sum(), 5.0)]
        assert (np.abs(n - likely * n.sum())[alone] <= 4 * np.sqrt(likely * n.sum())[alone]).all()
        chi = sum([*((found[there] - wanted[there]) ** 2 / wanted[there]), *rest])
        assert chi <= there.sum() + 4 * math.sqrt(2 * there.sum()), (chi, there.sum())
    value, at = value[~point[at]], at[~point[at]]
    part = np.sort((value - low[at]) / (high[at] - low[at]))  # how far into its cell a value is
    if len(part) > 100:
        assert np.abs(part - (np.arange(len(part)) + 0.5) / len(part)).max() < 2 / math.sqrt(len(part))


@curves
def test_the_more_rows_are_drawn_and_counted_the_nearer_they_come_to_the_model(name: str, family: Any) -> None:
    """Without chance. Bins are there but for what Laplace adds."""
    model = curve(name, family)
    asked = {"x": next(a for a in COLUMNS if a.name == name).values, "c": [None] * N}
    again = [in_the_long_run(model, n, model.settings_for_drawn.families) for n in LONG_RUNS]
    off = [np.abs(each.predict_proba(asked) - model.predict_proba(asked)).max() for each in again]
    smooth = (name, family) in SMOOTH
    assert off[1] < (0.05 if smooth else 0.002) and (not ALL or off[2] < (0.01 if smooth else 2e-5)), off
    assert all(more < fewer for fewer, more in itertools.pairwise(off))


@pytest.mark.parametrize("rows", [1e4, 1e6, 1e8] if ALL else [1e5])
def test_a_kernel_bends_what_it_has_drawn_by_no_more_than_its_bandwidth(rows: float) -> None:
    """Smoothing p by weights k (k₋ⱼ = kⱼ): |Σ kⱼ·(pᵢ₊ⱼ − pᵢ)| ≤ ½ Σ kⱼ·j² · max |pᵢ₊₁ − 2pᵢ + pᵢ₋₁|, Σ kⱼ·j² ~ h²."""
    model = curve("line", "kernel")
    again = in_the_long_run(model, rows, model.settings_for_drawn.families)
    p, q = (all_cells(m)[3][REACH - 200 : REACH + 200] / np.exp(m.log_prior) for m in (model, again))
    step = 2.0 ** model.schema["x"].cells.exponent
    for y, h in enumerate(again.beliefs["x"].bandwidth):
        bend = np.abs(np.diff(p[:, y], 2)).max()
        bound = ((h / step) ** 2 + 1 / 12) / 2 * bend
        few = 4 / (rows * math.exp(model.log_prior[y]))  # one row in n is of the common curve, and those left out
        off = np.abs(q - p)[:, y]
        assert off.max() <= bound + few + 100 * few * p[:, y].max()
        assert h < 0.3


@pytest.mark.parametrize("seed", range(12 if ALL else 1))
@pytest.mark.parametrize(("name", "family"), SMOOTH, ids=str)
def test_curves_of_drawn_rows_are_the_model_within_four_errors_of_theirs(name: str, family: Any, seed: int) -> None:
    """A kernel errs by its bandwidth as much as by chance: so it is one estimate's error that it is held to.

    Smoothed twice by the same bandwidth, it is as far off as it must be, and that within a fourth of the error.
    """
    model = curve(name, family)
    asked = {"x": np.quantile(next(a for a in COLUMNS if a.name == name).values, np.linspace(0.05, 0.95, 8))}
    asked["c"] = [None] * 8
    twice = {"x": Kernel(0.4)}
    tallies = [tb.count(model.sample(2_000, seed=(seed, i)), model.schema) for i in range(16)]
    for families, limit, errors in (
        (model.settings_for_drawn.families, model, 4.0),
        (twice, in_the_long_run(model, 1e9, twice), 4.0 / math.sqrt(16)),
    ):
        each = np.stack([t.model(tb.Settings(families=families)).predict_proba(asked) for t in tallies])
        off = np.abs(each.mean(axis=0) - limit.predict_proba(asked))
        error = each.std(axis=0, ddof=1)
        assert (off <= errors * error).all(), (off / error).max()


@pytest.mark.parametrize("family", [Bins("frequency", 10), Bins("width", 8), Kernel(0.5)], ids=str)
def test_settings_that_choose_anew_or_smooth_twice_do_not_come_back(family: Family) -> None:
    """Why `settings_for_drawn` are others: these would be off however many rows were drawn."""
    model = curve("line", family)
    asked = {"x": LINE, "c": [None] * N}
    off = [
        in_the_long_run(model, n, {"x": family}).predict_proba(asked) - model.predict_proba(asked) for n in (1e6, 1e8)
    ]
    assert min(np.abs(each).max() for each in off) > 0.05


def test_settings_for_drawn_name_what_was_chosen() -> None:
    model = curve("line with an atom", Auto())
    assert isinstance(model.settings.families["x"], Auto) and model.settings_for_drawn.families["x"] == Kernel()
    settings = curve("line", "student").settings_for_drawn
    assert (
        settings.families["x"] == Kernel() and curve("counts", "student").settings_for_drawn.families["x"] != Kernel()
    )
    with pytest.raises(tb.SettingsError, match=r"Hint: model.generative .*generative.settings_for_drawn"):
        COLUMNS[0].tally.model(tb.Settings(families={"x": "blend"})).settings_for_drawn  # noqa: B018


@pytest.mark.parametrize("reading", [*BENT, "pair"])
@each(BOTH if ALL else ONE_EACH)
def test_what_bends_answers_is_no_distribution_and_names_the_one_beneath(
    asked: Asked, family: str, reading: str
) -> None:
    plain = believed(asked, family)
    if plain is None or (reading == "pair" and asked.column.kind not in ("number", "category")):
        return
    tally = tb.count(asked.rows, asked.with_pair()) if reading == "pair" else asked.tally
    model = tally.model(tb.Settings(families={"x": family}, **BENT.get(reading, {})))
    refuses(model)
    beneath = model.generative
    assert drawn_back(beneath, 20).column_names == ["x", "c", "y"]
    if reading != "pair":
        assert beneath.tally == model.tally
    if plain.beliefs["x"].density:
        assert np.array_equal(beneath.predict_proba(asked.rows), plain.predict_proba(asked.rows))


@pytest.mark.parametrize(
    "smoothing",
    [tb.Laplace(1.0), tb.JelinekMercer(0.2), tb.AbsoluteDiscount(0.5), tb.BackOff(2.0), tb.Dirichlet({"red": 3}, 0.5)],
    ids=lambda s: type(s).__name__,
)
def test_the_probabilities_of_a_category_add_up_to_one_under_every_smoothing(smoothing) -> None:
    asked = next(a for a in COLUMNS if a.name == "category")
    for unseen in ("no evidence", "reserve"):
        model = asked.tally.model(tb.Settings(smoothing={"x": smoothing}, unseen=unseen))
        values = ["red", "green", "blue", *(["never seen before"] if unseen == "reserve" else [])]
        assert densities(model, values).sum() == pytest.approx(1.0)
        drawn_back(model, 200)


def test_a_zero_made_larger_is_drawn_but_has_no_density() -> None:
    """Epsilon renormalises nothing, sampling does; what adds up to more than one is refused, beneath are the zeros."""
    rows = {"x": ["a", "b", "a", "a"], "c": ["u", "u", "v", "v"], "y": ["p", "p", "q", "q"]}
    schema = tb.Schema([tb.Column("x", "category"), tb.Column("c", "category")], target="y")
    model = tb.count(rows, schema).model(tb.Settings(smoothing=tb.Epsilon(0.2)))
    drawn_back(model.generative, 50)
    assert np.isneginf(model.generative.log_density({"x": ["b"], "c": ["v"]}))[0]
    share = np.mean(
        np.array(model.sample(20_000, seed=1).filter(pa.compute.equal(pa.compute.field("y"), "q"))["x"]) == "b"
    )
    assert abs(share - 0.2 / 1.2) < 4 * math.sqrt(0.14 / 10_000)
    for asked in (model.log_density, model.log_likelihood):
        with pytest.raises(tb.SettingsError, match=r"'x' do not add up to one[\s\S]*Hint: model.generative.*log_"):
            asked(rows)


# ---- samples are data: what the schema reads is what was drawn


def test_how_many_words_there_are_tells_nothing_as_the_model_believes() -> None:
    """One class has long texts; predict_proba says nothing of that, so samples do not either."""
    texts = [["ball"] * 9 if c == "u" else ["ball", "tax"] for c in Y]
    model = tb.count({"x": texts, "y": Y}, tb.Schema([tb.Column("x", "bag")], target="y")).model()
    table = model.sample(20_000, seed=2)
    length, label = np.array([len(w) for w in table["x"].to_pylist()]), np.array(table["y"].to_pylist())
    means = [length[label == c].mean() for c in model.classes]
    assert np.ptp(means) < 4 * math.sqrt(2 * length.var() / 4_000)
    as_promised(model, table)


TOKENISERS = {
    "words": tb.Tokeniser(),
    "stems": tb.Tokeniser(stem="english", stop="english"),
    "accents": tb.Tokeniser(accents=False, lower=False),
    "letters": tb.Tokeniser(pattern=r"\w"),
    "pairs": tb.Tokeniser(ngrams=(1, 2)),
    "pieces": tb.Tokeniser(chars=(2, 3)),
    "hashed": tb.Tokeniser(hash_bits=10),
}


@pytest.mark.parametrize("name", TOKENISERS)
@pytest.mark.parametrize("family", ["multinomial", "bernoulli", "levels"])
def test_texts_are_drawn_that_are_cut_into_what_was_drawn(name: str, family: str) -> None:
    texts = [
        "They agreed on a prejudiced Crème brûlée",
        "we were doing the accelerators",
        "",
        "Agree to naïve 日本 food",
    ]
    schema = tb.Schema([tb.Column("x", "text", text=TOKENISERS[name], levels=2)], target="y")
    model = tb.count({"x": texts * 5, "y": ["p", "q", "p", "q"] * 5}, schema).model(
        tb.Settings(families={"x": family}, unseen="reserve" if family == "multinomial" else "no evidence")
    )
    if name in ("pairs", "pieces", "hashed"):
        with pytest.raises(tb.SettingsError, match=r"no text can be made[\s\S]*Hint: .*'bag'"):
            model.sample(50, seed=1)
        return
    table = model.sample(400, seed=1)
    seen = tb.count(table, schema).columns["x"].sheets["words"].slot_names
    assert len({*seen} - {*model.beliefs["x"].words}) == (family == "multinomial")  # the word for all never seen
    as_promised(model, table)


def test_dates_are_drawn_as_dates() -> None:
    rng = np.random.default_rng(3)
    late = rng.random(600) < 0.4
    days = np.datetime64("2024-01-01") + rng.integers(0, 300, 600)
    when = days.astype("M8[s]") + np.where(late, 20, 9) * 3600 + rng.integers(0, 3600, 600)
    rows = {"when": when, "y": np.where(late, "late", "early")}
    whole = tb.count(rows, tb.Schema([tb.Column("when", "date")], target="y")).model()
    with pytest.raises(
        tb.SettingsError, match=r"'when.days' and 'when.\w+' read one column of the data.*\s+Hint: model.gen"
    ):
        whole.sample(5)
    beneath = whole.generative
    assert list(beneath.beliefs) == ["when.days"]
    assert pa.types.is_timestamp(drawn_back(beneath, 300)["when"].type)

    parts = [tb.Column(p, "category", source="when", part=p) for p in ("weekday", "month", "hour")]
    model = tb.count(rows, tb.Schema(parts, target="y")).model()
    table = drawn_back(model, 4_000)
    assert table.column_names == ["when", "y"] and {t.year for t in table["when"].to_pylist()} == {2000}
    as_promised(model, table)
    counted_again(model, table)
    for name in model.beliefs:
        assert {*tb.count(table, model.schema).model().table(name).rows} <= {*model.table(name).rows}


def test_columns_of_other_names_weights_and_gaps_come_back() -> None:
    rng = np.random.default_rng(4)
    y = rng.choice(["p", "q"], 500)
    job = np.where(rng.random(500) < np.where(y == "p", 0.6, 0.1), None, rng.choice(["a", "b"], 500))
    rows = {"pay": rng.normal(0, 1, 500), "job": job, "w": rng.integers(1, 4, 500), "y": y}
    gap = tb.Column("job (missing)", "gap", of=(tb.PairColumn("job"),))
    for columns in ([tb.Column("job", "category"), gap], [gap]):
        schema = tb.Schema([tb.Column("salary", "number", source="pay"), *columns], target="y", weights="w")
        model = tb.count(rows, schema).model(tb.Settings(families={"salary": "gaussian"}))
        table = drawn_back(model, 4_000)
        assert set(table.column_names) == {"pay", "job", "w", "y"}
        as_promised(model, table)
        counted_again(model, table)
    twice = tb.Schema(
        [tb.Column("n", "number", source="pay"), tb.Column("n again", "number", source="pay")], target="y"
    )
    with pytest.raises(tb.SettingsError, match="'n' and 'n again' read one column"):
        tb.count(rows, twice).model().sample(3)


def test_a_vector_keeps_its_width_and_bins_without_a_value_draw_none() -> None:
    rows = {"x": [[1.0, 2.0, np.nan], [2.0, 1.0, np.nan], [1.5, 1.0, np.nan], [0.5, 3.0, np.nan]], "y": ["p", "q"] * 2}
    model = tb.count(rows, tb.Schema([tb.Column("x", "vector", width=3)], target="y")).model()
    assert drawn_back(model, 30)["x"].type.list_size == 3
    narrow = next(a for a in COLUMNS if a.name == "line").tally.model(tb.Settings(families={"x": Bins("width", 5_000)}))
    drawn_back(narrow.generative, 300)


def test_levels_up_to_a_top_are_drawn_as_levels() -> None:
    model = next(a for a in COLUMNS if a.name == "counts").tally.model(tb.Settings(families={"x": Levels(top=3)}))
    assert {*drawn_back(model, 500)["x"].to_pylist()} == {0.0, 1.0, 2.0, 3.0}
    assert densities(model, np.arange(4.0)).sum() == pytest.approx(1.0)


def test_a_model_without_counts_that_is_no_distribution_says_where_to_ask() -> None:
    model = believed(next(a for a in COLUMNS if a.name == "bag"), "complement")
    assert model is not None
    with pytest.raises(tb.SettingsError, match=r"Hint: this model has no counts .*exported from"):
        replace(model, tally=None).sample(3)


def test_the_likelihood_is_that_of_the_joint() -> None:
    asked = next(a for a in COLUMNS if a.name == "line")
    model = believed(asked, "gaussian")
    assert model is not None
    rows, labels = asked.rows, [model.classes.index(c) for c in Y]
    joint = model.log_joint(rows)[np.arange(N), labels]  # these families leave nothing out that classes share
    assert model.log_likelihood(rows) == pytest.approx(joint.sum())
    alone = {k: v for k, v in rows.items() if k != "y"}
    assert model.log_likelihood(alone) == pytest.approx(model.log_density(rows).sum())
    assert model.log_likelihood(alone, y=Y) == pytest.approx(model.log_likelihood(rows))
    half = {**rows, "y": [c if i < 100 else None for i, c in enumerate(Y)]}
    assert model.log_likelihood(half) == pytest.approx(joint[:100].sum() + model.log_density(rows)[100:].sum())
    assert model.log_likelihood({**rows, "y": ["another"] * N}) == -math.inf
    said = model.predict_log_proba(rows)[np.arange(N), labels]
    assert model.log_likelihood(rows) - model.log_likelihood(alone) == pytest.approx(said.sum())


def test_a_default_fit_with_a_pair_does_not_pass_for_a_distribution() -> None:
    rng = np.random.default_rng(5)
    rota, day = rng.choice(["a", "b"], 800), rng.choice(["even", "odd"], 800)
    late = np.where(rng.random(800) < 0.9, (rota == "a") == (day == "even"), rng.random(800) < 0.5)
    model = tb.fit({"rota": rota, "day": day, "late": late}, target="late")
    assert any(model.schema[c].of is not None for c in model.beliefs)
    with pytest.raises(tb.SettingsError, match="no probability distribution"):
        model.sample(10)
    assert drawn_back(model.generative, 10).column_names == ["rota", "day", "late"]


@pytest.mark.parametrize("of", ["model", "joint table"])
def test_fewer_than_no_rows_are_refused(of: str) -> None:
    rows = {"Sky": ["sunny", "rainy", "sunny"], "Play": ["yes", "no", "yes"]}
    drawn = tb.textbook(rows, "Play") if of == "model" else tb.JointDistribution.of(rows)
    assert drawn.sample(0).num_rows == 0
    with pytest.raises(tb.SettingsError, match=r"sample\(-1\)"):
        drawn.sample(-1)
