"""The names of significance tests and corrections in reports."""

from __future__ import annotations

from runner.statistics.corrections import CORRECTIONS
from runner.statistics.paired_tests import PAIRED_TESTS
from runner.statistics.settings import CorrectionName, Statistics, Test


def in_brief(test: Test, correction: CorrectionName) -> str:
    """Return the correction of a p-value, after the test unless it is the default.

    Tukey's is a test and a correction in one.
    """
    label, is_own_test = CORRECTIONS[correction].label, CORRECTIONS[correction].is_own_test
    return label if is_own_test or test == Statistics().test else f"{PAIRED_TESTS[test].label}, {label}"


def p_title(correction: CorrectionName) -> str:
    """Return the title of a column that has only the corrected p-values."""
    return CORRECTIONS[correction].title


def in_words(test: Test, correction: CorrectionName) -> str:
    """Return the test and the correction of paired differences in words."""
    return f"p by {PAIRED_TESTS[test].description}, with {CORRECTIONS[correction].description}"
