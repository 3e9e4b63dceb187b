"""Hypothesis strategies that several rooms share.

Those of agents' documents are in `tests/agents/documents.py`, those of rankings with gold in `tests/metrics/worlds.py`.
"""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

TEXT = st.text()
NUMBERS = st.integers() | st.floats()
EXACT_NUMBERS = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
"""Numbers that any reader of JSON reads as they are."""

WORDS = st.sampled_from(["red", "boat", "boats", "blue", "house", "tree", "sea", "the"])
"""A few words, so that texts share some; with a plural and a stop word."""


def at_most(examples: int) -> int:
    """Return a number of examples for a test whose examples are slow, no more than other tests draw."""
    return min(examples, settings.default.max_examples if settings.default else examples)


def json_values(
    numbers: st.SearchStrategy[Any] = NUMBERS,
    texts: st.SearchStrategy[str] = TEXT,
    keys: st.SearchStrategy[str] = TEXT,
) -> st.SearchStrategy[Any]:
    """Return a strategy of values of JSON with these numbers, texts and keys."""
    return st.recursive(
        st.none() | st.booleans() | numbers | texts,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
        max_leaves=12,
    )
