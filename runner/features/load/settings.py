"""The settings of a load test: the node `load` of `conf/load.yaml`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.extras import check_installed
from runner.features.load.schedule import Arrivals

Rate = Annotated[float, Field(gt=0, le=100_000)]


@settings(frozen=True, config={"extra": "forbid"})
class LoadSettings:
    """What is sent to a service, and the limits: see `conf/load.yaml`.

    `max_requests` and `max_seconds` are limits of the whole test, with its warm-up. The test stops when more than
    `max_failed` of the finished requests of a rate failed or timed out. `saturate` adds rates, each twice the one
    before, until the service cannot keep up.
    """

    rates: Annotated[Sequence[Rate], Field(min_length=1)] = (5.0, 10.0, 20.0)
    duration_s: float = Field(default=30.0, gt=0)
    warmup_s: float = Field(default=5.0, ge=0)
    arrivals: Arrivals = "poisson"
    frequency: str | None = None
    top_k: int = Field(default=10, ge=1, le=1000)
    timeout_s: float = Field(default=10.0, gt=0, le=600)
    saturate: bool = False
    max_requests: int = Field(default=100_000, ge=1)
    max_seconds: float = Field(default=600.0, gt=0)
    max_failed: float = Field(default=0.5, ge=0, le=1)
    consent: str | None = None
    connections: int = Field(default=256, ge=1, le=10_000)
    processes: int = Field(default=1, ge=1, le=64)
    threads: int = Field(default=1, ge=1, le=64)
    seed: int = Field(default=0, ge=0)

    def __post_init__(self) -> None:
        check_installed("hdrh", "hdrhistogram", "load")
