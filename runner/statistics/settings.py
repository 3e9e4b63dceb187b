"""How differences between systems are tested, independent of the measure."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.choices import OneOf
from runner.statistics.corrections import CORRECTIONS
from runner.statistics.paired_tests import PAIRED_TESTS

Test = Annotated[str, OneOf({name: f"p by {test.description}" for name, test in PAIRED_TESTS.items()})]
"""A paired test of the per-query differences between two systems."""

CorrectionName = Annotated[str, OneOf({name: f"with {own.description}" for name, own in CORRECTIONS.items()})]
"""A correction of p-values for the number of tests."""

TableCorrection = Annotated[
    str,
    OneOf({name: f"with {own.description}" for name, own in CORRECTIONS.items() if not own.needs_all_pairs}),
]
"""A correction that does not need all pairs of systems."""


@settings(frozen=True, kw_only=True, config={"extra": "forbid"})
class Statistics:
    """The test of a difference, its correction, and the confidence of intervals.

    A difference whose corrected p-value is below `alpha` counts as significant. Only `confidence` is part of a result,
    which has intervals of its means; the other settings compare results, so they are not part of its identity.
    """

    test: Test = Field(default="permutation", repr=False)
    correction: CorrectionName = Field(default="maxt", repr=False)
    confidence: float = Field(default=0.95, gt=0, lt=1)
    alpha: float = Field(default=0.05, gt=0, lt=1, repr=False)
    permutations: int = Field(default=10000, ge=1, repr=False)
    seed: int = Field(default=0, ge=0, repr=False)
