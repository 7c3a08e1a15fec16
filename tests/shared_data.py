"""The shared data sets, where this machine has them; they are never copied into the repository."""

from __future__ import annotations

import os
from pathlib import Path

import optional
import pytest

pd = optional.package("pandas")
FOLDER = Path(os.environ.get("TALLYBAYES_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")


def shared(name: str) -> pd.DataFrame:
    """The data set as a frame; the test is skipped where the file is not there."""
    path = FOLDER / f"{name}.parquet"
    if not path.exists():
        pytest.skip(f"{path} is not there: set TALLYBAYES_DATA to the folder of the shared data")
    return pd.read_parquet(path)
