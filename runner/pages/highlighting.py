"""Mark the words of a text that a query has too, also in another inflection."""

from __future__ import annotations

import re
from collections.abc import Iterator

from retrievers.lexical.analyzer import ENGLISH_STOP_WORDS, Analyzer

_WORD = re.compile(r"\w+(?:['’]\w+)*")
_QUESTION_WORDS = (
    "what", "when", "where", "which", "who", "whom", "whose", "why", "how", "do", "does", "did", "can", "could", "may",
    "might", "must", "shall", "should", "would", "has", "have", "had", "been", "being", "were", "from", "about", "any",
    "some", "than", "its", "i", "me", "my", "we", "our", "you", "your", "he", "she", "his", "her",
)  # fmt: skip
COMMON_WORDS = (*sorted(ENGLISH_STOP_WORDS), *_QUESTION_WORDS)
"""English words that say little about a text; they are marked only if a query has no others."""

_STEMS = Analyzer(stopwords=COMMON_WORDS)
_PLAIN = Analyzer(stemmer=None, stopwords=None)

Segment = tuple[str, bool]
"""A piece of a text, and whether it is a word of the query."""


def iter_segments(text: str, query: str) -> Iterator[Segment]:
    """Yield a text in pieces; words of the query are pieces of their own. Joined, the pieces are the text."""
    analyzer = _STEMS if _STEMS.tokens(query) else _PLAIN  # a query may consist of stop words
    terms, start = set(analyzer.tokens(query)), 0
    for match in _WORD.finditer(text):
        word = match.group()
        if not terms.isdisjoint(analyzer.tokens(word)):
            if match.start() > start:
                yield text[start : match.start()], False
            yield word, True
            start = match.end()
    if start < len(text):
        yield text[start:], False
