"""The names of significance tests and corrections in reports."""

from __future__ import annotations

from runner.analysis.paired_tests import PAIRED_TESTS
from runner.metrics.statistics import Correction, Statistics, Test

CORRECTIONS = {
    "maxt": ("max-T over all pairs", "the step-down max-T correction", "max-T p"),
    "holm": ("Holm", "Holm's correction", "Holm p"),
    "bh": ("Benjamini-Hochberg", "Benjamini and Hochberg's correction", "BH p"),
    "tukey": ("randomised Tukey HSD", "randomised Tukey HSD", "Tukey p"),
    "none": ("uncorrected", "no correction", "p"),
}
"""The name of each correction beside a p-value, in a sentence on paired differences, and as the title of a column."""


def in_brief(test: Test, correction: Correction) -> str:
    """Return the correction of a p-value, after the test unless it is the default.

    Tukey's is a test and a correction in one.
    """
    other = correction != "tukey" and test != Statistics().test
    return f"{PAIRED_TESTS[test].label}, {CORRECTIONS[correction][0]}" if other else CORRECTIONS[correction][0]


def p_title(correction: Correction) -> str:
    """Return the title of a column that has only the corrected p-values."""
    return CORRECTIONS[correction][2]


def in_words(test: Test, correction: Correction) -> str:
    """Return the test and the correction of paired differences in words."""
    return f"p by {PAIRED_TESTS[test].description}, with {CORRECTIONS[correction][1]}"
