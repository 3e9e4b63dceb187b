"""What tests of significance and their corrections are called, for whoever tells of p-values.

Knows nothing of how they are computed, nor of what is tested.
"""

from __future__ import annotations

from runner.analysis.paired_tests import PAIRED_TESTS
from runner.metrics.statistics import Correction, Test

CORRECTIONS = {
    "maxt": ("max-T over all pairs", "the step-down max-T correction"),
    "holm": ("Holm", "Holm's correction"),
    "bh": ("Benjamini-Hochberg", "Benjamini and Hochberg's correction"),
    "tukey": ("randomised Tukey HSD", "randomised Tukey HSD"),
    "none": ("uncorrected", "no correction"),
}
"""What each is called beside a p-value, and in a sentence on paired differences."""


def in_brief(test: Test, correction: Correction) -> str:
    """Name the correction behind a p-value, and the test unless it is that by permutation.

    Tukey's and max-T are both.
    """
    other = correction not in ("tukey", "maxt") and test != "permutation"
    return f"{PAIRED_TESTS[test].label}, {CORRECTIONS[correction][0]}" if other else CORRECTIONS[correction][0]


def in_words(test: Test, correction: Correction) -> str:
    """Return by which test, and with which correction, paired differences have their p-values."""
    return f"p by {PAIRED_TESTS[test].description}, with {CORRECTIONS[correction][1]}"
