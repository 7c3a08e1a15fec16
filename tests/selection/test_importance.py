"""What a column is worth: against scoring without it by hand, on noise, copies and pairs, and told honestly."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from strategies import ALL

import tallybayes as tb
from tallybayes.data.sources import open_source
from tallybayes.model import posterior
from tallybayes.selection.measure import left_out


def table(rng: np.random.Generator, n: int) -> dict[str, np.ndarray]:
    y = rng.integers(0, 2, n)
    return {
        "signal": rng.normal(1.5 * y, 1, n).round(2),
        "colour": np.array(list("rgb"))[np.minimum(rng.poisson(0.5 + y, n), 2)],
        "noise": rng.normal(0, 1, n).round(2),
        "noise 2": np.array(list("abcd"))[rng.integers(0, 4, n)],
        "y": np.array(["no", "yes"])[y],
    }


@pytest.fixture(scope="module")
def rows() -> dict[str, np.ndarray]:
    return table(np.random.default_rng(1), 400)


@pytest.fixture(scope="module")
def model(rows) -> tb.Model:
    return tb.count(rows, tb.infer(rows, "y")).model()


def by_hand(model: tb.Model, rows: dict, gone: set[str]) -> tuple[np.ndarray, np.ndarray]:
    """Loss and hit of each row, the columns in `gone` never asked."""
    weights = {n: model.settings.weights.get(n, 1.0) for n in model.beliefs} | dict.fromkeys(gone, 0.0)
    joint = model.start + sum(w * model.parts(rows)[n] for n, w in weights.items())
    log_p = posterior.log_posterior(posterior.calibrated(model.settings, joint), model.start)
    label = np.array([model.class_number(v) for v in rows["y"]])
    return -log_p[np.arange(len(label)), label], (log_p.argmax(axis=1) == label).astype(float)


def test_losses_are_those_of_the_model_without_the_column(model) -> None:
    fresh = table(np.random.default_rng(2), 300)
    found = model.importance(fresh)
    assert found.trained_on == "no sign" and found.rows == 300 and "given rows" in found.said_of
    loss, hit = by_hand(model, fresh, set())
    assert found.log_loss == pytest.approx(loss.mean()) and found.accuracy == pytest.approx(hit.mean())
    for c in found:
        other, other_hit = by_hand(model, fresh, {c.column})
        for (mean, low, high), d in ((c.log_loss, other - loss), (c.accuracy, hit - other_hit)):
            reach = scipy.stats.t.ppf(0.975, len(d) - 1) * d.std(ddof=1) / np.sqrt(len(d))
            assert (mean, low, high) == pytest.approx((d.mean(), d.mean() - reach, d.mean() + reach), abs=1e-9)
    assert [c.column for c in found][:2] == ["signal", "colour"]
    assert {c.column: c.remark == "not beyond chance" for c in found}["noise 2"]


def test_weights_count_as_repeated_rows_do_but_for_the_interval(model) -> None:
    fresh = table(np.random.default_rng(3), 60)
    times = np.arange(60) % 3 + 1
    weighed = model.importance(fresh, weights=times.astype(float))
    again = model.importance({n: np.repeat(v, times) for n, v in fresh.items()})
    for c in weighed:
        assert c.log_loss[0] == pytest.approx(again[c.column].log_loss[0])
        assert c.log_loss[2] - c.log_loss[1] > again[c.column].log_loss[2] - again[c.column].log_loss[1]


def test_counted_rows_are_scored_by_the_other_folds(model, rows) -> None:
    found = model.importance(rows)
    assert found.trained_on == "yes" and "tenth" in found.said_of
    held = tb.cross_validate(rows, model.schema, settings=model.settings)
    assert found.log_loss == pytest.approx(held["log_loss"]) and found.accuracy == pytest.approx(held["accuracy"])


def test_what_was_chosen_by_rows_is_chosen_anew_without_those_that_are_scored(monkeypatch) -> None:
    rng = np.random.default_rng(6)
    rows = table(rng, 240) | {"a": rng.choice(list("pq"), 240), "b": rng.choice(list("rs"), 240)}
    odd = (rows["a"] == "p") == (rows["b"] == "r")
    rows["y"] = np.where(odd ^ (rng.random(240) < 0.1), "yes", "no")
    fitted = tb.fit(rows, "y", progress=False)
    assert "a × b" in fitted.beliefs

    def by_thirds(labels: np.ndarray) -> dict[int, tb.Model]:
        source = open_source({**rows, "y": labels}, target="y").repeatable()
        schema = fitted.tally.schema
        return left_out._models_by_fold(fitted, source, schema, lambda read, start: (read.rows + start) % 3)

    first = np.arange(240) % 3 == 0
    turned = np.where(first, np.where(rows["y"] == "yes", "no", "yes"), rows["y"])
    known, other = by_thirds(rows["y"]), by_thirds(turned)
    assert known[0].tally.digest == other[0].tally.digest and known[0].settings == other[0].settings
    assert known[1].settings != other[1].settings and known[0].settings != fitted.settings
    assert known[0].tally.rows == 160 and "a × b" in known[0].beliefs and "a × b" not in other[1].beliefs
    monkeypatch.setattr(left_out, "_OF_FEW", ((500, 3),))
    found = fitted.importance(rows)
    assert "a model fitted without its third" in found.said_of and found["a × b"].log_loss[0] > 0.2


def test_bits_need_no_rows_and_are_those_of_the_report(model, rows) -> None:
    by_counts, by_rows = model.importance(), model.importance(rows)
    facts = {c["name"]: c for c in tb.report_facts(model, rows)["columns"]}
    for c in by_counts:
        assert c.log_loss is None and c.remark == ""
        assert c.bits == pytest.approx(by_rows[c.column].bits, rel=0.05, abs=1e-4)  # numbers by their cells
        assert facts[c.column]["bits"] == by_rows[c.column].bits
        assert facts[c.column]["log_loss"] == by_rows[c.column].log_loss[0]
    assert by_counts["colour"].bits == pytest.approx(by_rows["colour"].bits, rel=1e-12)
    assert "bits alone" in str(by_counts) and "log loss" not in str(by_counts).splitlines()[1]


def test_copies_are_told(rows) -> None:
    twice = {**rows, "farbe": np.array([{"r": "rot", "g": "gruen", "b": "blau"}[v] for v in rows["colour"]])}
    found = tb.count(twice, tb.infer(twice, "y")).model().importance(twice)
    assert found["farbe"].copies == ("colour",) and found["colour"].copies == ("farbe",)
    assert "same values as farbe, which remains" in found["colour"].remark
    assert found["signal"].copies == ()
    fine = {**rows, "a": np.linspace(0, 1, 400), "b": np.linspace(0, 1, 400) ** 2, "c": np.linspace(0, 1, 400)}
    alone = tb.count(fine, tb.infer(fine, "y")).model().importance(fine)
    assert [alone[name].copies for name in "abc"] == [("c",), (), ("a",)]


def test_a_pair_goes_with_its_columns() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 2, 600), rng.integers(0, 2, 600)
    y = (a ^ b) ^ (rng.random(600) < 0.1)
    rows = {"a": a.astype(str), "b": b.astype(str), "y": np.where(y, "odd", "even")}
    model = tb.fit(rows, "y", pairs=[("a", "b")], calibrate=False)
    found = model.importance(rows)
    assert found["a"].log_loss[0] > 0.2 and found["a × b"].log_loss[0] > 0.2
    assert found["a"].bits < 0.01 < found["a × b"].bits


def test_unlabelled_rows_have_bits_alone_and_no_rows_none(model, rows) -> None:
    found = model.importance({n: v for n, v in rows.items() if n != "y"})
    assert found.log_loss is None and "without a label" in found.said_of and found["signal"].bits > 0.1
    with pytest.raises(tb.DataError, match="no rows"):
        model.importance({n: v[:0] for n, v in rows.items()})
    with pytest.raises(tb.SettingsError, match="without counts"):
        tb.Model.written({"u": 0.5, "v": 0.5}, {"c": {"u": {"x": 0.9}, "v": {"x": 0.1}}}).importance()


def test_impossible_values_and_one_row(model) -> None:
    strict = tb.count({"c": ["x", "x", "z"], "d": ["p", "q", "p"], "y": ["u", "u", "v"]}, tb.Schema(
        [tb.Column("c", "category"), tb.Column("d", "category")], target="y"
    )).model(tb.Settings(smoothing=tb.MaximumLikelihood()))  # fmt: skip
    found = strict.importance({"c": ["x", "z"], "d": ["q", "q"], "y": ["u", "v"]})
    assert np.isfinite([v for c in found for v in c.log_loss]).all()
    one = strict.importance({"c": ["x"], "d": ["p"], "y": ["u"]})
    assert np.isnan(one["c"].log_loss[1]) and one["c"].to_dict()["log_loss_low"] is None


def noise_found(seed: int, times: int, corrections: bool) -> float:
    """How often the interval of a column of noise lies above 0, on rows that the model was counted from."""
    rng, up = np.random.default_rng(seed), []
    for _ in range(times):
        rows = table(rng, 300)
        if corrections:
            rows["copy"] = rows["colour"].copy()  # dependent columns ask for corrections
            rows["copy"][rng.random(300) < 0.2] = "r"
        model = tb.fit(rows, "y") if corrections else tb.count(rows, tb.infer(rows, "y")).model()
        up += [c.log_loss[1] > 0 for c in model.importance(rows) if "noise" in c.column]
    return float(np.mean(up))


@pytest.mark.skipif(not ALL, reason="minutes")
@pytest.mark.parametrize("corrections", [False, True])
def test_noise_is_worth_nothing_long(corrections: bool) -> None:
    assert noise_found(5, 100, corrections) < 0.05


def test_noise_is_worth_nothing() -> None:
    assert noise_found(4, 6, False) < 0.2
