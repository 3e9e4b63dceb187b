"""Hooks of MkDocs, which add pages to the documentation site beyond those in docs/.

The reference of the Python API is generated from the source. Notebooks, the changelog and the page for contributors
become pages. A file of the repository that a page links to, such as a YAML file in conf/, is copied into the site as
text, so that links that work in the repository also work in the site.
"""

from __future__ import annotations

import json
import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING

from release.api import render_page as render_api

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
PAGES = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
"""Pages outside docs/, with their names in the site."""

API = "api.md"
"""The page of the Python API, which is generated from the source."""

LAST_FOUND = ("changelog", "coming_from/", "licences")
"""Pages that the search shows last, because readers look for them by name."""

FENCED = re.compile(r"^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?![a-z]+:)([^)#\s]+)")
CODE_IN_TABLE = re.compile(r"`[^`\n]*\\\|[^`\n]*`")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from outside docs/, and the files that pages link to."""
    from mkdocs.structure.files import File

    for name, target in PAGES.items():
        files.append(File.generated(config, target, content=_read(name)))
    files.append(File.generated(config, API, content=render_api()))
    for notebook in [file for file in files if file.src_uri.endswith(".ipynb")]:
        page = render_notebook(json.loads(notebook.content_string), posixpath.basename(notebook.src_uri))
        files.append(File.generated(config, locate(f"docs/{notebook.src_uri}"), content=page))
    pages = files.documentation_pages()
    linked = {path for page in pages for path in list_linked_paths(page.content_string, page.src_uri)}
    for path in sorted(linked):
        if locate(path).startswith("source/") and (ROOT / path).is_file():
            files.append(File.generated(config, locate(path), content=_read(path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Return the text of a page for the site, and make the search show some pages after all others."""
    if page.file.src_uri.startswith(LAST_FOUND):
        page.meta["search"] = {"boost": 0.1}
    return rewrite_links(markdown, page.file.src_uri)


def rewrite_links(markdown: str, name: str) -> str:
    """Return the text of a page with links for the site, and with unescaped pipes in tables."""
    folder = posixpath.dirname(name)
    text, blocks = _set_aside(markdown)
    text = LINK.sub(lambda link: f"]({posixpath.relpath(locate(_resolve(link[1], name)), folder or '.')}", text)
    text = CODE_IN_TABLE.sub(lambda code: code[0].replace("\\|", "|"), text)  # only GitHub needs the backslash
    return re.sub("\0(\\d+)\0", lambda mark: blocks[int(mark[1])], text)


def list_linked_paths(markdown: str, name: str) -> set[str]:
    """Return the paths in the repository that a page of the site links to."""
    return {_resolve(link, name) for link in LINK.findall(_set_aside(markdown)[0])}


def locate(path: str) -> str:
    """Return the path in the site of a file of the repository."""
    if path in PAGES:
        return PAGES[path]
    if path == "README.md":
        return "index.md"
    if path.startswith("docs/"):
        return re.sub(r"\.ipynb$", ".md", path.removeprefix("docs/"))
    return f"source/{path}.txt"  # as text, which a browser shows


def render_notebook(notebook: dict[str, list[dict[str, str | list[str]]]], name: str) -> str:
    """Return the cells of a notebook as a page, with the name of its file below the title."""
    cells = [(cell["cell_type"], "".join(cell["source"])) for cell in notebook["cells"]]
    blocks = [text if kind == "markdown" else f"```python\n{text}\n```" for kind, text in cells]
    title, _, rest = blocks[0].partition("\n")
    return "\n\n".join([title, f"This page is the notebook `docs/notebooks/{name}`.", rest.strip(), *blocks[1:]]) + "\n"


def _resolve(link: str, name: str) -> str:
    """Return the path in the repository to which a link in a page of the site leads."""
    origin = {API: API, **{target: path for path, target in PAGES.items()}}.get(name, f"docs/{name}")
    return posixpath.normpath(posixpath.join(posixpath.dirname(origin), link))


def _read(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def _set_aside(markdown: str) -> tuple[str, list[str]]:
    """Return a page with a placeholder for each fenced block, and the blocks."""
    blocks: list[str] = []

    def replace(match: re.Match[str]) -> str:
        blocks.append(match[0])
        return f"\0{len(blocks) - 1}\0"

    return FENCED.sub(replace, markdown), blocks
