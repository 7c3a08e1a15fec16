"""Some seconds of the long load (`make soak`): digests and answers are those of the rows counted anew."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
import soak

import tallybayes as tb


def test_a_short_soak() -> None:
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, soak.__file__, "--minutes", "0.03", "--seed", "7"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-2000:]
    assert "since the warm start" in done.stdout


def test_a_row_too_many_is_noticed(tmp_path: Path) -> None:
    rng = random.Random(0)
    rows = [soak.row(rng) for _ in range(60)]
    model = tb.fit(soak.table(rows), soak.TARGET, calibrate=False)
    load = soak.Load(model, rows, rng, tmp_path)
    load.check()
    load.rows = [*load.rows, soak.row(rng)]
    with pytest.raises(AssertionError, match="digest"):
        load.check()
