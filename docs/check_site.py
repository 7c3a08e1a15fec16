"""Whether the built site holds together: `python docs/check_site.py build/site`.

Every link, picture, script and fragment inside the site leads somewhere; nothing is loaded from elsewhere; every page
can be reached; and what people ask first is at most two links from the start page. Addresses elsewhere are not fetched.
"""

from __future__ import annotations

import posixpath
import re
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

START = "index.html"
ASKED_FIRST = {  # what a reader asks first, and where it is answered
    "how do I forget a person": "howto/forget_a_person.html",
    "what does this number mean": "numbers.html",
}
LINKS = 2
_VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}


@dataclass
class Page:
    """What one page of HTML names: its ids, and where it leads."""

    ids: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)  # of the whole page
    own: list[str] = field(default_factory=list)  # of its text alone, without menus
    loads: list[str] = field(default_factory=list)  # pictures, scripts, styles
    heads: int = 0
    problems: list[str] = field(default_factory=list)


class _Reader(HTMLParser):
    """Fills a Page."""

    def __init__(self) -> None:
        super().__init__()
        self.page = Page()
        self.inside = 0  # how deep in the <article>

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        said = {name: value or "" for name, value in attributes}
        if tag == "article" or self.inside:
            self.inside += tag not in _VOID
        if "id" in said:
            self.page.ids.append(said["id"])
        if tag == "a" and "href" in said:
            self.page.links.append(said["href"])
            if self.inside:
                self.page.own.append(said["href"])
        if tag in ("img", "script", "source", "iframe") and "src" in said:
            self.page.loads.append(said["src"])
        if tag == "link" and said.get("rel") not in ("canonical", "prev", "next", "alternate", "edit"):
            self.page.loads.append(said.get("href", ""))
        if tag == "img" and "alt" not in said:
            self.page.problems.append(f"a picture without a word for those who cannot see it: {said.get('src')}")
        self.page.heads += tag == "h1"

    def handle_endtag(self, tag: str) -> None:
        if self.inside and tag not in _VOID:
            self.inside -= 1


def read(folder: Path) -> dict[str, Page]:
    """Every page below a folder, by its path there."""
    out = {}
    for path in sorted(folder.rglob("*.html")):
        reader = _Reader()
        reader.feed(path.read_text("utf-8"))
        reader.close()
        out[path.relative_to(folder).as_posix()] = reader.page
    return out


def target(page: str, link: str) -> tuple[str, str] | None:
    """The file and fragment that a link of a page leads to inside the site; None if it leads elsewhere.

    >>> target("howto/merge.html", "../text.html#words"), target("text.html", "#words"), target("a.html", "https://x.org")
    (('text.html', 'words'), ('text.html', 'words'), None)
    """
    found = urlsplit(link)
    if found.scheme or found.netloc:
        return None
    if not found.path:
        return page, unquote(found.fragment)
    start = "" if found.path.startswith("/") else posixpath.dirname(page)  # 404.html is shown anywhere
    path = posixpath.normpath(posixpath.join(start, unquote(found.path).lstrip("/")))
    if found.path.endswith("/") or path == ".":
        path = posixpath.normpath(posixpath.join(path, "index.html"))
    return path, unquote(found.fragment)


def problems(folder: Path) -> list[str]:
    """What is wrong with the site, a line each."""
    pages = read(folder)
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    out = [f"{START} is not there"] if START not in pages else []
    for name, page in pages.items():
        out += [f"{name}: {problem}" for problem in page.problems]
        out += [f"{name}: two places have the id {i!r}" for i in sorted({i for i in page.ids if page.ids.count(i) > 1})]
        if page.heads != 1 and name != "404.html":
            out.append(f"{name}: {page.heads} headings of the first rank")
        for link in page.links:
            out += _broken(name, link, pages, files)
        for link in page.loads:
            out += [f"{name}: loads {link} from elsewhere"] if target(name, link) is None else []
            out += _broken(name, link, pages, files)
    out += [f"{name}: loads something from elsewhere" for name in _styles_that_load(folder)]
    if START in pages:
        out += [f"{name}: no page leads there" for name in sorted(set(pages) - reached(pages) - {"404.html"})]
        out += far(pages)
    return out


def _broken(name: str, link: str, pages: dict[str, Page], files: set[str]) -> list[str]:
    found = target(name, link)
    if found is None:
        return []
    path, fragment = found
    if path not in files:
        return [f"{name}: {link} leads nowhere"]
    if fragment and path in pages and fragment not in pages[path].ids and not fragment.startswith("__"):
        return [f"{name}: {link} leads to a page without that place"]
    return []


def _styles_that_load(folder: Path) -> list[str]:
    """Styles and pictures that ask for something from another host."""
    asks = re.compile(r"""(?:url\(|@import|(?:href|src)=)\s*["']?(?:https?:)?//""")
    paths = [path for end in ("css", "svg") for path in sorted(folder.rglob(f"*.{end}"))]
    return [p.relative_to(folder).as_posix() for p in paths if asks.search(p.read_text("utf-8"))]


def _next(pages: dict[str, Page], name: str, *, own: bool) -> set[str]:
    found = (target(name, link) for link in (pages[name].own if own else pages[name].links))
    return {path for path, _ in filter(None, found) if path in pages}


def reached(pages: dict[str, Page]) -> set[str]:
    """The pages that can be reached from the start page by any links."""
    seen, todo = {START}, [START]
    while todo:
        new = _next(pages, todo.pop(), own=False) - seen
        seen |= new
        todo += new
    return seen


def far(pages: dict[str, Page]) -> list[str]:
    """What people ask first and cannot reach in two links of the texts alone, without menus and search."""
    near = {START}
    for _ in range(LINKS):
        near |= {path for name in near for path in _next(pages, name, own=True)}
    return [
        f"{question!r}: {answer} is more than {LINKS} links from {START}"
        for question, answer in ASKED_FIRST.items()
        if answer not in near
    ]


def main(folder: str = "build/site") -> int:
    """Print what is wrong; 0 if nothing is."""
    found = problems(Path(folder))
    print(*found, sep="\n", file=sys.stderr)
    pages = read(Path(folder))
    print(f"{folder}: {len(pages)} pages, {sum(len(p.links) for p in pages.values()):,} links, {len(found)} problems")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
