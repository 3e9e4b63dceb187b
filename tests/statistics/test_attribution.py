from __future__ import annotations

from itertools import chain, combinations, permutations

import numpy as np
import pytest
from scipy import stats

from runner.statistics.attribution import (
    Coalition,
    attribute,
    compare_samples,
    compute_significance,
    list_sampled_steps,
    list_steps,
    sample_orders,
)
from runner.statistics.comparison import compare
from runner.statistics.settings import Statistics

FACTORS = ("settings", "documents", "judgments", "queries")
NOTHING = frozenset[str]()


def list_coalitions(factors: tuple[str, ...]) -> list[Coalition]:
    sizes = range(len(factors) + 1)
    return [frozenset(some) for some in chain.from_iterable(combinations(factors, size) for size in sizes)]


def draw_values(seed: int, queries: int = 12) -> dict[Coalition, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {coalition: rng.uniform(0, 1, queries) for coalition in list_coalitions(FACTORS)}


def average_over_orders(factor: str, values: dict[Coalition, np.ndarray]) -> float:
    """Return a Shapley value by its definition: the mean step of a factor over all orders."""
    steps = []
    for order in permutations(FACTORS):
        before = frozenset(order[: order.index(factor)])
        steps.append(values[before | {factor}].mean() - values[before].mean())
    return float(np.mean(steps))


@pytest.mark.parametrize("seed", range(3))
def test_a_term_is_the_average_over_all_orders_and_terms_add_up(seed: int) -> None:
    values = draw_values(seed)
    terms = {factor: attribute(values, list_steps(factor, FACTORS)) for factor in FACTORS}
    for factor, term in terms.items():
        assert term.effect == pytest.approx(average_over_orders(factor, values), abs=1e-12)
        assert term.least <= term.effect <= term.most
        assert term.differences.mean() == pytest.approx(term.effect, abs=1e-12)
        assert term.shares.sum() == pytest.approx(term.effect, abs=1e-12)
    total = values[frozenset(FACTORS)].mean() - values[NOTHING].mean()
    assert sum(term.effect for term in terms.values()) == pytest.approx(total, abs=1e-12)


def test_a_step_between_the_same_queries_has_their_paired_differences() -> None:
    values = draw_values(0)
    one = frozenset({"settings"})
    term = attribute(values, [(1.0, one, NOTHING)])
    np.testing.assert_allclose(term.differences, values[one] - values[NOTHING], atol=1e-12)
    assert term.weights.tolist() == [1] * 12
    expected = compare((values[one] - values[NOTHING])[None], Statistics(correction="none"))
    (tested,) = compute_significance([term], [True], Statistics(correction="none"), None)
    np.testing.assert_allclose([[tested.low, tested.high]], expected.intervals, atol=1e-11)
    assert tested.p == pytest.approx(expected.uncorrected[0])
    assert (tested.wins, tested.losses) == (expected.wins[0], expected.losses[0])


def test_a_factor_without_effect_has_an_effect_of_exactly_0() -> None:
    values = {c: draw_values(1)[c - {"judgments"}] for c in list_coalitions(FACTORS)}
    term = attribute(values, list_steps("judgments", FACTORS))
    assert term.effect == 0
    assert not term.differences.any()
    (tested,) = compute_significance([term], [True], Statistics(test="t", correction="holm"), None)
    assert np.isnan([tested.low, tested.high]).all()
    assert tested.corrected == 1


def change_judgments_and_add_queries(changed: int, added: int) -> dict[Coalition, np.ndarray]:
    """Return values of 40 queries, of which some lose everything by their judgments, and of added queries."""
    before = np.ones(40 + added)
    after = np.where(np.arange(40 + added) < changed, 0.0, before)
    old = np.arange(40 + added) < 40
    return {
        NOTHING: np.where(old, before, np.nan),
        frozenset({"judgments"}): np.where(old, after, np.nan),
        frozenset({"queries"}): before,
        frozenset({"judgments", "queries"}): after,
    }


@pytest.mark.parametrize("added", [1, 10, 200])
@pytest.mark.parametrize("changed", [4, 8])
def test_only_queries_that_changed_have_a_sign_to_flip(added: int, changed: int) -> None:
    """Otherwise unequal weights look like differences, and the test rejects too often."""
    term = attribute(
        change_judgments_and_add_queries(changed, added), list_steps("judgments", ("judgments", "queries"))
    )
    assert np.average(term.differences, weights=term.weights) == pytest.approx(term.effect, abs=1e-12)
    assert term.weights.mean() == pytest.approx(1, abs=1e-11)
    assert np.count_nonzero(term.differences) == changed
    (tested,) = compute_significance([term], [True], Statistics(permutations=2000), None)
    assert tested.p == pytest.approx(2.0 ** (1 - changed), abs=0.02)
    assert (tested.high < 0) == (changed == 8)
    assert tested.low < tested.mean == term.effect < tested.high


def test_a_query_that_loses_its_gold_is_not_a_difference_of_all_others() -> None:
    before = np.linspace(0.4, 0.6, 40)
    values = {NOTHING: before, frozenset({"judgments"}): np.append(np.nan, before[1:])}
    term = attribute(values, list_steps("judgments", ("judgments",)))
    assert term.effect == pytest.approx(before[1:].mean() - before.mean(), abs=1e-12)
    assert term.differences.mean() == pytest.approx(term.effect, abs=1e-9)
    (tested,) = compute_significance([term], [True], Statistics(permutations=2000), None)
    assert tested.p > 0.1, "one query of 40"


@pytest.mark.parametrize("test", ["permutation", "t", "bootstrap"])
def test_weights_of_whole_numbers_are_clusters_of_copies(test: str) -> None:
    rng = np.random.default_rng(3)
    differences, weights = rng.normal(0.2, 1, (2, 20)), rng.integers(1, 5, 20)
    statistics = Statistics(test=test, permutations=500, correction="none")  # type: ignore[arg-type]  # a test's name
    copies = np.repeat(np.arange(20), weights)
    expected = compare(differences[:, copies], statistics, copies)
    weighted = compare(differences, statistics, weights=np.array([weights, weights], dtype=np.float64))
    np.testing.assert_allclose(weighted.intervals, expected.intervals, atol=1e-10)
    np.testing.assert_allclose(weighted.uncorrected, expected.uncorrected, atol=1e-12)
    np.testing.assert_allclose(weighted.effects, expected.effects, atol=1e-12)


def test_all_sampled_orders_give_the_exact_value_and_some_orders_add_up() -> None:
    values = draw_values(2)
    exact = attribute(values, list_steps("queries", FACTORS)).effect
    every = sample_orders(FACTORS, 24, 0)
    assert len(every) == 24
    assert attribute(values, list_sampled_steps("queries", every)).effect == pytest.approx(exact, abs=1e-12)
    some = sample_orders(FACTORS, 5, 0)
    assert len(some) == 6
    assert [order[::-1] for order in some[::2]] == some[1::2]
    total = values[frozenset(FACTORS)].mean() - values[NOTHING].mean()
    terms = [attribute(values, list_sampled_steps(factor, some)).effect for factor in FACTORS]
    assert sum(terms) == pytest.approx(total, abs=1e-12)


def draw_samples(old: int, new: int, shared: int = 0) -> dict[Coalition, np.ndarray]:
    """Return values of two samples of queries, of which the first `shared` are in both."""
    rng = np.random.default_rng(old + new)
    values = rng.uniform(0, 1, old + new)
    first, second = values.copy(), values.copy()
    first[old:], second[shared:old] = np.nan, np.nan
    return {NOTHING: first, frozenset({"queries"}): second}


QUERIES = [(1.0, frozenset({"queries"}), NOTHING)]


def test_samples_without_a_common_query_are_compared_by_the_test_of_welch() -> None:
    values = draw_samples(12, 7)
    old, new = (column[~np.isnan(column)] for column in values.values())
    expected = stats.ttest_ind(new, old, equal_var=False)
    tested = compare_samples(attribute(values, QUERIES), 0.95, None)
    assert tested.p == pytest.approx(expected.pvalue, abs=1e-12)
    assert (tested.low, tested.high) == pytest.approx(tuple(expected.confidence_interval(0.95)), abs=1e-12)


def test_one_new_query_is_never_significant() -> None:
    first = np.append(np.linspace(0.8, 0.9, 40), np.nan)
    values = {NOTHING: first, frozenset({"queries"}): np.append(first[:-1], 0.0)}
    tested = compare_samples(attribute(values, QUERIES), 0.95, None)
    assert tested.low < 0 < tested.high
    assert tested.p > 0.2


def test_copies_of_queries_in_clusters_count_once() -> None:
    values = draw_samples(8, 8)
    twice = {coalition: np.repeat(column, 2) for coalition, column in values.items()}
    once = attribute(values, QUERIES)
    copied = compare_samples(attribute(twice, QUERIES), 0.95, np.repeat(np.arange(16), 2))
    assert copied.low < once.effect < copied.high
    single = compare_samples(once, 0.95, None)
    width = single.high - single.low
    assert copied.high - copied.low == pytest.approx(width, rel=0.05), "not narrower by the root of two"


def test_a_mean_without_queries_gives_no_number() -> None:
    values = {NOTHING: np.full(3, np.nan), frozenset({"queries"}): np.ones(3)}
    term = attribute(values, QUERIES)
    assert np.isnan(term.effect)
    assert compare_samples(term, 0.95, None).p == 1
