"""What the pages show is what the code does: every block and every example runs, and every output is compared."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import io
import math
import pkgutil
import re
import shlex
import subprocess
import sys
import traceback
import warnings
from dataclasses import dataclass
from pathlib import Path

import command_line
import numpy as np
import pytest

import tallybayes as tb

ROOT = Path(__file__).resolve().parents[1]
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md"]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
SKIPPED = {"tallybayes.exact.kernels.moments"}  # Numba twins: compiled on import, and without examples
MODULES = sorted({m.name for m in pkgutil.walk_packages(tb.__path__, "tallybayes.")} - SKIPPED)

_FIGURE = re.compile(r"\d[\d,]*\.\d+|\d[\d,]*(?= (?:bytes|characters))")
_FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,}|~{3,})(?P<language>[\w-]*)(?P<more>[^\n]*)$")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, the line of the page it starts on, and the text before it."""

    language: str
    text: str
    line: int  # of the first line inside the fence, counted from 0
    before: str  # everything since the block before this one
    more: str = ""  # what stands behind the language

    @property
    def runs(self) -> bool:
        return self.language in ("python", "pycon", "console") and not self.spark

    @property
    def lacks(self) -> str | None:
        """The package that the block needs (```pycon needs-mlflow) and that is not installed."""
        needed = [word.removeprefix("needs-") for word in self.more.split() if word.startswith("needs-")]
        return next((name for name in needed if importlib.util.find_spec(name) is None), None)

    @property
    def spark(self) -> bool:
        """Whether the block needs a cluster (```pycon spark): test_spark.py runs it."""
        return "spark" in self.more.split()

    @property
    def warns(self) -> bool:
        """Whether the paragraph above the block announces a warning."""
        paragraphs = [p for p in re.split(r"\n\s*\n", self.before) if p.strip()]
        return bool(paragraphs) and "warn" in paragraphs[-1].lower()


def blocks_of(page: str) -> list[Block]:
    """The fenced blocks of a Markdown page, in order."""
    found: list[Block] = []
    lines = page.splitlines()
    before: list[str] = []
    at = 0
    while at < len(lines):
        opening = _FENCE.match(lines[at])
        if opening is None:
            before.append(lines[at])
            at += 1
            continue
        start = at + 1
        indent, fence = len(opening["indent"]), opening["fence"]
        at = start
        while at < len(lines) and not lines[at].strip().startswith(fence):
            at += 1
        text = "".join(line[indent:] + "\n" for line in lines[start:at])
        found.append(Block(opening["language"].lower(), text, start, "\n".join(before), opening["more"]))
        before = []
        at += 1
    return found


def problem_in(block: Block, names: dict[str, object], file: str) -> str | None:
    """Run one block in the page's namespace; what went wrong with file and line, or None."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if block.warns:
            warnings.simplefilter("ignore", tb.TallybayesWarning)
        if block.spark or "needs-" in block.more:  # pyspark's own and others', about the versions of their neighbours
            for kind in (FutureWarning, DeprecationWarning, ResourceWarning):
                warnings.simplefilter("ignore", kind)
        runner = {"pycon": run_pycon, "console": run_console}.get(block.language, run_python)
        return runner(block, names, file)


def run_python(block: Block, names: dict[str, object], file: str) -> str | None:
    code = "\n" * block.line + block.text  # so that tracebacks have the page's lines
    try:
        exec(compile(code, file, "exec"), names)
    except Exception as error:
        inside = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == file]
        line = inside[-1] if inside else getattr(error, "lineno", None) or block.line + 1
        return f"{file}, line {line}: {type(error).__name__}: {error}"
    return None


def run_pycon(block: Block, names: dict[str, object], file: str) -> str | None:
    try:
        examples = doctest.DocTestParser().get_examples(block.text, file)
    except ValueError as error:
        return f"{file}, line {block.line + 1}: {error}"
    if not examples:
        return f"{file}, line {block.line + 1}: a pycon block without a prompt (>>>)"
    test = doctest.DocTest(examples, {}, file, file, block.line, block.text)
    test.globs = names  # the page's own, not a copy: what a block defines the next one knows
    out = io.StringIO()
    runner = doctest.DocTestRunner(verbose=False, optionflags=FLAGS)
    runner.run(test, out=out.write, clear_globs=False)
    return out.getvalue() if runner.failures else None


def run_console(block: Block, names: dict[str, object], file: str) -> str | None:
    """Run every `$ tallybayes …` and compare what a terminal would show; an error may be shown, but not met."""
    steps = re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]
    if not steps:
        return f"{file}, line {block.line + 1}: a console block without a prompt ($)"
    for step in steps:
        command, _, want = step.partition("\n")
        if not command.startswith("tallybayes ") or "|" in command:
            return f"{file}: only tallybayes, with < FILE at most, is run in a console block: {command}"
        done = command_output(command)
        if not alike(want, done.out) or (done.returncode and "tallybayes: " not in want):
            return f"{file}, after line {block.line}: $ {command} (exit code {done.returncode})\n{done.out}"
    return None


def command_output(command: str) -> command_line.Done:
    """What `tallybayes … < FILE` shows on a terminal of 80 columns."""
    words, given = shlex.split(command), b""
    if "<" in words:
        words, (source,) = words[: words.index("<")], words[words.index("<") + 1 :]
        given = Path(source).read_bytes()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "80")
        return command_line.run(*words[1:], given=given, together=True)


def alike(want: str, got: str) -> bool:
    """Whether two screens say the same: words and counts exactly, other figures to a tenth.

    What is chosen on held-out rows, the size of a file and the length of a rule depend a little on the machine.
    """
    screens = [_FIGURE.sub("#", re.sub("─+", "─", text.strip() + "\n")) for text in (want, got)]
    if not doctest.OutputChecker().check_output(*screens, FLAGS):
        return False
    wanted, found = ([float(n.replace(",", "")) for n in _FIGURE.findall(text)] for text in (want, got))
    return len(wanted) != len(found) or all(
        math.isclose(a, b, rel_tol=0.1, abs_tol=0.03) for a, b in zip(wanted, found, strict=True)
    )


def where(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=where)
def test_every_block_of_a_page_runs_and_shows_the_truth(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # what a page writes is not left behind
    blocks = [b for b in blocks_of(page.read_text("utf-8")) if b.runs] if page.exists() else []
    if page.parent.name == "docs" or (page.parent.name == "howto" and page.stem != "index"):
        assert blocks, f"{where(page)} has no block that runs: fence it with ```python, ```pycon or ```console"
    if any(b.lacks for b in blocks) and all(b.lacks for b in blocks):
        pytest.skip(f"{blocks[0].lacks} is not installed")
    blocks = [b for b in blocks if b.lacks is None]
    names: dict[str, object] = {"__name__": "__main__"}
    problems = [p for p in (problem_in(b, names, where(page)) for b in blocks) if p is not None]
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")  # what one page draws is not held against the next
    assert not problems, "\n".join(["", *problems])


@pytest.mark.parametrize("example", EXAMPLES, ids=where)
def test_every_example_runs(example, tmp_path):
    done = subprocess.run(
        [sys.executable, str(example)], cwd=tmp_path, capture_output=True, text=True, encoding="utf-8", timeout=120
    )
    assert done.returncode == 0, f"{where(example)} ended with {done.returncode}:\n{done.stderr}"
    assert done.stdout.strip(), f"{where(example)} shows nothing"


@pytest.mark.parametrize("name", MODULES)
def test_every_example_in_a_docstring_is_true(name, tmp_path, monkeypatch):
    try:
        module = importlib.import_module(name)
    except tb.MissingExtra as error:
        pytest.skip(str(error))
    except ModuleNotFoundError as error:
        if error.name not in ("numba", "llvmlite"):
            raise
        pytest.skip("Numba is not installed, and this module is made of it")
    monkeypatch.chdir(tmp_path)  # what an example writes is not left behind
    out = io.StringIO()
    runner = doctest.DocTestRunner(verbose=False, optionflags=FLAGS)
    given = {"tb": tb, "np": np}  # examples of public names take them as imported: tests/test_reference.py
    for test in doctest.DocTestFinder(exclude_empty=True).find(module, name, extraglobs=given):
        runner.run(test, out=out.write)
    assert runner.failures == 0, f"{module.__file__}\n{out.getvalue()}"


# ---- the runner itself can fail

PAGE = """A page.

```python
x = 2
```

```pycon
>>> x + 1
3
```

```text
not run
```
"""


def problems_of(page: str) -> list[str]:
    names: dict[str, object] = {}
    found = [problem_in(b, names, "page.md") for b in blocks_of(page) if b.runs]
    return [p for p in found if p is not None]


def test_a_page_that_tells_the_truth_passes():
    assert [(b.language, b.line) for b in blocks_of(PAGE)] == [("python", 3), ("pycon", 7), ("text", 12)]
    assert problems_of(PAGE) == []


def test_a_wrong_output_is_found_with_its_file_and_line():
    (problem,) = problems_of(PAGE.replace("3\n```", "4\n```"))
    assert 'File "page.md", line 8' in problem and "Expected:\n    4\nGot:\n    3" in problem


def test_a_failing_block_is_found_with_its_file_and_line():
    (problem,) = problems_of("Text.\n\n```python\na = 1\nb = a / 0\n```\n")
    assert problem == "page.md, line 5: ZeroDivisionError: division by zero"


def test_a_block_without_a_prompt_is_found():
    (problem,) = problems_of("```pycon\n3\n```\n")
    assert problem.startswith("page.md, line 2: a pycon block without a prompt")


def test_a_command_that_says_something_else_or_fails_is_found():
    assert problems_of("```console\n$ tallybayes --version\ntallybayes, version ...\n```\n") == []
    assert alike("loss 0.4512, 9,100 bytes\n───", "loss 0.4533, 9,000 bytes\n──")
    assert not alike("loss 0.4512", "loss 0.7512") and not alike("12 rows", "13 rows")
    for page in ("$ tallybayes --version\n1", "$ tallybayes fit nothing.csv --target x", "tallybayes", "$ ls"):
        assert len(problems_of(f"```console\n{page}\n```\n")) == 1


WARNING = """{text}

```python
import tallybayes as tb
tb.Model.written({{"yes": 0.75, "no": 0.26}})
```
"""


def test_a_warning_passes_only_where_the_text_announces_it():
    (problem,) = problems_of(WARNING.format(text="Priors are normalised."))
    assert problem.startswith("page.md, line 5: TallybayesWarning: the priors add up to 1.01")
    assert problems_of(WARNING.format(text="Priors are normalised, with a warning.")) == []
    (problem,) = problems_of(WARNING.format(text="This warns.\n\nOf something else."))
    assert "TallybayesWarning" in problem
