"""The prose of a chunk: its headings, its sentences as a reader sees them, and passages just as they stand.

What is no prose gives none: front matter, code, tables, HTML, shortcodes, lists of links. Text without any markup is
prose as it is. It knows nothing of queries.
"""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import dataclass

import regex

from runner.generation.synthesis.limits import tokens

_FRONT_MATTER = regex.compile(r"\A\s*---[ \t]*\n(.*?)\n---[ \t]*(?:\n|\Z)", regex.DOTALL)
_TITLE = regex.compile(r"^title:[ \t]*(.+?)[ \t]*$", regex.MULTILINE)
_FENCE = regex.compile(r"^[ \t>]*(?P<mark>```+|~~~+).*?(?:^[ \t>]*(?P=mark)[ \t]*$|\Z)", regex.MULTILINE | regex.DOTALL)
_FENCE_LINE = regex.compile(r"^[ \t>]*(?:```+|~~~+)[ \t]*(.*?)[ \t]*$", regex.MULTILINE)
_COMMENT = regex.compile(r"<!--.*?(?:-->|\Z)", regex.DOTALL)
_SHORTCODE_BLOCK = regex.compile(
    r"\{\{[<%]\s*(?P<name>highlight|mermaid|code|table|tabs?)\b[^}]*\}\}.*?\{\{[<%]\s*/\s*(?P=name)\s*[>%]\}\}",
    regex.DOTALL,
)
_HTML_BLOCK = regex.compile(
    r"<(?P<tag>table|pre|script|style|svg|figure)\b.*?(?:</(?P=tag)>|\Z)", regex.DOTALL | regex.IGNORECASE
)
_HEADING = regex.compile(r"^ {0,3}#{1,6}[ \t]+(.+?)[ \t#]*$")
_UNDERLINE = regex.compile(r"^ {0,3}(=+|-{2,})[ \t]*$")
_NO_PROSE = regex.compile(
    r"""^[ \t]*(?:
        \| | \+[-=+]+$ | :?-+:?[ \t]*\|      # tables
        | [-*_=][ \t]*(?:[-*_=][ \t]*){2,}$  # rules
        | \[[^\]]+\]:                        # where links lead
        | <[^>]*>?$ | \{\{[^}]*\}\}$         # a tag or a shortcode, and nothing else
        | import[ ] | \$[ ] | \#             # code and comments
        | .*</?(?:table|thead|tbody|tr|t[dh]|col(?:group)?)\b  # a part of a table that the chunk has not whole
    )""",
    regex.VERBOSE,
)
_CODE_INDENT = regex.compile(r"^(?: {4,}|\t)")
_ITEM = regex.compile(r"^[ \t>]*(?:[-*+•]|\d{1,3}[.)])[ \t]+")
_QUOTE = regex.compile(r"^[ \t]*>+[ \t]?")

_SHORTCODE_TEXT = regex.compile(r"\{\{[<%][^}]*?\btext=\"([^\"]*)\"[^}]*\}\}")
_SHORTCODE = regex.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{[#.][^}]*\}")
_IMAGE = regex.compile(r"!\[[^\]]*\](?:\([^)]*\)|\[[^\]]*\])?")
_LINK = regex.compile(r"\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])")
_URL = regex.compile(r"<?\bhttps?://\S+>?")
_TAG = regex.compile(r"</?[a-zA-Z][^<>]*>")
_SPACED_MARK = regex.compile(r" ([.,;:!?)])")
_EMPHASIS = regex.compile(r"\*{1,3}|(?<!\w)_{1,3}|_{1,3}(?!\w)|`+")

_ABBREVIATED = r"(?<!\b(?:e\.g|i\.e|etc|vs|cf|al|Fig|Figs|Dr|Mr|Mrs|No|St|approx|resp|\p{Lu})\.)"
_END = rf"{_ABBREVIATED}(?<=[.!?][\"'”’)\]]*)\s+(?=[\"'“‘(\[]*[\p{{Lu}}\p{{Lo}}\d])|(?<=[。！？])"
_SENTENCE_END = regex.compile(_END)
_SENTENCE_END_IN_SMALL_LETTERS = regex.compile(_END, regex.IGNORECASE)
"""Ends sentences of a text that has no capitals to begin them with."""
_MARKUP = regex.compile(r"[`*\[\]<>{}|\\]|\bhttps?://\S+|(?<!\w)_|_(?!\w)")
_LETTER = regex.compile(r"\p{L}")
_CAPITAL = regex.compile(r"\p{Lu}")
_UNSPACED = regex.compile(r"\p{Lo}")
_CLAUSE_END = regex.compile(r"(?<=[,;:])\s+|\s+[–—-]\s+|(?<=[，；：])")

LEAST_WORDS, LEAST_LETTERS = 5, 10
"""A passage of fewer words, or letters of a script that is written without spaces, is hardly a sentence."""


@dataclass(frozen=True)
class Prose:
    """What a chunk says: its headings, the outermost first, and its sentences, both without markup.

    `passages` are sentences and clauses just as they stand in the chunk, each on one line and without markup, whole
    sentences first.
    """

    headings: tuple[str, ...]
    sentences: tuple[str, ...]
    passages: tuple[str, ...]


def prose_of(text: str, title: str = "") -> Prose:
    """Return the prose of a chunk; its title may be a path of headings, as in "Guide > Install"."""
    front = _FRONT_MATTER.match(text)
    named = _TITLE.search(front[1]) if front else None
    headings = [*title.split(" > "), named[1].strip("\"'") if named else ""]
    blocks = []
    for kind, block in _blocks(_without_code(text[front.end() :] if front else text)):
        if kind == "heading":
            headings.append(block)
        else:
            blocks.append(block)
    plain = [plain_text(heading) for heading in headings]
    sentences = [sentence for block in blocks for sentence in _sentences(plain_text(block))]
    return Prose(
        tuple(dict.fromkeys(filter(None, plain))),
        tuple(dict.fromkeys(sentence for sentence in sentences if len(tokens(sentence)) > 2)),
        tuple(passage for passage in _passages(blocks) if passage in text),
    )


def plain_text(text: str) -> str:
    """Return text as a reader sees it: without markup, white space made one space."""
    text = _SHORTCODE.sub(" ", _SHORTCODE_TEXT.sub(r"\1", text))
    text = _LINK.sub(r"\1", _IMAGE.sub(" ", text))
    text = _EMPHASIS.sub("", _TAG.sub(" ", _URL.sub(" ", text)))
    found: str = _SPACED_MARK.sub(r"\1", " ".join(html.unescape(text).split()))
    return found


def _without_code(text: str) -> str:
    fences = _FENCE_LINE.findall(text)
    if len(fences) % 2 and not fences[0]:  # the chunk begins within code, and this is where it ends
        text = f"```\n{text}"
    for block in (_FENCE, _COMMENT, _SHORTCODE_BLOCK, _HTML_BLOCK):
        text = block.sub("\n\n", text)
    return text


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    """Yield headings and paragraphs; a list's items are paragraphs of their own."""
    block: list[str] = []
    in_list = False
    for line in [*text.splitlines(), ""]:
        heading = _HEADING.match(line)
        if _UNDERLINE.match(line) and len(block) == 1 and not in_list:
            yield "heading", block.pop()
            continue
        item = _ITEM.match(line)
        is_code = bool(_CODE_INDENT.match(line)) and not block and not item
        if (heading or item or not line.strip() or is_code or _NO_PROSE.match(line)) and block:
            yield "paragraph", "\n".join(block)
            block = []
        if heading:
            yield "heading", heading[1]
        elif line.strip() and not is_code and not _NO_PROSE.match(line):
            block.append(_QUOTE.sub("", line[item.end() :] if item else line))
        in_list = bool(item) or (in_list and bool(line.strip()))


def _sentences(text: str) -> list[str]:
    end = _SENTENCE_END if _CAPITAL.search(text) else _SENTENCE_END_IN_SMALL_LETTERS
    return [sentence for sentence in map(str.strip, end.split(text)) if _LETTER.search(sentence)]


def _passages(blocks: list[str]) -> list[str]:
    """Return what of paragraphs is without markup and on one line: whole sentences, then clauses, then lines."""
    found: tuple[list[str], list[str], list[str]] = ([], [], [])
    for line in (line for block in blocks for line in block.splitlines()):
        for sentence in _sentences(line):
            whole = sentence[0].isupper() and sentence[-1] in ".!?。！？"
            if whole and not _MARKUP.search(sentence):
                found[0].append(sentence)
                continue
            for run in _MARKUP.split(sentence):
                clauses = _CLAUSE_END.split(run)
                found[1].extend(clauses if len(clauses) > 1 else [])
                found[2].append(run)
    stripped = (piece.strip(" \t,;:–—-()\"'") for kind in found for piece in kind)
    return list(
        dict.fromkeys(
            p for p in stripped if len(p.split()) >= LEAST_WORDS or len(_UNSPACED.findall(p)) >= LEAST_LETTERS
        )
    )
