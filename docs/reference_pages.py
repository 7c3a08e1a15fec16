"""The API reference as Markdown, made from signatures, docstrings and docs/examples_of_names.md.

    python docs/reference_pages.py FOLDER

`pages()` gives {path: text}; the site writes them when it is built. The text is the same on every machine. Headings
have anchors (`{#Model.predict}`, Markdown's attr_list): the name itself, since `suspicious` and `Suspicious` are two.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))  # wherever this file is loaded from

from public_names import ALIASES, Group, Member, Name, examples, groups, names

WIDTH = 76  # of a line of a signature
SHARED = "sklearn.TallyClassifier"  # the base of the estimators, by which nobody calls it

# What comes back from a call and is never made by hand: which call that is
RESULTS = {
    "Tuned": "`tb.tune`", "Tally": "`tb.count`", "Model": "`tb.fit`, `tb.textbook` or `Tally.model`",
    "Evaluation": "`tb.cross_validate` or `tb.evaluate`", "FigureCurve": "`tb.learning_curve` or `tb.validation_curve`",
    "Comparison": "`tb.compare`", "ModelComparison": "`tb.compare_models`", "LogisticTwin": "`tb.logistic_twin`",
    "Neighbours": "`Nearest.fit`", "Explanation": "`Model.explain`", "WhatIf": "`Model.what_if`",
    "Left": "`Labelling.left` or `tb.relevant_left`", "PredictionSets": "`tb.prediction_sets`",
    "PredictedSets": "`Model.predict_set`", "Suspicious": "`tb.suspicious`", "SourceEffects": "`tb.sources`",
    "Changes": "`tb.change`", "Prequential": "`tb.prequential`", "JointDistribution": "`JointDistribution.of` or "
    "`JointDistribution.written`", "Sealed": "`tb.load_sealed`", "Reveals": "`Model.reveals` or `Tally.reveals`",
    "SharedCopy": "`Model.share`", "Calibrated": "`tb.fit`, as `model.settings.calibrated`", "WordVectors":
    "`WordVectors.of`", "Correction": "`tb.fit`, in `model.settings.corrections`",
}  # fmt: skip

# Annotations as a reader needs them
_SHORTER = (
    (r"\bcollections\.abc\.|\btyping\.|\btallybayes\.(?:\w+\.)*|\bcurves\.", ""),
    (r"str \| os\.PathLike\[str\]", "path"),
    (r"Callable\[\[.*?\], [\w\[\], .]+\]", "function"),
    (r"SettingsLike", "Settings | dict | None"),
    (r"\b(?:Floats|Ints|Bools)\b", "array"),
    (r"\bMapping\[[\w ]+, Any\]|\bAssignment\b", "dict"),
    (r"\bMapping\b", "dict"),
    (r"\bSequence\b", "list"),
    (r"\bnp\.random\.Generator\b", "Generator"),
    (r"\bpa\.Table\b", "pyarrow.Table"),
    (r"None \| None", "None"),
)

INTRODUCTION = """Every public name, with an example that runs. Examples take two imports for granted:

```python
import numpy as np
import tallybayes as tb
```

`import tallybayes` loads a name when it is first asked for. The examples of the methods of a class go on from each
other, top to bottom. [Commands](../commands.md) has the command line."""


def pages() -> dict[str, str]:
    """The pages of the reference, {"reference/index.md": text, …}."""
    out = {"reference/index.md": index()}
    for group in groups():
        out[f"reference/{group.file}.md"] = page(group)
    return out


def index() -> str:
    """All names with the first sentence of each, group by group."""
    out = ["# API reference", "", INTRODUCTION, ""]
    for group in groups():
        out += [f"## [{group.title}]({group.file}.md)", "", linked(group.about, "index"), ""]
        out += listed((f"[{title(n)}]({group.file}.md#{n.name})", n) for n in of_page(group))
    return "\n".join(out) + "\n"


def listed(lines: Iterator[tuple[str, Name | Member]]) -> list[str]:
    """Names with what each is, as a list: a table would break long names on a narrow page."""
    return [*(f"- {link}: {in_short(about)}" for link, about in lines), ""]


def in_short(of: Name | Member) -> str:
    if isinstance(of, Name) and of.name in ALIASES:
        return f"another name of `tb.{ALIASES[of.name]}`"
    return escaped(first_sentence(of.doc))


def first_sentence(doc: str) -> str:
    """The first paragraph up to its first full stop."""
    text = " ".join(doc.partition("\n\n")[0].split())
    found = re.match(r"(.*?[^.…]\.)(?= [A-Z`]|$)", text)
    return (found[1] if found else text).rstrip(".")


def of_page(group: Group) -> list[Name]:
    return [n for n in names() if n.page == group.file]


@cache
def anchors() -> dict[str, str]:
    """Where each name and each member of a class stands: {"Model.predict": "model.md#Model.predict"}."""
    out = {}
    for name in names():
        out[name.name] = f"{name.page}.md#{name.name}"
        out |= {f"{name.name}.{m}": f"{name.page}.md#{name.name}.{m}" for m in name.members}
    return out


def page(group: Group) -> str:
    """The page of one group."""
    out = [f"# {group.title}", "", linked(group.about, group.file), ""]
    found = of_page(group)
    if len(found) > 3:
        out += listed((f"[{title(n)}](#{n.name})", n) for n in found)
    for name in found:
        out += entry(name)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(out)).rstrip() + "\n"


def title(name: Name) -> str:
    return "What all estimators have" if name.name == SHARED else f"`{name.called}`"


def entry(name: Name) -> list[str]:
    """One name: heading, signature, docstring, examples, members."""
    out = [f"## {title(name)} {{#{name.name}}}", ""]
    if name.name in ALIASES:
        return [*out, linked(f"Another name of `tb.{ALIASES[name.name]}`.", name.page), ""]
    out += made_by(name) or (
        [] if is_error(name.value) or name.name == SHARED else signature_block(name.called, name.value)
    )
    out += markdown(name.doc, name)
    out += said_of_fields(name)
    out += shown_example(name.name, name)
    told = {m: member for m, member in name.members.items() if m not in name.inner}
    out += ["**Methods and properties**", ""] if told else []
    out += listed((f"[`{m}`](#{name.name}.{m})", member) for m, member in told.items())
    for member in told.values():
        out += member_entry(name, member)
    if name.inner:
        inner = ", ".join(f'<span id="{name.name}.{m}">`{m}`</span>' for m in sorted(name.inner))
        out += [f"Other parts of the package also call {inner}.", ""]
    return out


def is_error(value: Any) -> bool:
    """Whether it is raised by the package, and never made by hand."""
    return isinstance(value, type) and issubclass(value, Exception)


def made_by(name: Name) -> list[str]:
    """Instead of a signature, where a thing comes from that nobody makes by hand, and which fields it has."""
    if name.name not in RESULTS:
        return []
    fields = [f.name for f in dataclasses.fields(name.value) if not f.name.startswith("_")] if (
        dataclasses.is_dataclass(name.value)) else []  # fmt: skip
    told = f" Its fields: {', '.join(map(code, fields))}." if fields else ""
    return [linked(f"Comes from {RESULTS[name.name]}.", name.page) + told, ""]


def said_of_fields(name: Name) -> list[str]:
    """What the source says beside the fields of a class, and of how it is made, where the docstring does not."""
    if not isinstance(name.value, type) or is_error(name.value):
        return []
    if not dataclasses.is_dataclass(name.value):
        made = getattr(vars(name.value).get("__init__"), "__doc__", None)
        return markdown(inspect.cleandoc(made), name) if made else []
    known = {f.name for f in dataclasses.fields(name.value) if not f.name.startswith("_")}
    told = re.findall(r"^    (\w+): [^#\n]*  # (.+)$", inspect.getsource(name.value), flags=re.MULTILINE)
    fields = {
        field: text for field, text in told if field in known and not re.search(rf"^{field}\b", name.doc, re.MULTILINE)
    }
    return [*(f"- {code(field)}: {linked(text, name.page, name)}" for field, text in fields.items()), ""]


def code(text: str) -> str:
    return f"`{text}`"


def member_entry(name: Name, member: Member) -> list[str]:
    full = f"{name.name}.{member.name}"
    short = name.name.rpartition(".")[2]
    out = [f"### `{short}.{member.name}` {{#{full}}}", ""]
    if member.kind == "property":
        returned = shorter(inspect.signature(member.function).return_annotation)
        out += ["A property" + (f": {code(returned)}" if returned else "") + ".", ""]
    else:
        called = f"{short}.{member.name}" if member.kind == "class method" else member.name
        out += signature_block(called, member.function, bound=True)
    doc = without_example(member.doc) if full in examples() else member.doc
    return out + markdown(doc, name) + shown_example(full, name)


def without_example(doc: str) -> str:
    """A docstring without the example that `help` shows: the page has one that goes on from those before it."""
    return "\n\n".join(part for part in doc.split("\n\n") if not part.startswith(">>>"))


def shown_example(full: str, name: Name) -> list[str]:
    """The example of docs/examples_of_names.md, and the words before it."""
    found = examples().get(full)
    if found is None:
        return []
    begins = ["Its methods are shown with this:", ""] if found.begins and name.members else []
    return [*markdown(found.words, name), *begins, "```pycon", without_marks(found.code.rstrip()), "```", ""]


# ---- signatures


def signature_block(called: str, value: Callable[..., Any], bound: bool = False) -> list[str]:
    try:
        found = inspect.signature(value, follow_wrapped=False)
        if any(p.kind is p.VAR_POSITIONAL for p in found.parameters.values()) and hasattr(value, "__wrapped__"):
            found = inspect.signature(value)
    except (TypeError, ValueError):
        return []
    fields = {f.name: f for f in dataclasses.fields(value)} if dataclasses.is_dataclass(value) else {}
    given = [p for p in found.parameters.values() if not (bound and p.name in ("self", "cls"))]
    shown = [parameter(p, fields.get(p.name)) for p in given if not p.name.startswith("_")]
    stars = [i for i, p in enumerate(given) if p.kind is p.KEYWORD_ONLY]
    if stars and not any(p.kind is p.VAR_POSITIONAL for p in given):
        shown.insert(stars[0], "*")
    slashes = [i for i, p in enumerate(given) if p.kind is p.POSITIONAL_ONLY]
    if slashes:
        shown.insert(slashes[-1] + 1, "/")
    returned = "" if isinstance(value, type) else shorter(found.return_annotation)
    return ["```python", *wrapped(called, shown, f" -> {returned}" if returned not in ("", "None") else ""), "```", ""]


def parameter(p: inspect.Parameter, field: Any) -> str:
    star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
    said = shorter(p.annotation)
    default = p.default
    if field is not None and field.default_factory is not dataclasses.MISSING:
        default = field.default_factory()
    out = star + p.name + (f": {said}" if said else "")
    if p.default is p.empty:
        return out
    value = shown_default(default)
    return f"{out} = {value}" if said else f"{out}={value}"


def shown_default(value: Any) -> str:
    text = repr(value)
    return "…" if len(text) > 60 or " at 0x" in text or text.startswith("<") else text


def shorter(annotation: Any) -> str:
    """An annotation in few words; nothing where it may be anything."""
    if annotation is inspect.Parameter.empty:
        return ""
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    for pattern, by in _SHORTER:
        text = re.sub(pattern, by, text)
    return "" if text == "Any" else text


def wrapped(called: str, parameters: list[str], end: str) -> list[str]:
    """A call on one line, or its parameters on several."""
    line = f"{called}({', '.join(parameters)}){end}"
    if len(line) <= WIDTH:
        return [line]
    out = [f"{called}("]
    row = "   "
    for text in parameters:
        if len(row) + len(text) + 2 > WIDTH and row.strip():
            out.append(row)
            row = "   "
        row += f" {text},"
    return [*out, row, f"){end}"]


# ---- docstrings


def markdown(doc: str, name: Name) -> list[str]:
    """A docstring as Markdown: examples as pycon, tables of fields as lists, formulas as they stand."""
    out: list[str] = []
    blocks = re.split(r"\n\s*\n", doc) if doc else []
    for block in blocks:
        lines = block.splitlines()
        at = next((i for i, line in enumerate(lines) if line.startswith(">>>")), len(lines))
        out += prose(lines[:at], name)
        if lines[at:] and out[-2:] == ["```", ""] and at == 0 and out.count("```pycon"):
            out = [*out[:-2], "", *lines, "```", ""]  # an example that goes on after an empty line
        elif lines[at:]:
            out += ["```pycon", *lines[at:], "```", ""]
    return list(map(without_marks, out))


def without_marks(text: str) -> str:
    """An example as a terminal shows it: with empty lines where doctest wants them said."""
    return re.sub(r"^<BLANKLINE>$", "", text, flags=re.MULTILINE)


def prose(lines: list[str], name: Name) -> list[str]:
    """One block of a docstring that is no example."""
    if not lines:
        return []
    if all(line.startswith("    ") for line in lines):
        return ["```text", *(line[4:] for line in lines), "```", ""]
    fields = fields_of(lines)
    if fields:
        return [*(f"- {', '.join(map(code, n.split(', ')))}: {linked(t, name.page, name)}" for n, t in fields), ""]
    if lines[0].startswith("- "):
        joined = re.sub(r"\n\s+", " ", "\n".join(lines)).splitlines()
        return [*(f"- {linked(line[2:], name.page, name)}" for line in joined), ""]
    return [linked(" ".join(line.strip() for line in lines), name.page, name), ""]


def fields_of(lines: list[str]) -> list[tuple[str, str]]:
    """(name, text) of a table of fields, whose texts stand below each other; nothing where it is none."""
    starts = [m.end() for m in (re.match(r"(?:\w+(?:, \w+)*):?\s{2,}(?=\S)", line) for line in lines) if m]
    at = starts[0] if starts else 0
    out: list[tuple[str, str]] = []
    for line in lines:
        named = re.fullmatch(r"(\w+(?:, \w+)*):?\s*", line[:at])
        if not at or len(line) <= at or line[at] == " " or line[at - 1] != " ":
            return []
        if named:
            out.append((named[1], line[at:]))
        elif out and not line[:at].strip():
            out[-1] = (out[-1][0], f"{out[-1][1]} {line[at:]}")
        else:
            return []
    return out


def linked(text: str, page: str, name: Name | None = None) -> str:
    """A line of a docstring, safe as Markdown, with links where a code span names something of the reference."""
    out = []
    for i, part in enumerate(re.split(r"(`[^`]+`)", text)):
        target = target_of(part[1:-1], page, name) if i % 2 else ""
        out.append(f"[{part}]({target})" if target else part if i % 2 else escaped_plain(part))
    return "".join(out)


def target_of(span: str, page: str, name: Name | None) -> str:
    """Where a code span leads, seen from a page; "" if it is no public name, or stands there already."""
    said = span.removesuffix("()")
    bare = re.sub(r"^(?:tb|tallybayes)\.", "", said)
    known = anchors()
    full = next((f for f in (bare, f"{name.name}.{bare}" if name else "") if f in known), "")
    if not full or full == getattr(name, "name", "") or (said == full and full.islower() and "." not in full):
        return ""  # `fit` or `count` alone may mean a verb of something else
    where, _, at = known[full].partition("#")
    return f"#{at}" if where == f"{page}.md" else f"{where}#{at}"


def escaped(text: str) -> str:
    """The same without links."""
    return "".join(p if i % 2 else escaped_plain(p) for i, p in enumerate(re.split(r"(`[^`]+`)", text)))


def escaped_plain(text: str) -> str:
    """Text that is no code: its signs mean themselves, and a page of docs that it names is a link."""
    if pages := re.split(r"docs/(\w+\.md)", text)[1:]:
        before = text.partition("docs/")[0]
        return f"{escaped_plain(before)}[{pages[0]}](../{pages[0]}){escaped_plain(''.join(pages[1:]))}"
    return re.sub(r"([\\*_<\[\]])", r"\\\1", text)


if __name__ == "__main__":
    for path, written in pages().items():
        target = Path(sys.argv[1]) / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(written, encoding="utf-8")
