"""Find passages that people paste into a search box: error messages, definitions and short statements."""

from __future__ import annotations

from collections.abc import Iterator

import regex

from runner.features.synthesize.limits import collapse_spaces
from runner.features.synthesize.topics import Material

LONGEST_STATEMENT, LONGEST_MESSAGE = 12, 18
"""The maximum number of words of each kind; people paste longer messages than statements."""

_FEWEST_WORDS = 4
_SUBJECT = 4
"""The number of words at the beginning of a sentence that name its subject."""

_MOSTLY_WORDS = 0.8
"""The share of letters and spaces in a message; a line with fewer is code."""

_FENCE = regex.compile(r"^[ \t>]*(```+|~~~+)[^\n]*\n(.*?)(?:^[ \t>]*\1|\Z)", regex.MULTILINE | regex.DOTALL)
_MESSAGE = regex.compile(
    r"^(?:[Ee]rror|ERROR|[Ff]atal|FATAL|\w+Error|\w+Exception|[Ff]ailed to|Cannot|Could not|[Uu]nable to|"
    r"Permission denied)\b",
)
_LOG_PREFIX = regex.compile(
    r"^(?:[\d:TZ./+\-]{8,}\s+|\[[^\]]*\]\s*|[IWEF]\d{4}\s+\S+\s+\d+\s+\S+\]\s*|(?:INFO|WARN(?:ING)?|ERROR)\s+)+"
)
_NOT_PASTED = regex.compile(r"[{}<>|\\=#]|//|\.\.\.|[;,:(]\s*$|\s{3}|^\w+:\s*\S*$")
"""Code, table rows, fields of structures, and messages without their end."""

_QUOTED = regex.compile(r"[\"“]([^\"“”\n]{15,120})[\"”]|`([^`\n]{15,120})`")
_NEEDS_CONTEXT = regex.compile(
    r"\b(?:this|that|these|those|it|its|they|their|them|same|latter|former|above|below|following|here|there|see|please|"
    r"we|our|you|your|page|section|document|chapter|guide|example)\b|[:()?!]|"
    r"^(?:such|however|therefore|thus|also|then|instead|otherwise|and|or|but|so|if|when|as|for|in|by|note|all|some)\b",
    regex.IGNORECASE,
)
"""Words of sentences about the page, its reader, or the sentence before."""


def iter_snippets(material: Material) -> Iterator[str]:
    """Yield passages of the first golden, verbatim except for white space, the likeliest to be pasted first.

    For a text in a language other than English, these are its complete sentences.
    """
    if not material.is_english:
        yield from material.prose.passages
        return
    yield from iter_messages(material.text)
    yield from (passage for passage in material.prose.passages if _stands_alone(passage, material))


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
    if _FEWEST_WORDS <= len(message.split()) <= LONGEST_MESSAGE and letters >= _MOSTLY_WORDS * len(message):
        yield message


def _stands_alone(passage: str, material: Material) -> bool:
    """Return whether a short sentence refers to nothing outside it and begins with what the headings name."""
    if not _FEWEST_WORDS <= len(passage.split()) <= LONGEST_STATEMENT or _NEEDS_CONTEXT.search(passage):
        return False
    terms = material.terms.analyzer.tokens
    subject = set(terms(" ".join(passage.split()[:_SUBJECT])))
    is_about_heading = bool(subject & set(terms(" ".join(material.headings)))) or not material.headings
    return is_about_heading and material.is_telling(passage)
