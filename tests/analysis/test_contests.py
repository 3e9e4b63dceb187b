"""Contests between results: exact once all is graded, unbiased from a random sample, wide where little is known."""

from __future__ import annotations

import numpy as np
import pytest

from runner.analysis.contests import estimate_contest, expect_contest
from runner.analysis.judging_order import UNJUDGED, ExpectedGrades, Floats, Ints, RankedPool, expect_grades

NAMES = ["first", "second", "third"]
POOL = RankedPool(
    queries=np.array([0, 0, 0, 1, 1, 1]),
    ranks=np.array([[1, 2, 0, 1, 0, 2], [2, 0, 1, 0, 1, 2], [2, 1, 0, 0, 1, 2]]),
)
TRUTH = np.array([3, 1, 0, 2, 0, 1])


def dcg(row: int) -> float:
    ranks = POOL.ranks[row]
    return float(sum(grade / np.log2(rank + 1) for grade, rank in zip(TRUTH, ranks, strict=True) if rank) / 2)


@pytest.mark.parametrize("by_sample", [True, False])
def test_a_graded_pool_gives_the_differences_in_dcg_without_any_doubt(by_sample: bool) -> None:
    nothing = np.full(6, UNJUDGED)
    contest = (
        estimate_contest(POOL, TRUTH, nothing, np.zeros(6, dtype=np.int64), 3, NAMES)
        if by_sample
        else expect_contest(POOL, TRUTH, NAMES)
    )
    assert (contest.leader, contest.is_decided) == ("first", True)
    assert contest.dcg == pytest.approx(dcg(0))
    assert {lead.other: lead.difference for lead in contest.leads} == pytest.approx(
        {"second": dcg(0) - dcg(1), "third": dcg(0) - dcg(2)}
    )
    assert all(c.low == pytest.approx(c.difference) == pytest.approx(c.high) for c in contest.leads)


def test_intervals_of_a_random_sample_cover_the_difference_with_grades_from_before() -> None:
    """A fifth of 300 pairs was judged before, and 60 others are a sample; 95 % intervals are nominal."""
    rng = np.random.default_rng(0)
    ranks = np.stack([rng.integers(0, 11, 300) for _ in range(2)])
    pool, truth = RankedPool(np.repeat(np.arange(30), 10), ranks), rng.choice(4, 300, p=[0.6, 0.2, 0.1, 0.1])
    known = np.array([UNJUDGED] * 240 + truth[240:].tolist())
    true = float((pool.discounts[0] - pool.discounts[1]) @ truth)
    covered, errors = 0, []
    for _ in range(200):
        sampled, grades = rng.choice(240, 60, replace=False), known.copy()
        grades[sampled] = truth[sampled]
        contest = estimate_contest(pool, grades, known, np.zeros(240, dtype=np.int64), 3, ["a", "b"])
        (lead,), sign = contest.leads, 1 if contest.leader == "a" else -1
        covered += min(sign * lead.low, sign * lead.high) <= true <= max(sign * lead.low, sign * lead.high)
        errors.append(sign * lead.difference - true)
    assert 180 <= covered <= 200
    assert abs(np.mean(errors)) < 3 * np.std(errors) / 200**0.5


def test_what_is_not_graded_leaves_doubt_that_the_most_uncertain_grades_would_end() -> None:
    grades = np.full(6, UNJUDGED)
    grades[[0, 2]] = [3, 0]
    contest = expect_contest(POOL, grades, NAMES)
    assert contest.leads[0].low <= contest.leads[-1].low
    open_ = [c for c in contest.leads if not c.is_decided]
    assert open_ and all(c.more is None or 1 <= c.more <= 4 for c in open_)


def test_results_that_rank_alike_are_decided() -> None:
    alike = RankedPool(POOL.queries, POOL.ranks[[0, 0]])
    assert expect_contest(alike, np.full(6, UNJUDGED), ["one", "copy"]).is_decided


def test_few_grades_leave_the_model_itself_in_doubt() -> None:
    """The same grades ten times over give the same model, which is then more certain."""
    rng = np.random.default_rng(0)
    ranks, grades = rng.integers(0, 4, (2, 40)), rng.choice([UNJUDGED, 0, 1], 40)
    one = expect_grades(RankedPool(np.zeros(40, dtype=np.int64), ranks), grades)
    ten = expect_grades(RankedPool(np.zeros(400, dtype=np.int64), np.tile(ranks, 10)), np.tile(grades, 10))
    weights = np.where(grades == UNJUDGED, 1.0, 0.0)

    def model_variance(expected: ExpectedGrades, parts: Floats) -> float:
        own = float(parts**2 @ expected.variance)
        return expected.estimate_variance(parts, np.zeros(len(parts), dtype=np.int64)) - own

    first = np.concatenate([weights, np.zeros(360)])
    assert 0 < 3 * model_variance(ten, first) < model_variance(one, weights)
    assert is_certain_of_judged(one, grades)


def is_certain_of_judged(expected: ExpectedGrades, grades: Ints) -> bool:
    """Return whether judged pairs add nothing to the variance of a sum."""
    judged = np.where(grades == UNJUDGED, 0.0, 1.0)
    return expected.estimate_variance(judged, np.zeros(len(grades), dtype=np.int64)) == 0
