"""What tests of significance and their corrections are called: every one of them, and no more than a reader needs."""

from __future__ import annotations

import pytest

from retrievers.choices import list_choices
from runner.comparison.report.significance import in_brief, in_words, p_title
from runner.statistics.corrections import CORRECTIONS
from runner.statistics.paired_tests import PAIRED_TESTS
from runner.statistics.settings import CorrectionName, Test


@pytest.mark.parametrize("test", list_choices(Test))
@pytest.mark.parametrize("correction", list_choices(CorrectionName))
def test_reports_name_every_test_and_every_correction(test: Test, correction: CorrectionName) -> None:
    assert in_brief(test, correction).endswith(CORRECTIONS[correction].label)
    assert in_words(test, correction) == (
        f"p by {PAIRED_TESTS[test].description}, with {CORRECTIONS[correction].description}"
    )
    assert p_title(correction) == CORRECTIONS[correction].title


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
def test_beside_a_p_value_the_usual_test_is_not_named(test: Test, correction: CorrectionName, said: str) -> None:
    assert in_brief(test, correction) == said


def test_a_sentence_names_the_test_and_the_correction() -> None:
    assert in_words("wilcoxon", "none") == "p by Wilcoxon's signed ranks, with no correction"
