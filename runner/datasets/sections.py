"""Split Markdown into sections: its headings, and the text under each.

Headings are those of CommonMark in common use: `#` to `######`, and one line underlined with `=` or `-`. Front matter,
fenced blocks, comments and elements such as <pre> are text. Nothing here depends on chunks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_BYTE_ORDER_MARK = "\ufeff"
"""The first character of a text read from a file with a byte order mark; it does not belong to the first line."""

_FRONT_MATTER = re.compile(
    rf"{_BYTE_ORDER_MARK}?"
    r"(---|\+\+\+)[ \t]*\r?\n"
    r"(?![ \t]*\r?\n(?!\s*[\"']?[\w-]+[\"']?[ \t]*[:=]))"  # a blank line and no key: that was a rule
    r"(.*?\n)??(\1|\.\.\.)[ \t]*(?:\r?\n|\Z)",
    re.DOTALL,
)
_TITLE = re.compile(r"^title[ \t]*[:=][ \t]*(?P<quote>[\"']?)(.+?)(?P=quote)[ \t]*\r?$", re.MULTILINE)
_LINE = re.compile(r"[^\r\n]*(?:\r\n|[\r\n])|[^\r\n]+")
_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
_RAW = re.compile(r" {0,3}<(!--|(?:pre|script|style|textarea)(?=[\s>]|\Z))", re.IGNORECASE)
_COMMENT_END, _RAW_END = re.compile("-->"), re.compile(r"</(?:pre|script|style|textarea)>", re.IGNORECASE)
_NUMBERED = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))??(?:[ \t]+#+)?[ \t]*$")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*$")
_PARAGRAPH = re.compile(r" {0,3}(?![ >|<#]|[-*+][ \t]|\d+[.)][ \t]|[-*_ ]+$)\S")
"""A line that is a heading if the next line underlines it: not a list item, quote, table, tag or rule."""
_ANCHOR = re.compile(r"[ \t]*\{#[^{}]*\}$")


class Section(NamedTuple):
    """A section: `path` ends with its heading; it begins at `start`, and its text is from `body` to `end`.

    The text before the first heading is a section with an empty path.
    """

    path: tuple[str, ...]
    start: int
    body: int
    end: int


class _Heading(NamedTuple):
    level: int
    text: str
    start: int
    body: int


def sections(text: str) -> list[Section]:
    """Return the sections of a Markdown text in order; together they cover the whole text."""
    headings = list(_headings(text))
    first, *ends = [*(heading.start for heading in headings), len(text)]
    parts = [Section((), 0, 0, first)]
    open_: list[_Heading] = []
    for heading, end in zip(headings, ends, strict=True):
        open_ = [*(above for above in open_ if above.level < heading.level), heading]
        parts.append(Section(tuple(h.text for h in open_ if h.text), heading.start, heading.body, end))
    return parts


class FrontMatter(NamedTuple):
    """The front matter of a text: its title, "" for none, and the offset at which the text after it begins."""

    title: str
    end: int


def front_matter(text: str) -> FrontMatter | None:
    """Return the front matter of a Markdown text, in YAML or TOML; None if it has none."""
    match = _FRONT_MATTER.match(text)
    if match is None:
        return None
    title = _TITLE.search(match[2] or "")
    return FrontMatter(title[2].strip() if title else "", match.end())


def title_of(text: str) -> str:
    """Return the title of a Markdown text: that of its front matter, or its first heading of level 1, or ""."""
    front = front_matter(text)
    if front and front.title:
        return front.title
    return next((heading.text for heading in _headings(text) if heading.level == 1), "")


def _headings(text: str) -> Iterator[_Heading]:
    front = front_matter(text)
    fence, paragraph = "", list[tuple[int, str]]()
    raw_end: re.Pattern[str] | None = None
    for line in _LINE.finditer(text, front.end if front else 0):
        content = line[0].rstrip("\r\n").removeprefix(_BYTE_ORDER_MARK)
        mark = _FENCE.match(content)
        if fence:
            ends = mark and mark[1].startswith(fence) and not content[mark.end() :].strip()
            fence = "" if ends else fence
            continue
        if not raw_end and (raw := _RAW.match(content)):
            raw_end = _COMMENT_END if raw[1] == "!--" else _RAW_END
        if raw_end:
            raw_end, paragraph = None if raw_end.search(content) else raw_end, []
            continue
        numbered, underline = _NUMBERED.match(content), _UNDERLINE.match(content)
        if numbered:
            yield _Heading(len(numbered[1]), _plain(numbered[2] or ""), line.start(), line.end())
        # CommonMark also makes several lines above a rule a heading, but hardly anyone who writes them means one.
        elif underline and len(paragraph) == 1 and _PARAGRAPH.match(paragraph[0][1]):
            level = 1 if underline[1].startswith("=") else 2
            yield _Heading(level, _plain(paragraph[0][1]), paragraph[0][0], line.end())
        fence = mark[1] if mark else ""
        if mark or numbered or underline or not content.strip():
            paragraph = []
        else:
            paragraph.append((line.start(), content))


def _plain(heading: str) -> str:
    return _ANCHOR.sub("", heading.strip())
