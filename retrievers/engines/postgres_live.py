"""Search existing PostgreSQL tables by a statement: the user's own, or one built from the names of columns."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from retrievers.base import Rankings, RetrieverError
from retrievers.encoders.base import Vectors
from retrievers.engines.postgres_server import PostgresServer, ServerError
from retrievers.engines.postgres_tables import OPERATORS, clean_text, format_vector
from retrievers.filters import Condition, Filter
from retrievers.services.replies import SearchReply, build_reply, join_replies
from retrievers.store import NoStore, Store
from retrievers.strict_values import parse_id, parse_number
from retrievers.threads import map_threads

if TYPE_CHECKING:
    from psycopg.sql import SQL, Composable, Composed, Identifier

    from retrievers.engines.postgres import Postgres


_TEXTS = {"text", "character varying", "character"}
"""The types of columns with text."""

MATCHES: Mapping[str, str] = {
    "any": "replace(plainto_tsquery({0}, %(query)s)::text, ' & ', ' | ')::tsquery",
    "all": "plainto_tsquery({0}, %(query)s)",
    "phrase": "phraseto_tsquery({0}, %(query)s)",
    "websearch": "websearch_to_tsquery({0}, %(query)s)",
}
"""The words of a query in SQL, for each value of `match`."""


def build_query(match: str, config: str) -> Composed:
    """Return the words of a query in SQL."""
    from psycopg import sql

    return sql.SQL(MATCHES[match]).format(sql.SQL("{}::regconfig").format(sql.Literal(config)))


@dataclass(frozen=True)
class ColumnSearch:
    """The statement that searches an existing table by its columns; `types` are those of all columns, by name."""

    settings: Postgres
    types: Mapping[str, str]

    def build(self, own: Filter | None) -> tuple[Composed, Mapping[str, object]]:
        """Return the statement for queries with a filter, and the values of its conditions; raises `RetrieverError`."""
        from psycopg import sql

        values: dict[str, object] = {}
        parts = [self._build_condition(condition, values) for condition in (own.conditions if own is not None else ())]
        conditions = sql.SQL(" AND ").join(parts or [sql.SQL("TRUE")])
        return _build_search(self.settings, self.types, conditions), values

    def _build_condition(self, condition: Condition, values: dict[str, object]) -> Composable:
        """Return a condition on a column, or on any item of an array column, and add its values to `values` by name."""
        from psycopg import sql

        if condition.field not in self.types:
            raise _describe_missing(f"filter: {condition.field}", self.settings, self.types)
        kind, column = self.types[condition.field], sql.Composed([sql.Identifier(condition.field)])
        if condition.kind == "text" and kind.removesuffix("[]") in _TEXTS:
            column += sql.SQL(' COLLATE "C"')  # ranges of text compare code points
        item = sql.Composed([sql.Identifier("item")]) if kind.endswith("[]") else column
        ends = ((" >= {}", condition.start), (" <= {}", condition.end))
        listed = [(" = ANY ({})", list(condition.values))] if condition.values else []
        comparisons: list[Composable] = []
        for operator, value in (*listed, *((sign, end) for sign, end in ends if end is not None)):
            name = f"condition_{len(values)}"
            values[name] = value
            comparisons.append(item + sql.SQL(operator).format(sql.Placeholder(name)))
        meets = sql.SQL(" AND ").join(comparisons)
        if not kind.endswith("[]"):
            return meets
        return sql.SQL("EXISTS (SELECT 1 FROM unnest({}) AS item WHERE {})").format(column, meets)


def open_columns(settings: Postgres) -> ColumnSearch:
    """Return the search of the settings' table by its columns; raises `RetrieverError` if a column is missing."""
    from psycopg import sql

    statement = sql.SQL(
        "SELECT attname, atttypid::regtype::text FROM pg_attribute WHERE attrelid = %(table)s::regclass "
        "AND attnum > 0 AND NOT attisdropped"
    )
    types = dict(settings.server.select(statement, {"table": _quote_table(settings).as_string()}))
    for setting in ("id_column", "vector_column" if settings.rank == "vector" else "text_column"):
        if getattr(settings, setting) not in types:
            raise _describe_missing(f"{setting}={getattr(settings, setting)}", settings, types)
    return ColumnSearch(settings, types)


def _describe_missing(place: str, settings: Postgres, types: Iterable[str]) -> RetrieverError:
    return RetrieverError(f"{place}: {settings.table} has no such column; its columns are {', '.join(types)}")


def _build_search(settings: Postgres, types: Mapping[str, str], conditions: Composable) -> Composed:
    from psycopg import sql

    table = _quote_table(settings)
    key, text, vector = map(sql.Identifier, (settings.id_column, settings.text_column, settings.vector_column))
    if settings.rank == "vector":
        distance = sql.SQL("{} {} %(vector)s").format(vector, sql.SQL(OPERATORS[settings.metric][0]))
        score = sql.SQL({"cosine": "1 - ({})", "dot": "- ({})", "l2": "- (({}) ^ 2)"}[settings.metric]).format(distance)
        statement = sql.SQL("SELECT {}, {} FROM {} WHERE {} ORDER BY {} LIMIT %(k)s")
        return statement.format(key, score, table, conditions, distance)
    config = sql.SQL("{}::regconfig").format(sql.Literal(settings.config))
    is_words = types[settings.text_column] == "tsvector"
    words: Composable = text if is_words else sql.SQL("to_tsvector({}, {})").format(config, text)
    return sql.SQL(
        "SELECT {}, {}({}, query, {}) AS score FROM {}, (SELECT {} AS query) AS words WHERE {} @@ query AND {} "
        "ORDER BY score DESC LIMIT %(k)s"
    ).format(
        key, sql.Identifier(settings.rank), words, sql.Literal(settings.normalization), table,
        build_query(settings.match, settings.config), words, conditions,
    )  # fmt: skip


def _quote_table(settings: Postgres) -> Identifier:
    from psycopg import sql

    return sql.Identifier(*str(settings.table).split("."))


@dataclass(frozen=True, eq=False)
class LiveStatement:
    """A statement, which may depend on the filter, executed for each query. Results keep the order of the server."""

    server: PostgresServer
    build: Callable[[Filter | None], tuple[Composed | SQL, Mapping[str, object]]]
    concurrency: int
    session: Mapping[str, str]
    positions: Mapping[str, int]
    embed: Callable[[Sequence[str], Store], tuple[Vectors, NDArray[np.float32]]] | None = None

    def search(self, queries: Sequence[str], k: int, store: Store = NoStore()) -> Rankings:  # noqa: B008 (immutable)
        """Return the rows of the server for each query; an error of the server is an error of the query.

        The time of a query is that of its statement; the diagnostic `encoding_ms` is the mean time of the encoder.
        """
        vectors, encoding = None, {}
        if self.embed is not None:
            vectors, seconds = self.embed(list(map(str, queries)), store)
            if not vectors.shape[1]:
                raise RetrieverError(
                    "encoder: learns from documents, which this retriever does not read; choose a pretrained model"
                )
            encoding = {"encoding_ms": float(np.nanmean(seconds)) * 1000}
        replies = map_threads(
            lambda row: self._search_one(queries[row], None if vectors is None else vectors[row].tolist(), k),
            range(len(queries)),
            self.concurrency,
        )
        rankings = join_replies(list(replies), self.positions, k)
        diagnostics = {**rankings.diagnostics, **encoding}
        address = f"PostgreSQL ({self.server.address})".removesuffix(" ()")  # without a dsn, the environment says where
        return replace(rankings, diagnostics=diagnostics, addresses={"": address})

    def _search_one(self, query: str, vector: Sequence[float] | None, k: int) -> SearchReply:
        own: Filter | None = getattr(query, "filter", None)
        statement, conditions = self.build(own)
        values: dict[str, Any] = {"query": clean_text(query), "k": k, "filter": None if own is None else str(own)}
        values |= conditions
        if vector is not None:
            values["vector"] = format_vector(vector)
        start = time.perf_counter()
        try:
            rows = self.server.select(statement, values, self.session)
            seconds = time.perf_counter() - start
            return replace(build_reply(_iter_hits(rows), k), seconds=seconds)
        except (ServerError, ValueError) as error:
            return SearchReply(error=str(error))


def _iter_hits(rows: Sequence[tuple[Any, ...]]) -> Iterator[tuple[str, float]]:
    """Yield the id and the score of each row, 1 / rank without a column of scores."""
    for place, row in enumerate(rows, start=1):
        if len(row) > 1 and row[1] is None:
            raise ValueError(f"the score of {row[0]} is null; omit such rows, or omit the score column")
        name = str(row[0]) if isinstance(row[0], UUID) else parse_id(row[0])
        yield name, parse_number(row[1]) if len(row) > 1 else 1 / place
