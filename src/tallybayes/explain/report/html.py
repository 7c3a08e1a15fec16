"""The parts of a page: everything from outside is escaped here, and nowhere else."""

from __future__ import annotations

import html
from collections.abc import Sequence

from ...base.canon import number_text, printable

STYLE = """
:root{color-scheme:light dark;--ink:#1c2128;--soft:#57606a;--paper:#fff;--card:#f6f8fa;--line:#d0d7de;--grid:#d8dee4;
--blue:#0a62c4;--warn:#fff3cd;--warnline:#d4a72c}
@media (prefers-color-scheme:dark){:root{--ink:#e6e8eb;--soft:#9aa4af;--paper:#14171c;--card:#1d2128;--line:#343a43;
--grid:#3a4049;--blue:#6cb0ff;--warn:#3a3115;--warnline:#8a6d1c}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:66rem;padding:1rem 1rem 4rem;font:16px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif;
color:var(--ink);background:var(--paper);overflow-wrap:break-word}
h1{font-size:1.7rem;line-height:1.2;margin:.6rem 0}
h2{font-size:1.25rem;margin:2.6rem 0 .6rem;padding-top:.6rem;border-top:1px solid var(--line)}
h3{font-size:1rem;margin:1.2rem 0 .3rem}
p{margin:.5rem 0;max-width:46rem}
nav{display:flex;flex-wrap:wrap;gap:.3rem .9rem;font-size:.9rem}
a{color:var(--blue)}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(9.5rem,1fr));gap:.7rem;margin:1rem 0}
.tile{background:var(--card);border:1px solid var(--line);border-radius:.5rem;padding:.6rem .8rem}
.tile b{display:block;font-size:1.5rem;line-height:1.3}
.tile span,.tile small{color:var(--soft);font-size:.82rem;line-height:1.3;display:block}
.note{border-left:.25rem solid var(--line);background:var(--card);padding:.5rem .8rem;margin:.7rem 0;max-width:46rem}
.note.warning{border-color:var(--warnline);background:var(--warn)}
.scroll{overflow-x:auto;margin:.6rem 0}
table{border-collapse:collapse;max-width:100%;font-size:.86rem;font-variant-numeric:tabular-nums}
th,td{padding:.22rem .6rem;text-align:right;border-bottom:1px solid var(--line);vertical-align:top;white-space:nowrap}
th{color:var(--soft);font-weight:600}
th.l,td.l{text-align:left;white-space:normal;max-width:26rem}
td.l:first-child{overflow-wrap:anywhere;min-width:6.5rem}
@media (max-width:50rem){.scroll table{width:max-content;max-width:none}td.l{max-width:70vw}
td.l:first-child{max-width:8rem}}
.gallery{columns:22rem;column-gap:1.6rem}
figure{margin:0 0 1.2rem;break-inside:avoid}
figure svg{width:100%;height:auto;display:block}
svg text{white-space:pre}
figure.wide{overflow-x:auto}
figure.wide svg{min-width:34rem;max-width:52rem}
.card figure svg{max-width:40rem}
figcaption{color:var(--soft);font-size:.86rem;margin-bottom:.2rem}
.card{border:1px solid var(--line);border-radius:.5rem;padding:.4rem .9rem;margin:.9rem 0}
.paper{background:#fff;color:#1c2128;border-radius:.4rem}
details{margin:.7rem 0}
summary{cursor:pointer;color:var(--blue)}
pre{overflow-x:auto;background:var(--card);border-radius:.4rem;padding:.5rem .7rem;font-size:.84rem}
footer{margin-top:3rem;color:var(--soft);font-size:.84rem}
@media print{nav{display:none}details{display:block}}
"""


def escape(text: object, most: int, *, lines: bool = False) -> str:
    """A text from outside that is safe inside a page: short, printable, escaped."""
    if lines:
        return "\n".join(escape(line, 200) for line in str(text)[:most].split("\n"))
    return html.escape(printable(text, most))


def number(value: float) -> str:
    """A count with its thousands set apart."""
    return f"{int(value):,}" if float(value).is_integer() else number_text(round(float(value), 3))


def paragraph(text: str) -> str:
    """A paragraph of plain text."""
    return f"<p>{html.escape(text)}</p>"


def fold(title: str, inside: str) -> str:
    """Something to be opened by whoever wants it."""
    return f"<details><summary>{html.escape(title)}</summary>{inside}</details>"


def figure(svg: str, caption: str, *, wide: bool = False) -> str:
    """A picture with its caption."""
    head = f"<figcaption><bdi>{escape(caption, 300)}</bdi></figcaption>" if caption else ""
    return f"<figure{' class=wide' if wide else ''}>{head}{svg}</figure>"


def table(lines: Sequence[Sequence[str]], left: Sequence[int], shown: int = 1000, widest: int = 200) -> str:
    """A table whose columns `left` are texts; after `shown` lines the rest is folded away."""
    head, body = lines[0], lines[1:]
    top = "<tr>" + "".join(_cell("th", t, i in left, widest) for i, t in enumerate(head)) + "</tr>" if any(head) else ""
    rows = ["<tr>" + "".join(_cell("td", t, i in left, widest) for i, t in enumerate(line)) + "</tr>" for line in body]
    first = f'<div class="scroll"><table>{top}{"".join(rows[:shown])}</table></div>'
    if len(rows) <= shown:
        return first
    more = f'<div class="scroll"><table>{top}{"".join(rows[shown:])}</table></div>'
    return first + fold(f"{len(rows) - shown} more", more)


def _cell(tag: str, text: str, is_text: bool, widest: int) -> str:
    inside = escape(text, widest)
    return f'<{tag} class="l"><bdi>{inside}</bdi></{tag}>' if is_text else f"<{tag}>{inside}</{tag}>"


class HtmlPage:
    """Sections one after the other, and a list of them at the top."""

    def __init__(self, title: str) -> None:
        self._title = escape(title, 120)
        self._sections: list[tuple[str, str]] = []
        self._lead: list[str] = []
        self._body: list[str] = []

    def lead(self, safe: str) -> None:
        """The first sentence; already escaped."""
        self._lead.append(f"<p>{safe}</p>")

    def tiles(self, tiles: Sequence[tuple[str, str, str]]) -> None:
        """Large figures side by side: name, value, what to hold it against."""
        cells = [
            f'<div class="tile"><span>{name}</span><b>{value}</b><small>{beside}</small></div>'
            for name, value, beside in (map(html.escape, tile) for tile in tiles)
        ]
        self._lead.append(f'<div class="tiles">{"".join(cells)}</div>')

    def note(self, kind: str, text: str) -> None:
        """Something to know before believing the figures."""
        (self._body if self._body else self._lead).append(f'<p class="note {kind}">{html.escape(text)}</p>')

    def section(self, name: str, title: str) -> None:
        """Begin a section."""
        self._sections.append((name, title))
        self._body.append(f'<h2 id="{name}">{html.escape(title)}</h2>')

    def add(self, safe: str) -> None:
        """Something to stand in the section; already escaped."""
        self._body.append(safe)

    def text(self) -> str:
        """The whole page. Its policy forbids scripts and any address outside."""
        links = "".join(f'<a href="#{name}">{html.escape(title)}</a>' for name, title in self._sections)
        return (
            '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
            f"<title>{self._title}</title><style>{STYLE}</style></head><body><header><h1>{self._title}</h1>"
            f"{self._lead[0] if self._lead else ''}<nav>{links}</nav>{''.join(self._lead[1:])}</header>"
            f"<main>{''.join(self._body)}</main><footer>Made by tallybayes.</footer></body></html>\n"
        )
