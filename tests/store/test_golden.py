"""One model file per version of the format stays in the repository, and every later release reads it.

The files are never written again. `python tests/store/test_golden.py` writes one for a new version of the format.
"""

from __future__ import annotations

import datetime as dt
import json
import pathlib
from typing import Any

import numpy as np
import pytest

import tallybayes as tb
from tallybayes.store import model_file

GOLDEN = pathlib.Path(__file__).parents[1] / "golden"
ROWS: dict[str, Any] = {
    "colour": ["red", "blue", None, "red", "grün", "blue", "red", "blue"],
    "size": [0.1, -3.5, 2.25, None, 1e-300, 1e300, 0.1, 7.0],
    "visits": [0, 1, 1, 2, 0, 5, 1, 0],
    "note": ["free offer", "see you at noon", "", "offer, offer!", None, "Straße nach Köln", "free", "noon"],
    "words": [["a", "b"], ["b"], [], ["c", "a"], None, ["b", "b"], ["a"], ["c"]],
    "day": [dt.datetime(2024, 2, 29, 18, 30), None, *[dt.datetime(2023, m, 7) for m in range(1, 7)]],
    "weight": [1, 0.5, 2, 1, 0.25, 1, 3, 1],
    "label": ["spam", "ham", "ham", "spam", "ham", "ham", "spam", None],
}
SCHEMA = tb.Schema(
    [
        tb.Column(
            "colour", "category", values=["red", "blue", "grün", "schwarz"], reason="written for the golden file"
        ),
        tb.Column("size", "number", cells=tb.Cells(0.0, -4, (0.1, 7.0))),
        tb.Column("visits", "number", cells=tb.Cells(1.0, -7, (0.0, 1.0, 2.0, 5.0), discrete=True)),
        tb.Column("note", "text", text=tb.Tokeniser(ngrams=(1, 2), stop=("at",)), levels=2),
        tb.Column("words", "bag"),
        *tb.Schema([tb.Column("day", "date")]).columns,
        tb.Column("id", "ignore", reason="different in every row"),
    ],
    target="label",
    weights="weight",
    receipts=True,
)
SETTINGS = tb.Settings(
    smoothing={"colour": tb.Dirichlet({"red": 2.0, "blue": 0.5}), "note": tb.Laplace(0.25)},
    prior={"ham": 0.75, "spam": 0.25},
    families={"size": tb.families.Bins("width", 3), "visits": "poisson", "words": "bernoulli"},
    unseen="reserve",
    weights={"note": 0.5, "day.days": 0.125},
)


def present_model() -> tb.Model:
    from dataclasses import replace

    return replace(tb.count(ROWS, SCHEMA).model(SETTINGS), notes={"made for": "the golden file"})


def test_there_is_a_golden_file_for_every_format() -> None:
    assert [p.name for p in sorted(GOLDEN.glob("*.parquet"))] == [
        f"format{n}.tb.parquet" for n in range(1, model_file.FORMAT + 1)
    ]


@pytest.mark.parametrize("version", range(1, model_file.FORMAT + 1))
def test_golden_files_are_read_for_ever(version: int) -> None:
    model = tb.load(GOLDEN / f"format{version}.tb.parquet")
    known = json.loads((GOLDEN / f"format{version}.json").read_text())
    assert model.tally is not None and model.tally.digest == known["digest"]
    assert model.settings == SETTINGS and model.schema == SCHEMA and model.notes == {"made for": "the golden file"}
    assert model.tally.skipped == 1 and model.tally.rows == 7
    assert np.allclose(model.predict_log_proba(ROWS), known["log_proba"], rtol=1e-9, atol=1e-9)


def test_what_is_written_now_is_logically_equal() -> None:
    golden = model_file.load_stored(GOLDEN / f"format{model_file.FORMAT}.tb.parquet")
    now = model_file.stored_from_bytes(model_file.to_bytes(present_model()))
    assert now.tally == golden.tally and now.schema == golden.schema and now.settings == golden.settings
    assert now.families == golden.families and now.notes == golden.notes and now.kind == golden.kind
    assert [c.reason for c in now.schema.columns] == [c.reason for c in golden.schema.columns]


if __name__ == "__main__":
    made = present_model()
    place = GOLDEN / f"format{model_file.FORMAT}.tb.parquet"
    if place.exists():
        raise SystemExit(f"{place} is there and stays as it is")
    made.save(place)
    assert made.tally is not None
    answers = {"digest": made.tally.digest, "log_proba": made.predict_log_proba(ROWS).tolist()}
    place.with_name(f"format{model_file.FORMAT}.json").write_text(json.dumps(answers, indent=1) + "\n")
