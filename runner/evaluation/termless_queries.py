"""Find queries that an analyzer leaves without a term to search by: only stop words, or less than its smallest unit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import NamedTuple

from retrievers.lexical.analyzer import Analyzer
from runner.datasets.base import Queries


class TermlessQueries(NamedTuple):
    """The positions of queries that are empty for an analyzer for the same reason, and what helps."""

    reason: str
    remedy: str
    queries: Sequence[int]

    def describe(self, queries: Queries) -> str:
        """Return a sentence with the number of queries, one of them, and the remedy."""
        first = self.queries[0]
        return (
            f"{len(self.queries):,} of {len(queries):,} queries {self.reason}, for example "
            f"{queries.texts[first][:60]!r} ({queries.ids[first]}); {self.remedy}"
        )


def find_termless_queries(queries: Queries, analyzer: Analyzer) -> list[TermlessQueries]:
    """Return the queries with text that an analyzer leaves without terms, by reason."""
    empty, short = [], []
    for position, text in enumerate(queries.texts if queries.has_texts else ()):
        terms = analyzer.tokens(text)
        if not terms and text.strip():
            empty.append(position)
        elif terms and analyzer.bigrams and all(map(analyzer.is_half_pair, terms)):
            short.append(position)
    kinds = (
        TermlessQueries(
            "have only stop words or signs, so that a search by words finds nothing",
            "set analyzer.stopwords=null, or reword them",
            empty,
        ),
        TermlessQueries(
            "are single characters, which match none of the pairs of characters that documents are split into",
            "reword them, or search by meaning (retriever=dense)",
            short,
        ),
    )
    return [kind for kind in kinds if kind.queries]


def find_analyzers(retriever: object) -> Iterator[Analyzer]:
    """Yield the analyzers among the settings of a retriever and of its parts."""
    if isinstance(retriever, Analyzer):
        yield retriever
    elif isinstance(retriever, (list, tuple)):
        for part in retriever:
            yield from find_analyzers(part)
    elif isinstance(retriever, dict):
        yield from find_analyzers([*retriever.values()])
    elif is_dataclass(retriever):
        for field in fields(retriever):
            yield from find_analyzers(getattr(retriever, field.name, None))


def describe_termless_queries(queries: Queries, retriever: object) -> list[str]:
    """Return a sentence for each kind of query without terms in the analyzers of a retriever."""
    kinds = (
        kind
        for analyzer in dict.fromkeys(find_analyzers(retriever))
        for kind in find_termless_queries(queries, analyzer)
    )
    return list(dict.fromkeys(kind.describe(queries) for kind in kinds))
