"""The settings of `conf/metrics/`: measures, cutoffs, search depth and thresholds."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Annotated, ClassVar, Self

from pydantic import Field, field_validator, model_validator
from pydantic.dataclasses import dataclass as settings

from retrievers.access import Access
from runner.metrics.formulas import FORMULAS
from runner.metrics.measures import TOKEN_MEASURES, Measure, add_depth, expand, parse_primary

RESULTS_VERSION = "metrics 3"


@settings(frozen=True, kw_only=True, config={"extra": "forbid"})
class MetricSettings:
    """The measures and cutoffs, the depth of the search, and thresholds for no-result queries.

    A measure of the whole ranking carries the depth in its name if that is below 1,000: `AP` is then `AP@100`.
    `token_budgets` are the numbers of words at which measures of tokens are cut. `k_values`, `token_budgets` and
    `thresholds` are stored in ascending order without duplicates. Raises if a measure is unknown or has a cutoff beyond
    `depth`.
    """

    access: ClassVar[Access] = Access()

    measures: tuple[str, ...] = tuple(name for name in FORMULAS if name not in TOKEN_MEASURES)
    k_values: tuple[Annotated[int, Field(ge=1)], ...] = (1, 3, 5, 10, 100)
    token_budgets: tuple[Annotated[int, Field(ge=1)], ...] = (256, 1024)
    primary: str = "nDCG@10"
    depth: int = Field(default=100, ge=1)
    thresholds: tuple[Annotated[float, Field(ge=-3e38, le=3e38)], ...] = ()  # scores have 32 bits

    @field_validator("k_values", "token_budgets", "thresholds")
    @classmethod
    def _ascending(cls, values: tuple[float, ...]) -> tuple[float, ...]:
        return tuple(sorted(set(values)))

    @model_validator(mode="after")
    def _deep_enough(self) -> Self:
        by_rank = [measure for measure in self.expanded if not measure.in_tokens]
        deepest = max(by_rank, key=lambda measure: measure.cutoff or 0, default=self.primary_measure)
        if deepest.cutoff and not deepest.in_tokens and deepest.cutoff > self.depth:
            raise ValueError(
                f"{deepest} needs a depth of at least {deepest.cutoff}, but depth={self.depth}; raise depth, or "
                "remove the cutoff from k_values and measures"
            )
        return self

    @cached_property
    def expanded(self) -> tuple[Measure, ...]:
        """Return the measures with their cutoffs; the primary one comes last unless it is among the others."""
        wanted = (
            add_depth(measure, self.depth) for measure in expand(self.measures, self.k_values, self.token_budgets)
        )
        return tuple(dict.fromkeys((*wanted, self.primary_measure)))

    def add_token_measures(self) -> Self:
        """Return the settings with all measures of tokens, for a dataset whose gold is spans."""
        return replace(self, measures=(*self.measures, *TOKEN_MEASURES))

    @cached_property
    def primary_measure(self) -> Measure:
        """Return the measure that ranks systems, with the depth as its cutoff as in `expanded`."""
        return add_depth(parse_primary(self.primary), self.depth)
