"""Build the site into build/site, check it, and build it a second time to see that the bytes are the same.

    python docs/build_site.py [--once]

Warnings are errors. The second build has another clock, another order of hashing and another folder.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import check_site

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "build" / "site"
DATED = "315532800"  # 1980, the first day that every format of archives knows: no page depends on when it was built


def build(folder: Path, **further: str) -> bool:
    """Let MkDocs build the site into a folder; whether it could."""
    environment = {
        **os.environ,
        "SOURCE_DATE_EPOCH": os.environ.get("SOURCE_DATE_EPOCH", DATED),
        "NO_MKDOCS_2_WARNING": "1",  # docs/decisions/site.md says what becomes of it
        "PYTHONPATH": str(ROOT / "src"),
        **further,
    }
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    return subprocess.run(command, cwd=ROOT, env=environment).returncode == 0


def different(one: Path, other: Path) -> list[str]:
    """Files that are not in both folders with the same bytes."""
    names = {p.relative_to(folder).as_posix() for folder in (one, other) for p in folder.rglob("*") if p.is_file()}
    return sorted(
        name
        for name in names
        if not ((one / name).is_file() and (other / name).is_file())
        or (one / name).read_bytes() != (other / name).read_bytes()
    )


def main(*arguments: str) -> int:
    """0 if the site could be built, holds together, and comes out the same again."""
    if not build(SITE, PYTHONHASHSEED="1") or check_site.main(str(SITE)):
        return 1
    if "--once" in arguments:
        return 0
    with tempfile.TemporaryDirectory() as folder:
        if not build(Path(folder), PYTHONHASHSEED="2", TZ="Pacific/Auckland", LC_ALL="C.UTF-8", COLUMNS="60"):
            return 1
        found = different(SITE, Path(folder))
    print(*(f"built twice, and different: {name}" for name in found), sep="\n", file=sys.stderr)
    count = sum(path.is_file() for path in SITE.rglob("*"))
    print(f"built twice: {count} files, {len(found)} of them different")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
