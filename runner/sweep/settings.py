"""The settings of a sweep: the `sweep` node of `conf/evaluate.yaml`. They do not affect the result of a combination."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator
from pydantic.dataclasses import dataclass as settings

from retrievers.extras import check_installed
from runner.comparison.constraints import Constraint
from runner.config.addresses import LocalPath

Backend = Literal["sequential", "loky", "dask", "ray", "slurm"]

_EXTRAS = {"dask": "distributed", "ray": "ray", "slurm": "submitit"}
"""The module that each optional backend needs; the extra has the name of the backend."""


def _as_list(value: Any) -> Any:  # noqa: ANN401 (any YAML value)
    """Return a single value, a list, or a mapping from names (null removes a name) as a list."""
    if isinstance(value, Mapping):
        return [element for element in value.values() if element is not None]
    return [] if value is None else [value] if isinstance(value, str) else value


def _products(value: Any) -> Any:  # noqa: ANN401 (any YAML value)
    """Return products as one list; a name may have several."""
    if not isinstance(listed := _as_list(value), list):
        return listed
    return [product for element in listed for product in (element if isinstance(element, list) else [element])]


def _groups(value: Any) -> Any:  # noqa: ANN401 (any YAML value)
    """Return groups of keys as a list of lists; a single group may be given as a list of keys."""
    if not isinstance(listed := _as_list(value), list):
        return listed
    return [listed] if listed and all(isinstance(key, str) for key in listed) else listed


def _conditions(value: Any) -> Any:  # noqa: ANN401 (any YAML value)
    if isinstance(value, Mapping):
        return {key: condition for key, condition in value.items() if condition is not None}
    return {} if value is None else value


def _constraints(value: Any) -> Any:  # noqa: ANN401 (any YAML value)
    """Return constraints, given as texts."""
    return [Constraint.parse(str(text)) for text in _as_list(value)]


def _as_mapping(value: Any) -> Any:  # noqa: ANN401 (any YAML value)
    return {} if value is None else value


@settings(frozen=True, config={"extra": "forbid"})
class Space:
    """The settings that shape the combinations of a sweep, in addition to its axes: see `conf/evaluate.yaml`.

    `union` lists several products, `zip` the keys of axes that vary together, and `when` the condition under which an
    axis applies, by its key. A combination is dropped if an `exclude` condition is true for it, or if there are
    `include` conditions and none is true for it. Each of these except `when` is a list, or a mapping from names, to
    which presets can add. `sample` draws this many combinations with `seed`. It is an error if a sweep has more than
    `max_combinations` before exclusion.
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
    """Settings of a sweep: its combinations (the space), where they are computed, and how failures are handled.

    `workers` null means one per processor, all workers of a cluster, or 16 SLURM jobs; a SLURM job evaluates `per_job`
    combinations and has the parameters `slurm`. `retries` is the number of further attempts after a worker dies.
    `timeout_s` and `memory_mb` limit each combination. `resamples` of the queries give the intervals of
    `select_on=kfold`. The winner must meet the `constraints`. With `reports`, each run has the report of a single
    evaluation, which takes longer than most evaluations. With `race`, queries are searched in blocks of `race_block`,
    and combinations that are surely not the best (in a search: of the trials so far) are dropped, with `race_margin`
    also those that are surely not better by more than the margin than one that stays.
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
    slurm: Annotated[dict[str, Any], BeforeValidator(_as_mapping)] = Field(default_factory=dict)
    per_job: int = Field(default=1, ge=1)
    select_on: str | None = None
    constraints: Annotated[tuple[Constraint, ...], BeforeValidator(_constraints)] = ()
    resamples: int = Field(default=2000, ge=1)
    reports: bool = False
    race: bool = False
    race_block: int = Field(default=20, ge=1)
    race_margin: float = Field(default=0.0, ge=0, lt=1)

    @field_validator("backend")
    @classmethod
    def _check_installed(cls, backend: Backend) -> Backend:
        if backend in _EXTRAS:
            check_installed(_EXTRAS[backend], backend, backend)
        return backend

    @model_validator(mode="after")
    def _fits_together(self) -> SweepSettings:
        if self.race and self.backend == "slurm":
            raise ValueError(
                "race decides after each block of queries, and with backend=slurm each block would wait in the queue; "
                "remove race, or set backend=loky, dask or ray"
            )
        if self.constraints and self.select_on is None:
            raise ValueError("constraints apply to the winner that select_on selects; set select_on to a split")
        if self.race and self.select_on == "kfold":
            raise ValueError(
                "race drops combinations by all queries, but select_on=kfold selects a winner for each fold without "
                "the queries of that fold; remove race, or select on a split"
            )
        if self.backend == "sequential":
            for name in ("workers", "timeout_s", "memory_mb", "address"):
                if getattr(self, name) is not None:
                    raise ValueError(f"{name} needs worker processes; add sweep.backend=loky (or dask, ray, slurm)")
        if self.backend == "loky" and self.address is not None:
            raise ValueError("address names a cluster, but loky runs on this machine; set sweep.backend=dask or ray")
        if self.backend == "slurm" and self.address not in (None, "local"):
            raise ValueError(
                f"address={self.address}: SLURM has no address; remove it, or set address=local to try the sweep on "
                "this machine"
            )
        if self.backend != "slurm" and (self.slurm or self.per_job != 1):
            raise ValueError("slurm and per_job apply only to SLURM jobs; add sweep.backend=slurm")
        return self
