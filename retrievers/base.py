"""The interface of retrievers: corpus, rankings, retriever, searcher, and the tie rule.

A retriever is a value: its settings. `index` turns it and a corpus into a searcher, which answers queries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from retrievers.errors import RetrieverError as RetrieverError
from retrievers.filters import Filter, Metadata
from retrievers.notes import QueryNote
from retrievers.store import NoStore, Store, fingerprint, fingerprint_texts

NOTHING = -1
"""The document position of an empty place in rankings."""


class RepeatedIdError(RetrieverError):
    """Two documents of a corpus have the same id."""

    def __init__(self, identifier: str) -> None:
        super().__init__(f"the document id {identifier!r} occurs more than once; ids must be unique")
        self.identifier = identifier


@dataclass(frozen=True, eq=False)
class Corpus:
    """Documents in columns. A chunk of a document is a document.

    `titles` and `metadata` are either empty or as long as `ids`. `filter_fields` are the fields of the metadata that
    queries filter by; engines store these. `search_fields` are those that retrievers may search beside title and text.
    Raises `RetrieverError` on repeated ids or columns of unequal length.
    """

    ids: Sequence[str]
    texts: Sequence[str]
    titles: Sequence[str] = ()
    metadata: Sequence[Mapping[str, Any]] = ()
    filter_fields: Sequence[str] = ()
    search_fields: Sequence[str] = ()

    def __post_init__(self) -> None:
        for name in ("texts", "titles", "metadata"):
            column = getattr(self, name)
            if len(column) != len(self.ids) and (column or name == "texts"):
                raise RetrieverError(f"the corpus has {len(self.ids)} ids, but {len(column)} {name}; each id needs one")
        if len(set(self.ids)) != len(self.ids):
            seen: set[str] = set()
            repeated = next(i for i in self.ids if i in seen or seen.add(i))  # type: ignore[func-returns-value]  # add() returns None
            raise RepeatedIdError(repeated)

    def __len__(self) -> int:
        return len(self.ids)

    def contents(self) -> Iterator[str]:
        """Yield the title and text of each document, as one string."""
        if not self.titles:
            return iter(self.texts)
        return (f"{title} {text}" if title else text for title, text in zip(self.titles, self.texts, strict=True))

    def read_field(self, name: str) -> Sequence[str]:
        """Return the text of a field of each document: `title`, `text` or one of the metadata."""
        if name == "title":
            return self.titles or [""] * len(self)
        if name == "text":
            return self.texts
        return [_join_text(row.get(name)) for row in self.metadata] or [""] * len(self)

    @cached_property
    def fingerprint(self) -> str:
        """Return a hash of the ids, titles and texts, in their order, and of the fields to search beside them."""
        titles = self.titles or [""] * len(self)
        columns = zip(self.ids, titles, self.texts, strict=True)
        rows = (f"{i}\0{len(title)}\0{title}{text}" for i, title, text in columns)
        others = (text for name in self.search_fields for text in (f"field\0{name}", *self.read_field(name)))
        return fingerprint_texts(
            chain(["corpus"], rows, others)
        )  # one at a time: together they take as much memory as the corpus

    @cached_property
    def fields(self) -> Metadata:
        """Return the metadata in columns, which finds the documents that pass a filter."""
        return Metadata(self.metadata or [{}] * len(self), self.filter_fields)

    @cached_property
    def positions(self) -> Mapping[str, int]:
        """Return the position of each document by its id."""
        return {name: position for position, name in enumerate(self.ids)}

    @cached_property
    def key_parts(self) -> dict[str, object]:
        """Return the parts of a key that identify the corpus and, for estimates, give its size."""
        characters = sum(map(len, self.contents()))
        return {"corpus": self.fingerprint, "documents": len(self), "characters": characters}

    @property
    def field_parts(self) -> dict[str, object]:
        """Return the parts of a key that identify the fields that queries filter by; nothing without any."""
        return {"fields": self.fields.fingerprint} if self.filter_fields else {}

    @cached_property
    def tie_order(self) -> NDArray[np.int32]:
        """Return the tie-break rank of each document, int32 of shape (n,); lower ranks first.

        Equal scores are ordered by id, descending, as in trec_eval (strings compare by code point).
        """
        order = np.empty(len(self), dtype=np.int32)
        order[sorted(range(len(self)), key=self.ids.__getitem__, reverse=True)] = np.arange(len(self), dtype=np.int32)
        return order


def _join_text(value: object) -> str:
    """Return a value of the metadata as text: the items of a list joined by spaces, "" for none."""
    if isinstance(value, (list, tuple)):
        return " ".join(map(_join_text, value))
    return "" if value is None else str(value)


@dataclass(frozen=True, eq=False)
class Rankings:
    """The hits of n queries, best first; TREC calls this a run.

    `documents` (int32 of shape (n, w)) are positions in the corpus, -1 in places without a hit; `scores` (float32 of
    shape (n, w)) are -inf there. The width w is at least the length of the longest ranking, and may be far less than
    the depth k of the search. A service may return documents that the corpus lacks: position len(corpus) + i is
    `unknown_ids[i]`, an id that is not in the corpus and occurs once (`retrievers.unknown`). `seconds` (float32 of
    shape (n,)) is the time of each query searched alone, NaN where it was not measured. `errors` maps the positions of
    failed queries, which have no hits, to messages.
    `diagnostics` are figures about the search itself, such as the recall of an approximate index. `notes` are those
    of queries by position, such as the steps of an agentic search. Rankings are not `settled`, and so not cached, if
    something failed that may succeed next time. `addresses` are those of the services that answered, by the part of the
    retriever that queried each ("" for the retriever itself).
    """

    documents: NDArray[np.int32]
    scores: NDArray[np.float32]
    seconds: NDArray[np.float32] | None = None
    errors: Mapping[int, str] | None = None
    diagnostics: Mapping[str, float] = field(default_factory=dict)
    notes: Mapping[int, QueryNote] = field(default_factory=dict)
    settled: bool = True
    unknown_ids: Sequence[str] = ()
    addresses: Mapping[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.documents)

    @property
    def depth(self) -> int:
        """Return w, the number of places per query. The depth of the search may be greater."""
        return int(self.documents.shape[1])

    @property
    def may_keep(self) -> bool:
        """Return whether a store may keep the rankings: no query failed, and nothing that may succeed next time."""
        return self.settled and not self.errors

    def cut(self, k: int) -> Rankings:
        """Return the rankings with the first k places of every query."""
        return replace(self, documents=self.documents[:, :k], scores=self.scores[:, :k])

    def fill(self, rows: int | slice | Sequence[int] | NDArray[np.intp], other: Rankings) -> None:
        """Write the hits of other rankings, which are at most as wide, to the first places of rows without hits."""
        self.documents[rows, : other.depth], self.scores[rows, : other.depth] = other.documents, other.scores


def rank(documents: NDArray[np.int32], scores: NDArray[np.float32], tie_order: NDArray[np.int32], k: int) -> Rankings:
    """Rank candidates by score, then document id, both descending, and keep the first k of each query.

    `documents` and `scores` have shape (n, m), in any order, with -1 for empty places; the result has shape
    (n, min(k, m)). Raises `RetrieverError` for a score of NaN.
    """
    absent = documents == NOTHING
    scores = np.where(absent, -np.inf, scores).astype(np.float32) + np.float32(0)  # -0 is 0
    if np.isnan(scores).any():
        raise RetrieverError("the score of a document is NaN; a retriever must return a number or omit the document")
    places = np.where(absent, np.iinfo(np.int32).max, tie_order[documents]) if len(tie_order) else documents
    # Each key is an integer that sorts by descending score, then ascending place: the bits of a float32 sort in the
    # order of the floats, with the negative ones reversed.
    bits = scores.view(np.int32)
    keys = np.where(bits < 0, bits & 0x7FFFFFFF, ~bits).astype(np.int64) << 32 | places
    best = np.argsort(keys, axis=-1)[:, :k]
    documents = np.take_along_axis(documents, best, axis=1).astype(np.int32, copy=False)
    return Rankings(documents, np.take_along_axis(scores, best, axis=1))


def check_search_fields(corpus: Corpus, setting: str, names: Iterable[str]) -> None:
    """Raise `RetrieverError` if a setting names a field that the documents do not have."""
    known = ("title", "text", *corpus.search_fields)
    for name in names:
        if name not in known:
            raise RetrieverError(
                f"{setting}.{name}: the fields of the documents to search are {', '.join(known)}; to search others, "
                f"name them in the dataset's search_fields, as in dataset.search_fields=[{name}]"
            )


def create_empty_rankings(n: int, k: int) -> Rankings:
    """Return rankings of n queries without hits."""
    return Rankings(np.full((n, k), NOTHING, dtype=np.int32), np.full((n, k), -np.inf, dtype=np.float32))


def build_rankings(hits: Iterable[Iterable[tuple[int, float]]], tie_order: NDArray[np.int32], k: int) -> Rankings:
    """Build rankings from one list of (document position, score) per query."""
    rows = [list(row) for row in hits]
    width = max((len(row) for row in rows), default=0)
    empty = create_empty_rankings(len(rows), width)
    for i, row in enumerate(rows):
        for j, (document, score) in enumerate(row):
            empty.documents[i, j], empty.scores[i, j] = document, score
    return rank(empty.documents, empty.scores, tie_order, k)


class QueryText(str):
    """The text of a query that knows its id, type and filter, for retrievers that use these; others only see the text.

    A plain string is its own id, and has no type and no filter. `is_known` is false if only the id is known, and the
    text is empty for that reason.
    """

    id: str
    type: str
    filter: Filter | None
    is_known: bool

    def __new__(
        cls, text: str, identifier: str = "", query_type: str = "", own: Filter | None = None, is_known: bool = True
    ) -> QueryText:
        """Return a text with an id, a type and perhaps a filter."""
        query = super().__new__(cls, text)
        query.id, query.type, query.filter, query.is_known = identifier, query_type, own, is_known
        return query


def list_types(queries: Sequence[str]) -> list[str]:
    """Return the type of each query, "" for none."""
    return [getattr(query, "type", "") for query in queries]


def list_ids(queries: Sequence[str]) -> list[str]:
    """Return the id of each query; a plain string is its own."""
    return [getattr(query, "id", query) for query in queries]


def list_filters(queries: Sequence[str]) -> list[Filter | None]:
    """Return the filter of each query, None for one without."""
    return [getattr(query, "filter", None) for query in queries]


def fingerprint_queries(queries: Sequence[str], corpus: Corpus) -> str:
    """Return a hash of the texts of queries and, if they have filters, of the filters and the metadata these name."""
    filters = list_filters(queries)
    if not any(filters):
        return fingerprint(*queries)
    return fingerprint(*queries, "filters", corpus.fields.fingerprint, *(str(own or "") for own in filters))


class Searcher(Protocol):
    """An indexed corpus that answers queries."""

    def search(self, queries: Sequence[str], k: int, store: Store = NoStore()) -> Rankings:  # noqa: B008 (immutable)
        """Return the k best documents of each query; work shared between searches goes through the store.

        The rankings have the shape (n, w), where w is at most k and at least the length of the longest ranking: memory
        follows the hits, as k may be far larger.
        """
        ...


@runtime_checkable
class Retriever(Protocol):
    """Settings of a search method, as a frozen value whose repr is its identity.

    Settings that cannot change a ranking, such as a device, stay out of the repr. A retriever that applies filters,
    looks queries up by id or searches a live index says so in an attribute or property `capabilities`, a
    `retrievers.capabilities.Capabilities`; one without has the defaults.
    """

    def index(self, corpus: Corpus, store: Store) -> Searcher:
        """Return a searcher over the corpus; costly work goes through the store."""
        ...


def iter_parts(settings: object) -> Iterable[object]:
    """Return the values directly within settings: fields, elements or values of a mapping; none in other objects."""
    if is_dataclass(settings):
        return (getattr(settings, field.name) for field in fields(settings))
    if isinstance(settings, Mapping):
        return settings.values()
    return settings if isinstance(settings, (list, tuple)) else ()
