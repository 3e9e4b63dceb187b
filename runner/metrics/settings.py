"""What is measured, how deep, and how sure: the settings that `conf/metrics/` holds.

Knows nothing of how measures are computed.
"""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator
from pydantic.dataclasses import dataclass as settings

from runner.metrics.formulas import FORMULAS
from runner.metrics.measures import Measure, add_depth, expand, parse

Test = Literal["permutation", "t", "wilcoxon", "bootstrap"]
"""A paired test of the differences between two systems, query by query."""

Correction = Literal["maxt", "holm", "bh", "tukey", "none"]
"""How p-values are corrected for their number: step-down max-T, Holm, Benjamini and Hochberg, randomised Tukey HSD, or
not at all."""


@settings(frozen=True, kw_only=True, config={"extra": "forbid"})
class MetricSettings:
    """The measures and cutoffs, the depth of the search, thresholds for no-result queries, and the statistics.

    A measure of the whole ranking carries the depth in its name where that is below 1,000: `AP` is then `AP@100`.
    `test` and `correction` compare results and make none, so that they are no part of a setting's identity. `k_values`
    and `thresholds` are kept ascending, each once. Raises if a measure is unknown or looks below `depth`.
    """

    measures: tuple[str, ...] = tuple(FORMULAS)
    k_values: tuple[Annotated[int, Field(ge=1)], ...] = (1, 3, 5, 10, 100)
    primary: str = "nDCG@10"
    depth: int = Field(default=100, ge=1)
    thresholds: tuple[Annotated[float, Field(ge=-3e38, le=3e38)], ...] = ()  # scores have 32 bits
    confidence: float = Field(default=0.95, gt=0, lt=1)
    alpha: float = Field(default=0.05, gt=0, lt=1)
    test: Test = Field(default="permutation", repr=False)
    correction: Correction = Field(default="maxt", repr=False)
    resamples: int = Field(default=2000, ge=1)
    permutations: int = Field(default=10000, ge=1)
    seed: int = Field(default=0, ge=0)

    @field_validator("k_values", "thresholds")
    @classmethod
    def _ascending(cls, values: tuple[float, ...]) -> tuple[float, ...]:
        return tuple(sorted(set(values)))

    @model_validator(mode="after")
    def _deep_enough(self) -> Self:
        deepest = max(self.expanded, key=lambda measure: measure.cutoff or 0)
        if deepest.cutoff and deepest.cutoff > self.depth:
            raise ValueError(
                f"{deepest} looks deeper than depth={self.depth}: set depth to at least {deepest.cutoff}, "
                "or take the cutoff out of k_values and measures"
            )
        return self

    @cached_property
    def expanded(self) -> tuple[Measure, ...]:
        """Return the measures with their cutoffs; the primary one is the last where the others do not have it."""
        wanted = (add_depth(measure, self.depth) for measure in expand(self.measures, self.k_values))
        return tuple(dict.fromkeys((*wanted, self.primary_measure)))

    @cached_property
    def primary_measure(self) -> Measure:
        """Return the measure that ranks systems, with the depth in its name as in `expanded`."""
        return add_depth(parse(self.primary), self.depth)
