"""Writes what tests/test_frozen.py compares with, once, with the package of the day:

    PYTHONPATH=/path/to/checkout/src:tests python tests/golden/make_frozen.py

The files are never written again: what is there stays, and a name, a digest or an answer that is new is added beside.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import frozen

import tallybayes as tb

FOLDER = Path(__file__).parent / "frozen"


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    warnings.simplefilter("ignore")
    write("names.json", frozen.public())
    write("digests.json", {name: make().digest for name, make in frozen.TALLIES.items()})
    answers: dict[str, Any] = {}
    for name, make in frozen.MODELS.items():
        model, rows = make(), frozen.probes_of(name)
        new(f"{name}.tb.parquet", lambda path, m=model: m.save(path))
        if name != "predictive":
            new(f"{name}.sealed.parquet", lambda path, m=model: m.export(path))
        if name not in frozen.UNSAID and name != "plain":  # whose cells are those of "kernel"
            text = model.export(format="json")
            new(f"{name}.scorer.json.gz", lambda path, t=text: path.write_bytes(gzip.compress(t, mtime=0)))
        answers[name] = {
            "digest": model.tally.digest,
            "log_proba": model.predict_log_proba(rows).tolist(),
            "predicted": model.predict(rows).tolist(),
            "screens": frozen.screens(model, rows),
        }
    write("answers.json", answers)
    loaded = {name: tb.load(FOLDER / f"{name}.tb.parquet") for name in frozen.MODELS}
    write("screens.json", {name: frozen.screens(m, frozen.probes_of(name)) for name, m in loaded.items()})
    write("exit_codes.json", exit_codes())


def exit_codes() -> dict[str, int]:
    with tempfile.TemporaryDirectory() as folder:

        def run(words: list[str], given: bytes) -> int:
            command = [sys.executable, "-m", "tallybayes", *words]
            return subprocess.run(
                command, input=given, cwd=folder, capture_output=True, env=dict(os.environ)
            ).returncode

        return frozen.exit_codes(run, Path(folder))


def new(name: str, write: Any) -> None:
    if not (FOLDER / name).exists():
        write(FOLDER / name)


def write(name: str, content: Any) -> None:
    """A page of JSON, one line for each name of the first level."""
    lines = ",\n".join(f"{json.dumps(k)}: {json.dumps(v, ensure_ascii=False)}" for k, v in content.items())
    new(name, lambda path: path.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8"))


if __name__ == "__main__":
    main()
