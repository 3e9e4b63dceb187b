from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.features.synthesize import checks
from runner.features.synthesize.base import Chunks
from runner.features.synthesize.checks import Checks, filter_chunks
from tests.features.synthesize.worlds import create_chunks


def list_rejections(chunks: Chunks, **settings: Any) -> list[tuple[int, str, str]]:
    return [(each.position, each.reason, each.evidence) for each in filter_chunks(Checks(**settings), chunks)[1]]


def test_a_rejection_has_a_reason_and_the_evidence() -> None:
    chunks = create_chunks(np.eye(6))
    texts = ["a b c d", " \n", "one two three four five", "x " * 5001, "five words that say nothing", "没有空格的文字"]
    vectors = chunks.vectors.copy()
    vectors[4] = 0
    chunks = replace(chunks, texts=texts, vectors=vectors)
    assert list_rejections(chunks) == [
        (0, "too short", "4 tokens, below 5"),
        (1, "empty", ""),
        (3, "too long", "5001 tokens, above 5000"),
        (4, "no direction", "the encoder does not know any of its words"),
    ]
    assert filter_chunks(Checks(), chunks)[0].tolist() == [2, 5]


def test_near_duplicates_name_the_first_of_them() -> None:
    chunks = create_chunks([[1, 0], [0, 1], [1, 0.1], [0.1, 1]], ["a", "b", "c", "c"])
    assert list_rejections(chunks) == [(2, "near-duplicate", "as '0' of 'a'"), (3, "near-duplicate", "as '1' of 'b'")]
    assert list_rejections(chunks, duplicate_similarity=0.999) == []


def test_a_chunk_that_is_too_short_is_not_an_original() -> None:
    chunks = create_chunks([[1, 0], [1, 0], [1, 0]])
    chunks = replace(chunks, texts=["short", *chunks.texts[1:]])
    assert [reason for _, reason, _ in list_rejections(chunks)] == ["too short", "near-duplicate"]


@given(
    st.lists(st.sampled_from([0.0, 0.1, 0.15, 0.3, 0.35, 0.5, 1.0, 1.1]), min_size=1, max_size=20), st.integers(1, 7)
)
def test_rejections_do_not_depend_on_the_size_of_blocks(angles: list[float], block: int) -> None:
    """A chunk is rejected if it is similar to an earlier one that is not rejected itself."""
    chunks = create_chunks([[np.cos(a), np.sin(a)] for a in angles])
    expected: list[int] = []
    for i, vector in enumerate(chunks.vectors):
        if all(float(vector @ chunks.vectors[j]) < 0.98 for j in expected):
            expected.append(i)
    with patch.object(checks, "BLOCK", block):
        assert filter_chunks(Checks(), chunks)[0].tolist() == expected


def test_limits_in_the_wrong_order_are_refused() -> None:
    with pytest.raises(ValueError, match="min_tokens=9: should be at most max_tokens=8"):
        Checks(min_tokens=9, max_tokens=8)
