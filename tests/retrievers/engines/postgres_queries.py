"""What tests ask a PostgreSQL of their own."""

from __future__ import annotations

from typing import Any

from retrievers.engines.postgres import Postgres
from tests.retrievers.engines.postgresql import Cluster
from tests.retrievers.vectors.test_dense import Numbers


def vectors_in(cluster: Cluster, **own: Any) -> Postgres:
    return Postgres(cluster.dsn, rank="vector", encoder=Numbers(), **own)


def execute(cluster: Cluster, statement: str, *values: object) -> list[Any]:
    import psycopg

    with psycopg.connect(cluster.dsn, autocommit=True) as connection:
        cursor = connection.execute(statement, values or None)
        return cursor.fetchall() if cursor.description else []


def list_tables(cluster: Cluster) -> set[str]:
    statement = "SELECT tablename FROM pg_tables WHERE schemaname = 'retrieval_runner'"
    return {name for (name,) in execute(cluster, statement)}
