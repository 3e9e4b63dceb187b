"""What tests of significance and their corrections are called: every one of them, and no more than a reader needs."""

from __future__ import annotations

from typing import get_args

import pytest

from runner.analysis.paired_tests import PAIRED_TESTS
from runner.metrics.statistics import Correction, Test
from runner.reports.comparison.significance import CORRECTIONS, in_brief, in_words


def test_every_test_and_every_correction_has_its_names() -> None:
    assert set(PAIRED_TESTS) == set(get_args(Test))
    assert set(CORRECTIONS) == set(get_args(Correction))


@pytest.mark.parametrize(
    ("test", "correction", "said"),
    [
        ("permutation", "holm", "Holm"),
        ("t", "bh", "paired t, Benjamini-Hochberg"),
        ("wilcoxon", "none", "Wilcoxon, uncorrected"),
        ("t", "tukey", "randomised Tukey HSD"),
        ("permutation", "maxt", "max-T over all pairs"),
        ("bootstrap", "maxt", "paired bootstrap, max-T over all pairs"),
    ],
)
def test_beside_a_p_value_the_usual_test_is_not_named(test: Test, correction: Correction, said: str) -> None:
    assert in_brief(test, correction) == said


def test_a_sentence_names_the_test_and_the_correction() -> None:
    assert in_words("wilcoxon", "none") == "p by Wilcoxon's signed ranks, with no correction"
