"""Run notebooks without Jupyter, and write what their cells show: `python tests/renew_notebooks.py notebooks/*.ipynb`.

A cell shows what it prints, the value of its last line, and every figure that it has drawn, as it would in Jupyter.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import sys
import warnings
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("agg")
_DPI = 72


def run(cells: list[dict[str, Any]], file: str) -> list[list[dict[str, Any]]]:
    """What each cell shows, in nbformat's words; none for texts."""
    import matplotlib.pyplot as plt

    plt.close("all")  # what others have left open
    names: dict[str, Any] = {"__name__": "__main__"}
    named = [(cell, f"{file}, cell {i}") for i, cell in enumerate(cells)]
    return [shown(cell, names, where) if cell["cell_type"] == "code" else [] for cell, where in named]


def shown(cell: dict[str, Any], names: dict[str, Any], where: str) -> list[dict[str, Any]]:
    """The outputs of one cell."""
    import matplotlib.pyplot as plt

    tree = ast.parse("".join(cell["source"]), where)
    last = ast.Expression(tree.body.pop().value) if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("error")
        exec(compile(tree, where, "exec"), names)
        if last is not None:
            value = eval(compile(last, where, "eval"), names)
    out: list[dict[str, Any]] = []
    if printed.getvalue():
        out.append({"output_type": "stream", "name": "stdout", "text": lines(printed.getvalue())})
    for number in plt.get_fignums():
        picture = io.BytesIO()
        plt.figure(number).savefig(
            picture, format="png", dpi=_DPI, metadata={"Software": None}, pil_kwargs={"optimize": True}
        )
        data = {"image/png": base64.b64encode(picture.getvalue()).decode(), "text/plain": ["a picture"]}
        out.append({"output_type": "display_data", "data": data, "metadata": {}})
    if value is not None and not plt.get_fignums():
        data = {"text/plain": lines(repr(value))}
        if hasattr(value, "_repr_html_"):
            data["text/html"] = lines(value._repr_html_())
        out.append({"output_type": "execute_result", "data": data, "metadata": {}, "execution_count": None})
    plt.close("all")
    return out


def lines(text: str) -> list[str]:
    """A text as nbformat keeps it."""
    return text.splitlines(keepends=True)


def renewed(notebook: dict[str, Any], file: str) -> dict[str, Any]:
    """The notebook with what its cells show today."""
    cells = notebook["cells"]
    for cell, outputs in zip(cells, run(cells, file), strict=True):
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = outputs, None
    return notebook


def written(notebook: dict[str, Any]) -> str:
    """The notebook as its file."""
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for given in map(Path, sys.argv[1:]):
        given.write_text(written(renewed(json.loads(given.read_text("utf-8")), given.name)), "utf-8")
