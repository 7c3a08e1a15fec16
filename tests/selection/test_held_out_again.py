"""What was held out together for a fit is held out together by all that judge it or fit it anew."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tallybayes as tb
from tallybayes.data.sources import open_source
from tallybayes.families.settings_json import settings_from_json, settings_to_json
from tallybayes.selection.measure import cross_validate, fit_again

PATIENTS = 40


def visits(rng: np.random.Generator, patients: int = PATIENTS, first: int = 0) -> dict[str, Any]:
    """Six visits each: habits that tell the patient and nothing of the illness, and a fever that tells of it."""
    ill = rng.integers(0, 2, patients).repeat(6)
    habits = rng.normal(size=(patients, 3)).repeat(6, axis=0)
    out: dict[str, Any] = {f"habit {i}": (habits[:, i] + rng.normal(0, 0.05, len(ill))).round(3) for i in range(3)}
    out["fever"] = (ill + rng.normal(0, 0.8, len(ill))).round(2)
    out["patient"] = np.arange(first, first + patients).repeat(6).astype(str)
    out["ill"] = np.array(["no", "yes"])[ill]
    return out


@pytest.fixture(scope="module")
def rows() -> dict[str, Any]:
    return visits(np.random.default_rng(3))


@pytest.fixture(scope="module")
def model(rows: dict[str, Any]) -> tb.Model:
    return tb.fit(rows, "ill", groups="patient")


def noted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[set[str], dict[str, Any]]]:
    """Every fit from now on: whose visits it saw, and what it was asked for."""
    made = []

    def noting(*data: Any, **how: Any) -> tb.Model:
        found = tb.fit(*data, **how)
        made.append(
            ({p for batch in open_source(data[0]).batches() for p in np.asarray(batch["patient"]).tolist()}, how)
        )
        return found

    monkeypatch.setattr(fit_again, "fit", noting)
    return made


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({}, {}),
        ({"groups": "patient"}, {"groups": "patient"}),
        ({"order": True, "effort": "thorough"}, {"order": True, "effort": "thorough"}),
        ({"effort": "quick"}, {"effort": "quick"}),
        ({"order": False, "effort": "default"}, {}),
    ],
    ids=str,
)
def test_a_model_knows_how_its_fit_held_rows_out(rows: dict[str, Any], given: dict[str, Any], kept: dict) -> None:
    settings = tb.fit(rows, "ill", kinds={"patient": "ignore"}, **given).settings
    assert settings.calibrated is not None and settings.calibrated.asked == kept
    assert settings_from_json(settings_to_json(settings)) == settings


def test_weights_are_fitted_anew_as_they_were_fitted(rows: dict[str, Any], model: tb.Model) -> None:
    again = model.recalibrate(rows).settings
    assert again.calibrated is not None and again.calibrated.asked == {"groups": "patient"}
    other = model.recalibrate(rows, order=False, effort="quick").settings
    assert other.calibrated is not None and other.calibrated.asked == {"effort": "quick"}
    without = {name: values for name, values in rows.items() if name != "patient"}
    with pytest.raises(tb.DataError, match="no column 'patient', which holds the groups"):
        model.recalibrate(without)


def test_a_column_that_tells_only_who_it_is_is_worth_nothing(rows: dict[str, Any], model: tb.Model) -> None:
    """With visits of one patient on both sides habits would look as if they told the illness."""
    found, blind = model.importance(rows), tb.fit(rows, "ill", kinds={"patient": "ignore"})
    with pytest.warns(tb.TallybayesWarning, match="rows that follow each other are alike.*groups="):
        parted = blind.importance(rows)
    assert "groups of patient whole" in found.said_of
    fresh = visits(np.random.default_rng(4), 300, PATIENTS)
    honest = tb.evaluate(model, fresh)["log_loss"]
    assert abs(found.log_loss - honest) < 0.12
    assert parted.log_loss < honest - 0.15


def test_sets_hold_groups_out_whole(rows: dict[str, Any], model: tb.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    made = noted(monkeypatch)
    tb.prediction_sets(model, rows, folds=4)
    assert len(made) == 4 and all(how["groups"] == "patient" for _, how in made)
    assert sum(PATIENTS - len(patients) for patients, _ in made) == PATIENTS  # none on both sides


def test_sets_of_few_groups_say_how_many_folds_there_were() -> None:
    rows = visits(np.random.default_rng(5), 5)
    model = tb.fit(rows, "ill", groups="patient")
    if model.settings.calibrated is not None:
        assert "one of 5 folds" in tb.prediction_sets(model, rows).how


@pytest.mark.parametrize("how", [{"groups": "patient"}, {"order": "day"}], ids=str)
@pytest.mark.parametrize("given", [True, False], ids=["schema", "inferred"])
def test_cross_validation_fits_each_part_as_its_folds_are_dealt(
    rows: dict[str, Any], how: dict[str, Any], given: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the choices of every part would be made with visits of one patient on both sides."""
    data = {**rows, "day": np.arange(len(rows["ill"])) // 4}
    data = {name: values for name, values in data.items() if name != "patient" or "groups" in how}
    asked: list[dict[str, Any]] = []
    monkeypatch.setattr(cross_validate, "fit", lambda *data, **kind: asked.append(kind) or tb.fit(*data, **kind))
    schema = (
        {"schema": tb.infer(data, "ill", kinds=dict.fromkeys({"patient"} & {*data}, "ignore"))}
        if given
        else {"target": "ill"}
    )
    tb.cross_validate(data, **schema, **how, folds=3)
    assert asked and all({name: kind.get(name) for name in how} == how for kind in asked)


def test_parts_of_one_group_are_fitted_row_by_row(rows: dict[str, Any]) -> None:
    halves = {**rows, "site": ["a", "b"] * (len(rows["ill"]) // 2)}
    found = tb.cross_validate(halves, "ill", groups="site", folds=5, kinds={"site": "ignore", "patient": "ignore"})
    assert found["accuracy"] > 0.5


def test_a_column_of_groups_may_be_said_to_be_no_evidence(rows: dict[str, Any]) -> None:
    schema = tb.fit(rows, "ill", groups="patient", kinds={"patient": "ignore"}).schema
    assert schema["patient"].kind == "ignore"
    with pytest.raises(tb.SchemaError, match="no column 'nurse' to set"):
        tb.fit(rows, "ill", groups="patient", kinds={"nurse": "ignore"})


@pytest.mark.parametrize("measured", ["cross_validate", "compare", "sets"])
def test_folds_that_part_neighbours_who_are_alike_are_told_of(rows: dict[str, Any], measured: str) -> None:
    free = {name: values for name, values in rows.items() if name != "patient"}
    shuffled = np.random.default_rng(1).permutation(len(rows["ill"]))

    def measure(data: dict[str, Any]) -> None:
        if measured == "cross_validate":
            tb.cross_validate(data, "ill", settings=tb.Settings(), folds=3)
        elif measured == "compare":
            tb.compare(data, "ill", settings={}, rivals=["majority class"], folds=2, memory=False)
        else:
            tb.prediction_sets(tb.textbook(data, "ill"), data)

    with pytest.warns(tb.TallybayesWarning, match="folds part them, which flatters"):
        measure(free)
    measure({name: values[shuffled] for name, values in free.items()})  # any warning is an error
