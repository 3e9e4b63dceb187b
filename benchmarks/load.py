"""Measure the load generator: percentiles against a queue that is known exactly, saturation, and its processor time.

The server is a stand-in with known service times on the same machine. The percentiles that it must have follow from the
arrivals and the service times by Lindley's recursion. Measure while the machine has nothing else to do, or
with a priority that other work cannot take (`chrt --rr 1`).
"""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager

import httpx
import numpy as np
from numpy.typing import NDArray

from benchmarks.measure import Figure
from benchmarks.stand_in.queue import MEAN_S, STALL_S, draw_times
from retrievers.services.connection import load_certificates
from runner.features.load.generator import ANSWERED, LoadTraffic, OpenLoop
from runner.features.load.http_service import HttpService, ServerAddress
from runner.features.load.schedule import Schedule, plan_requests

RATES = tuple(step * 0.08 / MEAN_S for step in range(1, 11))
"""Ten rates, from 8 to 80 % of what the server can answer."""

PERCENTILES = (50, 95, 99)
SECONDS = 12.0

ERROR = 5.0
"""The bar of an error, in percent."""

CORE = 10.0
"""The bar of the generator's processor time, in percent of a core at 1,000 requests per second."""


def load_percentiles() -> list[Figure]:
    """Return the largest error of a percentile at ten rates, for three kinds of service times."""
    return [
        Figure(f"load, {kind}: largest error of p50, p95, p99 at ten rates", "%", _find_error(kind), ERROR, 1)
        for kind in ("exponential", "bimodal", "stall")
    ]


def load_saturation() -> list[Figure]:
    """Return the error of the saturation of a service that gets twice the requests it can answer."""
    figures = []
    for kind in ("exponential", "bimodal"):
        schedule = _plan(2 / MEAN_S, 2 * SECONDS)
        traffic = _send(schedule, kind)
        done = np.sort(traffic.finished[traffic.finished <= schedule.due[-1]])
        exact = len(done) / draw_times(kind, len(schedule))[: len(done)].sum()
        error = abs(len(done) / float(done[-1]) / float(exact) - 1) * 100
        figures.append(Figure(f"load, {kind}: error of the saturation", "%", error, ERROR, 1))
    return figures


def load_processor() -> list[Figure]:
    """Return the processor time of the generator at 1,000 requests per second, and how late it sends."""
    traffic = _send(_plan(1000, SECONDS), "none")
    late = float(np.percentile(traffic.reached - traffic.schedule.due, 99)) * 1000
    return [
        Figure("load, 1,000 requests/s: processor time", "% of a core", 100 * traffic.cpu_s / traffic.seconds, CORE, 1),
        Figure("load, 1,000 requests/s: requests sent late, p99", "ms", late, 5.0, 1),
    ]


def _find_error(kind: str) -> float:
    """Return the largest relative error of a percentile, in percent."""
    errors = []
    for rate in RATES:
        schedule = _plan(rate, SECONDS)
        traffic = _send(schedule, kind)
        exact = simulate_queue(schedule.due, draw_times(kind, len(schedule)))
        measured, known = (np.percentile(values, PERCENTILES) for values in (traffic.latencies, exact))
        errors.append(float(np.abs(measured / known - 1).max()) * 100)
    return max(errors)


def simulate_queue(due: NDArray[np.float64], times: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the latency of each request to a single server (Lindley 1952)."""
    latencies, wait, before = [], 0.0, 0.0
    for at, taken in zip(due.tolist(), times.tolist(), strict=True):
        wait = max(wait - (at - before), 0.0) + taken
        latencies.append(wait)
        before = at
    return np.array(latencies)


def _plan(rate: float, seconds: float) -> Schedule:
    return plan_requests(rate, seconds, "poisson", np.ones(1), (0, 1))


def _send(schedule: Schedule, kind: str) -> LoadTraffic:
    """Send the requests of a schedule to a stand-in; all must be answered."""
    with _serve(kind, len(schedule)) as url:
        request = httpx.Request("POST", f"{url}/search", json={"query": "of some words", "top_k": 10})
        with closing(HttpService([ServerAddress(httpx.URL(url), [request], load_certificates())], 4096)) as service:
            traffic = OpenLoop(schedule, service, 10 * STALL_S + SECONDS, 1.0, math.inf).run()
    if (traffic.states != ANSWERED).any():
        raise RuntimeError(f"{kind}: not every request was answered")
    return traffic


@contextmanager
def _serve(kind: str, count: int) -> Iterator[str]:
    command = [sys.executable, "-m", "benchmarks.stand_in.queue", kind, str(count)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.communicate()


LOAD = (load_percentiles, load_saturation, load_processor)
