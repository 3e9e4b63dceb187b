"""Full-text search by SQLite's FTS5: its own tokenizers, its own bm25(), a weight for titles and one for texts.

A query is a bag of words: nothing that a user types reaches FTS5's query language. The index is a database in memory,
kept as bytes and shared by all settings that differ in weights or matching only. What is in a word is SQLite's affair.
"""

from __future__ import annotations

import sqlite3
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import regex
from numpy.typing import NDArray
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.base import Corpus, Rankings, RetrieverError, create_empty_rankings, rank
from retrievers.search import Work, build_rankings_key
from retrievers.store import Arrays, Key, NoStore, Store

# What the unicode61 tokenizer takes for a word: letters, numbers, private use, and marks once a word has begun.
_WORDS = regex.compile(r"[\p{L}\p{N}\p{Co}][\p{L}\p{N}\p{Co}\p{M}]*")
_SHORTEST = {"unicode61": 1, "porter": 1, "trigram": 3}
_SEARCH = """
SELECT rowid - 1, -bm25(documents, ?, ?) AS score FROM documents WHERE documents MATCH ? ORDER BY score DESC LIMIT ?
"""


@settings(frozen=True, config={"extra": "forbid"})
class SqliteFts:
    """Settings of FTS5. Its bm25() has k1 = 1.2 and b = 0.75 fixed, and no idf below 1e-6.

    `tokenizer`: unicode61 finds words, porter their English stems as well, trigram any part of a word of three
    characters or more (shorter words of a query are left out). `remove_diacritics` is SQLite's option of that name, or
    its default when null: 1 for words; 0 for trigrams, which know it since SQLite 3.45. A column's weight multiplies
    the counts of a term there. `match` asks for documents with any of a query's words, or all.
    """

    tokenizer: Literal["unicode61", "porter", "trigram"] = "unicode61"
    title_weight: float = Field(default=1.0, ge=0, le=1e6, allow_inf_nan=False)
    text_weight: float = Field(default=1.0, ge=0, le=1e6, allow_inf_nan=False)
    remove_diacritics: int | None = Field(default=None, ge=0, le=2)
    match: Literal["any", "all"] = "any"

    def index(self, corpus: Corpus, store: Store) -> SqliteFtsSearcher:
        """Fill a database, unless the store has it, and return a searcher, which threads may share."""

        def open_database() -> _Database:
            image = store.arrays(self._key("fts5 database", corpus), lambda: _fill(corpus, self._tokenize()))["image"]
            return _Database(image)

        database = store.share(self._key("live fts5 database", corpus), open_database)
        return SqliteFtsSearcher(self, database, corpus.tie_order)

    def plan(self, corpus: Corpus, queries: Sequence[str], k: int, store: Store) -> Work:
        """Return the search, which needs the database."""
        needs = (Work("index", self._key("fts5 database", corpus)),)
        return Work("search", build_rankings_key(self, corpus, queries, k), needs)

    def _key(self, kind: str, corpus: Corpus) -> Key:
        """Return the key of what is made of the words of a corpus, which weights and matching do not change."""
        parts = {"tokenize": self._tokenize(), "sqlite": sqlite3.sqlite_version}
        return Key.of(kind, ("retrievers.sqlite_fts",), **corpus.key_parts, **parts)

    def _tokenize(self) -> str:
        """Return the settings of the tokenizer as SQLite writes them."""
        tokenize = {"porter": "porter unicode61"}.get(self.tokenizer, self.tokenizer)
        return tokenize + ("" if self.remove_diacritics is None else f" remove_diacritics {self.remove_diacritics}")


@dataclass(frozen=True, eq=False)
class SqliteFtsSearcher:
    """FTS5 over a filled database."""

    settings: SqliteFts
    database: _Database
    tie_order: NDArray[np.int32]

    def search(self, queries: Sequence[str], k: int, store: Store = NoStore()) -> Rankings:  # noqa: B008 (immutable)
        """Return the k best documents of each query, exactly; one query is asked after the other."""
        found = create_empty_rankings(len(queries), k)
        seconds = np.zeros(len(queries), dtype=np.float32)
        for position, query in enumerate(queries):
            start = time.perf_counter()
            if expression := self._expression(query):
                best = rank(*self._matches(expression, k), self.tie_order, k)
                found.documents[position], found.scores[position] = best.documents[0], best.scores[0]
            seconds[position] = time.perf_counter() - start
        return replace(found, seconds=seconds)

    def _expression(self, query: str) -> str:
        """Return a query's words, each quoted (no word holds a quote), or "" where there is none to look for."""
        words = (word for word in _WORDS.findall(query) if len(word) >= _SHORTEST[self.settings.tokenizer])
        return (" OR " if self.settings.match == "any" else " AND ").join(f'"{word}"' for word in words)

    def _matches(self, expression: str, k: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return documents and scores (1 x k or more), among which the k best are."""
        weights = (self.settings.title_weight, self.settings.text_weight)
        rows = self.database.select(_SEARCH, *weights, expression, k + 1)
        documents, scores = _columns(rows)
        if len(rows) > k and scores[0, k - 1] == scores[0, k]:
            # SQLite knows neither our tie rule nor our precision: a tie at the cut is for `rank` to decide.
            documents, scores = _columns(self.database.select(_SEARCH, *weights, expression, -1))
        return documents, scores


class _Database:
    """A database in memory that threads take turns with, closed when nothing refers to it any more."""

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


def _fill(corpus: Corpus, tokenize: str) -> Arrays:
    """Return a database whose row n + 1 has the words, and only those, of document n."""
    with closing(sqlite3.connect(":memory:")) as connection:
        try:
            connection.execute(
                f"CREATE VIRTUAL TABLE documents USING fts5(title, text, content='', tokenize='{tokenize}')"
            )
        except sqlite3.OperationalError as error:
            raise RetrieverError(
                f"the SQLite {sqlite3.sqlite_version} of this Python cannot make an FTS5 table with the tokenizer"
                f" {tokenize!r} ({error}): choose another, or install a Python with a newer SQLite"
            ) from error
        connection.executemany("INSERT INTO documents(rowid, title, text) VALUES (?, ?, ?)", _rows(corpus))
        connection.execute("INSERT INTO documents(documents) VALUES ('optimize')")
        connection.commit()
        return {"image": np.frombuffer(connection.serialize(), dtype=np.uint8)}


def _rows(corpus: Corpus) -> Iterator[tuple[int, str, str]]:
    for row, (title, text) in enumerate(zip(corpus.titles or [""] * len(corpus), corpus.texts, strict=True), start=1):
        yield row, _utf8(title), _utf8(text)


def _utf8(text: str) -> str:
    """Return a text as SQLite can take it: without halves of surrogate pairs."""
    return text.encode("utf-8", "replace").decode()
