"""The signed-rank test is scipy's, zeros, ties and all."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from hypothesis import example, given, settings
from hypothesis import strategies as st

from runner.statistics.wilcoxon import compute_signed_ranks, wilcoxon_test
from tests.strategies.scores import DIFFERENCES
from tests.strategies.settings import at_most

LOWRY = np.array([15, -7, 5, 20, 0, -9, 17, -12, 5, -10], dtype=np.float64)
"""Ten pairs, in the worked example of the encyclopedia article on the test: the ranks sum to 27 and 18."""


def test_the_ranks_of_a_worked_example() -> None:
    ranks, equals = compute_signed_ranks(LOWRY[None])
    assert ranks[0].tolist() == [7, -3, 1.5, 9, 0, -4, 8, -6, 1.5, -5]
    assert equals[0].tolist() == [1, 1, 2, 1, 0, 1, 1, 1, 2, 1]
    assert (ranks.clip(0).sum(), -ranks.clip(None, 0).sum()) == (27, 18)


def by_scipy(differences: list[float]) -> float:
    return float(scipy.stats.wilcoxon(differences).pvalue) if any(differences) else 1.0


@given(st.lists(DIFFERENCES, min_size=14, max_size=40))
def test_with_zeros_and_ties_it_is_scipys_approximation(differences: list[float]) -> None:
    assert wilcoxon_test(np.array([differences]))[0] == pytest.approx(by_scipy(differences), abs=1e-9)


@settings(max_examples=at_most(20))  # the oracle tries every assignment of signs
@given(st.lists(DIFFERENCES, min_size=2, max_size=7))
@example([0.5, -0.5, 0.25, 0.0, 1.0, -0.25, 0.125, 0.5, 0.0, 0.25])
def test_with_zeros_and_ties_among_few_it_is_scipys_exact(differences: list[float]) -> None:
    assert wilcoxon_test(np.array([differences]))[0] == pytest.approx(by_scipy(differences), abs=1e-9)


@given(st.integers(0, 2**32 - 1), st.sampled_from([2, 3, 8, 13, 14, 49, 50, 51, 120]))
def test_without_ties_it_is_scipys_exact_up_to_fifty(seed: int, n: int) -> None:
    gaps = np.random.default_rng(seed).normal(0.2, 1, (3, n))
    np.testing.assert_allclose(wilcoxon_test(gaps), scipy.stats.wilcoxon(gaps, axis=1).pvalue, atol=1e-9)


def test_a_row_is_tested_as_if_it_were_alone() -> None:
    """Scipy decides for all rows together what is exact; here neither another row's ties nor its gaps matter."""
    plain = np.random.default_rng(1).normal(0.3, 1, 20)
    tied = np.round(plain, 1)
    gapped = np.where(np.arange(20) < 5, np.nan, plain)
    expected = [scipy.stats.wilcoxon(row[~np.isnan(row)]).pvalue for row in (plain, tied, gapped)]
    np.testing.assert_allclose(wilcoxon_test(np.array([plain, tied, gapped])), expected, atol=1e-9)
