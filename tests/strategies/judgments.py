"""Judgments with the rankings that they judge."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from tests.metrics.worlds import World, rankings_of


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Draw a few queries, with ties, unjudged and unknown documents, grades -3 to 3, and some that find nothing."""
    n_queries, n_documents, unknown = draw(st.integers(1, 5)), draw(st.integers(1, 14)), draw(st.integers(0, 2))
    ids = [f"d{position}" for position in range(n_documents + unknown)]
    grades = st.dictionaries(st.integers(0, n_documents + unknown - 1), st.integers(-3, 3), max_size=10)
    hits = st.dictionaries(
        st.integers(0, n_documents - 1), st.sampled_from([0.5, 1.0, 1.5, 7.25]), max_size=n_documents
    )
    qrels = {query: draw(grades) for query in range(n_queries)}
    rows = [list(draw(hits).items()) for _ in range(n_queries)]
    return World(qrels, rankings_of(rows, ids, draw(st.integers(0, n_documents + 2))), n_documents, ids)


@st.composite
def chunk_worlds(draw: st.DrawFn) -> tuple[World, np.ndarray]:
    """Draw rankings of chunks, with judgments of the documents that they are of."""
    document_of = np.array(draw(st.lists(st.integers(0, 5), min_size=1, max_size=14)), dtype=np.int32)
    n_queries, ids = draw(st.integers(1, 4)), [f"c{chunk}" for chunk in range(len(document_of))]
    grades = st.dictionaries(st.integers(0, 6), st.integers(-3, 3), max_size=6)
    hits = st.dictionaries(st.integers(0, len(ids) - 1), st.floats(0, 1, width=16), max_size=len(ids))
    rows = [list(draw(hits).items()) for _ in range(n_queries)]
    qrels = {query: draw(grades) for query in range(n_queries)}
    return World(qrels, rankings_of(rows, ids, len(ids)), 6, ids), document_of
