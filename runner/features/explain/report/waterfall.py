"""The waterfall plot of an explanation: from the baseline's mean, effect by effect, to the candidate's mean."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from runner.features.explain.terms import Explanation

MARGIN = 0.04
"""The empty share of the plot at each side."""


@dataclass(frozen=True)
class WaterfallBar:
    """A row of the plot: the mean `end` of a result, or an effect from `start` to `end` with its interval, if known."""

    name: str
    end: float
    start: float | None = None
    interval: tuple[float, float] | None = None

    @property
    def is_mean(self) -> bool:
        """Return whether the row shows the mean of a result."""
        return self.start is None


@dataclass(frozen=True)
class Waterfall:
    """The rows of the plot, from the baseline to the candidate."""

    bars: Sequence[WaterfallBar]

    def place(self, value: float) -> float:
        """Return where a value is, in percent of the width."""
        values = [end for bar in self.bars for end in (bar.end, *(bar.interval or ()))]
        low, high = min(values), max(values)
        share = (value - low) / (high - low) if high > low else 0.5
        return 100 * (MARGIN + (1 - 2 * MARGIN) * share)


def build_waterfall(explanation: Explanation, measure: str) -> Waterfall | None:
    """Return the plot of a measure, without causes that did not change; None if a mean or an effect is unknown.

    The interval of an effect is drawn from where its bar starts.
    """
    (baseline, candidate), (before, after) = explanation.labels, explanation.compute_means(measure)
    terms = [term for term in explanation.list_terms(measure) if term.changed]
    if not all(map(math.isfinite, (before, after, *(term.effect for term in terms)))):
        return None
    bars, level = [WaterfallBar(baseline, before)], before
    for term in terms:
        ends = (level + term.difference.low, level + term.difference.high)
        interval = ends if all(map(math.isfinite, ends)) else None
        bars.append(WaterfallBar(term.name, level + term.effect, level, interval))
        level += term.effect
    return Waterfall([*bars, WaterfallBar(candidate, after)])
