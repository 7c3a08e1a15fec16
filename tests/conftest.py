"""What all tests share: importing the helpers beside them (cases, strategies, shared_data) by name, and one cluster."""

from __future__ import annotations

import os
import sys

# Tests fit many small models, often side by side, and BLAS threads wait longer for each other on small matrices than
# they work: with them, choosing weights takes several times as long. It must be said before NumPy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Model files say when they were made; here always then, so that two of the same rows have the same bytes.
os.environ.setdefault("SOURCE_DATE_EPOCH", "1717178400")

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cluster
import pytest
from hypothesis import HealthCheck, settings

# A busy machine is slow, which is no fault of a test
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")

# Tests of what Windows has not: terminals, signals that end a process at once, limits, sockets in the file system
UNIX_ONLY = [
    "cli/test_commands.py", "mail/test_mail_filter.py", "mail/test_mail_serve.py", "selection/test_fit_limits.py",
    "serve/browser", "serve/test_attacks.py", "serve/test_desk.py", "serve/test_real_server.py",
    "store/test_full_disk.py", "store/test_model_file_damage.py", "tally/test_spark.py", "test_campaign.py",
    "test_soak.py", "test_threads.py",
]  # fmt: skip
collect_ignore = UNIX_ONLY if sys.platform == "win32" else []


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A session on a Spark cluster, started by the first test that asks; mark such tests with `cluster.marks`."""
    with cluster.cluster() as session:
        yield session


@pytest.fixture(scope="session", autouse=True)
def _kernels_stay_in_use() -> Iterator[None]:
    """No kernel is found unfit while the tests run, unless a test wants it so: all the others would not ask any."""
    yield
    gate = sys.modules.get("tallybayes.exact.kernels.gate")
    why = gate.why_off() if gate is not None else None
    assert why is None or "faster with Numba" in why, why


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With `-m core` only modules that have such tests are imported: others need packages that may not be there."""
    if config.option.markexpr == "core" and collection_path.name.startswith("test_") and collection_path.is_file():
        return "mark.core" not in collection_path.read_text("utf-8") or None
    return None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests of one group go to one worker: where xdist has lost the group, every worker would start a cluster."""
    if getattr(config.option, "loadgroup", False):
        lost = [i.nodeid for i in items if i.get_closest_marker("xdist_group") and "@" not in i.nodeid]
        if lost:
            raise pytest.UsageError(f"xdist has lost the group of {lost[0]}: this pytest is too new for it")


@pytest.fixture
def one_road(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels from the first row on, where nobody has said otherwise.

    They add floats up in another order than NumPy does. Left to themselves they come when enough has been counted to
    repay them, which may be between two answers that are held against each other to the last bit.
    """
    monkeypatch.setenv("TALLYBAYES_KERNELS", os.environ.get("TALLYBAYES_KERNELS", "on"))
