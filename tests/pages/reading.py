"""How tests read reports: what a page of HTML holds, and the tables of a text in Markdown."""

from __future__ import annotations

import base64
import gzip
import re
from collections import Counter
from collections.abc import Iterable
from html.parser import HTMLParser
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from runner.pages.markdown import escape, fold, markdown_table
from runner.pages.sections import ReportSection

EVIL = "<script>alert('x')</script> & $\\frac{1}{2}$ \"quoted\" <img src=x onerror=y> {{ 7 * 7 }}"
VOID = {"meta", "input", "br", "path", "use", "img", "link", "base"}

REFERENCES = {"href", "xlink:href"}
LOADED_ATTRIBUTES = {"src", "srcset", "data", "poster", "background"}
LOADED_BY_CSS = re.compile(r"""@import\s+(?!url)["']?([^"';\s]+)|url\(\s*["']?([^"')]*)""")
LOADED_BY_SCRIPT = re.compile(
    r"\b(?:fetch|XMLHttpRequest|WebSocket|EventSource|Worker|import|sendBeacon|src)\b|https?:"
)


class Page(HTMLParser):
    """What a page holds: its tags, texts, ids, links and tables, and what it loads; raises where tags do not nest.

    A link is followed by a click. What is loaded (a script, a style, an image, a font) is fetched when the page opens.
    `scripts` counts the scripts that run; the others only hold data.
    """

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.scripts = 0
        self.ids: list[str] = []
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.texts: list[str] = []
        self.tables: list[list[list[str]]] = []
        self._open: list[str] = []
        self._is_running = False
        self.feed(html)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        values = dict(attributes)
        self._is_running = tag == "script" and values.get("type") in (None, "module", "text/javascript")
        self.scripts += self._is_running
        self.ids += [i for i in [values.get("id")] if i]
        self.links += [v or "" for k, v in attributes if k in REFERENCES]
        loading = LOADED_ATTRIBUTES if tag in ("a", "area") else LOADED_ATTRIBUTES | REFERENCES
        self._load([v or "" for k, v in attributes if k in loading])
        self._load(_loaded_by_css(values.get("style") or ""))
        if (values.get("http-equiv") or "").lower() == "refresh":
            self._load([values.get("content") or ""])
        assert not any(name.startswith("on") for name in values)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)
        if self._open[-1:] == ["style"]:
            self._load(_loaded_by_css(data))
        elif self._open[-1:] == ["script"] and self._is_running:
            self._load(LOADED_BY_SCRIPT.findall(data))
        if {"td", "th"} & set(self._open):
            self.tables[-1][-1][-1] += data

    def _load(self, places: list[str]) -> None:
        """Note what is loaded, except for parts of the page itself."""
        self.loaded += [place for place in places if not place.startswith(("#", "data:"))]

    def table(self, *head: str) -> list[list[str]]:
        """Return the rows of the table whose head begins so."""
        return next(table[1:] for table in self.tables if tuple(table[0][: len(head)]) == head)


def check_markdown(sections: Iterable[ReportSection], text: str) -> None:
    """Check that each section has something to show and is in a report, unless it is not for Markdown."""
    for section in sections:
        assert not section.is_empty, f"the report of the test lacks {section.title}"
        if section.markdown != "":
            head = fold(section.title, [])[0] if section.folded else f"## {escape(section.title)}"
            assert f"\n{head}\n" in text, section.title
            assert (section.markdown or escape(section.note)) in text, section.title
        if section.markdown is None:
            assert all(markdown_table(table) in text for table in section.tables.values()), section.title
            assert all(escape(line) in text for line in section.lines), section.title


def check_page(sections: Iterable[ReportSection], html: str, *own: str) -> None:
    """Check that each section is on a page, or in its figure; the template shows those with the titles `own` itself."""
    page = Page(html)
    for section in sections:
        assert not section.is_empty, f"the report of the test lacks {section.title}"
        assert bool(section.place) != (section.title in own), section.title
        if section.place:
            assert section.title in page.texts or section.figure, section.title
            assert section.note in {*page.texts, ""} or section.figure, section.title
            for table in section.tables.values():
                assert [[column.title for column in table.columns], *table.texts()] in page.tables, section.title
            assert all(line in page.texts for line in section.lines), section.title


def read_explorer_data(html: str) -> dict[str, Any]:
    """Return the data that the script of a page reads."""
    text = html.partition('id="explorer-data">')[2].partition("<")[0]
    data: dict[str, Any] = orjson.loads(gzip.decompress(base64.b64decode(text)))
    return data


def read_explorer_scores(html: str) -> NDArray[np.float64]:
    """Return the scores that the script of a page reads (systems x queries)."""
    shape = read_explorer_data(html)["scores"]
    text = html.partition('id="explorer-scores">')[2].partition("<")[0]
    high, low = np.frombuffer(gzip.decompress(base64.b64decode(text)), dtype=np.uint8).reshape(2, -1).astype(np.int64)
    levels = (256 * high + low).reshape(shape["queries"], shape["systems"]).T
    return np.where(levels == 65_535, np.nan, shape["low"] + shape["step"] * levels)


def _loaded_by_css(text: str) -> list[str]:
    return [imported or address for imported, address in LOADED_BY_CSS.findall(text)]


def rows(text: str, title: str) -> list[list[str]]:
    """Return the cells of the table in a section, without its head."""
    section = re.split(r"^#+ ", text.partition(f"# {title}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]
