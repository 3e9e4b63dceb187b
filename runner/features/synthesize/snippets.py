"""Find passages that people paste into a search box: error messages, definitions and short statements."""

from __future__ import annotations

from collections.abc import Iterator

import regex

from runner.features.synthesize.headings import is_telling
from runner.features.synthesize.language import ENGLISH
from runner.features.synthesize.limits import collapse_spaces
from runner.features.synthesize.material import Material

LONGEST_STATEMENT, LONGEST_DEFINITION, LONGEST_MESSAGE = 10, 14, 18
"""The maximum number of words of each kind; people paste longer messages than statements."""

_FEWEST_WORDS = 4

_FENCE = regex.compile(r"^[ \t>]*(```+|~~~+)[^\n]*\n(.*?)(?:^[ \t>]*\1|\Z)", regex.MULTILINE | regex.DOTALL)
_MESSAGE = regex.compile(
    r"^(?:[Ee]rror|ERROR|[Ff]atal|FATAL|\w+Error|\w+Exception|[Ff]ailed to|Cannot|Could not|[Uu]nable to|"
    r"Permission denied)\b",
)
_LOG_PREFIX = regex.compile(
    r"^(?:[\d:TZ./+\-]{8,}\s+|\[[^\]]*\]\s*|[IWEF]\d{4}\s+\S+\s+\d+\s+\S+\]\s*|(?:INFO|WARN(?:ING)?|ERROR)\s+)+"
)
_NOT_PASTED = regex.compile(r"[{}<>|\\=#]|\.\.\.|[;,:(]\s*$|\s{3}|^\w+:\s*\S*$")
"""Code, table rows, fields of structures, and messages without their end."""

_QUOTED = regex.compile(r"[\"“]([^\"“”\n]{15,120})[\"”]|`([^`\n]{15,120})`")

_SPEAKS_OF_PAGE = regex.compile(
    r"\b(?:page|section|document|chapter|tutorial|guide|article|paper|study|example|diagram|figure|table|above|below|"
    r"following|preceding|corresponding|here|see|e\.?g|i\.?e|this|these|those|please|we|our|you|your)\b|[:()]",
    regex.IGNORECASE,
)
_REFERS_BACK = regex.compile(
    r"^(?:this|that|these|those|it|its|they|their|them|he|she|there|here|such|however|therefore|thus|hence|also|then|"
    r"instead|otherwise|moreover|furthermore|finally|additionally|similarly|note|in this|in that|for example|"
    r"for instance|and|or|but|so|both|either|neither|each|another|one|other|others|all|some|any|if|when|as|only|"
    r"typically|in general|by default|no|now|first|second|next)\b|\b(?:same|latter|former|it|they|them|its|their)\b",
    regex.IGNORECASE,
)
_DEFINITION = regex.compile(r"^[^,;:]{2,60}? (?:is|are) (?:an?|the|one of|used|responsible|part of|defined|known)\b")


def iter_snippets(material: Material) -> Iterator[str]:
    """Yield passages of the first golden, verbatim except for white space, the likeliest to be pasted first.

    For a text in a language other than English, these are its complete sentences.
    """
    if material.phrasing.language != ENGLISH:
        yield from material.prose.passages
        return
    yield from iter_messages(material.chunks.texts[material.bundle.goldens[0]])
    whole = [passage for passage in material.prose.passages if _stands_alone(passage, material)]
    yield from (text for text in whole if _DEFINITION.match(text) and _has_words(text, LONGEST_DEFINITION))
    yield from (text for text in whole if not _DEFINITION.match(text) and _has_words(text, LONGEST_STATEMENT))


def iter_messages(text: str) -> Iterator[str]:
    """Yield the error messages of a Markdown text, from its code blocks and quotations, each on one line."""
    for block in _FENCE.finditer(text):
        for line in block[2].splitlines():
            yield from _iter_valid_messages(line.rstrip())
    for match in _QUOTED.finditer(_FENCE.sub("\n", text)):
        yield from _iter_valid_messages(match[1] or match[2])


def _iter_valid_messages(line: str) -> Iterator[str]:
    message = collapse_spaces(_LOG_PREFIX.sub("", line))
    if not _MESSAGE.search(message) or _NOT_PASTED.search(message):
        return
    letters = sum(character.isalpha() or character == " " for character in message)
    if _has_words(message, LONGEST_MESSAGE) and letters >= _MOSTLY_WORDS * len(message):
        yield message


_MOSTLY_WORDS = 0.8


def _has_words(text: str, most: int) -> bool:
    return _FEWEST_WORDS <= len(text.split()) <= most


def _stands_alone(passage: str, material: Material) -> bool:
    """Return whether a sentence refers to nothing outside it and is specific."""
    if _SPEAKS_OF_PAGE.search(passage) or _REFERS_BACK.search(passage):
        return False
    first = passage.split(" ", 1)[0].lower()
    return not material.usage.is_verb(first) and is_telling(passage, material)
