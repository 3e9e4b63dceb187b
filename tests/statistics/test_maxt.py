"""The step-down max-T test against its definition written out, and what it controls."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.statistics.corrections import holm
from runner.statistics.maxt import run_max_t
from runner.statistics.significance import compute_differences, permutation_test
from tests.statistics.examples import Floats, unequal
from tests.strategies.settings import at_most


def written_out(scores: Floats) -> dict[tuple[int, int], float]:
    """Return the p-values of all pairs by the definition, over every assignment of signs."""
    m, n = scores.shape
    signs = np.array(list(itertools.product([1, -1], repeat=n)))
    gaps = {(i, j): np.nan_to_num(compute_differences(scores[i], scores[j])) for i in range(m) for j in range(i + 1, m)}
    squares = {pair: (gap**2).sum() for pair, gap in gaps.items()}
    median = np.median([square for square in squares.values() if square] or [0])
    norms = {pair: np.sqrt(square + median) for pair, square in squares.items()}
    under = {pair: np.abs(signs @ gap) / (norms[pair] or 1) for pair, gap in gaps.items()}
    observed = {pair: abs(gap.sum()) / (norms[pair] or 1) for pair, gap in gaps.items()}
    found, surest = {}, 0.0
    for pair in sorted(observed, key=lambda pair: -observed[pair]):
        others = [other for other in observed if observed[other] <= observed[pair] + 1e-9]
        largest = np.max([under[other] for other in others], axis=0)
        surest = max(surest, float(np.mean(largest >= observed[pair] - 1e-9)))
        found[pair] = surest if observed[pair] > 1e-9 else 1.0
    return found


@given(st.integers(0, 2**32 - 1), st.integers(2, 5), st.integers(2, 8), st.booleans())
@settings(max_examples=at_most(30))
def test_p_values_are_those_of_the_definition(seed: int, systems: int, queries: int, some_missing: bool) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.random((systems, queries)) + rng.normal(0, 0.3, (systems, 1))
    if some_missing:
        scores[rng.integers(systems), rng.integers(queries)] = np.nan
    found = run_max_t(scores).p_values
    for (i, j), expected in written_out(scores).items():
        assert found[i, j] == found[j, i] == pytest.approx(expected, abs=1e-12)


def test_two_systems_have_the_p_value_of_the_permutation_test() -> None:
    scores = unequal()[[2, 4]]
    assert (
        run_max_t(scores, 500, seed=3).p_values[0, 1]
        == permutation_test(compute_differences(scores[:1], scores[1]), 500, 3)[0]
    )


def test_equal_systems_seldom_differ_from_the_best_of_them() -> None:
    """Holm's correction for the best alone, which is chosen by the same scores, would report a third of these."""
    rng = np.random.default_rng(5)
    easy = rng.beta(1, 2, (300, 1, 40))
    reported = 0
    for scores in np.clip(easy + rng.normal(0, 0.2, (300, 20, 40)), 0, 1):
        best = int(np.argmax(scores.mean(axis=1)))
        reported += bool((run_max_t(scores, 199).p_values[best] < 0.05).any())
    assert reported / 300 < 0.08


def test_similar_systems_do_not_differ_because_rare_differences_were_not_drawn() -> None:
    """Half of these equal systems are a little worse than the others everywhere, but much better for one query in 50.

    Student's t of such a pair is very large where no such query was drawn; a quarter of these would be reported.
    """
    rng = np.random.default_rng(8)
    odd, reported = np.arange(15)[:, None] % 2 > 0, 0
    for _ in range(100):
        rare = np.where(rng.random((15, 50)) < 0.02, 0.49, -0.01)
        scores = rng.random(50) + np.where(odd, rare, 0) + rng.normal(0, 0.1, (5, 50))[np.arange(15) % 5]
        best = int(np.argmax(scores.mean(axis=1)))
        reported += bool((run_max_t(scores, 199).p_values[best] < 0.05).any())
    assert reported / 100 < 0.1


def test_it_finds_what_holm_finds() -> None:
    """Tests of pairs that share systems are correlated, and so fewer than they seem."""
    rng = np.random.default_rng(6)
    scores = rng.random(60) + np.linspace(0, 0.2, 15)[:, None] + rng.normal(0, 0.12, (15, 60))
    first, second = np.triu_indices(15, 1)
    single = permutation_test(compute_differences(scores[first], scores[second]), 5000)
    found = run_max_t(scores, 5000).p_values[first, second]
    assert (found >= single - 0.01).all()
    assert (found[holm(single) < 0.05] < 0.05).all()
    assert np.count_nonzero(found < 0.05) > np.count_nonzero(holm(single) < 0.05)


def test_the_critical_value_parts_what_differs_from_what_does_not() -> None:
    scores = unequal()
    found = run_max_t(scores, 500, level=0.1)
    first, second = np.triu_indices(5, 1)
    bounds = found.intervals(compute_differences(scores[first], scores[second]))
    excludes = (bounds[:, 0] > 0) | (bounds[:, 1] < 0)
    np.testing.assert_array_equal(excludes, found.p_values[first, second] < 0.1)
    assert excludes.any()
    assert not excludes.all()


def test_many_pairs_get_fewer_permutations_and_stay_a_test(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runner.statistics.maxt._MOST_STATISTICS", 10)
    monkeypatch.setattr("runner.statistics.maxt._FEWEST_PERMUTATIONS", 50)
    scores = np.vstack([np.ones((1, 60)), np.zeros((9, 60))])
    assert run_max_t(scores, 1000).p_values[0, 1] == pytest.approx(1 / 51)
    assert run_max_t(scores, 20).p_values[0, 1] == pytest.approx(1 / 21)
