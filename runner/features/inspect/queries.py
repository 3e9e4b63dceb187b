"""Find generated queries that do not look like searches: fragments, statements, copies, random characters, repetitions.

The signs are in the text alone, so a well-formed query that makes no sense is not found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import regex

from runner.datasets.base import Queries

FRAGMENT, ONE_WORD, LONG, COPIED, RANDOM, REPEATED_WORD, SAME_WORDS = (
    "fragments", "single ordinary words", "long", "copied from gold", "random characters", "a repeated word",
    "the same words as another query",
)  # fmt: skip

LONGEST_SEARCH = 20
"""The most words of a query that looks like a search; questions in benchmarks are rarely longer."""

LONGEST_COPY = 8
"""A query with at least this many consecutive words of its gold counts as copied from it."""

_WORD = regex.compile(r"[\p{L}\p{N}]+(?:['’-][\p{L}\p{N}]+)*")
_OPEN_END = frozenset({
    "a", "an", "and", "as", "at", "be", "because", "by", "for", "from", "if", "into", "of", "or", "than", "that", "the",
    "their", "to", "which", "with", "your",
})  # fmt: skip
_QUESTION = regex.compile(r"^(?:how|what|why|when|where|which|who|is|are|do|does|can|should)\b", regex.IGNORECASE)
_RANDOM = regex.compile(r"(?<!\S)(?=[\p{L}\d+/=]{10,}(?!\S))(?=\S*\p{Lu})(?:\S*?\p{L}\d+\p{L}){2}|\p{Nd}{9,}")
_PLURAL = regex.compile(r"(?<=\p{L}{3})(?:ies|es|s|y)$")
_QUOTED = "exact_snippet"


def is_generated(queries: Queries) -> bool:
    """Tell whether `synthesize` wrote the queries; these record how each was validated."""
    return bool(queries.metadata) and all("query_type" in known and "evaluation" in known for known in queries.metadata)


def unlike_searches(queries: Queries, gold: Sequence[Sequence[str]]) -> dict[int, str]:
    """Return the first sign found for each query, by position, that does not look like a search.

    `gold` has the texts of each query's gold documents. Quotations may be long and copied.
    """
    types = queries.types or [""] * len(queries)
    bags = [frozenset(_PLURAL.sub("", word) for word in _words(text)) for text in queries.texts]
    times = Counter(bags)
    signs: dict[int, str] = {}
    for position, (text, kind) in enumerate(zip(queries.texts, types, strict=True)):
        sign = _sign(text, gold[position], kind == _QUOTED)
        if not sign and bags[position] and times[bags[position]] > 1 and bags.index(bags[position]) != position:
            sign = SAME_WORDS
        if sign:
            signs[position] = sign
    return signs


def _sign(text: str, gold: Sequence[str], is_quotation: bool) -> str:
    words = _words(text)
    if _RANDOM.search(text):
        return RANDOM
    if not words or (words[-1] in _OPEN_END and not _QUESTION.match(text)):
        return FRAGMENT
    if len(words) == 1 and regex.fullmatch(r"\p{Ll}+", text.strip()):
        return ONE_WORD
    if len(words) < LONGEST_COPY and len(set(words)) < len(words):
        return REPEATED_WORD
    if is_quotation:
        return ""
    if len(words) > LONGEST_SEARCH:
        return LONG
    return COPIED if len(words) >= LONGEST_COPY and _is_copied(words, gold) else ""


def _is_copied(words: Sequence[str], gold: Sequence[str]) -> bool:
    passage = f" {' '.join(words)} "
    return any(passage in f" {' '.join(_words(text))} " for text in gold)


def _words(text: str) -> list[str]:
    return [str(word) for word in _WORD.findall(text.lower())]
