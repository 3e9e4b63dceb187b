"""Check queries by their words and ranks, without a language model.

A query that the retriever fails is doubtful, never rejected: a dataset without such queries would only test what the
retriever can already do.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, lru_cache

from stop_words import get_stop_words

from retrievers.lexical.analyzer import Analyzer
from runner.datasets.duplicates import Shingled
from runner.features.mine.base import Mining, Objection, Query
from runner.features.mine.targets import Targets

RETRIEVABLE, SHARED, CONTAINED, REPEATED, GOLD = "retrievable", "shared words", "contained", "repeated", "gold"

SETTLED_BY_A_MODEL = frozenset({RETRIEVABLE, SHARED})
"""The checks that no longer count once a language model has answered the question from its gold."""

CONCEPTS = 5
"""The number of concepts listed for a query."""

_ANALYZER = Analyzer(identifiers=True)


def run_checks(queries: Sequence[Query], targets: Targets, mining: Mining) -> list[Query]:
    """Return queries with the objections of all checks, and with their concepts."""
    tokens = lru_cache(maxsize=None)(lambda position: frozenset(_ANALYZER.tokens(_whole(targets, position))))
    frequency: Counter[str] = Counter()
    for position in range(len(targets)):
        frequency.update(_words(_whole(targets, position)))
    repeats = _repeats(queries, mining.ceiling)
    after = []
    for query, repeat in zip(queries, repeats, strict=True):
        objections = [*query.objections, *([repeat] if repeat else [])]
        if query.golds:
            objections += _check_gold(query, targets, mining.depth)
            words = set(_ANALYZER.tokens(query.case.query))
            if not any(words & tokens(gold) for gold in query.golds):
                objections.append(
                    Objection(SHARED, "doubtful", "the query shares no word with any gold, except stop words")
                )
        after.append(replace(query, objections=tuple(objections), concepts=_concepts(query, targets, frequency)))
    return after


def _check_gold(query: Query, targets: Targets, depth: int) -> list[Objection]:
    objections = []
    if query.rank is None:
        objections.append(
            Objection(RETRIEVABLE, "doubtful", f"the first {depth} results of the retriever contain no gold")
        )
    words = f" {' '.join(_words(query.case.query))} "
    for gold in query.golds:
        if words in f" {' '.join(_words(_whole(targets, gold)))} ":
            objections.append(
                Objection(CONTAINED, "rejected", f"the query occurs verbatim in its gold, {targets.all[gold].id}")
            )
    return objections


def _repeats(queries: Sequence[Query], ceiling: float) -> list[Objection | None]:
    """Return the objection to each query that is a near-duplicate of another.

    The first query of a group is kept, but is doubtful if others have different gold.
    """
    repeats: list[Objection | None] = [None] * len(queries)
    able = [position for position, query in enumerate(queries) if query.golds]
    for group in Shingled.of(queries[position].case.query for position in able).groups(ceiling):
        first, *others = (able[place] for place in group)
        if any(set(queries[other].golds) != set(queries[first].golds) for other in others):
            names = ", ".join(queries[other].case.id for other in others)
            repeats[first] = Objection(REPEATED, "doubtful", f"near-duplicates of this query have other gold: {names}")
        for other in others:
            repeats[other] = Objection(REPEATED, "rejected", f"near-duplicate of {queries[first].case.id}")
    return repeats


def _concepts(query: Query, targets: Targets, frequency: Counter[str]) -> tuple[str, ...]:
    """Return the words that a query shares with its gold, the rarest among the targets first."""
    there = {word for gold in query.golds for word in _words(_whole(targets, gold))}
    shared = {
        word for word in _words(query.case.query) if word in there and len(word) > 2 and word not in _no_concepts()
    }
    return tuple(sorted(shared, key=lambda word: (frequency[word], word))[:CONCEPTS])


@cache
def _no_concepts() -> frozenset[str]:
    return frozenset(get_stop_words("english"))


def _whole(targets: Targets, position: int) -> str:
    return f"{targets.corpus.titles[position]} {targets.corpus.texts[position]}"


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())
