"""What can be said of a sweep as a whole: the `sweep` node of `conf/evaluate.yaml`. It decides no result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator
from pydantic.dataclasses import dataclass as settings

from retrievers.extras import check_installed
from runner.config.addresses import LocalPath

Backend = Literal["sequential", "loky", "dask", "ray"]

_EXTRAS = {"dask": "distributed", "ray": "ray"}
"""The module that each extra for a cluster brings."""


def _as_list(value: Any) -> Any:  # noqa: ANN401 (any YAML value)
    """Return what is given by itself, as a list, or by name (null takes a name back) as a list."""
    if isinstance(value, Mapping):
        return [element for element in value.values() if element is not None]
    return [] if value is None else [value] if isinstance(value, str) else value


def _products(value: Any) -> Any:  # noqa: ANN401 (any YAML value)
    """Return products as one list, also where a name stands for several."""
    if not isinstance(listed := _as_list(value), list):
        return listed
    return [product for element in listed for product in (element if isinstance(element, list) else [element])]


def _groups(value: Any) -> Any:  # noqa: ANN401 (any YAML value)
    """Return groups of keys as a list of lists, also where there is but one."""
    if not isinstance(listed := _as_list(value), list):
        return listed
    return [listed] if listed and all(isinstance(key, str) for key in listed) else listed


def _conditions(value: Any) -> Any:  # noqa: ANN401 (any YAML value)
    if isinstance(value, Mapping):
        return {key: condition for key, condition in value.items() if condition is not None}
    return {} if value is None else value


@settings(frozen=True, config={"extra": "forbid"})
class Space:
    """Which combinations a sweep has, besides the product of the axes on its command line: see `conf/evaluate.yaml`.

    `union` are products side by side, `zip` keys of axes that move together, `when` the condition under which an axis
    applies, by its key. What an `exclude` is true for is dropped; where there are `include`s, so is what none is true
    for. Each but `when` is a list or a mapping from names, to which presets add. `sample` takes so many combinations,
    drawn with `seed`. A sweep of more than `max_combinations`, before any is excluded, is refused.
    """

    union: Annotated[list[dict[str, Any]], BeforeValidator(_products)] = Field(default_factory=list)
    zip: Annotated[list[list[str]], BeforeValidator(_groups)] = Field(default_factory=list)
    when: Annotated[dict[str, str], BeforeValidator(_conditions)] = Field(default_factory=dict)
    include: Annotated[list[str], BeforeValidator(_as_list)] = Field(default_factory=list)
    exclude: Annotated[list[str], BeforeValidator(_as_list)] = Field(default_factory=list)
    sample: int | None = Field(default=None, ge=1)
    seed: int = 0
    max_combinations: int = Field(default=10_000, ge=1)


@settings(frozen=True, config={"extra": "forbid"})
class SweepSettings(Space):
    """Settings of a sweep: which combinations (the space), who computes them, and what becomes of those that fail.

    `workers` null is one for each processor, or all that a cluster has. `retries` is how often a combination is tried
    again whose worker died. `timeout_s` and `memory_mb` end a combination that takes more. With `reports`, each run has
    the report of a single evaluation, which takes longer than most evaluations do.
    """

    name: str | None = None
    output: LocalPath | None = None
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
    reports: bool = False

    @field_validator("backend")
    @classmethod
    def _check_installed(cls, backend: Backend) -> Backend:
        if backend in _EXTRAS:
            check_installed(_EXTRAS[backend], backend, backend)
        return backend

    @model_validator(mode="after")
    def _fits_together(self) -> SweepSettings:
        if self.backend == "sequential":
            for name in ("workers", "timeout_s", "memory_mb", "address"):
                if getattr(self, name) is not None:
                    raise ValueError(f"{name} is about worker processes: add sweep.backend=loky (or dask, ray)")
        if self.backend == "loky" and self.address is not None:
            raise ValueError("address is of a cluster: sweep.backend=dask or ray; loky's workers are on this machine")
        return self
