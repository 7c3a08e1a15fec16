"""Fits that once failed, grew or hung: texts whose further readings are dropped, many classes, names of any length."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from strategies import ALL

import tallybayes as tb
from tallybayes.base.errors import did_you_mean

WORDS = ["oil", "market", "game", "team", "vote", "party", "chip", "phone", "star", "film", "goal", "the", "of", "not"]


def texts(seed: int, columns: int) -> list[dict[str, str]]:
    """Rows of short texts, some of which tell the class by a mark, some by a word, some hardly at all."""
    rng, rows = random.Random(seed), []
    tells = [rng.choice([0, 1, 3]) for _ in range(columns)]
    for _ in range(rng.choice([100, 120, 150, 200])):
        label = rng.choice(["sport", "money"])
        row = {"y": label}
        for j, often in enumerate(tells):
            words = [rng.choice(WORDS + [label[:2]] * rng.choice([0, often])) for _ in range(rng.randrange(3, 9))]
            mark = "!" if label == "sport" and rng.random() < 0.2 * often else ""
            row[f"t{j}"] = " ".join(words) + f" u{rng.randrange(400)}{mark}"
        rows.append(row)
    return rows


@pytest.mark.parametrize("columns", [1, 2, 3, 4])
def test_settings_name_no_reading_of_a_text_that_was_dropped(columns: int, tmp_path: Path) -> None:
    for seed in range(25 if ALL else 1):
        rows = texts(100 * columns + seed, columns)
        model = tb.fit(rows, target="y")
        named = {name for by_column in model.settings.by_column().values() for name in by_column}
        assert named <= set(model.schema.names)
        model.save(tmp_path / "m")
        assert tb.load(tmp_path / "m").predict(rows).tolist() == model.predict(rows).tolist()
        assert model.tally is not None and model.update(rows[0]).forget(rows[0]).tally == model.tally


PEAK = """
import resource, sys, warnings
import numpy as np
import tallybayes as tb
warnings.simplefilter("ignore")
rows, classes, columns, effort = *map(int, sys.argv[1:4]), sys.argv[4]
rng = np.random.default_rng(0)
def table(classes):
    y = rng.integers(0, classes, rows)
    return {f"x{i}": rng.normal(y % (7 + i), 1) for i in range(columns)} | {"y": [f"c{v}" for v in y]}
tb.fit(table(3), target="y", effort=effort)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
tb.fit(table(classes), target="y", effort=effort)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10)
"""


def grown(rows: int, classes: int, columns: int, effort: str) -> int:
    """By how many bytes the peak of memory grows when there are many classes in place of three."""
    command = [sys.executable, "-c", PEAK, str(rows), str(classes), str(columns), effort]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def test_memory_of_a_fit_does_not_grow_as_rows_times_classes_times_columns() -> None:
    rows, classes, columns = 3_000, 1_500, 24
    assert grown(rows, classes, columns, "quick") < rows * classes * columns * 8 / 2


@pytest.mark.skipif(not ALL, reason="some minutes")
def test_memory_of_the_default_is_bounded_with_many_classes() -> None:
    assert grown(8_000, 1_500, 4, "default") < 700 << 20  # one table of rows × classes × columns is 384 MB


def test_a_long_name_among_many_is_looked_for_in_no_time() -> None:
    names = [f"{'column' * 2_000}{i}" for i in range(20_000)]
    start = time.process_time()
    assert did_you_mean("column" * 2_000 + "x", names)
    did_you_mean("z" * 100_000, names)
    assert time.process_time() - start < 5


def test_rows_without_a_label_are_counted_in_a_warning_once() -> None:
    rows = {"x": [f"v{i % 5}" for i in range(100)], "y": [None if i % 10 == 3 else "ab"[i % 3 > 0] for i in range(100)]}
    with pytest.warns(tb.TallybayesWarning, match="10 of 100 rows have no label and are left out") as told:
        model = tb.fit(rows, "y")
    tb.suspicious(rows, "y", settings=tb.Settings())  # says itself how many labels it judges
    assert len(told) == 1 and model.tally is not None and (model.tally.rows, model.tally.skipped) == (90, 10)
