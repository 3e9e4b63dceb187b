"""The settings of the command that reads traces."""

from __future__ import annotations

from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from runner.config.addresses import LocalPath
from runner.statistics.settings import Statistics


@settings(frozen=True, config={"extra": "forbid"})
class TraceSettings:
    """The settings of the command: see `conf/traces.yaml`."""

    path: LocalPath | None = None
    file: LocalPath | None = None
    tasks: LocalPath | None = None
    output: LocalPath | None = None
    tools: LocalPath | None = None
    shell: bool = True
    sufficient_files: bool = False
    baseline: str | None = None
    timelines: int = Field(default=40, ge=0)
    workers: int | None = Field(default=None, ge=1)
    resume: bool = True
    log: bool = True
    statistics: Statistics = Statistics()
