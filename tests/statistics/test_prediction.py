"""Predictors against their definitions, query by query, and correlations against scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from retrievers.base import NOTHING, Rankings, create_empty_rankings
from runner.statistics.corrections import holm
from runner.statistics.prediction import PREDICTORS, correlations, predict
from tests.strategies.scores import DESCENDING_SCORES


def ranked(rows: list[list[float]]) -> Rankings:
    """Return rankings with these scores, best first."""
    depth = max(map(len, rows), default=0)
    documents = np.full((len(rows), depth), NOTHING, dtype=np.int32)
    scores = np.full((len(rows), depth), -np.inf, dtype=np.float32)
    for i, row in enumerate(rows):
        documents[i, : len(row)], scores[i, : len(row)] = np.arange(len(row)), row
    return Rankings(documents, scores)


def defined(row: list[float], length: int) -> dict[str, float]:
    """Return what each predictor is by its definition, for one query."""
    s, nan = np.array(row), math.nan
    if not row:
        return dict.fromkeys(PREDICTORS, nan)
    top, root = s[:5], math.sqrt(length)
    return {
        "WIG": (s[:2].mean() - s.mean()) / root,
        "NQC": top.std() / abs(s.mean()) if s.mean() else nan,
        "sigma_max": max(top[:n].std() for n in range(1, len(top) + 1)),
    }


@given(st.lists(st.tuples(DESCENDING_SCORES, st.integers(1, 9)), min_size=1, max_size=5))
def test_every_predictor_is_its_definition(queries: list[tuple[list[float], int]]) -> None:
    rows, lengths = [row for row, _ in queries], [length for _, length in queries]
    found = predict(ranked(rows), lengths, depth=5, few=2)
    assert found.keys() == PREDICTORS.keys()
    for i, (row, length) in enumerate(queries):
        for name, value in defined(row, length).items():
            np.testing.assert_allclose(found[name][i], value, atol=1e-9, err_msg=f"{name} of {row}")


def test_a_query_without_results_has_no_prediction() -> None:
    for rankings in (create_empty_rankings(2, 3), create_empty_rankings(2, 0)):
        assert all(np.isnan(values).all() for values in predict(rankings, [1, 1]).values())


@given(
    DESCENDING_SCORES.filter(lambda row: len(row) > 1),
    st.sampled_from([0.5, 2.0, 8.0]),
    st.sampled_from([0.0, 1.0, 16.0]),
)
def test_another_scale_scales_predictions_and_a_shift_leaves_them(row: list[float], by: float, to: float) -> None:
    one, other = predict(ranked([row]), [1]), predict(ranked([[by * score + to for score in row]]), [1])
    for name in ("WIG", "sigma_max"):
        np.testing.assert_allclose(other[name], by * one[name], atol=1e-9)


def test_small_differences_of_large_scores_are_seen() -> None:
    found = predict(ranked([[1000.0, 999.9375, 999.875]]), [1])
    assert found["sigma_max"][0] == pytest.approx(np.std([0, 0.0625, 0.125]), rel=1e-6)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=3, max_size=20))
def test_correlations_are_scipys(pairs: list[tuple[int, int]]) -> None:
    x, y = (np.array(column, dtype=np.float64) for column in zip(*pairs, strict=True))
    found = correlations({"x": np.append(x, [np.nan, 1.0])}, np.append(y, [1.0, np.nan]))["x"]
    assert found.queries == len(pairs)
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        assert math.isnan(found.kendall)
        return
    assert found.pearson == pytest.approx(stats.pearsonr(x, y).statistic, abs=1e-9)
    assert found.spearman == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-9)
    assert found.kendall == pytest.approx(stats.kendalltau(x, y).statistic, abs=1e-9)
    assert found.p_value == pytest.approx(stats.kendalltau(x, y).pvalue, abs=1e-9)


def test_p_values_are_corrected_for_the_number_of_predictors_that_tell() -> None:
    rng = np.random.default_rng(0)
    truth = rng.random(40)
    predictions = {"good": truth + 0.1 * rng.random(40), "poor": rng.random(40), "constant": np.ones(40)}
    found = correlations(predictions, truth)
    raw = np.array([stats.kendalltau(predictions[name], truth).pvalue for name in ("good", "poor")])
    np.testing.assert_allclose([found["good"].p_value, found["poor"].p_value], holm(raw))
    assert math.isnan(found["constant"].p_value)


@pytest.mark.parametrize("values", [[], [1.0], [1.0, 2.0], [1.0, 1.0, 1.0], [0.1, 0.1 + 1e-13, 0.1]])
def test_too_few_queries_or_the_same_for_all_have_no_correlation(values: list[float]) -> None:
    found = correlations({"x": np.array(values)}, np.arange(len(values), dtype=np.float64))["x"]
    assert found.queries == len(values)
    assert all(math.isnan(value) for value in (found.pearson, found.spearman, found.kendall, found.p_value))
