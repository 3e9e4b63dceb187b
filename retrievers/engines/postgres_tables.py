"""Build tables in a PostgreSQL server: the words or the vectors of a corpus, with an index.

A table is named after the digest of its key and made in one transaction, so an existing table is complete. The
program's store has an entry for each table, which serves to list and drop it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from retrievers.base import Corpus
from retrievers.engines.postgres_server import PostgresServer, ServerError
from retrievers.filters import Filter, Metadata
from retrievers.store import ENGINE_BYTES, Arrays, Key, Store
from retrievers.vectors.points import PointVectors

if TYPE_CHECKING:
    import psycopg
    from psycopg.sql import Composable, Composed, Identifier

OPERATORS: Mapping[str, tuple[str, str]] = {"cosine": ("<=>", "cosine"), "dot": ("<#>", "ip"), "l2": ("<->", "l2")}
"""The operator of pgvector for each metric, and its name in operator classes."""

_TYPES = {False: "integer", True: "integer[]"}
"""The type of a column, by whether documents have several values."""

BATCH = 4096
"""How many vectors are sent at a time."""

Fill = Callable[["psycopg.Connection[Any]", "Identifier"], None]


@dataclass(frozen=True, eq=False)
class EngineTable:
    """A table of a server, which is created if it is missing."""

    server: PostgresServer
    schema: str
    name: str
    fill: Fill

    @property
    def identifier(self) -> Identifier:
        """Return the quoted name."""
        from psycopg import sql

        return sql.Identifier(self.schema, self.name)

    def exists(self) -> bool:
        """Return whether the server has the table."""
        from psycopg import sql

        statement = sql.SQL("SELECT to_regclass({})").format(sql.Literal(self.identifier.as_string()))
        return self.server.select(statement)[0][0] is not None

    def select(
        self, statement: Composed, parameters: Mapping[str, object], session: Mapping[str, str]
    ) -> list[tuple[Any, ...]]:
        """Return the rows of a statement; create the table again if it was dropped in the meantime."""
        try:
            return self.server.select(statement, parameters, session)
        except ServerError:
            if self.exists():
                raise
        self.create()
        return self.server.select(statement, parameters, session)

    def create(self) -> Arrays:
        """Create the table unless it exists, and return its size; concurrent processes create it only once."""
        from psycopg import sql

        def create(connection: psycopg.Connection[Any]) -> int:
            connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (self.schema,))
            connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(self.schema)))
            name = self.identifier.as_string(connection)
            (existing,) = connection.execute("SELECT to_regclass(%s)", (name,)).fetchone() or (None,)
            if existing is None:
                self.fill(connection, self.identifier)
                connection.execute(sql.SQL("ANALYZE {}").format(self.identifier))
            row = connection.execute("SELECT pg_total_relation_size(%s::regclass)", (name,)).fetchone()
            return int(row[0]) if row else 0

        return {ENGINE_BYTES: np.array(self.server.transact(create), dtype=np.int64)}


def open_table(server: PostgresServer, schema: str, key: Key, fill: Fill, store: Store) -> EngineTable:
    """Return the table of a key, created unless the server has it; the store records that it exists."""
    table = EngineTable(server, schema, f"index_{key.digest}", fill)
    store.arrays(key, table.create)
    if not table.exists():  # the store has an entry, but the server lost the table
        table.create()
    return table


def drop_table(parts: Mapping[str, str], digest: str) -> None:
    """Drop the table of an entry, given the parts of its key; raises `RetrieverError`.

    The recorded address has no password: libpq takes it from PGPASSWORD or its password file.
    """
    from psycopg import sql

    table = sql.Identifier(parts["schema"], f"index_{digest}")
    with closing(PostgresServer(parts["server"])) as server:
        server.transact(lambda connection: connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(table)))


def fill_words(corpus: Corpus, config: str) -> Fill:
    """Return a function that fills a table of words, with the fields to filter by; titles have label A, texts D."""
    from psycopg import sql

    def fill(connection: psycopg.Connection[Any], table: Identifier) -> None:
        connection.execute("CREATE TEMPORARY TABLE documents (place integer, title text, body text) ON COMMIT DROP")
        with connection.cursor().copy("COPY documents FROM STDIN") as copy:
            for row in _rows(corpus):
                copy.write_row(row)
        fields = copy_fields(connection, corpus.fields, range(len(corpus)))
        statement = sql.SQL(
            "CREATE TABLE {} AS SELECT place, setweight(to_tsvector({}::regconfig, title), 'A') "
            "|| to_tsvector({}::regconfig, body) AS terms{} FROM documents JOIN fields USING (place)"
        )
        connection.execute(statement.format(table, sql.Literal(config), sql.Literal(config), fields))
        connection.execute(sql.SQL("CREATE INDEX ON {} USING gin (terms)").format(table))

    return fill


def copy_fields(connection: psycopg.Connection[Any], metadata: Metadata, rows: Sequence[int]) -> Composable:
    """Create a temporary table `fields` with the codes of documents by place, and return its columns as an SQL list.

    A field is a column of integers or, if a document has several values, of arrays.
    """
    from psycopg import sql

    columns = {name: (codes, metadata.read(field).has_lists) for name, (field, codes) in metadata.encode().items()}
    types = [sql.SQL("{} {}").format(sql.Identifier(n), sql.SQL(_TYPES[lists])) for n, (_, lists) in columns.items()]
    table = sql.SQL("CREATE TEMPORARY TABLE fields ({}) ON COMMIT DROP")
    connection.execute(table.format(sql.SQL(", ").join([sql.SQL("place integer"), *types])))
    with connection.cursor().copy("COPY fields FROM STDIN") as copy:
        for place, row in enumerate(rows):
            values = [codes[row] if lists else next(iter(codes[row]), None) for codes, lists in columns.values()]
            copy.write_row((place, *values))
    return sql.SQL("").join(sql.SQL(", {}").format(sql.Identifier(name)) for name in columns)


def format_conditions(metadata: Metadata, own: Filter | None) -> Composable:
    """Return the conditions of a filter in SQL; without a filter, a condition that is always true."""
    from psycopg import sql

    conditions: list[Composable] = [sql.SQL("TRUE")]
    for name, (field, codes) in (metadata.match(own) if own is not None else {}).items():
        if metadata.read(field).has_lists:
            condition = "{} && {}::integer[]"
        elif isinstance(codes, range):
            conditions.append(
                sql.SQL("{} BETWEEN {} AND {}").format(
                    sql.Identifier(name), sql.Literal(codes.start), sql.Literal(codes.stop - 1)
                )
            )
            continue
        else:
            condition = "{} = ANY({}::integer[])"
        conditions.append(sql.SQL(condition).format(sql.Identifier(name), sql.Literal(list(codes))))
    return sql.SQL(" AND ").join(conditions[1:] or conditions)


def fill_vectors(
    vectors: PointVectors, column_type: str, index: Composable | None, metadata: Metadata, rows: Sequence[int]
) -> Fill:
    """Return a function that fills a table of vectors of a type, with the fields to filter by, and builds its index.

    `rows` are the positions of the vectors' documents.
    """
    from psycopg import sql

    def fill(connection: psycopg.Connection[Any], table: Identifier) -> None:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        column = sql.SQL(f"{column_type}({vectors.shape[1]})")
        filtered = bool(metadata.fields)
        target = sql.Identifier("vectors") if filtered else table
        temporary, dropped = (sql.SQL("TEMPORARY "), sql.SQL(" ON COMMIT DROP")) if filtered else (sql.SQL(""),) * 2
        connection.execute(
            sql.SQL("CREATE {}TABLE {} (place integer, vector {}){}").format(temporary, target, column, dropped)
        )
        statement = sql.SQL("COPY {} FROM STDIN (FORMAT binary)").format(target)
        with connection.cursor().copy(statement) as copy:
            copy.write(b"PGCOPY\n\xff\r\n\0" + bytes(8))
            for block in _format_binary(vectors, ">f2" if column_type == "halfvec" else ">f4"):
                copy.write(block)
            copy.write(b"\xff\xff")
        if filtered:
            fields = copy_fields(connection, metadata, rows)
            joined = sql.SQL("CREATE TABLE {} AS SELECT place, vector{} FROM vectors JOIN fields USING (place)")
            connection.execute(joined.format(table, fields))
        if index is not None:
            connection.execute(sql.SQL("CREATE INDEX ON {} USING {}").format(table, index))

    return fill


def describe_index(method: str, operators: str, options: Mapping[str, int]) -> Composable:
    """Return the SQL of an index of vectors: `hnsw (vector vector_cosine_ops) WITH (m = 16)`."""
    from psycopg import sql

    settings = sql.SQL(", ").join(
        sql.SQL("{} = {}").format(sql.Identifier(name), sql.Literal(value)) for name, value in options.items()
    )
    return sql.SQL("{} (vector {}) WITH ({})").format(sql.Identifier(method), sql.Identifier(operators), settings)


def format_vector(vector: Sequence[float]) -> str:
    """Return a vector as text in the format of pgvector."""
    return "[" + ",".join(map(repr, vector)) + "]"


def clean_text(text: str) -> str:
    """Return a text that PostgreSQL accepts: without NUL and lone surrogates."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode()


def _rows(corpus: Corpus) -> Iterator[tuple[int, str, str]]:
    for place, (title, text) in enumerate(zip(corpus.titles or [""] * len(corpus), corpus.texts, strict=True)):
        yield place, clean_text(title), clean_text(text)


def _format_binary(vectors: PointVectors, number: str) -> Iterator[bytes]:
    """Yield rows (place, vector) in the binary format of COPY: the number of fields, then size and bytes of each."""
    width = vectors.shape[1]
    size = 4 + np.dtype(number).itemsize * width
    row = np.dtype([
        ("fields", ">i2"), ("place_bytes", ">i4"), ("place", ">i4"),
        ("vector_bytes", ">i4"), ("width", ">i2"), ("unused", ">i2"), ("numbers", number, (width,)),
    ])  # fmt: skip
    for start in range(0, len(vectors), BATCH):
        block = vectors[start : start + BATCH]
        rows = np.zeros(len(block), dtype=row)
        rows["fields"], rows["place_bytes"], rows["place"] = 2, 4, np.arange(start, start + len(block))
        rows["vector_bytes"], rows["width"], rows["numbers"] = size, width, block
        yield rows.tobytes()
