"""Corrections for many tests, against scipy, by hand and by their properties."""

from __future__ import annotations

import ast
import itertools
from pathlib import Path
from typing import get_type_hints

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

import runner
from retrievers.choices import list_choices
from runner.comparison.compare import TableStatistics
from runner.statistics.comparison import resolve_correction
from runner.statistics.corrections import CORRECTIONS, benjamini_hochberg, correct, holm, run_randomised_tukey
from runner.statistics.paired_tests import PAIRED_TESTS
from runner.statistics.settings import CorrectionName, Statistics
from runner.statistics.significance import permutation_test
from tests.statistics.examples import SAKAI, unequal


def test_holm_steps_down_and_never_lets_a_larger_p_pass_a_smaller() -> None:
    """Four tests by hand: 0.005 x 4, 0.01 x 3, then 0.03 x 2 = 0.06, which 0.04 x 1 may not undercut."""
    np.testing.assert_allclose(holm(np.array([0.01, 0.04, 0.03, 0.005])), [0.03, 0.06, 0.06, 0.02])
    np.testing.assert_allclose(holm(np.array([0.5, 0.9, 0.6])), [1, 1, 1])
    assert holm(np.array([0.2])).tolist() == [0.2]
    assert holm(np.array([])).tolist() == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_keeps_the_order_and_lies_between_none_and_bonferroni(p_values: list[float]) -> None:
    raw = np.array(p_values)
    corrected = holm(raw)
    assert (corrected >= raw).all()
    assert (corrected <= np.minimum(raw * len(raw), 1) + 1e-12).all()
    assert (np.diff(corrected[np.argsort(raw, kind="stable")]) >= 0).all()


@given(st.lists(st.floats(0, 1), max_size=12))
def test_benjamini_and_hochberg_are_those_of_scipy(p_values: list[float]) -> None:
    raw = np.array(p_values)
    expected = scipy.stats.false_discovery_control(raw) if p_values else raw
    np.testing.assert_allclose(benjamini_hochberg(raw), expected, atol=1e-12)
    assert (benjamini_hochberg(raw) <= holm(raw) + 1e-12).all()


def test_benjamini_hochberg_reproduces_the_example_of_its_paper() -> None:
    """Benjamini & Hochberg (1995), section 3.2: of 15 p-values four are discoveries at 0.05, three by Bonferroni."""
    small = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459]
    raw = np.array([*small, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0000])
    assert np.flatnonzero(benjamini_hochberg(raw) <= 0.05).tolist() == [0, 1, 2, 3]
    assert np.flatnonzero(holm(raw) <= 0.05).tolist() == [0, 1, 2]


def test_a_correction_goes_by_its_name_and_tukeys_needs_the_scores() -> None:
    raw = np.array([0.01, 0.04, 0.03])
    assert correct(raw, "none").tolist() == raw.tolist()
    assert correct(raw, "holm").tolist() == holm(raw).tolist()
    assert correct(raw, "bh").tolist() == benjamini_hochberg(raw).tolist()
    with pytest.raises(
        ValueError, match="correction=tukey: only corrects tests of all pairs of systems on a single measure; choose"
    ):
        correct(raw, "tukey")


def test_every_value_of_the_setting_is_a_correction() -> None:
    assert list(CORRECTIONS) == list(list_choices(CorrectionName))
    singles = [name for name, correction in CORRECTIONS.items() if not correction.needs_all_pairs]
    assert singles == list(list_choices(get_type_hints(TableStatistics, include_extras=True)["correction"]))


@pytest.mark.parametrize("name", list_choices(CorrectionName))
def test_holm_replaces_a_correction_of_all_pairs_for_other_families(name: CorrectionName) -> None:
    correction = CORRECTIONS[name]
    assert correction.for_family() is (CORRECTIONS["holm"] if name in ("maxt", "tukey") else correction)
    for test in PAIRED_TESTS.values():
        without = name == "maxt" and test.run_max_t is None
        assert correction.for_family(test) is (CORRECTIONS["holm"] if without else correction)
        statistics = resolve_correction(Statistics(test=test.name, correction=name))
        assert statistics == Statistics(test=test.name, correction="holm" if without else name)


def test_no_code_decides_by_the_name_of_a_correction() -> None:
    names, places = set(list_choices(CorrectionName)), []
    for path in Path(runner.__path__[0]).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Compare | ast.MatchValue):
                texts = {part.value for part in ast.walk(node) if isinstance(part, ast.Constant)} & names
                if texts - {"none"} or (texts and "correction" in ast.unparse(node)):
                    places.append(f"{path.name}:{node.lineno}")
    assert places == []


def test_tukeys_test_comes_close_to_all_permutations_that_there_are() -> None:
    """Three systems and four queries: 6 ** 4 ways to deal the scores, each held against each pair's difference."""
    scores = np.random.default_rng(2).random((3, 4)) + np.array([[0.0], [0.3], [0.5]])
    ways = [list(itertools.permutations(query)) for query in scores.T]
    ranges = np.array([np.ptp(np.sum(dealt, axis=0)) for dealt in itertools.product(*ways)])
    sums = scores.sum(axis=1)
    exact = np.array([[np.mean(ranges >= abs(a - b) - 1e-12) for b in sums] for a in sums])
    np.testing.assert_allclose(run_randomised_tukey(scores, 10000).p_values, exact, atol=0.02)


def test_tukeys_test_of_two_systems_is_the_permutation_test() -> None:
    for seed in range(2):
        scores = np.random.default_rng(seed).random((2, 10))
        exact = permutation_test(scores[:1] - scores[1])[0]
        found = run_randomised_tukey(scores, 10000).p_values
        np.testing.assert_allclose(found, [[1, exact], [exact, 1]], atol=0.02)


def test_tukeys_test_of_a_published_example_comes_close_to_the_parametric_one() -> None:
    """Sakai's three systems: the studentized range over the residual variance of a two-way analysis of variance."""
    m, n = SAKAI.shape
    residuals = SAKAI - SAKAI.mean(axis=0) - SAKAI.mean(axis=1, keepdims=True) + SAKAI.mean()
    variance = (residuals**2).sum() / ((m - 1) * (n - 1))
    gaps = np.abs(SAKAI.mean(axis=1)[:, None] - SAKAI.mean(axis=1))
    assert gaps[0, 1] / np.sqrt(variance) == pytest.approx(0.5070, abs=1e-4)  # the effect size that Sakai gives
    assert gaps[0, 2] / np.sqrt(variance) == pytest.approx(0.6760, abs=1e-4)
    parametric = scipy.stats.studentized_range.sf(gaps / np.sqrt(variance / n), m, (m - 1) * (n - 1))
    np.testing.assert_allclose(
        run_randomised_tukey(SAKAI, 10000).p_values, parametric, atol=0.06
    )  # scores are tenths: many ties


def test_tukeys_test_is_symmetric_ordered_by_difference_and_conservative() -> None:
    scores = unequal()
    found = run_randomised_tukey(scores, 2000).p_values
    np.testing.assert_array_equal(found, found.T)
    assert (np.diag(found) == 1).all()
    first, second = np.triu_indices(len(scores), 1)
    gaps = np.abs(scores.sum(axis=1)[first] - scores.sum(axis=1)[second])
    assert (np.diff(found[first, second][np.argsort(gaps)]) <= 0).all()
    alone = permutation_test(scores[first] - scores[second], 2000)
    assert (found[first, second] >= alone - 0.03).all()
    np.testing.assert_array_equal(found, run_randomised_tukey(scores, 2000).p_values)
    assert not np.array_equal(found, run_randomised_tukey(scores, 2000, seed=1).p_values)


def test_under_no_difference_tukeys_test_finds_any_as_seldom_as_it_says() -> None:
    found = [
        run_randomised_tukey(np.random.default_rng(seed).normal(0, 1, (5, 12)), 99, seed).p_values.min() <= 0.05
        for seed in range(200)
    ]
    assert np.mean(found) == pytest.approx(0.05, abs=4 * np.sqrt(0.05 * 0.95 / 200))


def test_tukeys_test_does_without_queries_that_do_not_count() -> None:
    scores = unequal()
    wide = np.insert(scores, 7, np.nan, axis=1)
    np.testing.assert_array_equal(run_randomised_tukey(wide, 500).p_values, run_randomised_tukey(scores, 500).p_values)
    np.testing.assert_allclose(
        run_randomised_tukey(scores + np.arange(60), 500).p_values, run_randomised_tukey(scores, 500).p_values
    )
    lost = np.vstack([scores, np.full((1, 60), np.nan)])
    np.testing.assert_array_equal(
        run_randomised_tukey(lost, 500).p_values[:5, :5], run_randomised_tukey(scores, 500).p_values
    )
    assert (run_randomised_tukey(lost, 500).p_values[5] == 1).all()
    apart = scores.copy()
    apart[0, :30], apart[2, 30:] = np.nan, np.nan
    found = run_randomised_tukey(apart, 500).p_values
    assert found[0, 2] == 1 > found[0, 4]
    scores[0, :30] = np.nan
    assert run_randomised_tukey(scores, 500).p_values[0, 2] < 0.01
    assert run_randomised_tukey(np.full((2, 3), np.nan), 9).p_values.tolist() == [[1, 1], [1, 1]]
    assert run_randomised_tukey(np.tile(scores[1], (3, 1)), 9).p_values.tolist() == np.ones((3, 3)).tolist()
