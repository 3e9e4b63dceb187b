"""The settings of the command that watches traffic."""

from __future__ import annotations

from datetime import date

from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from runner.config.addresses import LocalPath

HOUR_NS = 3_600_000_000_000


@settings(frozen=True, config={"extra": "forbid"})
class Monitoring:
    """How traffic is cut into windows, and which falls raise an alarm: see `conf/monitor.yaml`."""

    name: str = Field(default="production", min_length=1)
    window: str = Field(default="7d", pattern=r"^[1-9]\d*[hd]$")
    drop: float = Field(default=0.05, gt=0, le=1)
    run_length: int = Field(default=70, ge=2)
    baseline: int = Field(default=8, ge=2)
    since: date | None = None
    slices: tuple[str, ...] = ()
    least: int = Field(default=30, ge=2)
    release: str = "service.version"

    @property
    def window_ns(self) -> int:
        """Return the length of a window in nanoseconds."""
        return int(self.window[:-1]) * HOUR_NS * (24 if self.window.endswith("d") else 1)


@settings(frozen=True, config={"extra": "forbid", "coerce_numbers_to_str": True})
class MonitorSettings:
    """How traffic is watched, and the page to write: see `conf/monitor.yaml`."""

    monitor: Monitoring
    people: LocalPath | None = None
    baselines: LocalPath = "baselines"
    output: LocalPath | None = None
    log: bool = True
