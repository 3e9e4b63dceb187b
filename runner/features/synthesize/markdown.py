"""Parse Markdown into headings and paragraphs of plain text.

Markdown is CommonMark with tables, parsed by markdown-it-py. Front matter, code, tables, HTML, images, link targets and
the shortcodes of site generators (Hugo, Jekyll, MDX) are dropped. A `HOLE` replaces a part that a reader would see but
the source does not show, so that a sentence with a missing part is not mistaken for a complete one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import Literal, NamedTuple

import regex
from markdown_it import MarkdownIt
from markdown_it.token import Token

from runner.datasets.sections import front_matter

HOLE = "\N{OBJECT REPLACEMENT CHARACTER}"
"""Replaces a part that a reader sees but the source does not show, such as the output of a shortcode."""

_FENCE_LINE = regex.compile(r"^[ \t>]*(?:```+|~~~+)[ \t]*(.*?)[ \t]*$", regex.MULTILINE)
_HTML_ELEMENTS = regex.compile(
    r"<(?P<tag>table|pre|script|style|svg|figure)\b.*?(?:</(?P=tag)>|\Z)", regex.DOTALL | regex.IGNORECASE
)
_COMMENT = regex.compile(r"<!--.*?(?:-->|\Z)", regex.DOTALL)
_SHORTCODE = r"\{\{[<%](?:(?!\{\{)[\s\S]){0,1000}?[>%]\}\}|\{\{.*?\}\}|\{%.*?%\}"
"""Hugo's shortcodes may span several lines."""
_LINE_OF_SHORTCODES = regex.compile(rf"^[ \t>]*(?:(?:{_SHORTCODE})[ \t]*)+$", regex.MULTILINE)
_INLINE_SHORTCODE = regex.compile(_SHORTCODE)
_ATTRIBUTES = regex.compile(r"[ \t]*\{[#.:][^{}\n]*\}")
_DIRECTIVE = regex.compile(
    r"^[ \t]*(?::{3,}.*|[!?]{3}\+?[ \t].*|(?:>[ \t]*)+\[![A-Za-z]+\].*"
    r"|import[ \t].*[\"'].*|export[ \t]+(?:const|default|function)\b.*)$",
    regex.MULTILINE,
)
_TABLE_PART = regex.compile(r"</?(?:table|thead|tbody|tr|t[dh]|col(?:group)?)\b", regex.IGNORECASE)
_TABLE_ROW = regex.compile(r"^[ \t]*(?:\|.*|.*\|[ \t]*|\+[-=+]+)$")
_BULLET = regex.compile(r"^([ \t>]*)[•‣◦▪●][ \t]+", regex.MULTILINE)
_TASK = regex.compile(r"^\[[ xX]\][ \t]+")
_REFERENCE = regex.compile(r"[ ]?\[(?:\^[^\]]*|\d{1,3}(?:[ ]?[,–-][ ]?\d{1,3})*)\]|(?<=\])\[[^\]]*\]")
_EMOJI = regex.compile(r"(?<![\w:]):[a-z+-][\w+-]*:(?![\w:])")
_BRACKETED = regex.compile(r"!?\[([^\[\]]+)\](?:\([^)\s]*\)?)?")
_ADDRESS = regex.compile(r"<?\b(?:https?|ftp)://\S+>?")
_SPACED_MARK = regex.compile(r" ([.,;:!?)])(?=\s|$)")


class Block(NamedTuple):
    """A heading or a paragraph (list items are paragraphs) as plain text on one line."""

    kind: Literal["heading", "paragraph"]
    text: str


def parse_blocks(text: str) -> list[Block]:
    """Return the headings and paragraphs of a Markdown text, or of a part of one, in order."""
    front = front_matter(text)
    tokens = _parser().parse(_prepare(text[front.end :] if front else text))
    blocks: list[Block] = []
    for opening, inline in pairwise(tokens):
        if inline.type != "inline" or opening.type not in ("heading_open", "paragraph_open"):
            continue
        plain = "" if _is_part_of_table(inline) else plain_text_of(inline.children or [])
        if plain.strip(f"{HOLE} "):
            blocks.append(Block("heading" if opening.type == "heading_open" else "paragraph", plain))
    return blocks


def plain_text(text: str) -> str:
    """Return the plain text of one line of Markdown."""
    (inline,) = _parser().parseInline(_without_shortcodes(text))
    return plain_text_of(inline.children or [])


def plain_text_of(children: Sequence[Token]) -> str:
    """Return the plain text of inline tokens, with white space collapsed."""
    parts: list[str] = []
    for token in children:
        if token.type in ("text", "code_inline"):
            parts.append(token.content)
        elif token.type in ("softbreak", "hardbreak", "image") or token.content.startswith("<br"):
            parts.append(" ")
    text = _TASK.sub("", _REFERENCE.sub("", "".join(parts)))
    text = _ADDRESS.sub(HOLE, _BRACKETED.sub(r"\1", _EMOJI.sub("", text)))
    return str(_SPACED_MARK.sub(r"\1", " ".join(text.split())))


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark").enable(["table", "strikethrough"])


def _prepare(text: str) -> str:
    """Return Markdown without parts that its parser cannot read: shortcodes, directives, split code and tables."""
    fences = _FENCE_LINE.findall(text)
    if len(fences) % 2 and not fences[0]:  # the text starts within a code block that ends here
        text = f"```\n{text}"
    text = _BULLET.sub(r"\1- ", text)
    return _without_shortcodes(_COMMENT.sub("", _HTML_ELEMENTS.sub("\n\n", text)))


def _without_shortcodes(text: str) -> str:
    text = _INLINE_SHORTCODE.sub(HOLE, _LINE_OF_SHORTCODES.sub("\n", text))
    return str(_DIRECTIVE.sub("\n", _ATTRIBUTES.sub("", text)))


def _is_part_of_table(inline: Token) -> bool:
    """Return whether a paragraph is in fact rows of a table that starts in another chunk."""
    rows = inline.content.splitlines()
    return bool(_TABLE_PART.search(inline.content)) or all(map(_TABLE_ROW.match, rows))
