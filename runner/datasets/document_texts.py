"""Extract the title and the text of a document in HTML, AsciiDoc, a notebook, Markdown, PDF or DOCX."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from html.parser import HTMLParser
from pathlib import Path

from retrievers.extras import check_installed
from retrievers.strict_values import parse_json
from runner.datasets.sections import title_of
from runner.datasets.shapes import map_signs

_HIDDEN = ("script", "style", "template", "noscript", "svg", "title")
_INLINE = (
    "a", "abbr", "b", "cite", "code", "em", "font", "i", "img", "kbd", "label", "mark", "q", "s", "samp", "small",
    "span", "strong", "sub", "sup", "tt", "u", "var", "wbr",
)  # fmt: skip
_TITLE = re.compile(r"^= (.+)$", re.MULTILINE)


def read_html(content: str) -> tuple[str, str]:
    """Return the title and the visible text of a page; the title is that of the page, or its first heading."""
    page = _Page()
    page.feed(content)
    page.close()
    lines = (" ".join(line.split()) for line in "".join(page.texts).split("\n"))
    titles = (" ".join("".join(page.titles[tag]).split()) for tag in ("title", "h1"))
    return next(filter(None, titles), ""), "\n".join(filter(None, lines))


class _Page(HTMLParser):
    """Collects the texts of a page, with a line break around each block."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.titles: dict[str, list[str]] = {"title": [], "h1": []}
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag in _HIDDEN or (tag == "h1" and not self.titles["h1"]):
            self._open.append(tag)
        if tag not in _INLINE:
            self.texts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag in self._open:
            del self._open[self._open.index(tag) :]
        if tag not in _INLINE:
            self.texts.append("\n")

    def handle_data(self, data: str) -> None:
        if self._open in (["title"], ["h1"]):
            self.titles[self._open[0]].append(data)
        if not set(self._open) & {*_HIDDEN}:
            self.texts.append(data)


def read_notebook(content: str) -> tuple[str, str]:
    """Return the title and the text of a notebook: the source of its cells; raises `ValueError`."""
    notebook = parse_json(content.encode())
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list):
        raise ValueError("the notebook has no list of cells")
    sources = [cell.get("source", "") if isinstance(cell, dict) else "" for cell in cells]
    text = "\n\n".join("".join(source) if isinstance(source, list) else str(source) for source in sources)
    return title_of(text), text


def read_asciidoc(content: str) -> tuple[str, str]:
    """Return the title and the text of an AsciiDoc document."""
    title = _TITLE.search(content)
    return title[1].strip() if title else "", content


def read_plain(content: str) -> tuple[str, str]:
    """Return an empty title and the text of a document without markup."""
    return "", content


_READERS: Mapping[str, Callable[[str], tuple[str, str]]] = {
    "markdown": lambda content: (title_of(content), content),
    "plain": read_plain,
    "html": read_html,
    "asciidoc": read_asciidoc,
    "notebook": read_notebook,
}
READERS = {ending: _READERS[key] for ending, key in map_signs("document").items() if key in _READERS}
"""How a document becomes a title and a text, by its extension."""


def read_pdf(path: Path) -> tuple[str, str]:
    """Return no title and the text of a PDF file, page by page; raises `ValueError`."""
    check_installed("pypdf", "pypdf", "documents")
    from pypdf import PdfReader

    logging.getLogger("pypdf").setLevel(logging.ERROR)  # it warns of each object that is not quite as specified
    try:
        reader = PdfReader(path)
        pages = [page.extract_text() for page in reader.pages]
    except Exception as error:  # a damaged file raises anything
        raise ValueError(f"cannot be read as PDF ({error})") from None
    if not any(page.strip() for page in pages):
        raise ValueError("the PDF file has no text; it may be a scan, so recognise its text first, for example by OCR")
    return "", "\n\n".join(pages)


def read_docx(path: Path) -> tuple[str, str]:
    """Return the title and the text of a DOCX file, with a line for each row of a table; raises `ValueError`.

    The title is the first paragraph in the style Title or, without one, Heading 1.
    """
    check_installed("docx", "python-docx", "documents")
    import docx
    from docx.table import Table

    try:
        blocks = [*docx.Document(str(path)).iter_inner_content()]
    except Exception as error:
        raise ValueError(f"cannot be read as DOCX ({error})") from None
    lines, titles = [], dict[str, str]()
    for block in blocks:
        if isinstance(block, Table):
            cells = ({cell._tc: cell.text for cell in row.cells} for row in block.rows)  # merged ones repeat
            lines += ["\t".join(row.values()) for row in cells]
        else:
            lines.append(block.text)
            titles.setdefault(block.style.name if block.style else "", block.text)
    return next((titles[style] for style in ("Title", "Heading 1") if style in titles), ""), "\n\n".join(lines)


_FILE_READERS: Mapping[str, Callable[[Path], tuple[str, str]]] = {"pdf": read_pdf, "docx": read_docx}
FILE_READERS = {ending: _FILE_READERS[key] for ending, key in map_signs("document").items() if key in _FILE_READERS}
"""How a file that is not text becomes a title and a text, by its extension; read only if a setting says so."""
