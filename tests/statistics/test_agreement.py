"""Coefficients of agreement, against scipy, their definitions, and a published comparison of real rankings."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from runner.statistics.agreement import headroom, jaccard, kendall_tau, rank_1, rbo
from tests.strategies.rankings import RANKING_PAIRS


def table(*rankings: list[int], depth: int = 8) -> NDArray[np.int64]:
    return np.array([ranking + [-1] * (depth - len(ranking)) for ranking in rankings], dtype=np.int64)


def tables(pairs: list[tuple[list[int], list[int]]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return table(*(first for first, _ in pairs)), table(*(second for _, second in pairs), depth=10)


@given(RANKING_PAIRS, st.integers(1, 9))
def test_jaccard_is_the_overlap_divided_by_the_union(pairs: list[tuple[list[int], list[int]]], k: int) -> None:
    for found, (first, second) in zip(jaccard(*tables(pairs), k), pairs, strict=True):
        a, b = set(first[:k]), set(second[:k])
        assert found == (pytest.approx(len(a & b) / len(a | b)) if a | b else pytest.approx(np.nan, nan_ok=True))


@given(RANKING_PAIRS)
def test_rank_1_agreement_is_the_same_first_document(pairs: list[tuple[list[int], list[int]]]) -> None:
    for found, (first, second) in zip(rank_1(*tables(pairs)), pairs, strict=True):
        expected = float(first[:1] == second[:1]) if first or second else np.nan
        assert found == pytest.approx(expected, nan_ok=True)


def overlap_of_readers(first: list[int], second: list[int], p: float) -> float:
    """Return the sum that RBO is, to a depth that no reader reaches, with each agreement extrapolated as defined."""
    short, long = sorted((first, second), key=len)
    s, total = len(short), 0.0

    def overlap(d: int) -> int:
        return len(set(short[:d]) & set(long[:d]))

    at_shorter = overlap(s) / s if s else 0.0
    for d in range(1, 500):
        seen = min(d, len(long))
        agreed = (overlap(seen) + at_shorter * max(seen - s, 0)) / seen
        total += (1 - p) * p ** (d - 1) * agreed
    return total


@given(RANKING_PAIRS, st.sampled_from([0.5, 0.8, 0.9]))
def test_rank_biased_overlap_is_what_readers_see(pairs: list[tuple[list[int], list[int]]], p: float) -> None:
    for found, (first, second) in zip(rbo(*tables(pairs), p), pairs, strict=True):
        expected = overlap_of_readers(first, second, p) if first or second else np.nan
        assert found == pytest.approx(expected, abs=1e-9, nan_ok=True)


def test_rank_biased_overlap_of_a_published_example() -> None:
    """1 2 3 4 5 against 2 3 4 1 5 at 0.9 is 0.828 (the example of the Scala package rankmeasures)."""
    assert rbo(table([1, 2, 3, 4, 5]), table([2, 3, 4, 1, 5]))[0] == pytest.approx(0.828, abs=1e-6)


def penalised(first: list[int], second: list[int]) -> float:
    """Return 1 - 2 K / pairs by the four cases of Fagin, Kumar & Sivakumar (2003), with penalty 1/2."""
    union, distance = list(dict.fromkeys(first + second)), 0.0
    for i, j in combinations(union, 2):
        lists = [[d for d in (i, j) if d in ranking] for ranking in (first, second)]
        both = [ranking for ranking, there in zip((first, second), lists, strict=True) if len(there) == 2]
        if len(both) == 2:  # both documents in both rankings
            distance += (first.index(i) < first.index(j)) != (second.index(i) < second.index(j))
        elif not all(lists):  # both in one, neither in the other
            distance += 0.5
        elif both:  # both in one, one of them in the other: it is ahead there
            (only,) = next(there for there in lists if len(there) == 1)
            distance += both[0].index(only) > both[0].index(j if only == i else i)
        else:  # one in each
            distance += 1
    return 1 - 2 * distance / (len(union) * (len(union) - 1) / 2)


@given(RANKING_PAIRS, st.sampled_from([3, 10]))
def test_kendalls_tau_is_the_distance_of_fagin_and_others(pairs: list[tuple[list[int], list[int]]], k: int) -> None:
    for found, (first, second) in zip(kendall_tau(*tables(pairs), k), pairs, strict=True):
        some = first[:k], second[:k]
        expected = penalised(*some) if len(set(some[0]) | set(some[1])) > 1 else np.nan
        assert found == pytest.approx(expected, nan_ok=True)


@given(st.permutations(range(8)), st.permutations(range(8)))
def test_kendalls_tau_over_the_same_documents_is_scipys(first: list[int], second: list[int]) -> None:
    expected = scipy.stats.kendalltau(np.argsort(first), np.argsort(second)).statistic
    assert kendall_tau(table(first), table(second))[0] == pytest.approx(expected, abs=1e-12)


@given(RANKING_PAIRS)
def test_kendalls_tau_with_missing_documents_is_scipys_without_tie_correction(
    pairs: list[tuple[list[int], list[int]]],
) -> None:
    for found, (first, second) in zip(kendall_tau(*tables(pairs)), pairs, strict=True):
        union = sorted({*first, *second})
        places = [[r.index(d) if d in r else 99 for d in union] for r in (first, second)]
        if first and second and len(union) > 1 and all(len(set(p)) > 1 for p in places):
            every = len(union) * (len(union) - 1) / 2
            untied = [every - sum(t * (t - 1) / 2 for t in np.unique(p, return_counts=True)[1]) for p in places]
            corrected = scipy.stats.kendalltau(*places).statistic
            assert found == pytest.approx(corrected * np.sqrt(untied[0] * untied[1]) / every)


def test_agreement_is_whole_among_equals_and_none_among_strangers() -> None:
    same, other = table([4, 2, 7, 1]), table([3, 5, 6, 8])
    for of in (rank_1, rbo, kendall_tau):
        assert of(same, same) == pytest.approx([1])
    assert jaccard(same, same, 3).tolist() == [1]
    assert [rank_1(same, other)[0], jaccard(same, other, 5)[0], rbo(same, other)[0]] == [0, 0, 0]
    assert kendall_tau(same, other) == pytest.approx([-4 / 7])  # -k / (2 k - 1)


def test_agreement_is_0_if_one_ranking_is_empty_and_undefined_if_both_are() -> None:
    nothing, something = table([], depth=0), table([1, 2])
    for of in (rank_1, rbo):
        assert of(nothing, something).tolist() == of(something, nothing).tolist() == [0]
        assert np.isnan(of(nothing, nothing)).all()
    assert np.isnan(kendall_tau(table([1]), table([1]))).all()
    assert kendall_tau(something, nothing).tolist() == [0]


@given(RANKING_PAIRS)
def test_agreement_goes_both_ways(pairs: list[tuple[list[int], list[int]]]) -> None:
    first, second = tables(pairs)
    for of in (rank_1, rbo, kendall_tau):
        np.testing.assert_allclose(of(first, second), of(second, first), atol=1e-12)


def test_rank_1_agreement_and_overlaps_are_those_of_a_real_report(real_golden: Path) -> None:
    """Over its 42 comparable queries: those with gold."""
    report = json.loads((real_golden / "reports" / "eval_20251221_070214_report.json").read_text(encoding="utf-8"))
    codes: dict[str, int] = {}
    rankings = []
    for found in report["results_by_search_type"].values():
        asked = [query for query in found["query_results"] if query["expected_items"]]
        rows = [[codes.setdefault(item, len(codes)) for item in query["retrieved_items"]] for query in asked]
        rankings.append(table(*rows, depth=10))
    expected = report["comparison"]["agreement"]
    assert len(rankings[0]) == expected["comparable_queries"] == 42
    first, second = rankings
    assert rank_1(first, second).mean() == pytest.approx(expected["rank_1_agreement"], abs=1e-12)
    assert jaccard(first, second, 3).mean() == pytest.approx(expected["top_3_overlap"], abs=1e-12)
    assert jaccard(first, second, 5).mean() == pytest.approx(expected["top_5_overlap"], abs=1e-12)


def test_headroom_is_what_a_choice_for_each_query_could_gain() -> None:
    found = headroom(np.array([[1.0, 0.0, 0.5, np.nan], [0.25, 0.75, 0.5, 1.0]]))
    assert (found.queries, found.best) == (3, 0)
    assert found.mean == pytest.approx(0.5)
    assert found.oracle == pytest.approx((1 + 0.75 + 0.5) / 3)


def test_headroom_without_a_query_that_counts_for_all_is_not_known() -> None:
    found = headroom(np.array([[1.0, np.nan], [np.nan, 0.5]]))
    assert found.queries == 0
    assert np.isnan([found.mean, found.oracle]).all()
