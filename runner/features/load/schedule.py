"""Plans when requests are sent and which queries they have, before any request is sent and whatever the answers are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from runner.config.objects import ConfigError
from runner.datasets.base import Queries

Arrivals = Literal["poisson", "constant"]


@dataclass(frozen=True, eq=False)
class Schedule:
    """The requests of a rate: when each is due, in rising seconds from the start, and its query by position."""

    due: NDArray[np.float64]
    queries: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.due)

    def cut(self, n: int) -> Schedule:
        """Return the first n requests."""
        return Schedule(self.due[:n], self.queries[:n])


def plan_requests(
    rate: float, duration_s: float, arrivals: Arrivals, shares: NDArray[np.float64], seed: Sequence[int]
) -> Schedule:
    """Return the requests of a rate (per second); `shares` are the probabilities of the queries.

    Queries are in random order. Times between arrivals are exponential (a Poisson process, as of many independent
    users) or constant.
    """
    rng = np.random.default_rng(seed)
    if arrivals == "constant":
        due = np.arange(max(round(rate * duration_s), 1)) / rate
    else:  # given their number, the arrivals of a Poisson process are uniformly distributed
        due = np.sort(rng.uniform(0, duration_s, rng.poisson(rate * duration_s)))
    places = (np.arange(len(due)) + rng.uniform()) / max(len(due), 1)  # each query as often as its share, up to one
    queries = np.searchsorted(np.cumsum(shares)[:-1], places, side="right")
    return Schedule(due, rng.permutation(queries))


def measure_shares(queries: Queries, field: str | None) -> NDArray[np.float64]:
    """Return the share of each query in the traffic, by the counts in a field of the queries; None: all alike."""
    if field is None:
        return np.full(len(queries), 1 / len(queries))
    rows = queries.metadata or [{}] * len(queries)
    try:
        counts = np.array([float(row[field]) for row in rows])
    except (KeyError, TypeError, ValueError):
        raise ConfigError(
            f"load.frequency={field}: not a field with a number in every query of the dataset; set null to send all "
            "queries equally often"
        ) from None
    if not (np.isfinite(counts).all() and (counts >= 0).all() and counts.any()):
        raise ConfigError(f"load.frequency={field}: the counts should be numbers of at least 0, and not all 0")
    return np.asarray(counts / counts.sum())
