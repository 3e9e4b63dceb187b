"""Extract the prose of a chunk: its headings, its sentences without markup, and sentences that can be quoted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import regex

from runner.datasets.sections import front_matter
from runner.features.synthesize.limits import collapse_spaces, tokens
from runner.features.synthesize.markdown import HOLE, Block, parse_blocks, plain_text

_ABBREVIATED = r"(?<!\b(?:e\.g|i\.e|etc|vs|cf|al|Fig|Figs|Dr|Mr|Mrs|No|St|approx|resp|\p{Lu})\.)"
_END = rf"{_ABBREVIATED}(?<=[.!?][\"'”’)\]]*)\s+(?=[\"'“‘(\[]*[\p{{Lu}}\p{{Lo}}\d])|(?<=[。！？])"
_SENTENCE_END = regex.compile(_END)
_SENTENCE_END_IN_SMALL_LETTERS = regex.compile(_END, regex.IGNORECASE)
"""The end of a sentence in a text without capitals."""
_LETTER = regex.compile(r"\p{L}")
_CAPITAL = regex.compile(r"\p{Lu}")
_UNSPACED = regex.compile(r"\p{Lo}")
_WHOLE = regex.compile(r"[.!?。！？][\"'”’)]?$")
_START = regex.compile(r"^[\"'“‘(]?(?:[\p{Lu}\p{Lo}\d]|\p{Ll}+(?:\p{Lu}|[-_.]\w))")
"""A capital, a digit or an identifier."""
_PAIRS = (("(", ")"), ("[", "]"), ("{", "}"), ("“", "”"))

FEWEST_WORDS, FEWEST_LETTERS = 5, 10
"""A passage with fewer words, or fewer letters in a script without spaces, is hardly a sentence."""


@dataclass(frozen=True)
class Prose:
    """The headings of a chunk, the outermost first, and its sentences, both without markup.

    `sentences` may lack their beginning or their end; `statements` are the complete ones. `passages` are the statements
    that are in the chunk verbatim except for white space.
    """

    headings: tuple[str, ...]
    sentences: tuple[str, ...]
    statements: tuple[str, ...]
    passages: tuple[str, ...]


def parse_prose(text: str, title: str = "") -> Prose:
    """Return the prose of a chunk; its title may be a path of headings, as in "Guide > Install"."""
    front = front_matter(text)
    blocks = parse_blocks(text)
    headings = [
        *map(plain_text, title.split(" > ")),
        plain_text(front.title) if front else "",
        *(block.text for block in blocks if block.kind == "heading"),
    ]
    sentences = [sentence for sentence in _sentences_of(blocks) if len(tokens(sentence)) > 2]
    has_capitals = bool(_CAPITAL.search(text))
    statements = [sentence for sentence in sentences if is_whole(sentence, has_capitals)]
    source = collapse_spaces(text)
    return Prose(
        tuple(dict.fromkeys(heading for heading in headings if heading and HOLE not in heading)),
        tuple(sentences),
        tuple(statements),
        tuple(sentence for sentence in statements if _is_long_enough(sentence) and sentence in source),
    )


def is_whole(sentence: str, has_capitals: bool = True) -> bool:
    """Return whether a sentence has its beginning, its end, and complete pairs of brackets and quotation marks."""
    return bool(
        _WHOLE.search(sentence)
        and (not has_capitals or _START.match(sentence))
        and all(sentence.count(left) == sentence.count(right) for left, right in _PAIRS)
        and sentence.count('"') % 2 == 0
    )


def _sentences_of(blocks: Sequence[Block]) -> list[str]:
    """Return the sentences of paragraphs without holes, each once."""
    sentences = (sentence for block in blocks if block.kind == "paragraph" for sentence in _split(block.text))
    return list(dict.fromkeys(sentence for sentence in sentences if HOLE not in sentence))


def _split(text: str) -> list[str]:
    end = _SENTENCE_END if _CAPITAL.search(text) else _SENTENCE_END_IN_SMALL_LETTERS
    return [sentence for sentence in map(str.strip, end.split(text)) if _LETTER.search(sentence)]


def _is_long_enough(sentence: str) -> bool:
    return len(sentence.split()) >= FEWEST_WORDS or len(_UNSPACED.findall(sentence)) >= FEWEST_LETTERS
