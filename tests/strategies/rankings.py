"""Rankings without scores, and hits with scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from hypothesis import strategies as st

from tests.strategies.scores import value_pairs

T = TypeVar("T")


def unique_lists(items: Sequence[T], most: int, fewest: int = 0) -> st.SearchStrategy[list[T]]:
    """Draw some of the items in any order, each at most once."""
    return st.lists(st.sampled_from(items), min_size=fewest, max_size=most, unique=True)


RANKING_PAIRS = value_pairs(unique_lists(range(10), 8), 1, 4)
"""Two rankings for each of a few queries."""

RUN_HITS = st.tuples(
    st.sampled_from(["q1", "q2", "q3"]), st.sampled_from("abcde"), st.sampled_from([-1.0, 0.0, 0.5, 2.0])
)
"""Query, document and score of a hit; several hits may have the same query and document."""
