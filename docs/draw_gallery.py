"""The gallery: every script of docs/gallery is run, and what it draws is a picture for light pages and one for dark.

`python docs/draw_gallery.py FOLDER` writes the pictures there to look at. A script is what a reader can copy: its
docstring is title and caption, and below it are about ten lines. The same script gives the same bytes.
"""

from __future__ import annotations

import ast
import io
import re
import runpy
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent / "gallery"
GROUPS = {
    "How an answer comes about": ("waterfall", "nomogram", "along_a_number", "what_would_change_it", "words"),
    "What is counted, and what is believed": (
        "number", "category", "three_families", "regions", "beta", "dirichlet", "smoothing", "joint_table", "twin",
    ),
    "How good it is": (
        "reliability", "confusion", "roc", "precision_recall", "learning_curve", "bandwidth", "importance",
    ),
    "Promises and choices": ("sets", "costs", "labelling", "wrong_labels"),
    "Rows that come and go": ("forgetting", "windows", "drift"),
}  # fmt: skip
INK, GRID = "#010203", "#020304"  # stand in a drawing for the page's own colours
PAPER = {"light": {INK: "#1c2128", GRID: "#d8dee4"}, "dark": {INK: "#e6e8eb", GRID: "#3a4049"}}
STYLE: dict[str, Any] = {
    "svg.fonttype": "path",  # the same picture whatever letters the reader has
    "svg.hashsalt": "tallybayes",
    "figure.constrained_layout.use": True,
    "figure.figsize": (6.4, 3.8),
    "font.size": 10,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "grid.color": GRID,
    "axes.prop_cycle": "cycler('color', ['3a86c8', 'e0762f', '3d9a5f', 'cf4a5b', '8a66cf', 'a8763e', 'd06aa8'])",
    **dict.fromkeys(
        ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color", "axes.titlecolor"), INK
    ),
    **dict.fromkeys(("figure.facecolor", "axes.facecolor", "savefig.facecolor"), "none"),
}


@dataclass(frozen=True)
class Script:
    """One script of the gallery: its name, title, caption and the lines to copy."""

    name: str
    title: str
    caption: str
    code: str

    @classmethod
    def read(cls, name: str) -> Script:
        text = (HERE / f"{name}.py").read_text("utf-8")
        tree = ast.parse(text)
        title, _, caption = (ast.get_docstring(tree) or "").partition("\n")
        if not title.endswith((".", "?")) or not caption.strip():
            raise ValueError(f"docs/gallery/{name}.py: its docstring is a title, a blank line and a caption")
        below = text.splitlines()[tree.body[0].end_lineno :]
        return cls(name, title.removesuffix("."), " ".join(caption.split()), "\n".join(below).strip())


def drawn(name: str) -> dict[str, str]:
    """The picture of a script as SVG, for light and for dark pages."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    plt.close("all")
    out = io.StringIO()
    with warnings.catch_warnings(), matplotlib.rc_context(STYLE):
        warnings.simplefilter("error")
        shown, plt.show = plt.show, lambda *_, **__: None  # the page shows it
        try:
            runpy.run_path(str(HERE / f"{name}.py"), run_name="__main__")
        finally:
            plt.show = shown
        if len(plt.get_fignums()) != 1:
            raise ValueError(f"docs/gallery/{name}.py draws {len(plt.get_fignums())} figures, not one")
        plt.gcf().savefig(
            out, format="svg", transparent=True, metadata={"Date": None, "Creator": None, "Format": None, "Type": None}
        )
    plt.close("all")
    text = out.getvalue()
    return {paper: _inked(text, inks) for paper, inks in PAPER.items()}


def _inked(text: str, inks: dict[str, str]) -> str:
    for placeholder, ink in inks.items():
        text = text.replace(placeholder, ink)
    return text


def pages() -> dict[str, str | bytes]:
    """The page of the gallery and its pictures, by their places on the site."""
    out: dict[str, str | bytes] = {}
    tiles, sections = [], []
    for group, names in GROUPS.items():
        sections.append(f"## {group}")
        tiles.append(f'<p class="group">{group}</p>')
        for name in names:
            script = Script.read(name)
            made = drawn(name)
            size = _size(made["light"])
            out |= {f"gallery/{name}-{paper}.svg": svg for paper, svg in made.items()}
            tiles.append(f'<a class="tile" href="#{name}">{_picture(name, "", size)}<span>{script.title}</span></a>')
            sections.append(
                f'### {script.title} {{ #{name} }}\n\n{script.caption}\n\n<figure class="drawn">'
                f"{_picture(name, script.title, size)}</figure>\n\n```python\n{script.code}\n```"
            )
    head = (
        f"# Gallery\n\n{sum(map(len, GROUPS.values()))} pictures, each with the lines that draw it. The data are "
        "invented or computed here, so every one of them runs anywhere: "
        "`pip install 'tallybayes[plot]'`, copy, run. They are drawn anew whenever this site is built."
    )
    strip = '<div class="tiles">' + "\n".join(tiles) + "</div>"
    out["gallery/index.md"] = "\n\n".join([head, strip, *sections]) + "\n"
    return out


def _size(svg: str) -> str:
    """Width and height of a picture as attributes, so that a page keeps room for it before it is there."""
    wide, high = (float(re.search(rf'{side}="([\d.]+)pt"', svg)[1]) for side in ("width", "height"))
    return f'width="{wide:.0f}" height="{high:.0f}"'


def _picture(name: str, title: str, size: str) -> str:
    return "".join(
        f'<img class="only-{paper}" src="{name}-{paper}.svg" alt="{title}" {size} loading="lazy">' for paper in PAPER
    )


def main(folder: str, *names: str) -> None:
    """Write pictures into a folder, all of them or those named."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name in names or sorted(path.stem for path in HERE.glob("*.py")):
        for paper, svg in drawn(name).items():
            (Path(folder) / f"{name}-{paper}.svg").write_text(svg, "utf-8")
        print(name)


if __name__ == "__main__":
    main(*sys.argv[1:])
