"""Hits are read from an engine only if they are documents of the corpus."""

from __future__ import annotations

import numpy as np
import pytest

from retrievers.base import RetrieverError
from retrievers.engines.hits import read_hits
from retrievers.work import FTS5_DATABASE, QDRANT_INDEX


def test_hits_are_places_and_scores() -> None:
    places, scores = read_hits([(6, 2.5), (0, -0.1)], 7, QDRANT_INDEX)
    assert (places.dtype, places.tolist()) == (np.int32, [6, 0])
    assert (scores.dtype, scores.tolist()) == (np.float32, [2.5, np.float32(-0.1)])
    assert [part.tolist() for part in read_hits((), 7, QDRANT_INDEX)] == [[], []]


@pytest.mark.parametrize(
    "hits",
    [
        [(7, 1.0)],
        [(3, 1.0), (-1, 0.5)],
        [(2**31 + 5, 1.0)],
        [(2**63, 1.0)],
        [(3.0, 1.0)],
        [(None, 1.0), (3, 0.5)],
        [("3", 1.0)],
        [(b"3", 1.0)],
        [("9b2d6f3e-0000-0000-0000-000000000000", 1.0), (3, 0.5)],
        [(3, 1.0), (4, 0.7), (3, 0.5)],
    ],
)
def test_a_place_outside_the_corpus_or_twice_is_refused_in_a_line(hits: list[tuple[object, object]]) -> None:
    with pytest.raises(RetrieverError) as raised:
        read_hits(hits, 7, FTS5_DATABASE)
    assert str(raised.value) == (
        "fts5 database: the places of the hits are not different whole numbers from 0 to 6; the index in the store is "
        "not that of this corpus; remove it with python -m runner cache cache.kind='fts5 database' cache.remove=true"
    )


@pytest.mark.parametrize("score", ["1.5", None, b"x", True])
def test_a_score_that_is_not_a_number_is_refused(score: object) -> None:
    with pytest.raises(RetrieverError, match=r"^qdrant index: the score of a hit is not a number; the index in the"):
        read_hits([(3, score)], 7, QDRANT_INDEX)
