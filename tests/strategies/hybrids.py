"""What the parts of a hybrid find, and their weights."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.retrievers.given_parts import IDS
from tests.strategies.scores import fractions

PART_ROWS = st.dictionaries(st.integers(0, len(IDS) - 1), fractions(-3, 3, 8), max_size=len(IDS))
"""What a part finds for a query, document -> score: ties and negative scores are common, and float32 holds all."""

PART_WEIGHTS = st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0, 3.0]), min_size=2, max_size=4).filter(any)
