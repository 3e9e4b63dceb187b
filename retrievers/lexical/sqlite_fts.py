"""Search full text with SQLite's FTS5, its tokenizers, its bm25(), and weights for titles and texts.

A query is a bag of words; user input never reaches the query language of FTS5. The index is a database in memory,
stored as bytes and shared by all settings that differ only in weights or matching. Others may write to a shared store,
so a stored database is opened to be read only, and used only if its schema is that of a database made here.
"""

from __future__ import annotations

import sqlite3
import sys
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

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
from retrievers.capabilities import Capabilities
from retrievers.engines.hits import advise_removal, read_hits
from retrievers.filters import Mask
from retrievers.search import Work, build_rankings_key
from retrievers.store import Arrays, Key, NoStore, Store
from retrievers.work import FTS5_DATABASE, LIVE_FTS5_DATABASE, WorkKind

RESULTS_VERSION = "sqlite_fts 1"

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
    capabilities: ClassVar[Capabilities] = Capabilities(filters=True)

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
        columns, tokenize = ("title", "text", *self.field_weights), self._format_tokenizer()

        def open_database() -> _Database:
            key = self._key(FTS5_DATABASE, corpus).with_check(_check, len(corpus), len(columns), tokenize)
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
        rankings = create_empty_rankings(len(queries), min(k, len(self.corpus)))
        seconds = np.zeros(len(queries), dtype=np.float32)
        for position, (query, own) in enumerate(zip(queries, list_filters(queries), strict=True)):
            start = time.perf_counter()
            if expression := self._format_query(query):
                mask = None if own is None else self.corpus.fields.select(own)
                documents, scores = self._select(expression, k, mask)
                best = rank(documents[None], scores[None], self.corpus.tie_order, k)
                rankings.fill(position, best)
            seconds[position] = time.perf_counter() - start
        return replace(rankings, seconds=seconds)

    def _format_query(self, query: str) -> str:
        """Return the words of a query, each quoted (words contain no quotes), or "" without words."""
        words = (word for word in _WORDS.findall(query) if len(word) >= _SHORTEST[self.settings.tokenizer])
        return (" OR " if self.settings.match == "any" else " AND ").join(f'"{word}"' for word in words)

    def _select(self, expression: str, k: int, mask: Mask | None) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return documents and scores, of shape (n,), which include the k best documents that pass a mask."""
        own, limit = self.settings, k + 1
        weights = [own.title_weight, own.text_weight, *own.field_weights.values()]
        statement = _SEARCH.format(", ".join("?" * len(weights)))
        while True:
            rows = self.database.select(statement, *weights, expression, limit)
            documents, scores = read_hits(rows, len(self.corpus), FTS5_DATABASE)
            if mask is not None:
                documents, scores = documents[mask[documents]], scores[mask[documents]]
            if not 0 <= limit <= len(rows):
                return documents, scores
            if len(documents) <= k:
                limit *= _DEEPER
            elif scores[k - 1] != scores[k]:
                return documents, scores
            else:  # SQLite has another tie rule and precision, so `rank` decides a tie at the cutoff
                limit = -1


class _Database:
    """A database in memory, used by one thread at a time and closed when nothing refers to it any more."""

    def __init__(self, image: NDArray[np.uint8]) -> None:
        connection = sqlite3.connect(":memory:", check_same_thread=False)
        weakref.finalize(self, connection.close)
        _limit(connection)
        connection.deserialize(image.data)
        self._connection, self._turn = connection, threading.Lock()

    def select(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Return the rows of a statement; raises `RetrieverError` for a damaged database."""
        try:
            with self._turn:
                return self._connection.execute(statement, values).fetchall()
        except sqlite3.DatabaseError as error:
            raise RetrieverError(f"SQLite: {error}; {advise_removal(FTS5_DATABASE)}") from error


def _limit(connection: sqlite3.Connection) -> None:
    """Let a database neither be changed nor run anything that its schema names."""
    for setting in ("query_only = ON", "trusted_schema = OFF", "cell_size_check = ON"):
        connection.execute(f"PRAGMA {setting}")
    if sys.version_info >= (3, 12):
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, True)
        for name in ("TRIGGER", "VIEW", "LOAD_EXTENSION"):
            connection.setconfig(getattr(sqlite3, f"SQLITE_DBCONFIG_ENABLE_{name}"), False)


_SCHEMA = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name, sql"
_OPTIONS = "SELECT k, v FROM documents_config ORDER BY k"
_EXTENT = "SELECT count(*), min(id), max(id) FROM documents_docsize"


def _check(n: int, columns: int, tokenize: str, arrays: Arrays) -> None:
    """Raise an error, such as `ValueError`, unless arrays are a database of n documents that `_fill` could make."""
    image = arrays["image"]
    if image.dtype != np.uint8 or image.ndim != 1 or not image.size:
        raise ValueError(f"image is {image.dtype} of shape {image.shape}")
    with closing(_create(columns, tokenize)) as empty:
        expected = [empty.execute(statement).fetchall() for statement in (_SCHEMA, _OPTIONS)]
    try:
        database = _Database(image)
        if database.select(_SCHEMA) != expected[0]:  # before any of its tables is used
            raise ValueError("the schema of the database is another one")
        if database.select(_OPTIONS) != expected[1]:
            raise ValueError("the options of the database are others")
        if database.select(_EXTENT) != [(n, 1, n) if n else (0, None, None)]:
            raise ValueError(f"the rows of the database are not those of {n:,} documents")
    except (sqlite3.Error, RetrieverError) as error:
        raise ValueError(str(error)) from error


def _create(columns: int, tokenize: str) -> sqlite3.Connection:
    """Return a database without documents; raises `RetrieverError` for a tokenizer that SQLite does not have."""
    connection = sqlite3.connect(":memory:")
    names = ", ".join(_name_columns(columns))
    try:
        connection.execute(f"CREATE VIRTUAL TABLE documents USING fts5({names}, content='', tokenize='{tokenize}')")
    except sqlite3.OperationalError as error:
        connection.close()
        raise RetrieverError(
            f"tokenizer={tokenize}: this Python's SQLite ({sqlite3.sqlite_version}) cannot create an FTS5 "
            f"table with this tokenizer ({error}); choose another tokenizer, or install a Python with a newer "
            "SQLite"
        ) from error
    return connection


def _name_columns(n: int) -> list[str]:
    return [f"c{place}" for place in range(n)]


def _fill(corpus: Corpus, fields: Sequence[str], tokenize: str) -> Arrays:
    """Return a database whose row n + 1 has the words of document n, with a column for each field."""
    names, values = ", ".join(_name_columns(len(fields))), ", ".join("?" * (1 + len(fields)))
    with closing(_create(len(fields), tokenize)) as connection:
        statement = f"INSERT INTO documents(rowid, {names}) VALUES ({values})"  # noqa: S608 (made above)
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
