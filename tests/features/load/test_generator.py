"""The generator under a virtual clock: latencies of queues that are known exactly, and every limit of a test."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from runner.features.load.generator import ANSWERED, FAILED, OPEN, TIMED_OUT, Failure, LoadTraffic, OpenLoop
from runner.features.load.measuring import Latencies
from runner.features.load.schedule import Arrivals, Schedule, plan_requests
from tests.features.load.virtual import VirtualService, simulate_queue

MEAN_S, CAPACITY = 0.005, 200.0
RATES = [10, 20, 40, 60, 80, 100, 120, 140, 160, 180]


def draw_times(kind: str, n: int) -> list[float]:
    rng = np.random.default_rng(3)
    if kind == "exponential":
        return rng.exponential(MEAN_S, n).tolist()
    if kind == "bimodal":
        return np.where(rng.random(n) < 0.9, 0.002, 0.032).tolist()
    times = np.full(n, MEAN_S)
    times[n // 2] = 2.0
    return times.tolist()


def plan(rate: float, seconds: float = 30, arrivals: Arrivals = "poisson") -> Schedule:
    return plan_requests(rate, seconds, arrivals, np.full(7, 1 / 7), (0, 1))


def run(schedule: Schedule, service: VirtualService, timeout_s: float = 60, max_failed: float = 1) -> LoadTraffic:
    return OpenLoop(schedule, service, timeout_s, max_failed, math.inf).run()


@pytest.mark.parametrize("kind", ["exponential", "bimodal", "stall"])
def test_percentiles_at_ten_rates_are_those_of_the_queue(kind: str) -> None:
    for rate in RATES:
        schedule = plan(rate)
        times = draw_times(kind, len(schedule))
        traffic = run(schedule, VirtualService(times))
        exact = simulate_queue(schedule.due, times)
        assert (traffic.states == ANSWERED).all()
        np.testing.assert_allclose(traffic.latencies, exact)
        histogram = Latencies.of(traffic.latencies, 60)
        for share, shown in ((50, histogram.p50), (95, histogram.p95), (99, histogram.p99)):
            if not math.isnan(shown):  # there are too few requests for this percentile
                value = np.sort(exact)[int(len(exact) * share / 100 + 0.5) - 1]
                assert shown == pytest.approx(value * 1000, rel=0.002)


def test_requests_that_wait_in_a_stall_count_from_when_they_were_due() -> None:
    schedule = plan(100, 10, "constant")
    traffic = run(schedule, VirtualService(draw_times("stall", len(schedule))))
    slow = traffic.latencies > 0.1025
    assert slow.sum() == 380  # 2 s of arrivals, and as many as are due until the queue is empty again
    np.testing.assert_allclose(traffic.sent, schedule.due, atol=1e-9)  # no answer delays a request


def test_requests_for_which_no_connection_is_free_wait_and_count_their_waiting() -> None:
    schedule, times = plan(150), draw_times("exponential", 10_000)
    traffic = run(schedule, VirtualService(times, connections=1))
    np.testing.assert_allclose(traffic.latencies, simulate_queue(schedule.due, times))
    assert (traffic.sent > traffic.reached).any()


def test_a_request_times_out_a_fixed_time_after_it_was_due() -> None:
    schedule = Schedule(np.array([0.0, 0.5, 1.0]), np.zeros(3, dtype=np.int64))
    traffic = run(schedule, VirtualService([0.1, 9.0, 0.1], servers=2), timeout_s=2)
    assert traffic.states.tolist() == [ANSWERED, TIMED_OUT, ANSWERED]
    np.testing.assert_allclose(traffic.finished, [0.1, 2.5, 1.1])
    assert list(traffic.replies) == [0, 2]


def test_requests_that_were_never_sent_time_out() -> None:
    schedule = plan(10, 1, "constant")
    service = VirtualService([60.0] * 10, connections=0)
    traffic = run(schedule, service, timeout_s=3)
    assert (traffic.states == TIMED_OUT).all()
    np.testing.assert_allclose(traffic.finished, schedule.due + 3)
    assert service.received == 0


def fail_after(n: int) -> Sequence[object]:
    return [["d"]] * n + [Failure("HTTP 503")] * 1000


def test_a_test_stops_when_too_many_requests_fail() -> None:
    replies, service_times = fail_after(100), [0.001] * 1000
    service = VirtualService(service_times, answer=lambda number, query: replies[number])
    traffic = run(plan(100, 10, "constant"), service, max_failed=0.2)
    assert traffic.stopped == "load.max_failed"
    assert (traffic.states == FAILED).sum() == 26  # more than a fifth of 126
    assert service.received == 126


def test_an_interrupt_keeps_what_was_measured() -> None:
    schedule, times = plan(100, 10, "constant"), [0.015] * 1000
    traffic = run(schedule, VirtualService(times, servers=4, interrupt_at=2.0))
    assert traffic.stopped == "interrupted"
    assert traffic.seconds == 2.0
    assert (traffic.states == ANSWERED).sum() == 199
    assert (traffic.states == OPEN).sum() == 801


def test_a_test_stops_at_its_time_limit() -> None:
    schedule = plan(10, 100, "constant")
    traffic = OpenLoop(schedule, VirtualService([0.01] * 1000), 60, 1, end=5.05).run()
    assert (traffic.stopped, traffic.seconds) == ("load.max_seconds", 5.05)
    assert (traffic.states == ANSWERED).sum() == 51


def test_arrivals_are_a_poisson_process() -> None:
    due = plan(200, 100).due
    gaps = np.diff(due)
    assert len(due) == pytest.approx(20_000, rel=0.03)
    assert gaps.std() == pytest.approx(gaps.mean(), rel=0.05)
    assert np.corrcoef(gaps[:-1], gaps[1:])[0, 1] == pytest.approx(0, abs=0.03)


@pytest.mark.parametrize("shares", [[0.25] * 4, [0.7, 0.1, 0.2, 0.0]])
def test_queries_are_sent_as_often_as_their_shares(shares: list[float]) -> None:
    schedule = plan_requests(100, 10, "constant", np.array(shares), (5, 1))
    counts: NDArray[np.int64] = np.bincount(schedule.queries, minlength=4)
    assert np.abs(counts - 1000 * np.array(shares)).max() <= 1
    assert counts.sum() == 1000
    assert np.abs(np.diff(schedule.queries)).sum() > 200  # in random order


def test_timeouts_are_the_last_value_of_the_histogram() -> None:
    latencies = np.array([0.001] * 150 + [10.0] * 50)
    histogram = Latencies.of(latencies, 10.0)
    assert (histogram.count, histogram.p50) == (200, pytest.approx(1, rel=0.002))
    assert histogram.p99 == pytest.approx(10_000, rel=0.002)
    assert math.isnan(histogram.p99_9)
