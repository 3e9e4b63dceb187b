from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.features.serve.process import Running, serving

SERVED = ("retriever=bm25", "+retriever@search_types.vector=dense", "encoder=lsa")
LIMITS = ("limits.body_bytes=5000", "limits.query_characters=1000", "limits.top_k=50")


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Return a server of the bundled dataset by words and by vectors, in a process of its own."""
    with serving([*SERVED, *LIMITS], tmp_path_factory.mktemp("served")) as running:
        yield running
