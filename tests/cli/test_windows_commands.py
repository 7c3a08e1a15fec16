"""The commands of windows, called as a shell would: what they say, what they refuse, and what they leave behind."""

import json

import numpy as np
import pytest
from command_line import run

import tallybayes as tb


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    day = np.repeat(np.arange(4), 60)
    x = rng.normal(size=240).round(2) + 2 * (day >= 2)
    lines = [
        f"2024-05-{28 + d}T12:00,{v:.2f},{'ab'[i % 2]},{'yn'[i % 3 == 0]}"
        for i, (d, v) in enumerate(zip(day, x, strict=True))
    ]
    (tmp_path / "t.csv").write_text("\n".join(["when,x,c,y", *lines]) + "\n")
    (tmp_path / "few.csv").write_text("\n".join(["when,x,c,y", *lines[:5]]) + "\n")
    return tmp_path


def test_a_folder_from_its_first_rows_to_a_model(table):
    done = run("windows", "add", "w", "t.csv", "--by", "day", "--target", "y")
    assert done.returncode == 0 and done.out == "w: 0 → 240 rows, 4 periods\n"
    assert tb.Windows.load("w").schema.names == ("x", "c")  # times are not counted, though nobody named them
    assert json.loads(run("windows", "show", "w", "--json").out)["periods"]["2024-05-31"] == 60
    assert "240 rows in all" in run("windows", "show", "w").out
    found = json.loads(run("change", "w", "--json", "--plot", "p.svg").out)
    assert found["summary"] == "Changed: x with 2024-05-30." and (table / "p.svg").stat().st_size > 1000
    assert "Changed: x with 2024-05-30." in run("change", "w").out
    assert "written to m" in run("windows", "model", "w", "--last", "2", "-o", "m").out
    assert tb.load("m").tally.rows == 120
    assert run("windows", "forget", "w", "few.csv").out == "w: 240 → 235 rows, 4 periods\n"
    assert json.loads(run("windows", "judge", "w", "t.csv", "--json", "--half-life", "1").out)["total"]["rows"] == 180
    assert run("windows", "add", "w", "few.csv").out == "w: 235 → 240 rows, 4 periods\n"
    assert run("windows", "drop", "w", "2024-05-30").out == "w: 240 → 120 rows, 2 periods\n"


def test_refusals_are_in_the_words_of_the_command_line_and_leave_nothing(table):
    def said(*words):
        done = run(*words)
        assert done.returncode != 0
        return done.err

    assert "say what a period is with --by" in said("windows", "add", "w", "t.csv", "--target", "y")
    assert "--time COLUMN" in said("windows", "add", "w", "t.csv", "--by", "number", "--target", "y")
    assert "leave --time out" in said("windows", "add", "w", "t.csv", "--by", "9", "--time", "when", "--target", "y")
    assert "did you mean 'when'" in said(
        "windows", "add", "w", "t.csv", "--by", "day", "--time", "wen", "--target", "y"
    )
    assert not (table / "w").exists()
    assert "tallybayes windows add FOLDER" in said("windows", "show", "w")
    assert "tallybayes windows add FOLDER" in said("windows", "drop", "w", "2024-05-30")
    run("windows", "add", "w", "t.csv", "--by", "100", "--target", "y")
    assert "leave out --by" in said("windows", "add", "w", "t.csv", "--by", "100")
    assert "--period 3" in said("windows", "forget", "w", "few.csv")
    assert run("windows", "forget", "w", "few.csv", "--period", "0").out == "w: 240 → 235 rows, 3 periods\n"
    assert "--half-life" in said("windows", "model", "w", "--last", "1", "--half-life", "2", "-o", "m")


@pytest.mark.parametrize("named", [(), ("--time", "when"), ("--time", "when", "--date-format", "%d.%m.%Y %H:%M")])
def test_times_in_another_format_say_the_period_whoever_names_their_column(table, named):
    lines = (table / "t.csv").read_text().splitlines()
    written = [f"{line[8:10]}.05.2024 12:00{line[16:]}" for line in lines[1:]]
    (table / "de.csv").write_text("\n".join([lines[0], *written]) + "\n")
    done = run("windows", "add", "w", "de.csv", "--by", "day", "--target", "y", *named)
    assert done.returncode == 0, done.err
    assert json.loads(run("windows", "show", "w", "--json").out)["periods"]["2024-05-31"] == 60
    (table / "one.csv").write_text("\n".join([lines[0], written[0]]) + "\n")
    assert run("windows", "forget", "w", "one.csv").out == "w: 240 → 239 rows, 4 periods\n"
    (table / "odd.csv").write_text(f"{lines[0]}\nsoon,1,a,y\n")
    refused = run("windows", "add", "w", "odd.csv")
    assert refused.returncode == 2 and "odd.csv, line 2" in refused.err and "'soon' is not a date" in refused.err
    assert tb.Windows.load("w").rows == 239
