"""Hits and weights of the parts of a hybrid."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.retrievers.given_parts import IDS
from tests.strategies.scores import fractions

PART_ROWS = st.dictionaries(st.integers(0, len(IDS) - 1), fractions(-3, 3, 8), max_size=len(IDS))
"""Scores by document for a query; ties and negative scores are common, and float32 holds them exactly."""

PART_WEIGHTS = st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0, 3.0]), min_size=2, max_size=4).filter(any)
