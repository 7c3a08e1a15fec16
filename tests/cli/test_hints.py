"""Every hint in the words of the command line: a walk over the source, since no list of commands meets all of them."""

import ast
from pathlib import Path

import pytest
from command_line import PYTHON, run

import tallybayes as tb
from tallybayes.cli.terminal import for_commands

SOURCE = Path(__file__).resolve().parents[2] / "src" / "tallybayes"
# Hints that no command can meet: what they tell of is asked for in Python alone
IN_PYTHON_ALONE = {
    "data/files/reader.py": ["give a query, too", "give the query first"],  # a connection is an object
    "data/guess.py": ["give texts: missing="],  # of a wrong type
    "data/infer.py": ["write tb.infer", "leave target= out", "give a tb.Schema"],  # the command says these itself
    "data/kinds.py": ["a pair names two"],  # columns made one by one
    "data/pairs.py": ["give each value of a category once"],
    "data/schema.py": ["give a list of tb.Column"],
    # labels beside the data
    "data/sources.py": [
        *("make them columns of the frame", "name the labels' column", "give a weight for each class"),
        "keep it in the table and name it there",
    ],
    "explain/plots/beliefs.py": ["take --smoothing laplace:ALPHA, tb.Dirichlet"],  # pictures of lectures
    "explain/plots/characters.py": ["give an explanation", "name it: tb.plots.terminal"],  # --plot gives what it needs
    "explain/plots/lessons.py": ["draw plot.column(name)"],
    "families/__init__.py": ["{…} reads {…} columns; name families by column"],  # one family for all columns
    "families/plain.py": ["give cuts=…"],  # corrections by hand
    "families/settings.py": ["take a number, ", "give {column: tb.Cor", "give tb.Cor", "give tb.Settings"],
    "families/settings_json.py": ["call tb.families.register"],  # families made outside the package
    "families/smoothing.py": ["give {value: amount}", "a family of levels imagines rows"],  # Dirichlet
    "model/joint/cells.py": ["give an axis per column"],
    "model/joint/shift.py": ["rows come second"],  # the command has a model or a tally first
    "model/model.py": ["decide there, from the columns"],  # Spark
    "model/predict_file.py": ["give a list of columns, keep="],
    "model/views.py": ["take settings without lengths"],  # linear view
    "model/watching/watch.py": [
        "tb.shift(model, rows) says",
        "watch.save and model.watch",
        "watch a model that has counted",
    ],
    "model/written.py": ["save models that come from"],
    "selection/choose/fit.py": ["pairs are chosen by held-out rows"],
    "selection/choose/tune.py": ["tune first, then fit them anew"],  # fitted settings
    "selection/measure/cross_validate.py": ["give tb.Settings(…), a list"],
    "selection/measure/figure_curves.py": ["give numbers: values="],
    "selection/measure/metrics.py": ["give model.predict_proba(rows)"],
    "selection/measure/saved.py": ["give at least two; tb.evaluate", "give a model, tb.load"],  # models are files there
    "selection/rivals/nearest.py": ["take a whole number of neighbours"],
    "selection/sets/calibrate.py": ["leave out folds=, or say relearn"],
    "selection/sets/full.py": ["leave out exact="],
    "selection/unlabelled/fit.py": ["engine='local' brings"],  # data of a cluster are no file
    "sklearn/mixed.py": ["give a tb.Schema"],
    "sklearn/onnx.py": ["skl2onnx.to_onnx(pipeline"],  # pipelines
    "store/mlflow.py": ["give a tb.Model"],  # runs of MLflow
    "tally/grouped.py": [
        *("group by the target and each column", "count groups under", "count the rows themselves"),
        *("name the column of the table that has them", "call the number of rows otherwise"),
    ],
}
FILLED = {"format": "'csv'", "kind": "'mbox'"}  # texts whose quotes come with what is filled in


def hints():
    """(file, text) of every hint in the source; what is filled in is shown as {…}."""
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.keyword) and node.arg == "hint":
                text = "".join(
                    part.value if isinstance(part, ast.Constant) else "{…}"
                    for each in ast.walk(node.value)
                    for part in (each.values if isinstance(each, ast.JoinedStr) else [])
                )
                if isinstance(node.value, ast.Constant):
                    text = node.value.value
                yield str(path.relative_to(SOURCE)), text


def test_every_hint_that_a_command_can_meet_is_in_its_words():
    found: dict[str, list[str]] = {}
    count = 0
    for path, text in hints():
        count += 1
        for name, value in FILLED.items():
            text = text.replace(f"{name}={{…}}", f"{name}={value}")
        text = text.replace("data[{…}] >= {…}", "data['rent'] >= 900")
        text = text.replace("kinds={{…}:", "kinds={'rent':")
        if PYTHON.search(for_commands(text)):
            found.setdefault(path, []).append(for_commands(text))
    assert count > 300  # the walk sees them
    for path, texts in found.items():
        known = IN_PYTHON_ALONE.get(path, [])
        strange = [t for t in texts if not any(t.startswith(k) for k in known)]
        assert not strange, f"{path}: say it in options, in cli/terminal.py, or in IN_PYTHON_ALONE: {strange[0]}"
        unused = [k for k in known if not any(t.startswith(k) for t in texts)]
        assert not unused, f"{path}: no such hint any more: {unused[0]}"
    assert {*found} == {*IN_PYTHON_ALONE}


TABLE = "sky,rent,note,let\n" + "sunny,1000.5,nice flat,yes\nrainy,900.25,small flat,no\n" * 12


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--target", "rents"], "did you mean 'rent'"),
        (["--target", "let", "--prior", "uniforn"], "--prior is counted, uniform or CLASS=PROBABILITY"),
        (["--target", "let", "--pairs", "sky:sky"], "--pairs is auto, no, or two different columns"),
        (["--target", "let", "--smoothing", "beta:1:9", "--no-calibrate"], "--smoothing COLUMN=beta:A:B"),
        (["--target", "let", "--set", "sky=gaussian"], "'gaussian' reads number and vector columns"),
        (["--target", "let", "--date-format", "nope=%Y"], "--date-format %d.%m.%Y"),
        (["--target", "let", "--folds", "1", "--no-calibrate"], "--folds"),
        (["--target", "let", "--weights", "wait"], "there is no weights column 'wait'"),
    ],
)
def test_what_is_wrong_is_told_in_options(tmp_path, options, said):
    (tmp_path / "flats.csv").write_text(TABLE)
    done = run("fit", tmp_path / "flats.csv", *options)
    assert done.returncode == 2
    assert said in done.err.replace("\n", " ")


def test_a_target_that_is_a_quantity_is_told_without_python(tmp_path):
    rows = "\n".join(f"{i % 7},{i * 1.37:.2f}" for i in range(60))
    (tmp_path / "rents.csv").write_text(f"rooms,rent\n{rows}\n")
    done = run("fit", tmp_path / "rents.csv", "--target", "rent")
    assert done.returncode == 2
    assert "a new column high that says whether rent is at least" in done.err


def test_numbers_that_only_name_classes_are_learnt_when_it_is_said(tmp_path):
    rows = "\n".join(f"{i % 150 + i / 1e4:.4f},{i % 150}" for i in range(1500))
    (tmp_path / "parts.csv").write_text(f"length,part\n{rows}\n")
    refused = run("fit", tmp_path / "parts.csv", "--target", "part")
    assert refused.returncode == 2 and "--set part=category" in refused.err
    done = run("fit", tmp_path / "parts.csv", "--target", "part", "--set", "part=category", "-o", tmp_path / "m")
    assert done.returncode == 0, done.err
    model = tb.load(tmp_path / "m")
    assert len(model.classes) == 150 and model.predict([{"length": 77.05}]).tolist() == [77]


def test_models_whose_gaps_were_found_apart_add_up_as_the_hint_says(tmp_path, monkeypatch):
    """`fit --schema` finds gaps and pairs of its own, so that the first hint of a merge was no help."""
    monkeypatch.chdir(tmp_path)
    for name, gaps in {"a": (3, 0), "b": (0, 3)}.items():  # each has a column in which every third value is missing
        rows = ["u,v,y"]
        for i in range(90):
            u, v = ("" if step and i % step == 0 else str(i * 7 % 10) for step in gaps)
            rows.append(f"{u},{v},{'no' if i % 4 < 2 else 'yes'}")
        Path(f"{name}.csv").write_text("\n".join(rows) + "\n")
    assert run("fit", "a.csv", "--target", "y", "-o", "a", "--save-schema", "s").returncode == 0
    assert run("fit", "b.csv", "--schema", "s", "-o", "b").returncode == 0
    refused = run("merge", "a", "b", "-o", "ab")
    assert "only one of them counts 'v (missing)'" in refused.err
    assert "fit the other by the schema of the first: --schema FILE --no-gaps --pairs no" in refused.err
    assert run("fit", "b.csv", "--schema", "s", "--no-gaps", "--pairs", "no", "-o", "b").returncode == 0
    assert "90 → 180 rows" in run("merge", "a", "b", "-o", "ab").out


def test_an_odd_cell_of_rows_to_be_answered_is_not_answered_by_an_option_that_is_not_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    days = [f"{1 + i % 28:02}.01.2024,{'yn'[i % 2]}" for i in range(40)]
    Path("a.csv").write_text("\n".join(["when,y", *days]) + "\n")
    Path("b.csv").write_text("when\nsoon\n")
    assert run("fit", "a.csv", "--target", "y", "-o", "m").returncode == 0
    refused = run("predict", "m", "b.csv")
    assert "'soon' is not a date" in refused.err
    assert "Hint: mend the value, leave it empty, or fit with --missing TEXT." in refused.err


def test_either_of_two_date_formats_is_told_as_an_option(tmp_path):
    rows = "\n".join(f"{1 + i % 12}/{1 + i % 11}/2024,{i % 2}" for i in range(60))
    (tmp_path / "days.csv").write_text(f"day,y\n{rows}\n")
    done = run("fit", tmp_path / "days.csv", "--target", "y")
    assert "say which: --date-format %d/%m/%Y or --date-format %m/%d/%Y." in done.err.replace("\n", " ")


def test_rows_without_a_label_are_told_with_the_option_that_lets_them_count(tmp_path):
    rows = "\n".join(f"{i % 7},{'' if i % 10 == 3 else 'ab'[i % 2]}" for i in range(60))
    (tmp_path / "gaps.csv").write_text(f"x,y\n{rows}\n")
    done = run("fit", tmp_path / "gaps.csv", "--target", "y")
    assert "6 of 60 rows have no label and are left out" in done.err and "--unlabelled missing" in done.err


def test_figures_of_two_rows_are_said_to_rest_on_too_few(tmp_path):
    (tmp_path / "two.csv").write_text("x,y\n1,a\n2,b\n")
    done = run("fit", tmp_path / "two.csv", "--target", "y")
    assert "2 rows: too few to say how good it is" in done.out
