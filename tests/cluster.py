"""A real Spark cluster on this machine: a driver and two executor processes of one core each."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

SOURCES = Path(__file__).resolve().parents[1] / "src"

marks = [
    pytest.mark.xdist_group("spark"),  # one cluster is enough
    pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::ResourceWarning"),
]


def why_not() -> str | None:
    """Why no cluster can be started here, or None."""
    java = shutil.which("java") or os.path.join(os.environ.get("JAVA_HOME", ""), "bin", "java")
    if not os.path.exists(java):
        return "Spark needs Java 17, and there is no java on this machine"
    if subprocess.run([java, "-version"], capture_output=True).returncode != 0:
        return "Spark needs Java 17, and java -version fails here"
    try:
        import pyspark  # noqa: F401
    except ImportError:
        return "pyspark is not installed: pip install 'tallybayes[spark]'"
    return None


@contextmanager
def cluster() -> Iterator[Any]:
    """A session on a cluster of two executors; skipped, with the reason, where there cannot be one."""
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    import pyspark
    from pyspark.sql import SparkSession

    warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
    with tempfile.TemporaryDirectory(prefix="tallybayes-spark-") as folder, pytest.MonkeyPatch.context() as patch:
        for item in Path(pyspark.__file__).parent.iterdir():  # a home of its own: Spark writes its work there
            if item.name not in ("work", "__pycache__"):
                (Path(folder) / item.name).symlink_to(item)
        patch.setenv("SPARK_HOME", folder)
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        patch.delenv("SPARK_CONF_DIR", raising=False)
        settings = {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.shuffle.partitions": "4",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.warehouse.dir": os.path.join(folder, "warehouse"),
            "spark.executorEnv.PYTHONPATH": os.pathsep.join([str(SOURCES), *filter(None, sys.path)]),
            "spark.log.level": "ERROR",
        }
        builder = SparkSession.builder.master("local-cluster[2,1,1024]").appName("tallybayes tests")
        for name, value in settings.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        try:
            yield session
        finally:
            session.stop()


def executors(session: Any) -> set[int]:
    """The process ids of the executors that belong to this session's driver."""
    driver = session.sparkContext._gateway.proc.pid
    parents: dict[int, int] = {}
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            status = (folder / "stat").read_text().rpartition(")")[2].split()
            command = (folder / "cmdline").read_bytes()
        except OSError:  # it ended meanwhile
            continue
        parents[int(folder.name)] = int(status[1])
        if b"CoarseGrainedExecutorBackend" in command and status[0] != "Z":
            found.add(int(folder.name))

    def is_ours(pid: int) -> bool:
        while pid > 1 and pid != driver:
            pid = parents.get(pid, 1)
        return pid == driver

    return {pid for pid in found if is_ours(pid)}
