"""Runs a load test: a warm-up, then rate after rate, within the limits of the whole test."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runner.config.objects import ConfigError
from runner.evaluation.bench import Bench
from runner.evaluation.experiment import Experiment
from runner.features.load.generator import OpenLoop
from runner.features.load.measuring import GradedRate, RateResult, ReplyGrader, add_quality, measure_rate
from runner.features.load.schedule import measure_shares, plan_requests
from runner.features.load.settings import LoadSettings
from runner.features.load.targets import LoadTarget, open_target
from runner.metrics.measures import Measure

MOST_DOUBLINGS = 12
"""The number of further rates that `load.saturate` tries at most."""


@dataclass(frozen=True, eq=False)
class LoadResult:
    """A load test: what was tested, with which queries, what was sent in total, and what happened at each rate.

    `stopped` says why the test ended early; rates that were not run are missing.
    """

    target: str
    dataset: str
    split: str
    queries: int
    primary: str
    settings: LoadSettings
    requests: int
    rates: Sequence[RateResult]
    stopped: str = ""

    @property
    def saturation(self) -> float:
        """Return the most answers per second, if the service fell behind at any rate; NaN if it did not.

        Rates at which the generator was the limit say nothing about the service.
        """
        rates = [rate for rate in self.rates if not rate.is_limited_by_generator]
        if all(rate.kept_up for rate in rates):
            return math.nan
        return max(rate.throughput for rate in rates)

    @property
    def highest_kept_up(self) -> float:
        """Return the highest rate with which the service kept up, NaN for none."""
        return max((rate.rate for rate in self.rates if rate.kept_up), default=math.nan)

    def list_figures(self) -> dict[str, float]:
        """Return the figures of all rates by name, as they are logged."""
        figures = {name: value for rate in self.rates for name, value in rate.list_figures().items()}
        return {**figures, "saturation": self.saturation, "load_requests": float(self.requests)}

    def to_dict(self) -> dict[str, Any]:
        """Return the result for JSON."""
        own: dict[str, Any] = asdict(self)
        return {**own, "saturation": self.saturation, "highest_kept_up": self.highest_kept_up}


def run_load_test(
    experiment: Experiment, bench: Bench, own: LoadSettings, show: Callable[[str], object] = lambda text: None
) -> LoadResult:
    """Send the requests of each rate to the retriever's service, and measure; `show` is told what is being sent."""
    dataset = bench.dataset(experiment)
    bench.check_grades(experiment)
    measure = experiment.metrics.primary_measure
    check_depth(measure, own.top_k)
    grader, _, _ = bench.datasets.build_grader(experiment)
    shares = measure_shares(dataset.queries, own.frequency)
    replies = ReplyGrader(dataset, grader, measure, own.top_k)
    with open_target(experiment, bench, own) as target:
        runner = RateRunner(target, replies, own, shares)
        results = add_quality(list(runner.run(show)), shares)
    return LoadResult(
        target.title, dataset.name, dataset.split, len(dataset.queries), str(measure), own, runner.sent, results,
        runner.stopped,
    )  # fmt: skip


def check_depth(measure: Measure, top_k: int) -> None:
    """Raise `ConfigError` if a measure needs more results than are requested."""
    if (measure.cutoff or 0) > top_k:
        raise ConfigError(
            f"load.top_k={top_k}: {measure} needs {measure.cutoff} results; raise load.top_k, or set another "
            "metrics.primary"
        )


class RateRunner:
    """Runs rates one after the other, as long as the limits of the test allow."""

    def __init__(self, target: LoadTarget, grader: ReplyGrader, own: LoadSettings, shares: NDArray[np.float64]) -> None:
        self._target, self._grader, self._own, self._shares = target, grader, own, shares
        self._end = target.service.now() + own.max_seconds
        self.sent, self.stopped, self._keeps_up = 0, "", True

    def run(self, show: Callable[[str], object]) -> Iterator[GradedRate]:
        """Yield the result of each rate; the last one may be partial."""
        own = self._own
        if own.warmup_s:
            show(f"warm-up at {own.rates[0]:g}/s")
            self._send(own.rates[0], own.warmup_s, 0)
        for step, rate in enumerate(self._iter_rates(), start=1):
            if self.stopped:
                return
            show(f"{rate:g} requests/s for {own.duration_s:g} s")
            graded = self._send(rate, own.duration_s, step)
            self._keeps_up = graded.result.kept_up
            yield graded

    def _iter_rates(self) -> Iterator[float]:
        """Yield the rates of the settings, then, until the service cannot keep up, each twice the one before."""
        yield from self._own.rates
        rate = self._own.rates[-1]
        for _ in range(MOST_DOUBLINGS if self._own.saturate else 0):
            if not self._keeps_up:
                return
            rate *= 2
            yield rate

    def _send(self, rate: float, duration_s: float, step: int) -> GradedRate:
        own, service = self._own, self._target.service
        planned = plan_requests(rate, duration_s, own.arrivals, self._shares, (own.seed, step))
        schedule = planned.cut(own.max_requests - self.sent)
        traffic = OpenLoop(schedule, service, own.timeout_s, own.max_failed, self._end).run()
        self.sent += int(np.count_nonzero(~np.isnan(traffic.sent)))
        if not traffic.stopped and len(schedule) < len(planned):
            traffic.stopped = "load.max_requests"
        self.stopped = traffic.stopped
        return measure_rate(rate, traffic, self._target.read, self._grader, own.timeout_s)
