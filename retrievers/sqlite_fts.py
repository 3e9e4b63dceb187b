"""Search full text with SQLite's FTS5, its tokenizers, its bm25(), and weights for titles and texts.

A query is a bag of words; user input never reaches the query language of FTS5. The index is a database in memory,
stored as bytes and shared by all settings that differ only in weights or matching.
"""

from __future__ import annotations

import sqlite3
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

import numpy as np
import regex
from numpy.typing import NDArray
from pydantic import AfterValidator, Field
from pydantic.dataclasses import dataclass as settings

from retrievers.access import Access
from retrievers.base import (
    Corpus,
    Rankings,
    RetrieverError,
    check_search_fields,
    create_empty_rankings,
    list_filters,
    rank,
)
from retrievers.filters import Mask
from retrievers.search import Work, build_rankings_key
from retrievers.store import Arrays, Key, NoStore, Store
from retrievers.work import FTS5_DATABASE, LIVE_FTS5_DATABASE, WorkKind

# A word of the unicode61 tokenizer: letters, numbers, private use, and marks after the first character.
_WORDS = regex.compile(r"[\p{L}\p{N}\p{Co}][\p{L}\p{N}\p{Co}\p{M}]*")
_SHORTEST = {"unicode61": 1, "porter": 1, "trigram": 3}
_DEEPER = 8
"""The factor by which more documents are fetched if too few of them pass a filter."""
_SEARCH = """
SELECT rowid - 1, -bm25(documents, {}) AS score FROM documents WHERE documents MATCH ? ORDER BY score DESC LIMIT ?
"""

Weight = Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]


def _sort(weights: dict[str, float]) -> dict[str, float]:
    """Return the weights sorted by field, so that their order does not change the identity."""
    return dict(sorted(weights.items()))


@settings(frozen=True, config={"extra": "forbid"})
class SqliteFts:
    """Settings of FTS5. Its bm25() has fixed k1 = 1.2 and b = 0.75, and no idf below 1e-6.

    `tokenizer`: unicode61 matches words, porter also their English stems, trigram any part of a word of at least three
    characters (shorter words of a query are left out). `remove_diacritics` is SQLite's option of that name; null is its
    default: 1 for words, 0 for trigrams, which have the option since SQLite 3.45. The weight of a column multiplies the
    counts of a term there; `field_weights` adds columns for any of the corpus' `search_fields`. `match` selects
    documents with any or all words of the query.
    """

    access: ClassVar[Access] = Access()
    applies_filters: ClassVar[bool] = True

    tokenizer: Literal["unicode61", "porter", "trigram"] = "unicode61"
    title_weight: Weight = 1.0
    text_weight: Weight = 1.0
    field_weights: Annotated[dict[str, Weight], AfterValidator(_sort)] = Field(default_factory=dict)
    remove_diacritics: int | None = Field(default=None, ge=0, le=2)
    match: Literal["any", "all"] = "any"

    def index(self, corpus: Corpus, store: Store) -> SqliteFtsSearcher:
        """Return a searcher, which threads may share; the database is filled unless the store has it.

        Raises `RetrieverError` for a field that the documents do not have.
        """
        check_search_fields(corpus, "field_weights", self.field_weights)
        columns = ("title", "text", *self.field_weights)

        def open_database() -> _Database:
            key, tokenize = self._key(FTS5_DATABASE, corpus), self._format_tokenizer()
            return _Database(store.arrays(key, lambda: _fill(corpus, columns, tokenize))["image"])

        database = store.share(self._key(LIVE_FTS5_DATABASE, corpus), open_database)
        return SqliteFtsSearcher(self, database, corpus)

    def plan(self, corpus: Corpus, queries: Sequence[str], k: int, store: Store) -> Work:
        """Return the search as work, which needs the database."""
        needs = (Work(self._key(FTS5_DATABASE, corpus)),)
        return Work(build_rankings_key(self, corpus, queries, k), needs)

    def _key(self, kind: WorkKind, corpus: Corpus) -> Key:
        """Return the key of work based on the words of a corpus, without weights and matching."""
        parts: dict[str, object] = {"tokenize": self._format_tokenizer(), "sqlite": sqlite3.sqlite_version}
        if self.field_weights:
            parts["columns"] = ", ".join(self.field_weights)
        return Key.of(kind, __name__, **corpus.key_parts, **parts)

    def _format_tokenizer(self) -> str:
        """Return the settings of the tokenizer in the syntax of SQLite."""
        tokenize = {"porter": "porter unicode61"}.get(self.tokenizer, self.tokenizer)
        return tokenize + ("" if self.remove_diacritics is None else f" remove_diacritics {self.remove_diacritics}")


@dataclass(frozen=True, eq=False)
class SqliteFtsSearcher:
    """FTS5 over a filled database."""

    settings: SqliteFts
    database: _Database
    corpus: Corpus

    def search(self, queries: Sequence[str], k: int, store: Store = NoStore()) -> Rankings:  # noqa: B008 (immutable)
        """Return the k best documents of each query, exactly, one query after the other."""
        rankings = create_empty_rankings(len(queries), k)
        seconds = np.zeros(len(queries), dtype=np.float32)
        for position, (query, own) in enumerate(zip(queries, list_filters(queries), strict=True)):
            start = time.perf_counter()
            if expression := self._format_query(query):
                mask = None if own is None else self.corpus.fields.select(own)
                best = rank(*self._select(expression, k, mask), self.corpus.tie_order, k)
                rankings.documents[position], rankings.scores[position] = best.documents[0], best.scores[0]
            seconds[position] = time.perf_counter() - start
        return replace(rankings, seconds=seconds)

    def _format_query(self, query: str) -> str:
        """Return the words of a query, each quoted (words contain no quotes), or "" without words."""
        words = (word for word in _WORDS.findall(query) if len(word) >= _SHORTEST[self.settings.tokenizer])
        return (" OR " if self.settings.match == "any" else " AND ").join(f'"{word}"' for word in words)

    def _select(self, expression: str, k: int, mask: Mask | None) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return documents and scores, of shape (1, n), which include the k best documents that pass a mask."""
        own, limit = self.settings, k + 1
        weights = [own.title_weight, own.text_weight, *own.field_weights.values()]
        statement = _SEARCH.format(", ".join("?" * len(weights)))
        while True:
            rows = self.database.select(statement, *weights, expression, limit)
            documents, scores = _columns(rows)
            if mask is not None:
                documents, scores = documents[:, mask[documents[0]]], scores[:, mask[documents[0]]]
            if not 0 <= limit <= len(rows):
                return documents, scores
            if documents.shape[1] <= k:
                limit *= _DEEPER
            elif scores[0, k - 1] != scores[0, k]:
                return documents, scores
            else:  # SQLite has another tie rule and precision, so `rank` decides a tie at the cutoff
                limit = -1


class _Database:
    """A database in memory, used by one thread at a time and closed when nothing refers to it any more."""

    def __init__(self, image: NDArray[np.uint8]) -> None:
        connection = sqlite3.connect(":memory:", check_same_thread=False)
        connection.deserialize(image.data)
        weakref.finalize(self, connection.close)
        self._connection, self._turn = connection, threading.Lock()

    def select(self, statement: str, *values: object) -> list[tuple[int, float]]:
        with self._turn:
            return self._connection.execute(statement, values).fetchall()


def _columns(rows: list[tuple[int, float]]) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    documents, scores = zip(*rows, strict=True) if rows else ((), ())
    return np.array([documents], dtype=np.int32), np.array([scores], dtype=np.float32)


def _fill(corpus: Corpus, fields: Sequence[str], tokenize: str) -> Arrays:
    """Return a database whose row n + 1 has the words of document n, with a column for each field."""
    columns = [f"c{place}" for place in range(len(fields))]
    with closing(sqlite3.connect(":memory:")) as connection:
        try:
            connection.execute(
                f"CREATE VIRTUAL TABLE documents USING fts5({', '.join(columns)}, content='', tokenize='{tokenize}')"
            )
        except sqlite3.OperationalError as error:
            raise RetrieverError(
                f"tokenizer={tokenize}: this Python's SQLite ({sqlite3.sqlite_version}) cannot create an FTS5 "
                f"table with this tokenizer ({error}); choose another tokenizer, or install a Python with a newer "
                "SQLite"
            ) from error
        values = ", ".join("?" * (1 + len(fields)))
        statement = f"INSERT INTO documents(rowid, {', '.join(columns)}) VALUES ({values})"  # noqa: S608 (made above)
        connection.executemany(statement, _rows(corpus, fields))
        connection.execute("INSERT INTO documents(documents) VALUES ('optimize')")
        connection.commit()
        return {"image": np.frombuffer(connection.serialize(), dtype=np.uint8)}


def _rows(corpus: Corpus, fields: Sequence[str]) -> Iterator[tuple[int | str, ...]]:
    for row, texts in enumerate(zip(*map(corpus.read_field, fields), strict=True), start=1):
        yield row, *map(_utf8, texts)


def _utf8(text: str) -> str:
    """Return a text without lone surrogates, which SQLite refuses."""
    return text.encode("utf-8", "replace").decode()
