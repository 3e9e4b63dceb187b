"""Letters say exactly what the tests say."""

from __future__ import annotations

import re

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from runner.statistics.letters import letters


def parted(display: str) -> set[str]:
    return set(re.findall(r"[a-z]\d*", display))


def implied(displays: list[str]) -> NDArray[np.bool_]:
    return np.array([[not parted(a) & parted(b) for b in displays] for a in displays], dtype=np.bool_)


def test_a_published_display() -> None:
    """Weights of chicks by feed, pairwise Wilcoxon tests with Holm's correction, as the R package cld shows them."""
    published = ["a", "b", "bc", "ac", "c", "a"]  # casein, horsebean, linseed, meatmeal, soybean, sunflower
    assert letters(implied(published), range(6)) == published


@given(st.integers(0, 12), st.floats(0, 1), st.integers(0, 2**32 - 1))
def test_two_systems_have_a_letter_in_common_just_when_they_do_not_differ(m: int, share: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((m, m)) < share, 1)
    significant = upper | upper.T
    order = rng.permutation(m)
    displays = letters(significant, order)
    np.testing.assert_array_equal(implied(displays).reshape(m, m), significant)
    if m:
        assert "a" in parted(displays[order[0]])
    groups = [{s for s in range(m) if letter in parted(displays[s])} for letter in set().union(*map(parted, displays))]
    assert not any(one < other for one in groups for other in groups)


def test_more_than_26_groups_have_letters_with_numbers() -> None:
    displays = letters(~np.eye(30, dtype=np.bool_), range(30))
    assert displays[:2] == ["a", "b"]
    assert displays[25:28] == ["z", "a1", "b1"]
