"""The course notebooks run from top to bottom without a warning, and show what the code says now."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")

from renew_notebooks import run, written
from strategies import ALL

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def texts(outputs: list[dict]) -> list[str]:
    """What is shown as text; pictures may differ by a pixel between releases of matplotlib."""
    return ["".join(o["text"] if o["output_type"] == "stream" else o["data"]["text/plain"]) for o in outputs]


def test_there_is_one_for_each_lecture():
    assert [p.name[0] for p in NOTEBOOKS] == ["1", "2", "3", "4", "5"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_a_notebook_runs_and_shows_the_truth(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    notebook = json.loads(path.read_text("utf-8"))
    cells = notebook["cells"]
    for i, (cell, found) in enumerate(zip(cells, run(cells, path.name), strict=True)):
        assert texts(cell.get("outputs", [])) == texts(found), (
            f"cell {i}: python tests/renew_notebooks.py notebooks/*.ipynb"
        )


@pytest.mark.skipif(not ALL, reason="starts a kernel for each: TALLYBAYES_TESTS=all, with nbclient and ipykernel")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_a_notebook_runs_in_jupyter(path, tmp_path):
    """The same by Jupyter's own client: what is printed, as many pictures, and no numbers of a picture beside it."""
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    stored = [c for c in json.loads(path.read_text("utf-8"))["cells"] if c["cell_type"] == "code"]
    found = nbformat.read(path, 4)
    nbclient.NotebookClient(found, timeout=600, kernel_name="python3").execute(cwd=str(tmp_path))
    for before, after in zip(stored, [c for c in found.cells if c.cell_type == "code"], strict=True):
        shown = [[o["output_type"] for o in c["outputs"] if o.get("name") != "stderr"] for c in (before, after)]
        printed = [
            "".join("".join(o["text"]) for o in c["outputs"] if o.get("name") == "stdout") for c in (before, after)
        ]
        assert printed[0] == printed[1]
        assert sorted(set(shown[0])) == sorted(set(shown[1])), "".join(before["source"])


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_a_notebook_is_one_that_jupyter_opens(path):
    notebook = json.loads(path.read_text("utf-8"))
    assert (
        notebook["nbformat"] == 4 and notebook["nbformat_minor"] == 5 and written(notebook) == path.read_text("utf-8")
    )
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids)
    for cell in notebook["cells"]:
        wanted = {"cell_type", "id", "metadata", "source"}
        wanted |= {"outputs", "execution_count"} if cell["cell_type"] == "code" else set()
        assert set(cell) == wanted and isinstance(cell["source"], list)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_every_exercise_has_a_solution(path):
    heads = [
        line
        for cell in json.loads(path.read_text("utf-8"))["cells"]
        for line in cell["source"]
        if cell["cell_type"] == "markdown" and line.startswith("### ")
    ]
    exercises = [h.split()[2] for h in heads if h.startswith("### Exercise")]
    assert len(exercises) >= 3
    assert exercises == [h.split()[2] for h in heads if h.startswith("### Solution")]
