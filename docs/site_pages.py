"""Pages of the site that are made from other files, and links that work there as they do where the code is hosted.

Nothing here knows the program that builds the site: `generated` is a dict from a page's path to its text or bytes, and
`for_site` rewrites the links of one page. docs/site_hooks.py hands both to MkDocs.
"""

from __future__ import annotations

import base64
import importlib.util
import json
import posixpath
import re
from functools import cache
from pathlib import Path
from typing import Any

import draw_gallery

ROOT = Path(__file__).resolve().parents[1]
PAPERS = {  # of the repository as a whole: each that is there is a page
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "CODE_OF_CONDUCT.md": "conduct.md",
}
PLACES = {  # files of the repository that are pages of the site under another name
    **PAPERS,
    "README.md": "index.md",
    "docs/the_idea.py": "the_idea.md",
    "docs": "index.md",
    "notebooks": "lectures.md",
}
_LINK = re.compile(r"(?P<open>\]\()(?P<to>[^()\s]+)(?P<close>\))")
_FENCE = re.compile(r"^ *(`{3,}|~{3,})")
_AS_IT_IS = ("http:", "https:", "mailto:", "#")


class SiteError(Exception):
    """Something that no page can be made of: the build stops."""


def generated() -> dict[str, str | bytes]:
    """Every page and picture that is made, by its path on the site."""
    out: dict[str, str | bytes] = {
        **{page: text_of(name) for name, page in papers().items()},
        "the_idea.md": idea_page(text_of("docs/the_idea.py")),
        **reference(),
        **draw_gallery.pages(),
    }
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        out |= notebook(path)
    return out


def papers() -> dict[str, str]:
    """The papers that are there, and their pages."""
    return {name: page for name, page in PAPERS.items() if (ROOT / name).is_file()}


def text_of(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


# ---- links


def origin(page: str) -> str:
    """The file of the repository that a page is made of, which its links start from.

    >>> origin("changelog.md"), origin("notebooks/2_smoothing.md"), origin("text.md")
    ('CHANGELOG.md', 'notebooks/2_smoothing.ipynb', 'docs/text.md')
    """
    for source, place in PLACES.items():
        if place == page and source != "README.md" and (ROOT / source).is_file():
            return source
    if page.startswith("notebooks/"):
        return page.removesuffix(".md") + ".ipynb"
    return f"docs/{page}"


def place(source: str) -> str | None:
    """Where a file of the repository is on the site; None if it is not there.

    >>> place("CHANGELOG.md"), place("docs/text.md"), place("notebooks/2_smoothing.ipynb"), place("LICENSE")
    ('changelog.md', 'text.md', 'notebooks/2_smoothing.md', None)
    """
    if source in PLACES:
        return PLACES[source]
    if source.startswith("notebooks/") and source.endswith(".ipynb"):
        return source.removesuffix(".ipynb") + ".md"
    return source.removeprefix("docs/") if source.startswith("docs/") else None


def for_site(text: str, page: str) -> str:
    """A page's text with links that lead somewhere on the site, and fences whose first line is a language alone.

    >>> for_site("See [the changes](../CHANGELOG.md) and [how](files.md#globs).", "text.md")
    'See [the changes](changelog.md) and [how](files.md#globs).'
    """
    start = posixpath.dirname(origin(page))
    lines, fence = [], ""
    for line in text.split("\n"):
        met = _FENCE.match(line)
        if fence:
            fence = "" if met and line.strip().startswith(fence) else fence
        elif met:
            fence = met[1]
            line = re.sub(r"^( *[`~]+[\w-]+) .*$", r"\1", line)  # ```pycon spark: the second word is for the tests
        else:
            line = _LINK.sub(lambda link: link["open"] + mended(link["to"], start, page) + link["close"], line)
        lines.append(line)
    return "\n".join(lines)


def mended(to: str, start: str, page: str) -> str:
    """Where one link leads from a page: `to` as it stands in a file of the folder `start`."""
    if to.startswith(_AS_IT_IS):
        return to
    to, mark, anchor = to.partition("#")
    found = posixpath.normpath(posixpath.join(start, to)).rstrip("/")
    here = place(found)
    if here is None:
        if not (ROOT / found).is_file():
            raise SiteError(f"{origin(page)} links to {to}, which is neither a page nor a file of the repository")
        here = f"files/{found}"  # a copy as it is: see `copies`
    return posixpath.relpath(here, posixpath.dirname(page) or ".") + mark + anchor


def copies(pages: dict[str, str]) -> dict[str, bytes]:
    """Files outside the site that pages link to, each under files/."""
    out: dict[str, bytes] = {}
    for page, text in pages.items():
        for link in _LINK.finditer(for_site(text, page)):
            to = posixpath.normpath(posixpath.join(posixpath.dirname(page), link["to"].partition("#")[0]))
            if to.startswith("files/"):
                out[to] = (ROOT / to.removeprefix("files/")).read_bytes()
    return out


# ---- the idea, and the reference


def idea_page(code: str) -> str:
    return (
        "# The idea in 150 lines\n\nThe whole algorithm in the standard library: dicts and fractions, no package "
        "needed. The tests hold the fast code against it. It is `docs/the_idea.py` of the repository, and runs as it "
        "stands.\n\n"
        f"```python\n{code.rstrip()}\n```\n"
    )


@cache
def reference() -> dict[str, str]:
    """The pages about every public name, from their docstrings."""
    path = Path(__file__).with_name("reference_pages.py")
    if not path.exists():
        return {"reference/index.md": names_page()}
    spec = importlib.util.spec_from_file_location("reference_pages", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made: dict[str, str] = module.pages()
    return made


def names_page() -> str:
    """Every public name with the first sentence of its docstring: what there is until the pages are written."""
    import inspect

    import tallybayes as tb

    rows = []
    for name in sorted(tb.__all__, key=str.lower):
        says = (inspect.getdoc(getattr(tb, name)) or "").split("\n\n")[0].replace("\n", " ").replace("|", r"\|")
        rows.append(f"| `tb.{name}` | {says} |")
    return "# Reference\n\nThe public names.\n\n| name | |\n|---|---|\n" + "\n".join(rows) + "\n"


# ---- notebooks


def notebook(path: Path) -> dict[str, str | bytes]:
    """A notebook as a page with the outputs that it holds, its pictures, and the file itself to take away."""
    folder, name = "notebooks", path.stem
    out: dict[str, str | bytes] = {f"{folder}/{path.name}": path.read_bytes()}
    parts: list[str] = []
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        source = "".join(cell["source"]).strip("\n")
        if cell["cell_type"] == "markdown":
            parts.append(without_tex(source))
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            number = sum(at.endswith(".png") for at in out) + 1
            made, text = shown(output, f"{name}-{number}.png")
            parts.append(text)
            if made is not None:
                out[f"{folder}/{name}-{number}.png"] = made
    title, *rest = parts
    take = f'<p class="take"><a href="{path.name}" download>Take the notebook with you</a>: {path.name}</p>'
    head, _, below = title.partition("\n")
    out[f"{folder}/{name}.md"] = "\n\n".join([head, take, below.strip(), *rest]) + "\n"
    return out


def shown(output: dict[str, Any], picture: str) -> tuple[bytes | None, str]:
    """One output of a cell: the bytes of a picture if it is one, and its Markdown."""
    data = output.get("data", {})
    if "image/png" in data:
        return base64.b64decode(
            "".join(data["image/png"])
        ), f'<img class="drawn" src="{picture}" alt="What the cell above draws">'
    if "text/html" in data:
        return None, f'<div class="output">{"".join(data["text/html"])}</div>'
    text = "".join(output.get("text", data.get("text/plain", ""))).rstrip()
    fence = "```" if "```" not in text else "````"
    return None, f"{fence}{{ .text .output }}\n{text}\n{fence}"


_TEX = (
    (r"\\mathrm\{([^{}]*)\}", r"\1"),
    (r"\\frac\{([^{}]*)\}\{([^{}]*)\}", r"(\1)/(\2)"),
    (r"\\mid", "|"),
    (r"\\propto", "∝"),
    (r"\\cdots", "· …"),
    (r"\\cdot", "·"),
    (r"_([0-9])", lambda m: "₀₁₂₃₄₅₆₇₈₉"[int(m[1])]),
    (r"\((\d+)\)/\((\d+)\)", r"\1/\2"),
    (r"\((\d+)\)/", r"\1/"),
)


def without_tex(text: str) -> str:
    """A text whose few formulas are letters, so that no page loads a program to set them.

    >>> without_tex(r"the class $y$ with $P(y \\mid x_1)$")
    'the class *y* with *P(y | x₁)*'
    """
    text = re.sub(r"\$\$(.+?)\$\$", lambda m: f"> {plain(m[1])}", text)
    return re.sub(r"\$(.+?)\$", lambda m: plain(m[1]), text)


def plain(formula: str) -> str:
    for pattern, to in _TEX:
        formula = re.sub(pattern, to, formula)
    if "\\" in formula:
        raise SiteError(f"a formula of a notebook has a command that docs/site_pages.py does not know: {formula}")
    return f"*{formula}*"
