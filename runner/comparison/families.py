"""Which tests form a family, that is, are corrected together: the one definition behind every table of measures.

The primary measure was chosen beforehand, so its tests are corrected for the systems that are compared, but not for
measures that nobody asked about. If the systems were chosen by their scores among others, as on a leaderboard, it is
corrected for all pairs of these, as there. Measures of the rules of a gate were chosen beforehand, too, and form a
family of their own. All other measures are exploratory, and corrected among themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from runner.evaluation.result import Result
from runner.statistics.clusters import Clusters
from runner.statistics.comparison import Difference, compare, compare_pairs, compare_to
from runner.statistics.corrections import CORRECTIONS
from runner.statistics.paired_tests import PAIRED_TESTS
from runner.statistics.settings import Statistics
from runner.statistics.significance import Floats

Family = Literal["primary", "gate", "exploratory"]
"""Why a measure is tested: it is the primary one, a rule of the gate names it, or neither."""


def find_family(measure: str, primary: str, rules: Sequence[str]) -> Family:
    """Return the family that the tests of a measure belong to; `rules` are the measures of a gate."""
    if measure == primary:
        return "primary"
    return "gate" if measure in rules else "exploratory"


def compare_measures(
    differences: Floats, families: Sequence[Family], statistics: Statistics, clusters: Clusters | None
) -> list[list[Difference]]:
    """Test differences (measures x systems x queries), corrected by family; return them by measure and system."""
    tested: list[list[Difference]] = [[] for _ in families]
    for some in _iter_positions(families):
        rows = compare(differences[some].reshape(-1, differences.shape[2]), statistics, clusters)
        systems = differences.shape[1]
        for place, measure in enumerate(some):
            tested[measure] = [rows.describe(place * systems + system) for system in range(systems)]
    return tested


def find_choice_correction(rivals: Sequence[Result], statistics: Statistics) -> str:
    """Return the correction for all pairs of systems: that of the leaderboard of the rivals, which they recorded."""
    recorded = (rivals[0].config.get("statistics") or {}).get("correction")
    known = CORRECTIONS.get(str(recorded), CORRECTIONS[Statistics().correction])
    return known.for_family(PAIRED_TESTS[statistics.test]).name


def correct_for_choice(
    tested: Sequence[Difference], scores: Floats, statistics: Statistics, correction: str, clusters: Clusters | None
) -> list[Difference]:
    """Return the differences of systems from a baseline, corrected for all pairs of the systems they were chosen among.

    Their intervals, p-values and numbers of queries needed become those of a leaderboard of all these systems. The rows
    of `scores` are the baseline, the tested systems, and the others; `correction` is for all their pairs.
    """
    fields = {name: getattr(statistics, name) for name in ("test", "confidence", "alpha", "permutations", "seed")}
    pairs = compare_pairs(scores, Statistics(**fields, correction=correction), clusters)
    rows = compare_to(0, scores, pairs, clusters)
    corrected = [rows.describe(row) for row in range(1, len(tested) + 1)]
    of_choice = ("low", "high", "corrected", "significant", "needed")
    return [
        replace(own, **{name: getattr(other, name) for name in of_choice})
        for own, other in zip(tested, corrected, strict=True)
    ]


def _iter_positions(families: Sequence[Family]) -> Iterator[list[int]]:
    """Yield the positions of the measures of each family."""
    for family in dict.fromkeys(families):
        yield np.flatnonzero(np.array(families) == family).tolist()
