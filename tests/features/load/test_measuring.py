"""Figures of a load test from a service with a virtual clock: quality under load, saturation, and its report."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from retrievers.services.replies import SearchReply
from runner.datasets.dataset import Dataset
from runner.features.load.generator import Failure, Reply
from runner.features.load.load_test import LoadResult, RateRunner
from runner.features.load.measuring import ReplyGrader, add_quality
from runner.features.load.report import errors_table, iter_sections, load_markdown, load_page, rates_table
from runner.features.load.settings import LoadSettings
from runner.features.load.targets import LoadTarget
from runner.metrics.measures import parse
from runner.metrics.scores import Grader
from tests.features.load.test_generator import CAPACITY, draw_times
from tests.features.load.virtual import VirtualService
from tests.pages.reading import check_markdown, check_page

N = 8
TIMES = draw_times("exponential", 400_000)


def open_dataset() -> Dataset:
    texts = {f"d{i}": f"text {i}" for i in range(N)}
    return Dataset.of(texts, {f"q{i}": f"query {i}" for i in range(N)}, {f"q{i}": {f"d{i}": 1} for i in range(N)})


def run(
    times: Sequence[float] = TIMES,
    answer: Callable[[int, int], Reply] = lambda number, query: [f"d{query}"],
    **settings: Any,
) -> LoadResult:
    own = LoadSettings(**{"warmup_s": 0, **settings})
    dataset, shares = open_dataset(), np.full(N, 1 / N)
    grader = Grader(dataset.judgments, N, N)
    target = LoadTarget("virtual", VirtualService(times, answer=answer), lambda query, reply: SearchReply(reply))  # type: ignore[arg-type]  # ids
    runner = RateRunner(target, ReplyGrader(dataset, grader, parse("nDCG@10"), 10), own, shares)
    rates = add_quality(list(runner.run(lambda text: None)), shares)
    return LoadResult("virtual", "toy", "test", N, "nDCG@10", own, runner.sent, rates, runner.stopped)


@pytest.mark.parametrize("kind", ["exponential", "bimodal"])
def test_saturation_is_the_capacity_of_the_service(kind: str) -> None:
    times = draw_times(kind, 100_000)
    result = run(times, rates=[50, 100], saturate=True, duration_s=60, timeout_s=120)
    assert [rate.rate for rate in result.rates] == [50, 100, 200, 400][: len(result.rates)]
    assert [rate.kept_up for rate in result.rates[:2]] == [True, True]
    assert not result.rates[-1].kept_up
    assert result.saturation == pytest.approx(1 / np.mean(times[:40_000]), rel=0.03)
    assert result.highest_kept_up in (100, 200)


def test_saturation_is_that_before_requests_time_out() -> None:
    result = run(rates=[300], duration_s=60, timeout_s=2)
    assert result.rates[0].timed_out > 1000
    assert result.saturation == pytest.approx(CAPACITY, rel=0.05)
    assert result.rates[0].latency.p99 == pytest.approx(2000, rel=0.001)


@pytest.mark.parametrize("rate", [1, 20, 100, 190])
def test_a_service_below_its_capacity_keeps_up(rate: float) -> None:
    result = run(rates=[rate], duration_s=60)
    assert result.rates[0].kept_up
    assert math.isnan(result.saturation)
    assert result.rates[0].throughput == pytest.approx(result.rates[0].requests / 60, rel=0.05)


def test_late_answers_count_zero_in_the_quality_under_load() -> None:
    (rate,) = run(rates=[300], duration_s=60, timeout_s=2).rates
    assert rate.quality == pytest.approx(rate.answered / (rate.answered + rate.timed_out))
    assert 0.2 < rate.quality < 0.9
    assert rate.quality_answered == 1.0


def test_short_answers_lower_the_quality_and_are_counted() -> None:
    def answer(number: int, query: int) -> Reply:
        return [f"d{query}", "x", "y"] if number % 4 else ["d0"]  # the gold is cut from a quarter of the answers

    (rate,) = run(answer=answer, rates=[100], duration_s=20, arrivals="constant").rates
    assert (rate.answered, rate.short) == (2000, 500)
    assert 0.75 <= rate.quality < 0.8  # those for query 0 have its gold


def test_rates_with_other_queries_have_the_same_quality_if_answers_are_the_same() -> None:
    gold = {1, 3, 4}  # the queries that are answered rightly

    def answer(number: int, query: int) -> Reply:
        return [f"d{query}"] if query in gold else []

    result = run(answer=answer, rates=[1, 3, 100], duration_s=5)
    assert result.rates[0].answered % N  # not every query equally often
    assert [rate.quality for rate in result.rates] == pytest.approx([3 / N] * 3)


def test_the_same_ranking_is_measured_as_the_graders_own() -> None:
    dataset = open_dataset()
    grader = ReplyGrader(dataset, Grader(dataset.judgments, N, N), parse("nDCG@10"), 10)
    queries = np.array([2, 2, 5, 2])
    replies = [SearchReply(ids) for ids in (["d2"], ["d7", "d2"], ["other", "d1", "d5"], ["d2"])]
    expected = [1, 1 / math.log2(3), 1 / math.log2(4), 1]
    np.testing.assert_allclose(grader.score(queries, replies), expected)


def test_the_report_shows_every_figure() -> None:
    failure = Failure("HTTP 503")
    result = run(
        answer=lambda number, query: failure if number % 5 == 4 else [f"d{query}"],
        rates=[40, 100, 400], duration_s=60, timeout_s=200,
    )  # fmt: skip
    sections = list(iter_sections(result))
    check_page(sections, load_page(result))
    check_markdown(sections, load_markdown(result))
    assert f"It saturates at {result.saturation:.3g} answers/s." in load_page(result)
    texts = rates_table(result).texts()
    assert [row[2] for row in texts] == ["yes", "yes", "no"]
    assert [row[7] for row in texts] == ["20.0%"] * 3
    assert [row[9] for row in texts] == [f"{rate.quality:.4f}" for rate in result.rates]
    assert [rate.quality for rate in result.rates] == pytest.approx([0.8] * 3, abs=1e-3)
    assert errors_table(result).texts() == [["HTTP 503", f"{sum(rate.failed for rate in result.rates):,}"]]


def test_figures_are_logged_by_rate() -> None:
    result = run(rates=[10, 300], duration_s=30, timeout_s=1, max_failed=1)
    figures = result.list_figures()
    assert figures["p99_ms_at_300"] == pytest.approx(1000, rel=0.001)
    assert figures["quality_at_10"] == 1.0
    assert 0 < figures["timed_out_at_300"] < 1
    assert figures["saturation"] == pytest.approx(CAPACITY, rel=0.05)
    assert figures["load_requests"] == result.requests > 9000
