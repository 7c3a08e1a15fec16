"""Write what the commands print now into a page: `python tests/refill.py docs/first_steps.md`, then read the diff.

Blocks with an ellipsis are left as they are: somebody chose what they leave out.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path

from test_docs import blocks_of, command_output, run_python


def refill(page: Path) -> str:
    """The page with every console block as it would be today."""
    text = page.read_text("utf-8")
    lines = text.splitlines()
    names: dict[str, object] = {"__name__": "__main__"}
    for block in blocks_of(text):
        if block.language == "python":
            run_python(block, names, page.name)
        if block.language != "console" or "..." in block.text:
            continue
        steps = [step.partition("\n")[0] for step in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]]
        new = "".join(f"$ {step}\n{command_output(step).out.rstrip()}\n" for step in steps)
        text = text.replace("\n".join(lines[block.line - 1 : block.line]) + "\n" + block.text, "```console\n" + new, 1)
    return text


if __name__ == "__main__":
    for given in map(Path, sys.argv[1:]):
        path = given.resolve()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            path.write_text(refill(path), "utf-8")
