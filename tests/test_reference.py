"""The API reference: every public name has a docstring and an example that runs, and stands on one page, once."""

from __future__ import annotations

import doctest
import inspect
import io
import re
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import tallybayes as tb

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "docs"))

import public_names
import reference_pages
from public_names import ALIASES, MAIN, Name, examples, names

NAMES = list(names())
OWN = [n for n in NAMES if n.name not in ALIASES]  # another name of a thing says no more about it
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def problem_of(doc: str, name: str) -> str:
    """What goes wrong when the example of a docstring is pasted, with nothing imported but tb and np."""
    given = {"tb": tb, "np": np, "__name__": "__main__"}
    test = doctest.DocTestParser().get_doctest(doc, given, name, None, None)
    out = io.StringIO()
    runner = doctest.DocTestRunner(verbose=False, optionflags=FLAGS)
    runner.run(test, out=out.write)
    return out.getvalue() if runner.failures else ""


@pytest.mark.parametrize("name", OWN, ids=lambda n: n.name)
def test_a_public_name_has_a_docstring_and_an_example_that_runs_as_it_stands(
    name: Name, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert len(name.doc) > 20, f"{name.name} says nothing about itself"
    assert ">>>" in name.doc or name.name in examples(), (
        f"{name.name} has no example, here or in {public_names.EXAMPLES}"
    )
    for doc in [name.doc, *(m.doc for m in name.members.values() if m.home is name.value)]:
        if ">>>" in doc:
            problem = problem_of(doc, name.name)
            assert not problem, problem


@pytest.mark.parametrize("name", [n for n in OWN if n.members], ids=lambda n: n.name)
def test_every_method_has_a_docstring_and_those_of_the_main_classes_an_example(name: Name) -> None:
    silent = [m.name for m in name.members.values() if not m.doc]
    assert not silent, f"{name.name} has methods that say nothing: {silent}"
    if name.name in MAIN:
        verbs = [m for m in name.members.values() if m.kind != "property" and m.name not in name.inner]
        lacking = [m.name for m in verbs if ">>>" not in m.doc and f"{name.name}.{m.name}" not in examples()]
        assert verbs and not lacking, f"{name.name} has methods without an example: {lacking}"


def test_every_public_name_has_its_page() -> None:
    assert not public_names.without_a_page(), "add them to a group in docs/public_names.py"
    counted = Counter(n.name for n in NAMES)
    assert [n for n, times in counted.items() if times > 1] == []
    assert all(getattr(tb, a) is getattr(tb, b) for a, b in ALIASES.items())
    assert set(MAIN) <= set(counted)


def test_examples_and_inner_methods_belong_to_names_that_are_there() -> None:
    known = {n.name for n in NAMES} | {f"{n.name}.{m}" for n in NAMES for m in n.members}
    assert set(examples()) <= known, set(examples()) - known
    assert all(example.code.startswith(">>>") for example in examples().values())
    shown = [full for n in NAMES for full in (n.name, *(f"{n.name}.{m}" for m in n.members)) if full in examples()]
    for name in MAIN:  # a reader who goes down the page meets things in the order in which they are run
        own = [full for full in examples() if full.startswith(f"{name}.")]
        assert own == [full for full in shown if full.startswith(f"{name}.")]
    inner = {f"{name}.{m}" for name, members in public_names.INNER.items() for m in members}
    assert inner <= known, inner - known


# ---- the pages


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return reference_pages.pages()


def test_every_name_and_method_stands_on_the_pages_once_with_an_anchor(pages: dict[str, str]) -> None:
    found = Counter(
        a for text in pages.values() for a in re.findall(r"\{#([\w.]+)\}$|<span id=\"([\w.]+)\">", text, re.M)
    )
    anchors = Counter({a or b: times for (a, b), times in found.items()})
    wanted = [n.name for n in NAMES] + [f"{n.name}.{m}" for n in OWN for m in n.members]
    assert anchors == Counter(dict.fromkeys(wanted, 1)) and max(Counter(wanted).values()) == 1


def test_the_pages_are_the_same_twice_and_have_nothing_of_this_machine(pages: dict[str, str]) -> None:
    reference_pages.anchors.cache_clear()
    assert reference_pages.pages() == pages
    for path, text in pages.items():
        assert not re.search(r"0x[0-9a-f]{6,}|<factory>|<object|<function|/home/|/tmp/|/root/|site-packages", text), (
            path
        )
        assert text.count("```") % 2 == 0, path
        assert "<BLANKLINE>" not in text, path


def test_links_between_the_pages_lead_to_anchors(pages: dict[str, str]) -> None:
    anchors = {
        path: set(re.findall(r"\{#([\w.]+)\}$|<span id=\"([\w.]+)\">", text, re.M)) for path, text in pages.items()
    }
    there = {path: {a or b for a, b in found} for path, found in anchors.items()}
    links = 0
    for path, text in pages.items():
        for file, anchor in re.findall(r"\]\(([\w]+\.md)?(?:#([\w.]+))?\)", text):
            target = f"reference/{file}" if file else path
            assert target in pages and (not anchor or anchor in there[target]), f"{path}: {file}#{anchor}"
            links += 1
    assert links > 400


def test_a_page_shows_signature_docstring_example_and_methods(pages: dict[str, str]) -> None:
    page = pages["reference/model.md"]
    assert "## `tb.Model` {#Model}" in page and "### `Model.predict` {#Model.predict}" in page
    assert "predict(rows, *, prior=None, unsure_below: float | None = None, costs=None)" in page
    assert ">>> model.predict(today).tolist()" in page
    assert page.count(">>> model.what_if(") == 1  # what `help` shows is not shown again
    assert "Another name of [`tb.LogisticTwin`](#LogisticTwin)." in pages["reference/evaluation.md"]
    assert "- `rows`: that have no label now" in pages["reference/labelling.md"]  # said beside a field
    assert '"hour", "day", "week" or "month" that the column' in pages["reference/windows.md"]  # said in __init__
    assert "tb.metrics.accuracy(labels, p, weights=None) -> float" in pages["reference/metrics.md"]


# ---- how a docstring becomes Markdown


def shown(doc: str) -> str:
    return "\n".join(reference_pages.markdown(inspect.cleandoc(doc), NAMES[0]))


def test_a_table_of_fields_becomes_a_list() -> None:
    got = shown("First.\n\nform:     one of\n          several\nchanged:  rows added")
    assert got == "First.\n\n- `form`: one of several\n- `changed`: rows added\n"
    assert shown("name  text\nlonger_than_that  text") == "name  text longer\\_than\\_that  text\n"


def test_prose_is_safe_and_examples_are_code() -> None:
    assert shown("a_b < c*d, `a_b < c`") == "a\\_b \\< c\\*d, `a_b < c`\n"
    got = shown("Text.\n\n>>> 1\n1\n\n>>> 2\n2\n\n    x = y / z")
    assert got == "Text.\n\n```pycon\n>>> 1\n1\n\n>>> 2\n2\n```\n\n```text\nx = y / z\n```\n"
    assert "[`tb.Settings`](settings.md#Settings)" in shown("As `tb.Settings` says, `weights` and `fit` are.")


def test_an_example_that_is_not_true_is_found() -> None:
    assert problem_of(">>> tb.Laplace(1.0)\nLaplace(alpha=1.0)\n", "x") == ""
    assert "Laplace(alpha=1.0)" in problem_of(">>> tb.Laplace(1.0)\nLaplace(2)\n", "x")
    assert "NameError" in problem_of(">>> Laplace(1)\nLaplace(alpha=1.0)\n", "x")  # a reader has imported tb
