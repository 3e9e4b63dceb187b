"""Folds, the choice inside of cross-validation, and Pareto fronts, against definitions written out."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from runner.statistics.selection import (
    choose_nested,
    estimate_nested_intervals,
    find_front,
    folds,
    means,
    measure_nested_gain,
)
from tests.strategies.scores import MEASURE_VALUES

Floats = NDArray[np.float64]


@given(
    st.lists(st.tuples(st.sampled_from(["", "precise", "wide"]), st.booleans()), max_size=60),
    st.integers(2, 7),
    st.integers(0, 9),
)
def test_each_query_that_counts_is_in_one_fold_and_each_type_is_dealt_evenly(
    queries: list[tuple[str, bool]], k: int, seed: int
) -> None:
    types, counted = [t for t, _ in queries], np.array([c for _, c in queries], dtype=np.bool_)
    numbers = folds(types, counted, k, seed)
    np.testing.assert_array_equal(numbers >= 0, counted)
    np.testing.assert_array_equal(numbers, folds(types, counted, k, seed))
    for kind in [None, *types]:
        of_kind = counted & np.array([kind in (None, t) for t in types], dtype=np.bool_)
        sizes = np.bincount(numbers[of_kind], minlength=k)
        assert sizes.max() - sizes.min() <= 1
    assert set(numbers) - {-1} == set(range(min(k, counted.sum())))


def test_another_seed_deals_other_folds() -> None:
    types, counted = ["a"] * 20, np.ones(20, dtype=np.bool_)
    assert (folds(types, counted, seed=0) != folds(types, counted, seed=1)).any()


def written_out(scores: Floats, numbers: NDArray[np.int64]) -> list[float]:
    """Return the held-out values by the definition, one query after the other."""
    found = []
    for query, fold in enumerate(numbers):
        others = [q for q, other in enumerate(numbers) if other not in (fold, -1)]
        best, value = -1, -np.inf
        for system, row in enumerate(scores):
            known = [row[q] for q in others if not np.isnan(row[q])]
            mean = sum(known) / len(known) if known else -np.inf
            if mean > value + 1e-12:
                best, value = system, mean
        found.append(scores[best, query] if fold >= 0 else np.nan)
    return found


@given(st.integers(0, 2**32 - 1), st.integers(1, 8), st.integers(2, 20))
def test_the_held_out_values_are_those_of_the_definition(seed: int, systems: int, queries: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.random((systems, queries))
    scores[:, rng.random(queries) < 0.1] = np.nan
    numbers = folds([""] * queries, ~np.isnan(scores[0]), 3, seed)
    if numbers.max() >= 1:
        np.testing.assert_allclose(choose_nested(scores, numbers).held_out, written_out(scores, numbers))


@given(st.integers(0, 2**32 - 1))
def test_what_happens_in_a_fold_has_no_say_in_what_is_chosen_without_it(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores, numbers = rng.random((6, 30)), folds([""] * 30, np.ones(30, dtype=np.bool_), seed=seed)
    changed = scores.copy()
    changed[:, numbers == 2] = rng.random((6, (numbers == 2).sum()))
    assert choose_nested(scores, numbers).winners[2] == choose_nested(changed, numbers).winners[2]


@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_the_test_of_a_nested_gain_repeats_the_selection_for_all_signs(seed: int, clustered: bool) -> None:
    rng, level = np.random.default_rng(seed), 0.1
    gains = np.round(rng.normal(0.2, 1, (4, 8)), 3)
    clusters = np.array([0, 0, 1, 2, 3, 4, 5, 6]) if clustered else np.arange(8)
    numbers = folds([""] * 8, np.ones(8, dtype=np.bool_), 4, seed, clusters)
    signs = np.array(list(product([1, -1], repeat=int(clusters.max()) + 1)))[:, clusters]

    def share_as_extreme(shared: float) -> float:
        sums = [choose_nested((gains - shared) * flip, numbers).held_out.mean() for flip in signs]
        return float(np.mean(np.abs(sums) >= abs(sums[0]) - 1e-9))

    p, (low, high) = measure_nested_gain(gains, numbers, level=level, clusters=clusters if clustered else None)
    assert p == share_as_extreme(0)
    margin = 1e-6 * (high - low)
    assert share_as_extreme(low - margin) < level <= share_as_extreme(low + margin)
    assert share_as_extreme(high + margin) < level <= share_as_extreme(high - margin)


def test_equal_systems_gain_on_the_default_as_rarely_as_the_level_says() -> None:
    """A paired test of the held-out values rejects about one in ten of these."""
    rng, rejected = np.random.default_rng(0), []
    for seed in range(400):
        scores = rng.normal(0, 1, (10, 50))
        numbers = folds([""] * 50, np.ones(50, dtype=np.bool_), seed=seed)
        rejected.append(measure_nested_gain(scores - scores[0], numbers, permutations=199)[0] < 0.05)
    assert 0.02 < np.mean(rejected) < 0.08


def test_a_gain_on_few_queries_has_a_p_value_and_no_interval() -> None:
    gains = np.zeros((2, 20))
    gains[1, :3] = 1
    p, interval = measure_nested_gain(gains, folds([""] * 20, np.ones(20, dtype=np.bool_)))
    assert 0.05 < p < 1
    assert np.isnan(interval).all()


def test_the_best_of_noise_looks_good_in_sample_and_is_worth_nothing_held_out() -> None:
    in_sample, held_out = [], []
    for seed in range(200):
        scores = np.random.default_rng(seed).normal(0, 1, (40, 60))
        numbers = folds([""] * 60, np.ones(60, dtype=np.bool_), seed=seed)
        in_sample.append(scores.mean(axis=1).max())
        held_out.append(choose_nested(scores, numbers).held_out.mean())
    error = 1 / np.sqrt(60 * 200)
    assert abs(np.mean(held_out)) < 4 * error
    assert np.mean(in_sample) > 0.2  # the expected maximum of 40 normal means of 60: 2.16 / sqrt(60) = 0.28


def test_one_that_is_best_everywhere_loses_nothing_by_being_chosen() -> None:
    scores = np.random.default_rng(0).random((5, 24))
    scores[3] += 2
    found = choose_nested(scores, folds([""] * 24, np.ones(24, dtype=np.bool_)))
    np.testing.assert_array_equal(found.winners, [3] * 5)
    np.testing.assert_array_equal(found.held_out, scores[3])


def test_a_fold_chooses_among_its_own_candidates_and_the_first_of_equals_wins() -> None:
    scores, numbers = np.array([[0.5, 0.5], [0.9, 0.9], [0.5, 0.5]]), np.array([0, 1])
    among = np.array([[True, False, True], [True, True, True]])
    np.testing.assert_array_equal(choose_nested(scores, numbers, among).winners, [0, 1])


def test_means_leave_out_what_does_not_count() -> None:
    scores = np.array([[1.0, np.nan, 3.0, 9.0], [np.nan, np.nan, np.nan, 1.0]])
    np.testing.assert_array_equal(means(scores, np.array([True, True, True, False])), [2.0, np.nan])


@given(
    st.lists(st.lists(MEASURE_VALUES, min_size=3, max_size=3), max_size=9),
    st.lists(st.booleans(), min_size=3, max_size=3),
)
def test_the_front_is_what_none_is_as_good_as_and_better_in_one(points: list[list[float]], larger: list[bool]) -> None:
    def beats(a: list[float], b: list[float]) -> bool:
        signed = [(x, y) if more else (-x, -y) for x, y, more in zip(a, b, larger, strict=True)]
        return all(x >= y for x, y in signed) and any(x > y for x, y in signed)

    known = [point for point in points if not np.isnan(point).any()]
    expected = [point in known and not any(beats(other, point) for other in known) for point in points]
    found = find_front(np.array(points).reshape(-1, 3), larger)
    assert found.tolist() == expected
    assert found.any() == bool(known)


@given(st.lists(st.tuples(MEASURE_VALUES, MEASURE_VALUES), max_size=9), st.sampled_from([0.0, 0.2, 0.5]))
def test_a_difference_that_is_ignored_is_not_worth_its_cost(points: list[tuple[float, float]], ignored: float) -> None:
    def beats(a: tuple[float, float], b: tuple[float, float]) -> bool:
        return a[0] <= b[0] and a[1] + ignored >= b[1] and (a[0] < b[0] or a[1] > b[1])

    values = np.array(points).reshape(-1, 2)
    front = [tuple(point) for point in values[find_front(values, [False, True], ignored)].tolist()]
    assert not any(beats(one, other) for one in front for other in front)
    known = [point for point in points if not np.isnan(point).any()]
    assert all(point in front or any(beats(other, point) for other in front) for point in known)
    assert {*front} <= {tuple(point) for point in values[find_front(values, [False, True])].tolist()}


@pytest.mark.parametrize(("larger", "best"), [([True], 2), ([False], 0)])
def test_the_front_of_one_objective_is_the_best(larger: list[bool], best: int) -> None:
    assert np.flatnonzero(find_front(np.array([[1.0], [2.0], [3.0]]), larger)).tolist() == [best]


def test_the_interval_of_a_nested_choice_covers_what_the_choice_is_worth() -> None:
    """Of equal systems the choice is all luck, which resampled held-out values alone do not know."""
    rng = np.random.default_rng(4)
    numbers = np.arange(40) % 5
    easy, trials = rng.normal(0, 0.5, (200, 1, 40)), rng.normal(0, 1, (200, 12, 40))
    intervals = np.array([estimate_nested_intervals(s, s[None], numbers, resamples=200)[0] for s in easy + trials])
    covered = np.mean((intervals[:, 0] <= 0) & (intervals[:, 1] >= 0))
    assert covered > 0.93


def test_the_interval_of_shares_holds_no_more_than_shares() -> None:
    scores = np.random.default_rng(0).choice([0.0, 1.0], (4, 12), p=[0.1, 0.9])
    (low, high), unbounded = estimate_nested_intervals(scores, np.stack((scores, 2 * scores)), np.arange(12) % 4)
    assert 0 < low < high == 1
    assert unbounded[1] > 1


def test_the_interval_of_a_choice_is_around_its_estimate_by_each_measure() -> None:
    rng = np.random.default_rng(3)
    scores = rng.random((6, 30))
    scores[:, 4] = np.nan
    numbers = folds([""] * 30, ~np.isnan(scores[0]), 3)
    measures = np.stack([scores, 2 * scores + 1])
    first, second = estimate_nested_intervals(scores, measures, numbers, resamples=100)
    assert first.mean() == pytest.approx(np.nanmean(choose_nested(scores, numbers).held_out))
    np.testing.assert_allclose(second, 2 * first + 1)
    wider = estimate_nested_intervals(scores, measures, numbers, resamples=100, clusters=np.arange(30) // 10)
    assert (np.diff(wider) != np.diff(np.stack([first, second]))).all()
    only = np.zeros((3, 6), dtype=np.bool_)
    only[:, 2] = True
    alone = estimate_nested_intervals(scores, scores[None], numbers, only, resamples=300)[0]
    assert alone.mean() == pytest.approx(np.nanmean(scores[2]))
    assert np.isnan(estimate_nested_intervals(scores[:, :1], scores[None, :, :1], np.zeros(1, dtype=np.int64))).all()
