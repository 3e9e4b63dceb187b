"""Extract the prose of a chunk: its headings, its sentences without markup, and sentences that can be quoted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import regex

from runner.datasets.sections import front_matter
from runner.datasets.words import sentence_ends
from runner.features.synthesize.limits import collapse_spaces, tokens
from runner.features.synthesize.markdown import HOLE, Block, parse_blocks, plain_text

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
    statements = list(filter(is_whole, sentences))
    source = collapse_spaces(text)
    return Prose(
        tuple(dict.fromkeys(heading for heading in headings if heading and HOLE not in heading)),
        tuple(sentences),
        tuple(statements),
        tuple(sentence for sentence in statements if _is_long_enough(sentence) and sentence in source),
    )


def is_whole(sentence: str) -> bool:
    """Return whether a sentence has its beginning, its end, and complete pairs of brackets and quotation marks."""
    return bool(
        _WHOLE.search(sentence)
        and _START.match(sentence)
        and all(sentence.count(left) == sentence.count(right) for left, right in _PAIRS)
        and sentence.count('"') % 2 == 0
    )


def _sentences_of(blocks: Sequence[Block]) -> list[str]:
    """Return the sentences of paragraphs without holes, each once."""
    sentences = (sentence for block in blocks if block.kind == "paragraph" for sentence in _split(block.text))
    return list(dict.fromkeys(sentence for sentence in sentences if HOLE not in sentence))


def _split(text: str) -> list[str]:
    return [text[start:end].strip() for start, end in pairwise([0, *sentence_ends(text), len(text)])]


def _is_long_enough(sentence: str) -> bool:
    return len(sentence.split()) >= FEWEST_WORDS or len(_UNSPACED.findall(sentence)) >= FEWEST_LETTERS
