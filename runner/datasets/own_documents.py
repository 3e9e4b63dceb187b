"""Find queries that are documents of the corpus, and leave them out of their own results.

Duplicate questions, query by example and argument retrieval search a collection for documents like one of its own.
Every retriever ranks that document first, which says nothing; BEIR and MTEB leave it out (`ignore_identical_ids`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator
from pydantic.dataclasses import dataclass as settings

from retrievers.base import NOTHING, Corpus, Rankings, Retriever
from retrievers.capabilities import derive_capabilities
from retrievers.search import deepen, resolve_search_depth
from runner.config.patterns import compile_pattern, match_pattern

if TYPE_CHECKING:
    from runner.datasets.base import Judgments, Queries
    from runner.datasets.dataset import Dataset


@settings(frozen=True, config={"extra": "forbid"})
class OwnIdRule:
    """How the id of a query names its own document if the two differ.

    `pattern` is a regular expression for ids with a suffix: the id is its first group or, without a group, what remains
    when the first match is removed; other ids stay as they are. Documents with such ids are found too. `field` names
    the field of queries with the id of their document, or with a list of ids.
    """

    pattern: str | None = Field(default=None, min_length=1)
    field: str | None = Field(default=None, min_length=1)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.pattern is None) == (self.field is None):
            raise ValueError("expected either pattern or field, such as {pattern: '-query$'} or {field: source_id}")
        try:
            compile_pattern(self.pattern or "")
        except ValueError as error:
            raise ValueError(f"pattern={self.pattern}: {error}") from None
        return self

    def __str__(self) -> str:
        return f"{{pattern: {self.pattern}}}" if self.pattern else f"{{field: {self.field}}}"

    def shorten(self, identifier: str) -> str:
        """Return an id without its suffix."""
        match = match_pattern(self.pattern, identifier) if self.pattern else None
        if match is None:
            return identifier
        return (match[1] or identifier) if match.re.groups else identifier[: match.start()] + identifier[match.end() :]


ExcludeSelf = Literal["auto", "true", "false"] | OwnIdRule

EXCLUDED = "own_documents_excluded"
"""The diagnostic that counts how often a query's own document was removed from its ranking."""


@dataclass(frozen=True, eq=False)
class OwnIds:
    """The ids that the own document of each query may have, by a rule."""

    queries: Queries
    mode: ExcludeSelf

    @property
    def rule(self) -> OwnIdRule | None:
        """Return the rule for ids that differ, if one is set."""
        return self.mode if isinstance(self.mode, OwnIdRule) else None

    def names(self, query: int) -> Collection[str]:
        """Return the ids of the documents that a query may be."""
        identifier, rule = self.queries.ids[query], self.rule
        if rule is None or rule.pattern:
            return [rule.shorten(identifier) if rule else identifier]
        value = self.queries.metadata[query].get(str(rule.field)) if self.queries.metadata else None
        values = value if isinstance(value, (list, tuple)) else [value]
        return list(dict.fromkeys(name for name in map(_format_id, values) if name))

    @cached_property
    def _queries_by_name(self) -> Mapping[str, Sequence[int]]:
        named: dict[str, list[int]] = {}
        for query in range(len(self.queries)):
            for name in self.names(query):
                named.setdefault(name, []).append(query)
        return named

    def find(self, document: str) -> Iterator[int]:
        """Yield the queries that a document with this id may be."""
        names = [document] if self.rule is None else dict.fromkeys([document, self.rule.shorten(document)])
        for name in names:
            yield from self._queries_by_name.get(name, ())


def own_documents(corpus: Corpus, queries: Queries, judgments: Judgments, mode: ExcludeSelf) -> NDArray[np.int32]:
    """Return the positions of the documents that each query is (n, m), int32, -1 for none; m is at least 1.

    The ids agree, or fit the rule. With `auto` the texts must agree too, because ids of queries and documents may both
    be plain numbers; if the texts of queries are unknown, their ids must not be numbers. A document that is gold for
    the query is not left out.
    """
    rows: list[list[int]] = [[] for _ in queries.ids]
    if mode != "false":
        ids, gold = OwnIds(queries, mode), _list_gold(judgments)
        for document, identifier in enumerate(corpus.ids):
            for query in ids.find(identifier):
                if (query, document) not in gold and (mode != "auto" or _is_same(queries, query, corpus, document)):
                    rows[query].append(document)
    own = np.full((len(rows), max(map(len, rows), default=0) or 1), NOTHING, dtype=np.int32)
    for row, positions in zip(own, rows, strict=True):
        row[: len(positions)] = positions
    return own


def search_others(
    dataset: Dataset, retriever: Retriever, depth: int, search: Callable[[Retriever, int], Rankings]
) -> Rankings:
    """Return the `depth` best hits of each query without its own documents; `search` takes a number of hits."""
    deeper, wanted = leave_room(retriever, dataset, depth)
    rankings = search(deeper, wanted)
    lost = Counter(query for query, _ in _list_unknown(dataset, rankings))
    if lost and not derive_capabilities(retriever).texts:  # rankings in files; a service may limit its results
        rankings = search(deeper, wanted + max(lost.values()))
    return exclude_own(dataset, rankings, depth)


def leave_room(retriever: Retriever, dataset: Dataset, depth: int) -> tuple[Retriever, int]:
    """Return the retriever and how many hits to request, so that `depth` remain without a query's own document.

    The parts of a composed retriever, such as a hybrid, return more candidates too.
    """
    rows = _count_rows(dataset)
    return deepen(retriever, rows) if rows else retriever, resolve_search_depth(retriever, dataset.corpus, depth + rows)


def _count_rows(dataset: Dataset) -> int:
    """Return the largest number of own documents of a query, or of their chunks; 0 if no query is a document.

    Without documents, a query is expected to have one if the setting `exclude_self` requests it.
    """
    own, mode = dataset.own_documents, dataset.exclude_self
    if not len(dataset.documents):
        ids = OwnIds(dataset.queries, mode)
        return 0 if mode in ("auto", "false") else max(len(ids.names(query)) for query in range(len(own)))
    sizes = np.ones(len(dataset.documents), dtype=np.int64)
    if dataset.document_of is not None:
        sizes = np.bincount(dataset.document_of, minlength=len(sizes))
    return int(np.where(own == NOTHING, 0, sizes[own]).sum(axis=1).max(initial=0))


def exclude_own(dataset: Dataset, rankings: Rankings, depth: int) -> Rankings:
    """Return the rankings without each query's own documents, cut to `depth`; later hits move up."""
    documents, n = rankings.documents, len(dataset.corpus)
    known = (documents != NOTHING) & (documents < n)
    parents = documents if dataset.document_of is None else dataset.document_of[np.where(known, documents, 0)]
    own = np.zeros(documents.shape, dtype=np.bool_)
    for column in dataset.own_documents.T:
        own |= known & (parents == column[:, None])
    for query, document in _list_unknown(dataset, rankings):
        own[query] |= documents[query] == document
    if not own.any() and (dataset.own_documents == NOTHING).all():
        return rankings.cut(depth)
    order = np.argsort(own, axis=1, kind="stable")
    kept = np.take_along_axis(np.where(own, np.int32(NOTHING), documents), order, axis=1)
    scores = np.take_along_axis(np.where(own, np.float32(-np.inf), rankings.scores), order, axis=1)
    diagnostics: Mapping[str, float] = {**rankings.diagnostics, EXCLUDED: float(own.any(axis=1).sum())}
    return replace(rankings, documents=kept, scores=scores, diagnostics=diagnostics).cut(depth)


def find_own_queries(dataset: Dataset) -> NDArray[np.bool_]:
    """Return whether each query is a document (n,), whether or not this is left out of its results."""
    mode: ExcludeSelf = "auto" if dataset.exclude_self == "false" else dataset.exclude_self
    own = own_documents(dataset.documents, dataset.queries, dataset.judgments, mode)
    return np.asarray((own != NOTHING).any(axis=1))


def find_copies(dataset: Dataset) -> list[tuple[int, int]]:
    """Return the queries that have the text of a document with an id that does not fit, each with that document.

    Documents that are gold for the query do not count.
    """
    corpus, judgments, queries = dataset.documents, dataset.judgments, dataset.queries
    judged = _list_gold(judgments)
    own = find_own_queries(dataset)
    wanted: dict[str, list[int]] = {}
    for query, text in enumerate(queries.texts):
        if not own[query] and normalize(text):
            wanted.setdefault(normalize(text), []).append(query)
    copies: dict[int, int] = {}
    for document, texts in enumerate(zip(corpus.texts, corpus.contents(), strict=True)):
        for query in (query for text in set(map(normalize, texts)) for query in wanted.get(text, ())):
            if (query, document) not in judged:
                copies.setdefault(query, document)
    return sorted(copies.items())


def _list_unknown(dataset: Dataset, rankings: Rankings) -> list[tuple[int, int]]:
    """Return the queries and positions of hits that the corpus lacks and that are the query itself.

    With `auto`, there is no text to compare. An id that is a number counts only if most queries with such an id find it
    first, as they find themselves: other collections number queries and documents independently.
    """
    if dataset.exclude_self == "false" or not rankings.unknown_ids:
        return []
    ids, positions = OwnIds(dataset.queries, dataset.exclude_self), dataset.judged_ids
    judged: Collection[tuple[int, int | None]] = _list_gold(dataset.judgments)
    pairs = [
        (query, position)
        for position, name in enumerate(rankings.unknown_ids, len(dataset.corpus))
        for query in ids.find(name)
        if (query, positions.get(name)) not in judged
    ]
    if dataset.exclude_self != "auto":
        return pairs
    first = rankings.documents[:, 0] if rankings.depth else np.full(len(rankings), NOTHING)
    numbered = {query for query, name in enumerate(dataset.queries.ids) if name.isdecimal() and first[query] != NOTHING}
    themselves = sum(first[query] == document for query, document in pairs if query in numbered)
    return pairs if 2 * themselves > len(numbered) else [pair for pair in pairs if pair[0] not in numbered]


def _list_gold(judgments: Judgments) -> set[tuple[int, int]]:
    """Return the queries and documents of positive judgments."""
    gold = judgments.grades > 0
    return set(zip(judgments.queries[gold].tolist(), judgments.documents[gold].tolist(), strict=True))


def _format_id(value: object) -> str:
    """Return a value of a field as an id, "" for none; pandas writes whole numbers as 7.0 beside missing ones."""
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else "" if value != value else str(value)
    return "" if value is None else str(value)


def _is_same(queries: Queries, query: int, corpus: Corpus, document: int) -> bool:
    """Return whether a query with the id of a document is this document."""
    if not queries.has_texts:
        return not queries.ids[query].isdecimal()
    title, text = corpus.titles[document] if corpus.titles else "", corpus.texts[document]
    return normalize(queries.texts[query]) in {normalize(text), normalize(title), normalize(f"{title} {text}")}


def normalize(text: str) -> str:
    """Return a text for comparison: case and white space do not count."""
    return " ".join(text.casefold().split())
