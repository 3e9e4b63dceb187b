"""What can be told of texts alone: which are copies of one another, or within one another.

Knows nothing of judgments or retrievers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from runner.datasets.duplicates import WORDS, Shingled

LEAST_WORDS = 4
"""How many words a query has at least that is called copied: fewer stand in many a text by chance."""


def plain(text: str) -> str:
    """Return the words of a text alone, whatever their case and punctuation."""
    return " ".join(WORDS.tokens(text))


def is_contained(query: str, texts: Iterable[str]) -> bool:
    """Tell whether the words of a query, if they are enough, follow each other so in one of several texts."""
    words = plain(query)
    return words.count(" ") + 1 >= LEAST_WORDS and any(f" {words} " in f" {plain(text)} " for text in texts)


def find_copied_queries(queries: Sequence[str], others: Sequence[str], least: float) -> list[tuple[int, int]]:
    """Return the queries that are near-duplicates of others, by position, each with the first that it is one of."""
    shingled = Shingled.of([*queries, *others])
    copies: list[tuple[int, int]] = []
    for group in shingled.groups(least):
        from_others = [text for text in group if text >= len(queries)]
        for text in group:
            if text < len(queries) and from_others and plain(queries[text]):
                nearest = max(from_others, key=lambda other: shingled.similarity(text, other))
                if shingled.similarity(text, nearest) >= least:
                    copies.append((text, nearest - len(queries)))
    return sorted(copies)
