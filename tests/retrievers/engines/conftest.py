"""A PostgreSQL that the tests of engines share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.retrievers.engines.postgresql import Cluster, run_cluster


@pytest.fixture(scope="package")
def cluster() -> Iterator[Cluster]:
    """Return a server with pgvector, or skip."""
    from retrievers.engines.postgres_server import open_server

    with run_cluster() as cluster:
        yield cluster
        open_server(cluster.dsn).close()
