from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrievers.store import MemoryStore, NoStore
from runner.config.objects import ConfigError
from runner.features.synthesize import selection as room
from runner.features.synthesize.base import Bundle, Chunks
from runner.features.synthesize.selection import BundleSelection, check_documents, iter_bundles
from tests.features.synthesize.worlds import create_chunks, scatter_chunks
from tests.strategies.settings import at_most


def bundles(chunks: Chunks, seed: int = 0, **given_: Any) -> list[Bundle]:
    return list(iter_bundles(BundleSelection(**given_), chunks, "a fingerprint", seed, NoStore()))


def angles(*degrees: float) -> list[tuple[float, float]]:
    return [(float(np.cos(np.radians(d))), float(np.sin(np.radians(d)))) for d in degrees]


@given(
    st.integers(0, 50), st.integers(3, 60), st.integers(2, 9), st.sampled_from(["single", "cluster"]), st.integers(1, 5)
)
def test_every_bundle_has_goldens_and_distractors_of_other_documents(
    seed: int, n: int, documents: int, mode: str, count: int
) -> None:
    """Goldens are of different documents and alike; distractors of others, less alike, the nearest of each first."""
    chunks = scatter_chunks(n, documents, seed, width=2)
    try:
        result = bundles(chunks, seed, mode=mode, distractors=count)
    except ConfigError:
        result = []
    cosines = chunks.vectors @ chunks.vectors.T
    for bundle in result:
        first, *others = bundle.goldens
        owners = [chunks.doc_ids[golden] for golden in bundle.goldens]
        assert len(set(owners)) == len(owners) <= 5
        assert all(cosines[first, other] >= 0.92 for other in others)
        assert not {chunks.doc_ids[d] for d in bundle.distractors} & set(owners)
        assert all(cosines[first, d] < 0.92 for d in bundle.distractors)
        nearest: dict[str, float] = {}
        possible = [i for i in range(n) if cosines[first, i] < 0.92 and chunks.doc_ids[i] not in owners]
        for i in possible:
            nearest[chunks.doc_ids[i]] = max(nearest.get(chunks.doc_ids[i], -1.0), float(cosines[first, i]))
        assert len(bundle.distractors) == min(count, len(possible))
        spread = sorted(nearest.values(), reverse=True)[:count]
        assert [float(cosines[first, d]) for d in bundle.distractors[: len(spread)]] == pytest.approx(spread, abs=1e-5)


@settings(max_examples=at_most(20))
@given(st.integers(0, 20), st.integers(10, 60))
def test_bundles_do_not_depend_on_the_size_of_the_pool(seed: int, n: int) -> None:
    chunks = scatter_chunks(n, 4, seed, width=3)
    with patch.object(room, "POOL", 2):
        few = bundles(chunks, seed, mode="cluster")
    assert few == bundles(chunks, seed, mode="cluster")


def test_similar_chunks_are_goldens_up_to_the_maximum_and_never_distractors() -> None:
    chunks = create_chunks(angles(0, 1, 2, 3, 60, 70, 80))
    result = {bundle.goldens[0]: bundle for bundle in bundles(chunks, mode="cluster", max_goldens=2)}
    for first in (0, 1, 2, 3):
        if first in result:
            assert len(result[first].goldens) == 2
            assert set(result[first].distractors) == {4, 5, 6}


def test_too_few_similar_chunks_are_neither_goldens_nor_distractors() -> None:
    chunks = create_chunks(angles(0, 1, 60, 70, 80))
    result = {b.goldens[0]: b for b in bundles(chunks, mode="cluster", min_goldens=3, golden_similarity=0.999)}
    assert result[0] == Bundle((0,), (2, 3, 4))
    single = {b.goldens[0]: b for b in bundles(chunks, golden_similarity=0.999)}
    assert single[0] == Bundle((0,), (2, 3, 4))


def test_a_golden_does_not_start_another_bundle() -> None:
    chunks = create_chunks(angles(0, 1, 60, 61, 120, 121))
    result = bundles(chunks, mode="cluster", golden_similarity=0.99)
    assert sorted(golden for bundle in result for golden in bundle.goldens) == [0, 1, 2, 3, 4, 5]


def test_every_document_has_a_bundle_before_one_has_two() -> None:
    chunks = scatter_chunks(60, 5)
    firsts = [chunks.doc_ids[bundle.goldens[0]] for bundle in bundles(chunks)]
    assert [len(set(firsts[i : i + 5])) for i in range(0, 60, 5)] == [5] * 12
    chance = [chunks.doc_ids[bundle.goldens[0]] for bundle in bundles(chunks, spread_documents=False)]
    assert len(set(chance[:5])) < 5


def test_a_sample_is_a_share_of_chunks_or_documents_up_to_a_number() -> None:
    chunks = scatter_chunks(40, 10)
    assert len(bundles(chunks, sample_rate=0.25)) == 10
    of_documents = bundles(chunks, by="documents", sample_rate=0.2)
    assert len(of_documents) == 8
    assert len({chunks.doc_ids[bundle.goldens[0]] for bundle in of_documents}) == 2
    assert bundles(chunks, bundles=7) == bundles(chunks)[:7]


def test_the_seed_determines_only_the_order_of_bundles() -> None:
    chunks = scatter_chunks(30, 6)
    assert bundles(chunks, seed=1) == bundles(chunks, seed=1) != bundles(chunks, seed=2)
    assert set(bundles(chunks, seed=1)) == set(bundles(chunks, seed=2))


def test_bundles_are_loaded_from_the_store() -> None:
    chunks, store = scatter_chunks(30, 6), MemoryStore()
    first = list(iter_bundles(BundleSelection(), chunks, "f", 0, store))
    with patch.object(room._Neighbourhood, "bundles", side_effect=AssertionError):
        assert list(iter_bundles(BundleSelection(), chunks, "f", 0, store)) == first


def test_an_error_says_that_no_chunk_has_a_distractor() -> None:
    with pytest.raises(ConfigError, match="all 2 chunks are from one document, 'd'"):
        check_documents(["d", "d"])
    with pytest.raises(ConfigError, match="no chunk has a distractor"):
        bundles(create_chunks(angles(0, 1, 2)))
    with pytest.raises(ValueError, match="min_goldens=3: should be at most max_goldens=2"):
        BundleSelection(min_goldens=3, max_goldens=2)
