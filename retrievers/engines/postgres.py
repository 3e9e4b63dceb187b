"""Search with PostgreSQL: full text, vectors through pgvector, or the user's own statement.

The corpus is loaded into tables of a separate schema, each named after the settings it is built with. The user's own
tables and statements are used unchanged, and their results are never cached. Builds of an approximate index are not
reproducible.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.access import Access
from retrievers.base import Corpus, Rankings, RetrieverError, Searcher, create_empty_rankings, list_filters, rank
from retrievers.capabilities import Capabilities
from retrievers.encoders.base import Encoder, Vectors
from retrievers.engines.hits import read_hits
from retrievers.engines.postgres_live import LiveStatement, build_query, open_columns
from retrievers.engines.postgres_server import PostgresServer, open_server
from retrievers.engines.postgres_tables import (
    OPERATORS,
    EngineTable,
    clean_text,
    describe_index,
    fill_vectors,
    fill_words,
    format_conditions,
    format_vector,
    open_table,
)
from retrievers.extras import check_installed
from retrievers.filters import Filter, Metadata
from retrievers.search import Work, build_rankings_key
from retrievers.store import Key, NoStore, Store
from retrievers.threads import map_threads
from retrievers.vectors.points import Nearest, Subset
from retrievers.vectors.vector_search import RESULTS_VERSION as VECTOR_SEARCH_VERSION
from retrievers.vectors.vector_search import Metric, VectorSpace
from retrievers.work import POSTGRES_INDEX

if TYPE_CHECKING:
    from psycopg.sql import SQL, Composable

RESULTS_VERSION = f"postgres 1, {VECTOR_SEARCH_VERSION}"


@settings(frozen=True, config={"extra": "forbid", "arbitrary_types_allowed": True})
class Postgres:
    """Settings of PostgreSQL. Settings of the other ranks and index types have no effect.

    `dsn` is the address; null takes libpq's environment variables (PGHOST, PGUSER, PGPASSWORD, ...).

    `rank` ts_rank and ts_rank_cd are full text: `config` is the text search configuration that the words are stored
    with. At search time, `match` selects documents with any or all words, the phrase, or what websearch_to_tsquery
    makes of the query; `normalization` is the bit mask of PostgreSQL's manual (1: divide by 1 + log of the length, 2:
    by the length, ...), and words count by `title_weight` and `text_weight`.

    `rank` vector is pgvector: flat compares all vectors, hnsw and ivfflat are approximate and built with `m` and
    `ef_construction` or with `lists`; `type` halfvec stores 16-bit numbers. At search time apply `ef_search`, `probes`
    and `iterative_scan` (null: the server's own; ivfflat has no strict_order). pgvector returns at most `ef_search`
    hits without iterative_scan: the diagnostic `short_answers_at_k` counts queries with fewer hits than there are.

    The program loads the corpus into tables of `schema`. With `table`, an existing table is searched instead, by its
    columns; with `sql`, your own statement, with `%(query)s`, `%(vector)s` and `%(k)s` (write `%%` for a per cent
    sign), which returns ids and, optionally, scores, best first. Results keep this order, and are never cached.
    The filters of queries apply to the columns of `table` that have the names of the fields. A statement with
    `%(filter)s` gets them as JSON, null for a query without one.

    `concurrency` is the number of queries that are searched at a time, each through its own connection.
    """

    access: ClassVar[Access] = Access("services", names=("dsn",), secrets=("dsn",))

    dsn: str | None = Field(default=None, repr=False)
    rank: Literal["ts_rank", "ts_rank_cd", "vector"] = "ts_rank_cd"
    config: str = "english"
    match: Literal["any", "all", "phrase", "websearch"] = "any"
    normalization: int = Field(default=0, ge=0, le=63)
    title_weight: float = Field(default=0.1, ge=0, le=1)
    text_weight: float = Field(default=0.1, ge=0, le=1)
    encoder: Encoder | None = None
    metric: Metric = "cosine"
    index_type: Literal["flat", "hnsw", "ivfflat"] = "flat"
    type: Literal["vector", "halfvec"] = "vector"
    m: int = Field(default=16, ge=2, le=100)
    ef_construction: int = Field(default=64, ge=4, le=1000)
    lists: int = Field(default=100, ge=1, le=32768)
    ef_search: int | None = Field(default=None, ge=1, le=1000)
    probes: int | None = Field(default=None, ge=1, le=32768)
    iterative_scan: Literal["off", "strict_order", "relaxed_order"] | None = None
    table: str | None = None
    id_column: str = "id"
    text_column: str = "text"
    vector_column: str = "embedding"
    sql: str | None = None
    schema: str = Field(default="retrieval_runner", repr=False)
    timeout_s: float = Field(default=30.0, gt=0, repr=False)
    concurrency: int = Field(default=1, ge=1, repr=False)

    def __post_init__(self) -> None:
        check_installed("psycopg", "psycopg", "postgres")
        if self.table is not None and self.sql is not None:
            raise RetrieverError("table and sql are mutually exclusive; set only one of them")
        needs_vector = "%(vector)s" in self.sql if self.sql else self.rank == "vector"
        if needs_vector and self.encoder is None:
            raise RetrieverError(
                "encoder: is required for vectors; choose retriever=pgvector and an encoder, such as encoder=minilm"
            )
        if self.index_type == "hnsw" and self.ef_construction < 2 * self.m:
            raise RetrieverError(
                f"ef_construction={self.ef_construction}: should be at least twice m, that is, {2 * self.m}"
            )
        if self.sql is not None and not any(name in self.sql for name in ("%(query)s", "%(vector)s")):
            raise RetrieverError(
                "sql: without %(query)s or %(vector)s, every query would get the same results; add one of them"
            )

    @property
    def live(self) -> bool:
        """Return whether an existing table is searched, whose results are never cached."""
        return self.table is not None or self.sql is not None

    @property
    def capabilities(self) -> Capabilities:
        """Return what the server can do: it filters all tables, and by a statement with `%(filter)s`."""
        return Capabilities(filters=self.sql is None or "%(filter)s" in self.sql, live=self.live)

    @property
    def server(self) -> PostgresServer:
        """Return the server, which is connected when it is first used."""
        return open_server(self.dsn)

    @property
    def exact(self) -> bool:
        """Return whether every vector is compared in full precision."""
        return self.index_type == "flat" and self.type == "vector"

    def read_engine_version(self) -> str:
        """Return the versions of the server and, for vectors, pgvector; raises `ServerError`."""
        if self.live:
            return ""
        versions = [f"PostgreSQL {self.server.read_version()}"]
        if self.rank == "vector":
            versions.append(f"pgvector {self.server.read_version('vector')}")
        return ", ".join(versions)

    def index(self, corpus: Corpus, store: Store) -> Searcher:
        """Return a searcher; the tables are filled unless the server has them. Raises `RetrieverError`."""
        if self.live:
            return self._open_live(corpus, store)
        if self.rank != "vector":
            fill = fill_words(corpus, self.config)
            return PostgresTextSearcher(self, self._open(self._words_key(corpus), fill, store), corpus)
        space = self._space(corpus)
        embedded = space.embed(store)
        if not len(embedded.points.rows):
            return embedded.open_searcher(None)
        points = embedded.points
        fill = fill_vectors(points.vectors, self.type, self._describe_index(), corpus.fields, points.rows.tolist())
        table = self._open(self._vectors_key(space), fill, store)
        return embedded.open_searcher(
            PgvectorIndex(self, table, corpus.fields, len(points.rows)), self.exact, self.concurrency
        )

    def plan(self, corpus: Corpus, queries: Sequence[str], k: int, store: Store) -> Work:
        """Return the search as work, which needs the table."""
        if not self.live and self.rank == "vector":
            space = self._space(corpus)
            return space.plan(self, queries, k, store, self._vectors_key(space), self.exact)
        needs = () if self.live else (Work(self._words_key(corpus)),)
        return Work(build_rankings_key(self, corpus, queries, k), needs)

    @property
    def session(self) -> dict[str, str]:
        """Return the settings of the server's session that searches need."""
        own = {
            "hnsw.ef_search": self.ef_search,
            "ivfflat.probes": self.probes,
            "ivfflat.iterative_scan" if self.index_type == "ivfflat" else "hnsw.iterative_scan": self.iterative_scan,
        }
        session = {"statement_timeout": str(round(self.timeout_s * 1000))}
        if self.rank == "vector" or self.live:
            session |= {name: str(value) for name, value in own.items() if value is not None}
        if self.rank == "vector" and not self.live and self.index_type != "flat":
            session["enable_seqscan"] = "off"  # otherwise, a small table is scanned without the index
        return session

    def _open(self, key: Key, fill: Callable[..., None], store: Store) -> EngineTable:
        return open_table(self.server, self.schema, key, fill, store)

    def _open_live(self, corpus: Corpus, store: Store) -> Searcher:
        embed = None if self.encoder is None else self.encoder.embed(Corpus([], []), store).queries
        build = self._build_own if self.sql is not None else open_columns(self).build
        return LiveStatement(self.server, build, self.concurrency, self.session, corpus.positions, embed)

    def _build_own(self, own: Filter | None) -> tuple[SQL, Mapping[str, object]]:
        from psycopg import sql

        return sql.SQL(self.sql or ""), {}

    def _space(self, corpus: Corpus) -> VectorSpace:
        if self.encoder is None:
            raise RetrieverError("encoder: is required for vectors")  # already checked
        return VectorSpace(self.encoder, corpus, self.metric)

    def _describe_index(self) -> Composable | None:
        if self.index_type == "flat":
            return None
        hnsw = {"m": self.m, "ef_construction": self.ef_construction}
        operators = f"{self.type}_{OPERATORS[self.metric][1]}_ops"
        return describe_index(self.index_type, operators, hnsw if self.index_type == "hnsw" else {"lists": self.lists})

    @property
    def _place(self) -> dict[str, str]:
        return {"server": self.server.address, "schema": self.schema, "engine": self.read_engine_version()}

    def _words_key(self, corpus: Corpus) -> Key:
        parts = corpus.key_parts | corpus.field_parts
        return Key.of(POSTGRES_INDEX, __name__, **parts, **self._place, config=self.config)

    def _vectors_key(self, space: VectorSpace) -> Key:
        built = {"hnsw": ("m", "ef_construction"), "ivfflat": ("lists",)}.get(self.index_type, ())
        options = {name: getattr(self, name) for name in built} | space.corpus.field_parts
        return space.build_key(
            POSTGRES_INDEX, __name__, **self._place, index=self.index_type, type=self.type, **options
        )


@dataclass(frozen=True, eq=False)
class PgvectorIndex:
    """A table of n vectors with an index, searched with the settings that apply at search time."""

    settings: Postgres
    table: EngineTable
    metadata: Metadata
    n: int

    def find(self, queries: Vectors, depth: int, subset: Subset | None = None) -> Nearest:
        """Return the scores and places of the nearest points of each query, as many as pgvector returns."""
        from psycopg import sql

        own = self.settings
        operator, _ = OPERATORS[own.metric]
        statement = sql.SQL(
            "SELECT place, vector {0} %(vector)s::{1} AS distance FROM {2} WHERE {3} "
            "ORDER BY vector {0} %(vector)s::{1} LIMIT %(k)s"
        ).format(
            sql.SQL(operator), sql.SQL(own.type), self.table.identifier,
            format_conditions(self.metadata, subset.filter if subset is not None else None),
        )  # fmt: skip
        distances = np.full((len(queries), depth), np.nan, dtype=np.float64)
        places = np.full((len(queries), depth), -1, dtype=np.int64)
        for row, query in enumerate(queries.tolist()):
            hits = self.table.select(statement, {"vector": format_vector(query), "k": depth}, own.session)
            places[row, : len(hits)], _ = read_hits(hits, self.n, POSTGRES_INDEX)
            distances[row, : len(hits)] = [distance for _, distance in hits]  # in double precision
        scores = {"cosine": 1 - distances, "dot": -distances, "l2": -(distances**2)}[own.metric]
        return np.where(places < 0, -np.inf, scores).astype(np.float32), places


@dataclass(frozen=True, eq=False)
class PostgresTextSearcher:
    """Full-text search over a table of words."""

    settings: Postgres
    table: EngineTable
    corpus: Corpus

    def search(self, queries: Sequence[str], k: int, store: Store = NoStore()) -> Rankings:  # noqa: B008 (immutable)
        """Return the k best documents of each query, exactly."""
        rankings, filters = create_empty_rankings(len(queries), min(k, len(self.corpus))), list_filters(queries)
        order, seconds = self.corpus.tie_order, np.zeros(len(queries), dtype=np.float32)

        def search_one(position: int) -> None:
            start = time.perf_counter()
            documents, scores = self._select(clean_text(queries[position]), k, filters[position])
            best = rank(documents[None], scores[None], order, k)
            rankings.fill(position, best)
            seconds[position] = time.perf_counter() - start

        list(map_threads(search_one, range(len(queries)), self.settings.concurrency))
        return replace(rankings, seconds=seconds)

    def _select(self, query: str, k: int, condition: Filter | None) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return documents and scores, of shape (n,), which include the k best documents that pass a filter."""
        from psycopg import sql

        own = self.settings
        weights = [own.text_weight, own.text_weight, own.text_weight, own.title_weight]  # of the labels D, C, B, A
        filled = sql.SQL(
            "SELECT place, {}({}::real[], terms, query, {}) AS score FROM {}, (SELECT {} AS query) AS words "
            "WHERE terms @@ query AND {} ORDER BY score DESC LIMIT %(k)s"
        ).format(
            sql.Identifier(own.rank), sql.Literal(weights), sql.Literal(own.normalization), self.table.identifier,
            build_query(own.match, own.config), format_conditions(self.corpus.fields, condition),
        )  # fmt: skip
        rows = self.table.select(filled, {"query": query, "k": k + 1}, own.session)
        if len(rows) > k and rows[k - 1][1] == rows[k][1]:  # `rank` decides a tie at the cutoff
            rows = self.table.select(filled, {"query": query, "k": None}, own.session)
        return read_hits(rows, len(self.corpus), POSTGRES_INDEX)
