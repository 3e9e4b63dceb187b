"""Search of existing PostgreSQL tables by a statement: the user's own, or one made of the names of columns."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from retrievers.base import Rankings, RetrieverError
from retrievers.encoders.base import Vectors
from retrievers.engines.postgres_server import PostgresServer, ServerError
from retrievers.engines.postgres_tables import OPERATORS, clean_text, format_vector
from retrievers.replies import SearchReply, build_reply, join_replies
from retrievers.store import NoStore, Store

if TYPE_CHECKING:
    from psycopg.sql import Composable, Composed, Identifier

    from retrievers.engines.postgres import Postgres


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


def build_statement(settings: Postgres) -> str:
    """Return the statement that searches the table of settings by its columns."""
    from psycopg import sql

    table = _quote_table(settings)
    key, text, vector = map(sql.Identifier, (settings.id_column, settings.text_column, settings.vector_column))
    if settings.rank == "vector":
        distance = sql.SQL("{} {} %(vector)s").format(vector, sql.SQL(OPERATORS[settings.metric][0]))
        score = sql.SQL({"cosine": "1 - ({})", "dot": "- ({})", "l2": "- ({}) ^ 2"}[settings.metric]).format(distance)
        statement = sql.SQL("SELECT {}, {} FROM {} ORDER BY {} LIMIT %(k)s").format(key, score, table, distance)
        return statement.as_string()
    config = sql.SQL("{}::regconfig").format(sql.Literal(settings.config))
    words: Composable = text if _is_words(settings) else sql.SQL("to_tsvector({}, {})").format(config, text)
    statement = sql.SQL(
        "SELECT {}, {}({}, query, {}) AS score FROM {}, (SELECT {} AS query) AS words WHERE {} @@ query "
        "ORDER BY score DESC LIMIT %(k)s"
    ).format(
        key, sql.Identifier(settings.rank), words, sql.Literal(settings.normalization), table,
        build_query(settings.match, settings.config), words,
    )  # fmt: skip
    return statement.as_string()


def _quote_table(settings: Postgres) -> Identifier:
    from psycopg import sql

    return sql.Identifier(*str(settings.table).split("."))


def _is_words(settings: Postgres) -> bool:
    """Return whether the text column holds words (tsvector) and no text; raises `RetrieverError` if it is missing."""
    from psycopg import sql

    statement = sql.SQL(
        "SELECT attname, atttypid::regtype::text FROM pg_attribute WHERE attrelid = %(table)s::regclass "
        "AND attnum > 0 AND NOT attisdropped"
    )
    columns = dict(settings.server.select(statement, {"table": _quote_table(settings).as_string()}))
    if settings.text_column not in columns:
        raise RetrieverError(
            f"text_column={settings.text_column}: {settings.table} has no such column; its columns are "
            f"{', '.join(columns)}"
        )
    return bool(columns[settings.text_column] == "tsvector")


@dataclass(frozen=True, eq=False)
class LiveStatement:
    """A statement that is executed for each query. Results keep the order of the server."""

    server: PostgresServer
    statement: str
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
        replies = [
            self._search_one(query, None if vectors is None else vectors[row].tolist(), k)
            for row, query in enumerate(queries)
        ]
        rankings = join_replies(replies, self.positions, k)
        diagnostics = {**rankings.diagnostics, **encoding}
        return replace(rankings, diagnostics=diagnostics, addresses={"": f"PostgreSQL ({self.server.address})"})

    def _search_one(self, query: str, vector: Sequence[float] | None, k: int) -> SearchReply:
        from psycopg import sql

        values: dict[str, Any] = {"query": clean_text(query), "k": k}
        if (own := getattr(query, "filter", None)) is not None or "%(filter)s" in self.statement:
            values["filter"] = None if own is None else str(own)
        if vector is not None:
            values["vector"] = format_vector(vector)
        start = time.perf_counter()
        try:
            rows = self.server.select(sql.SQL(self.statement), values, self.session)
            seconds = time.perf_counter() - start
            return replace(build_reply(_iter_hits(rows), k), seconds=seconds)
        except (ServerError, ValueError) as error:
            return SearchReply(error=str(error))


def _iter_hits(rows: Sequence[tuple[Any, ...]]) -> Iterator[tuple[str, float]]:
    """Yield the id and the score of each row, 1 / rank without a column of scores."""
    for place, row in enumerate(rows, start=1):
        if len(row) > 1 and row[1] is None:
            raise ValueError(f"the score of {row[0]} is null; omit such rows, or omit the score column")
        yield str(row[0]), float(row[1]) if len(row) > 1 else 1 / place
