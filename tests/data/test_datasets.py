"""Data to begin with: the same rows everywhere, and what is said to be true about them is."""

from __future__ import annotations

import hashlib
import json
import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from command_line import run

import tallybayes as tb
from tallybayes.mail import read_mail
from tallybayes.mail.filter import Filter

D = tb.datasets
GENERATED = ["mixed", "dependent", "drift", "humps", "tickets", "mails"]
# what was drawn when they were made: a change of any of these rows changes every page that shows them
DIGESTS = {
    "clinic": "f2be9afd4b42bff8",
    "play": "6e2e43592407ad6f",
    "tennis": "a7f0dcd81c3553bd",
    "eight_days": "55e0cdfa9903bd99",
    "same_weather": "458fa052e0014b22",
    "labels": "8482162fcb6f8aab",
    "urn": "90fb90d10a650b71",
    "heights": "876fc9878ace6a06",
    "sports": "7bc3065497960095",
    "messages": "bb5191ae93bb6c50",
    "spam_words": "4b7b66aa5ccec8db",
    "abc": "f5bdbc6685216599",
    "census": "07d4c768afd2ce34",
    "flats": "54ee9c37760d2d55",
    "inbox": "a133073773780eac",
    "mixed": "3fdfd6000a265e9f",
    "dependent": "6b4281e0e4f8fbde",
    "drift": "03794ddf3c569624",
    "humps": "4331ea98259968c8",
    "tickets": "ce4c901abbdbbc53",
    "mails": "cff879f36d725e74",
}


def digest(data: tb.datasets.Dataset) -> str:
    told = json.dumps([data.name, data.target, dict(data), data.truth], sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()[:16]


@pytest.mark.parametrize("name", D.names())
def test_the_same_rows_on_every_machine(name: str) -> None:
    options = {"rows": 300, "seed": 7} if name in GENERATED else {}
    assert digest(D.load(name, **options)) == DIGESTS[name]


@pytest.mark.parametrize("name", D.names())
def test_every_one_goes_wherever_data_go(name: str, tmp_path: Any) -> None:
    data = D.load(name)
    assert len({len(column) for column in data.values()}) == 1 and data.rows > 0 and data.about.endswith(".")
    again = pickle.loads(pickle.dumps(data))
    assert again == data and (again.name, again.truth) == (name, data.truth)
    assert len(pd.DataFrame(data)) == len(pl.DataFrame(data)) == pa.table(dict(data)).num_rows == data.rows
    assert data.records()[0] == {name: column[0] for name, column in data.items()}
    for ending in ("csv", "tsv", "jsonl", "parquet", "csv.gz"):
        path = data.save(tmp_path / f"{name}.{ending}")
        batches = list(tb.read(path).batches())
        assert sum(b.rows for b in batches) == data.rows and batches[0].names() == list(data)
    if data.target is None:
        return
    assert data.target not in data.features()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tb.TallybayesWarning)  # one class, or nothing that tells
        assert len(tb.textbook(data, data.target).predict(data)) == data.rows


@pytest.mark.parametrize("name", [name for name in D.names() if "asked" in D.load(name).truth])
def test_the_worked_numbers_come_out(name: str) -> None:
    data = D.load(name)
    found = {"laplace 1": tb.textbook(data, data.target)}
    if "maximum likelihood" in data.truth:
        found["maximum likelihood"] = tb.textbook(data, data.target, smoothing="maximum likelihood")
    for who, row in data.truth["asked"].items():
        for how, model in found.items():
            if how in data.truth:
                p = dict(zip(model.classes, model.predict_proba([row])[0], strict=True))
                assert p == pytest.approx(data.truth[how][who], abs=1e-9)
        if "answer" in data.truth:
            assert found["laplace 1"].predict([row])[0] == data.truth["answer"][who]


def test_joint_tables_and_the_written_model_come_out() -> None:
    joint = tb.JointDistribution.written(D.abc()["share"], ["A", "B", "C"])
    assert joint.conditional({"A": 1}, given={"B": 1}) == pytest.approx(D.abc().truth["P(A=1 given B=1)"])
    words = D.spam_words()
    tables = {"words": {c: dict(zip(words["word"], words[c], strict=True)) for c in ("spam", "not")}}
    with pytest.warns(tb.TallybayesWarning, match="add up to"):
        model = tb.Model.written(words.truth["prior"], tables, kinds={"words": "bag"})
    p = dict(zip(model.classes, model.predict_proba([{"words": words.truth["message"]}])[0], strict=True))
    assert p["spam"] == pytest.approx(words.truth["P(spam)"], abs=1e-4)


@pytest.mark.parametrize("name", ["mixed", "dependent", "humps", "tickets", "mails"])
def test_few_rows_are_the_first_of_many(name: str) -> None:
    few, many = D.load(name, rows=3, seed=5), D.load(name, rows=40, seed=5)
    assert all(column == many[key][:3] for key, column in few.items())
    assert D.load(name, rows=40, seed=6) != many


@pytest.mark.parametrize("name", ["mixed", "dependent", "drift", "humps"])
def test_the_true_probabilities_are_true(name: str) -> None:
    """Of the rows that have probability p, the share p is so: a calibration test over 20,000 rows."""
    data = D.load(name, rows=20_000, seed=11)
    positive = {"mixed": "yes", "dependent": "yes", "drift": "yes", "humps": "two humps"}[name]
    p = np.array(data.truth["probability"])
    y = np.array([label == positive for label in data[str(data.target)]])
    deviation = (y - p).sum() / np.sqrt((p * (1 - p)).sum())
    assert abs(deviation) < 4
    for low in np.arange(0, 1, 0.1):
        some = (p >= low) & (p < low + 0.1)
        if some.sum() > 30:
            assert abs((y - p)[some].sum()) < 4.5 * np.sqrt((p * (1 - p))[some].sum())


def test_tickets_have_true_probabilities() -> None:
    data = D.tickets(20_000, seed=3)
    p = np.array(data.truth["probability"])
    y = np.array([[label == c for c in data.truth["classes"]] for label in data["queue"]])
    assert np.allclose(p.sum(axis=1), 1, atol=1e-8)
    assert (np.abs((y - p).sum(axis=0)) < 4 * np.sqrt((p * (1 - p)).sum(axis=0))).all()


def test_a_model_of_the_mixed_table_comes_near_the_truth() -> None:
    rows, asked = D.mixed(3000, seed=1), D.mixed(1000, seed=2)
    model = tb.fit(rows, "leaves", kinds={"joined": "ignore"}, effort="quick")
    q = model.predict_proba(asked)[:, list(model.classes).index("yes")]
    assert np.abs(q - np.array(asked.truth["probability"])).mean() < 0.03


def test_naive_bayes_is_as_wrong_on_dependent_columns_as_is_said() -> None:
    rows = D.dependent(50_000, seed=1)
    q = tb.textbook(rows, "fault").predict_proba(rows)[:, 1]
    assert np.abs(q - np.array(rows.truth["naive"])).max() < 0.02
    y = np.array(rows["fault"]) == "yes"
    loss = -np.log(np.where(y, q, 1 - q)).mean()
    assert loss == pytest.approx(rows.truth["naive log loss"], abs=0.02)
    p = np.array(rows.truth["probability"])
    assert -np.log(np.where(y, p, 1 - p)).mean() == pytest.approx(rows.truth["log loss"], abs=0.01)
    one = D.dependent(10, copies=0)
    assert "sensor_2" not in one and one.truth["naive log loss"] < rows.truth["naive log loss"]


def test_the_change_is_found_where_it_is() -> None:
    data = D.drift(6000, seed=2)
    assert data["day"] == sorted(data["day"])
    schema = tb.infer(data, target="returned", kinds={"day": "ignore"})
    windows = tb.Windows(schema, by="month", time="day")
    windows.add(data)
    changes = tb.change(windows)
    assert {c.column for c in changes.changed} == {*data.truth["changed"], *data.truth["moved along"]}
    assert {changes[name].when for name in data.truth["changed"]} == {data.truth["change"]}
    assert changes["bought"].within and not changes["price"].within
    long = D.drift(60, periods=30, change=20)
    assert long["day"][-1].startswith("2026-06") and long.truth["change"] == "2025-08"


def test_turned_labels_are_named() -> None:
    right, wrong = D.mixed(500, seed=4), D.mixed(500, seed=4, wrong=0.1)
    turned = [i for i, (a, b) in enumerate(zip(right["leaves"], wrong["leaves"], strict=True)) if a != b]
    assert turned == wrong.truth["wrong"] and 25 < len(turned) < 80
    assert right["note"] == wrong["note"] and right.truth["probability"] == wrong.truth["probability"]


def test_mail_is_read_and_told_apart(tmp_path: Any) -> None:
    made = D.mails(120, seed=2, to=tmp_path / "box")
    (tmp_path / "box" / made["file"][0]).write_bytes(b"Subject: mine\n\nkept\n")
    D.mails(120, seed=2, to=tmp_path / "box")
    assert (tmp_path / "box" / made["file"][0]).read_bytes() == b"Subject: mine\n\nkept\n"
    assert len(list(read_mail(tmp_path / "box"))) == 120
    box = Filter(str(tmp_path / "state"))
    box.train([(label, raw.encode()) for label, raw in zip(made["label"], made["message"], strict=True)])
    fresh = D.mails(60, seed=3)
    answers = [box.score(raw.encode()).answer for raw in fresh["message"]]
    assert sum(a == b for a, b in zip(answers, fresh["label"], strict=True)) > 50
    assert D.inbox(to=tmp_path / "inbox").rows == len(list(read_mail(tmp_path / "inbox"))) == 60


def test_the_flats_are_those_of_the_file() -> None:
    from_file, made = tb.read(tb.example("flats.csv")), D.flats()
    schema = tb.infer(from_file, target="let")
    assert tb.count(made, schema).digest == tb.count(from_file, schema).digest


@pytest.mark.parametrize(
    ("call", "found"),
    [
        (lambda: D.load("clinik"), "did you mean 'clinic'"),
        (lambda: D.load("clinic", rows=3), "its rows are what they are"),
        (lambda: D.load("mixed", row=3), "it takes rows, seed, wrong"),
        (lambda: D.mixed(0), "a whole number from 1"),
        (lambda: D.mixed(2.5), "a whole number from 1"),
        (lambda: D.mixed(5, seed=-1), "a whole number from 0"),
        (lambda: D.mixed(5, wrong=0.5), "one half"),
        (lambda: D.dependent(5, copies=-1), "a whole number from 0"),
        (lambda: D.drift(50, periods=4), "from 2 to 4"),
        (lambda: D.clinic().save("patients.txt"), ".csv"),
    ],
)
def test_what_cannot_be_made_is_refused_with_a_hint(call: Any, found: str) -> None:
    with pytest.raises(tb.SettingsError, match="Hint: ") as error:
        call()
    assert found in str(error.value)


def test_the_command_lists_describes_and_writes(tmp_path: Any) -> None:
    listed = run("datasets")
    assert listed.returncode == 0 and all(name in listed.out for name in D.names())
    assert "target 'Diagnosis'" in run("datasets", "clinic").out
    path = tmp_path / "m.csv"
    done = run("datasets", "mixed", "--rows", 50, "--seed", 3, "-o", path)
    assert done.returncode == 0 and "--target leaves" in done.out
    assert path.read_bytes() == D.mixed(50, seed=3).content("m.csv")
    assert run("datasets", "play", "-o", "-").out.startswith("Sky,Temp,Humid,Play\nsunny,")
    assert run("datasets", "mails", "--rows", 7, "-o", tmp_path / "box").returncode == 0
    assert len(list((tmp_path / "box").rglob("*.eml"))) == 7
    assert run("datasets", "mails", "--rows", 7, "-o", tmp_path / "m.jsonl").returncode == 0
    for bad in (["clinik"], ["clinic", "--rows", 3], ["clinic", "-o", tmp_path / "x.txt"], ["--rows", 3]):
        assert run("datasets", *bad).returncode == 2
    assert run("datasets", "clinic", "-o", tmp_path / "none" / "x.csv").returncode == 1
