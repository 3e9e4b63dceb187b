"""The spread of scores over queries to assume where none were measured.

These are the largest of the medians over five collections that `benchmarks.simulations.score_spread` prints, so they
are conservative for most datasets.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class TypicalSpread(NamedTuple):
    """How much the scores of a measure vary over queries.

    `differences` is the standard deviation of the differences between two systems, `share` that of the scores of one
    system as a share of the largest that scores from 0 to 1 with its mean can have.
    """

    differences: float
    share: float


TYPICAL_SPREADS: Mapping[str, TypicalSpread] = {
    "nDCG": TypicalSpread(0.26, 0.83),
    "RR": TypicalSpread(0.35, 0.87),
    "AP": TypicalSpread(0.27, 0.86),
    "R": TypicalSpread(0.40, 1.0),
    "P": TypicalSpread(0.08, 0.45),
    "Success": TypicalSpread(0.45, 1.0),
}
"""By the name of a measure, without its cutoff."""


def assume_spread(measure: str) -> TypicalSpread:
    """Return the spread to assume for a measure by its name without a cutoff: for one not listed, the largest."""
    return TYPICAL_SPREADS.get(measure) or TypicalSpread(*map(max, zip(*TYPICAL_SPREADS.values(), strict=True)))
