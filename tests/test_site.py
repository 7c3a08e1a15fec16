"""The site without building it: every page is in the menu, links are mended, and the check of the built site can fail.

`make docs` builds it; here nothing is drawn and MkDocs is not needed.
"""

from __future__ import annotations

import doctest
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "docs"))

import build_site
import check_site
import draw_gallery
import site_pages

ROOT = Path(__file__).resolve().parents[1]
MADE = {"the_idea.md", "gallery/index.md", "reference/index.md"}
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def menu() -> list[str]:
    _, _, nav = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")
    return re.findall(r"[\w/]+\.md", nav)


def test_menu_and_pages_agree():
    written = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    made = MADE | {f"notebooks/{path.stem}.md" for path in NOTEBOOKS}
    assert len(set(menu())) == len(menu())
    assert set(menu()) == written | made, "mkdocs.yml names every page once"
    assert not written & made


@pytest.mark.parametrize("room", ["howto", "decisions"])
def test_the_first_page_of_a_room_leads_to_every_other_in_the_order_of_the_menu(room):
    links = re.findall(r"\]\((\w+\.md)\)", (ROOT / "docs" / room / "index.md").read_text("utf-8"))
    assert [f"{room}/{link}" for link in links] == [page for page in menu() if page.startswith(f"{room}/")][1:]


def test_every_decision_says_what_was_asked_decided_tried_and_paid():
    pages = [path for path in (ROOT / "docs" / "decisions").glob("*.md") if path.stem != "index"]
    assert len(pages) >= 12
    for page in pages:
        heads = re.findall(r"^\*\*(\w[^*]*)\.\*\*", page.read_text("utf-8"), flags=re.MULTILINE)
        assert heads == ["Asked", "Decided", "Tried and measured", "What it costs"], page.name


# ---- links


@pytest.mark.parametrize("module", [site_pages, check_site, draw_gallery])
def test_examples_of_the_scripts_are_true(module):
    assert doctest.testmod(module).failed == 0


def test_every_link_of_every_page_leads_to_a_page_or_a_file():
    for path in (ROOT / "docs").rglob("*.md"):
        site_pages.for_site(path.read_text("utf-8"), path.relative_to(ROOT / "docs").as_posix())
    assert {"CONTRIBUTING.md", "CHANGELOG.md"} <= set(site_pages.papers())
    for name, page in site_pages.papers().items():
        site_pages.for_site(site_pages.text_of(name), page)


def test_links_are_mended_from_where_the_file_stands():
    mended = site_pages.for_site("[a](docs/text.md) [b](LICENSE) [c](https://x.org/y.md)", "changelog.md")
    assert mended == "[a](text.md) [b](files/LICENSE) [c](https://x.org/y.md)"
    mended = site_pages.for_site("[a](../text.md#b) [n](../../notebooks/2_smoothing.ipynb)", "howto/x.md")
    assert mended == "[a](../text.md#b) [n](../notebooks/2_smoothing.md)"
    assert site_pages.for_site("```pycon spark\n[a](nowhere.md)\n```", "text.md") == "```pycon\n[a](nowhere.md)\n```"
    assert set(site_pages.copies({"changelog.md": "[b](LICENSE)"})) == {"files/LICENSE"}


def test_a_link_out_of_the_site_to_nothing_is_refused():
    with pytest.raises(site_pages.SiteError, match=r"docs/text.md links to \.\./nothing.txt"):
        site_pages.for_site("[a](../nothing.txt)", "text.md")


# ---- notebooks and gallery


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_becomes_a_page_with_its_pictures_and_without_formulas(path):
    made = site_pages.notebook(path)
    page = made.pop(f"notebooks/{path.stem}.md")
    assert made.pop(f"notebooks/{path.name}") == path.read_bytes()
    assert "$" not in re.sub(r"```.*?```", "", page, flags=re.DOTALL)
    assert made
    for name, picture in made.items():
        assert picture.startswith(b"\x89PNG") and f'src="{name.removeprefix("notebooks/")}"' in page
    assert page.startswith("# ") and page.count("```") % 2 == 0


def test_a_formula_that_nobody_can_read_stops_the_build():
    assert site_pages.without_tex(r"$\frac{3}{5} \cdot \frac{2+1}{3+3} \cdots$") == "*3/5 · (2+1)/(3+3) · …*"
    with pytest.raises(site_pages.SiteError, match="does not know"):
        site_pages.without_tex(r"$\sum x$")


def test_every_script_is_in_the_gallery_with_a_title_a_caption_and_few_lines():
    named = [name for names in draw_gallery.GROUPS.values() for name in names]
    assert sorted(named) == sorted(path.stem for path in (ROOT / "docs" / "gallery").glob("*.py"))
    assert len(named) >= 20
    for name in named:
        script = draw_gallery.Script.read(name)
        lines = [line for line in script.code.splitlines() if line and not line.startswith(("import ", "from "))]
        assert len(lines) <= 18, f"docs/gallery/{name}.py is {len(lines)} lines long: ten are enough"
        assert script.title and script.caption and script.code.endswith("plt.show()")


# ---- the check can fail

GOOD = {
    "index.html": '<article><h1 id="a">A</h1><a href="b.html#there">b</a><a href="c.html">c</a></article>',
    "b.html": '<article><h1>B</h1><p id="there"><a href="howto/forget_a_person.html">f</a></p></article>',
    "c.html": '<article><h1>C</h1><a href="numbers.html#x">n</a><img src="p.svg" alt="p"></article>',
    "howto/forget_a_person.html": "<article><h1>F</h1><a href='../index.html'>back</a></article>",
    "numbers.html": '<article><h1 id="x">N</h1></article>',
    "p.svg": "<svg></svg>",
}


def problems(folder: Path, **changed: str) -> list[str]:
    for name, text in {**GOOD, **{name.replace("__", "/") + ".html": text for name, text in changed.items()}}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    return check_site.problems(folder)


def test_a_good_site_has_no_problems(tmp_path):
    assert problems(tmp_path) == []


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ('<a href="d.html">d</a>', "b.html: d.html leads nowhere"),
        ('<a href="c.html#d">d</a>', "b.html: c.html#d leads to a page without that place"),
        ('<img src="q.png" alt="">', "b.html: q.png leads nowhere"),
        ('<img src="p.svg">', "b.html: a picture without a word for those who cannot see it: p.svg"),
        ('<script src="https://cdn.example/x.js"></script>', "b.html: loads https://cdn.example/x.js from elsewhere"),
        ('<link rel="stylesheet" href="//fonts.example/f.css">', "b.html: loads //fonts.example/f.css from elsewhere"),
        ('<p id="there"></p>', "b.html: two places have the id 'there'"),
        ("<h1>again</h1>", "b.html: 2 headings of the first rank"),
    ],
)
def test_what_is_wrong_with_a_page_is_found(tmp_path, more, said):
    assert problems(tmp_path, b=GOOD["b.html"] + more) == [said]


def test_a_page_that_nobody_leads_to_and_a_style_that_loads_are_found(tmp_path):
    (tmp_path / "s.css").write_text("@import 'https://fonts.example/f.css'")
    found = problems(tmp_path, alone="<article><h1>Alone</h1></article>")
    assert found == ["s.css: loads something from elsewhere", "alone.html: no page leads there"]


def test_what_people_ask_first_is_two_links_away_by_the_texts_alone(tmp_path):
    menu = '<nav><a href="howto/forget_a_person.html">f</a></nav>'
    found = problems(tmp_path, b=menu + '<article><h1>B</h1><p id="there"></p></article>')
    assert found == ["'how do I forget a person': howto/forget_a_person.html is more than 2 links from index.html"]


def test_files_that_differ_between_two_builds_are_named(tmp_path):
    for folder, files in {"one": {"a": "1", "b": "2"}, "two": {"a": "1", "b": "3", "c": ""}}.items():
        for name, text in files.items():
            (tmp_path / folder).mkdir(exist_ok=True)
            (tmp_path / folder / name).write_text(text)
    assert build_site.different(tmp_path / "one", tmp_path / "two") == ["b", "c"]
