"""What can be said of a sweep as a whole: the `sweep` node of `conf/evaluate.yaml`. It decides no result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, model_validator
from pydantic.dataclasses import dataclass as settings

from runner.config.objects import build
from runner.sweep.axes import Space

Backend = Literal["sequential", "loky", "dask", "ray"]


@settings(frozen=True, config={"extra": "forbid"})
class SweepSettings(Space):
    """Settings of a sweep: which combinations (the space), who computes them, and what becomes of those that fail.

    `workers` null is one for each processor, or all that a cluster has. `retries` is how often a combination is tried
    again whose worker died. `timeout_s` and `memory_mb` end a combination that takes more.
    """

    name: str | None = None
    output: str | None = None
    resume: bool = True
    dry_run: bool = False
    fail_fast: bool = False
    retries: int = Field(default=1, ge=0)
    timeout_s: float | None = Field(default=None, gt=0)
    memory_mb: float | None = Field(default=None, gt=0)
    backend: Backend = "sequential"
    workers: int | None = Field(default=None, ge=1)
    address: str | None = None
    select_on: str | None = None

    @model_validator(mode="after")
    def _fits_together(self) -> SweepSettings:
        if self.backend == "sequential":
            for name in ("workers", "timeout_s", "memory_mb", "address"):
                if getattr(self, name) is not None:
                    raise ValueError(f"{name} is about worker processes: add sweep.backend=loky (or dask, ray)")
        if self.backend == "loky" and self.address is not None:
            raise ValueError("address is of a cluster: sweep.backend=dask or ray; loky's workers are on this machine")
        return self


def settings_of(node: Mapping[str, Any] | None) -> SweepSettings:
    """Return a config's settings of a sweep; raises `ConfigError`."""
    made: SweepSettings = build({**(node or {}), "_target_": f"{__name__}.SweepSettings"}, "sweep")
    return made
