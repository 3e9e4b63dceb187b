"""Find texts that are copies of each other or contained in each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from runner.datasets.duplicates import WORDS, Shingled

LEAST_WORDS = 4
"""Only queries with at least this many words count as copied: fewer words occur in many texts by chance."""


def plain(text: str) -> str:
    """Return the words of a text without case and punctuation."""
    return " ".join(WORDS.tokens(text))


def is_contained(query: str, texts: Iterable[str]) -> bool:
    """Tell whether one of the texts contains the words of a query in sequence, if the query has enough words."""
    words = plain(query)
    return words.count(" ") + 1 >= LEAST_WORDS and any(f" {words} " in f" {plain(text)} " for text in texts)


def find_copied_queries(queries: Sequence[str], others: Sequence[str], least: float) -> list[tuple[int, int]]:
    """Return the queries that are near-duplicates of others: their positions, each with that of the nearest other."""
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
