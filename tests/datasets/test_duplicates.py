"""Near-duplicates: the same as by comparing everything with everything, and without doing so."""

from __future__ import annotations

import re
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from runner.datasets.duplicates import Shingled, groups, most_alike, similarity
from tests.strategies.corpora import REPETITIVE_CORPORA


def shingles(text: str, size: int) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+", text.lower())
    words += [""] * (size - len(words))
    return {tuple(words[i : i + size]) for i in range(len(words) - size + 1)}


def jaccard(first: str, second: str, size: int) -> float:
    a, b = shingles(first, size), shingles(second, size)
    return len(a & b) / len(a | b)


def compared(texts: list[str], least: float, size: int) -> list[tuple[int, ...]]:
    """Return the groups that comparing all pairs gives."""
    pairs = combinations(range(len(texts)), 2)
    linked = [pair for pair in pairs if jaccard(texts[pair[0]], texts[pair[1]], size) >= least - 1e-9]
    rows, columns = np.array(linked, dtype=np.int64).reshape(-1, 2).T
    graph = coo_array((np.ones(len(linked)), (rows, columns)), shape=(len(texts), len(texts)))
    _, labels = connected_components(graph, directed=False) if texts else (0, np.zeros(0))
    together = [tuple(np.flatnonzero(labels == label).tolist()) for label in dict.fromkeys(labels.tolist())]
    return [group for group in together if len(group) > 1]


@given(REPETITIVE_CORPORA, st.sampled_from([0.05, 0.25, 1 / 3, 0.5, 0.75, 0.8, 1.0]), st.integers(1, 4))
def test_groups_equal_those_of_comparing_all_pairs(texts: list[str], least: float, size: int) -> None:
    assert groups(texts, least, size) == compared(texts, least, size)


@given(REPETITIVE_CORPORA.filter(bool), st.integers(1, 4))
def test_similarity_is_the_jaccard_index_of_shingles(texts: list[str], size: int) -> None:
    shingled = Shingled.of(texts, size)
    for other in range(len(texts)):
        assert shingled.similarity(0, other) == pytest.approx(jaccard(texts[0], texts[other], size))
    assert similarity(texts[-1], texts[0], size) == pytest.approx(jaccard(texts[0], texts[-1], size))


def test_case_and_punctuation_make_no_difference() -> None:
    assert similarity("The old lighthouse, on the pier.", "the OLD lighthouse on the pier") == 1
    assert similarity("Ünï cödé wörds hére", "ünï cödé wörds hére") == 1


def test_scripts_without_spaces_are_compared_by_characters_and_not_by_whole_clauses() -> None:
    harbour = "港の灯台は百年前に建てられ、いまも毎晩海を照らしています。"
    assert similarity(harbour, harbour.replace("毎晩", "毎夜")) > 0.6
    assert similarity("灯塔一百年前建在码头上，如今仍然照亮海面。", "渡轮每小时出发，冬天停在另一个码头。") == 0
    assert groups([harbour, "海を渡る船は朝に出ます。", harbour.replace("。", "よ。")], 0.8) == [(0, 2)]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("", "", 1.0),
        ("", "word", 0.0),
        ("two words", "two words", 1.0),
        ("two words", "two others", 0.0),
        ("a b c d e", "a b c d f", 0.5),
    ],
)
def test_short_and_empty_texts_have_a_similarity_too(first: str, second: str, expected: float) -> None:
    assert similarity(first, second) == expected


def test_a_text_is_alike_to_the_nearest_of_others() -> None:
    shingled = Shingled.of(["a b c d e", "x y z", "a b c d f"])
    assert most_alike(shingled, 0, [1, 2]) == 0.5
    assert most_alike(shingled, 0, []) == 0.0


def test_only_near_duplicates_planted_among_many_texts_are_grouped() -> None:
    rng = np.random.default_rng(0)
    texts = [" ".join(f"w{word}" for word in rng.integers(0, 5_000, 60)) for _ in range(2_000)]
    planted = {position: f"{texts[position]} and one more" for position in range(0, 2_000, 200)}
    found = groups([*texts, *planted.values(), texts[7]])
    expected = [(position, 2_000 + i) for i, position in enumerate(planted)] + [(7, 2_010)]
    assert sorted(found) == sorted(expected)


def test_texts_that_are_linked_by_others_belong_together() -> None:
    chain = ["a b c d e f g h", "b c d e f g h i", "c d e f g h i j"]
    assert similarity(chain[0], chain[2]) < 0.7 < similarity(chain[0], chain[1])
    assert groups(chain, 0.7) == [(0, 1, 2)]


def test_long_shingles_do_not_overflow() -> None:
    text = " ".join(f"word{i}" for i in range(200))
    assert similarity(text, text, size=40) == 1
    assert 0 < similarity(text, f"{text} more", size=40) < 1
