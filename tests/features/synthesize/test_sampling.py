from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.config.objects import ConfigError
from runner.features.synthesize.base import QUERY_TYPES, Bundle, Request
from runner.features.synthesize.sampling import Sampling, derive_seed
from tests.features.synthesize.worlds import scatter_chunks
from tests.strategies.settings import at_most

CHUNKS = scatter_chunks(40, 40)
BUNDLES = [Bundle((i, (i + 1) % 40) if i % 2 else (i,), ((i + 5) % 40,)) for i in range(40)]


def list_requests(
    sampling: Sampling, types: tuple[str, ...] = QUERY_TYPES, seed: int = 0, again: bool = False
) -> list[Request]:
    return list(sampling.iter_requests(types, CHUNKS, BUNDLES, seed, again))


def test_all_types_are_requested_and_comparisons_need_two_goldens() -> None:
    requests = list_requests(Sampling(mode="all_per_bundle"))
    counts = Counter(request.query_type for request in requests)
    assert counts.pop("comparison") == 20
    assert set(counts.values()) == {40}


@settings(max_examples=at_most(25))
@given(st.integers(0, 9), st.integers(1, 4), st.integers(0, 3))
def test_a_sample_has_distinct_types_within_the_bounds(seed: int, least: int, more: int) -> None:
    requests = list_requests(Sampling(min_types=least, max_types=least + more), seed=seed)
    for bundle in BUNDLES:
        types = [request.query_type for request in requests if request.bundle == bundle]
        assert least <= len(types) == len(set(types)) <= least + more


def test_further_passes_request_each_remaining_type_once() -> None:
    once, again = list_requests(Sampling()), list_requests(Sampling(), again=True)
    assert again[: len(once)] == once
    pairs = Counter((request.bundle, request.query_type) for request in again)
    assert set(pairs.values()) == {1}
    assert len(pairs) == 40 * 10 + 20


def test_weights_are_the_odds_that_a_type_comes_first() -> None:
    weights = {"keyword": 8.0, "long": 0.5}
    counts = Counter(
        w.query_type for w in list_requests(Sampling(max_types=1, weights=weights), ("keyword", "long", "short"))
    )
    assert counts["keyword"] > counts["short"] > counts["long"]


def test_selected_types_are_possible_and_have_a_weight() -> None:
    can = ("keyword", "long", "comparison")
    assert Sampling().select_types(None, can, several_goldens=False) == ("keyword", "long")
    assert Sampling().select_types(None, can, several_goldens=True) == ("keyword", "long", "comparison")
    lengthless = Sampling(weights={"long": 0})
    assert lengthless.select_types(("long", "keyword"), can, several_goldens=False) == ("keyword",)
    with pytest.raises(ConfigError, match="comparison queries need bundles with two gold chunks; set"):
        Sampling().select_types(("comparison",), can, several_goldens=False)
    with pytest.raises(ConfigError, match="no type has a weight above 0"):
        lengthless.select_types(("long",), can, several_goldens=False)


def test_contradictory_settings_are_refused() -> None:
    with pytest.raises(ValueError, match="min_types=4: should be at most max_types=3"):
        Sampling(min_types=4)
    with pytest.raises(ValueError, match="'keywords' is not a query type; did you mean keyword"):
        Sampling(weights={"keywords": 1})


def test_the_seed_of_a_query_does_not_depend_on_the_order() -> None:
    first = {(w.bundle, w.query_type): w.seed for w in list_requests(Sampling(mode="all_per_bundle"))}
    assert len(set(first.values())) == len(first)
    later = {(w.bundle, w.query_type): w.seed for w in list_requests(Sampling(), again=True)}
    assert later == first
    assert derive_seed(1, CHUNKS, BUNDLES[0], "long") != derive_seed(0, CHUNKS, BUNDLES[0], "long")
