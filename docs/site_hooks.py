"""What MkDocs is told about the pages: those that are made, and links as the site has them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).parent))

import site_pages


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """The reference has a page for each subject, below its first one, and the project one for each of its papers."""
    for section in config.nav or []:
        for name, below in section.items() if isinstance(section, dict) else ():
            if name == "Reference":
                below[1:1] = [page for page in site_pages.reference() if page != below[0]]
            elif name == "Project":
                below += site_pages.papers().values()
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what is made of other files, and copies of files that pages link to."""
    made = site_pages.generated()
    pages = {f.src_uri: f.content_string for f in files.documentation_pages()}
    pages |= {path: text for path, text in made.items() if path.endswith(".md") and isinstance(text, str)}
    for path, content in {**made, **site_pages.copies(pages)}.items():
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Links and fences as the site reads them; a page without neighbours needs no menu of them."""
    if page.file.src_uri in ("index.md", "gallery/index.md"):
        page.meta["hide"] = ["navigation"]
    return site_pages.for_site(markdown, page.file.src_uri)


def on_post_build(config: MkDocsConfig) -> None:
    """The words of the search as a script beside the file: a page that is opened from a folder may not read files."""
    found = Path(config.site_dir) / "search" / "search_index.json"
    found.with_suffix(".js").write_text(f"var __index = {found.read_text('utf-8')}", "utf-8")
