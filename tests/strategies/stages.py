"""Stages of retrievers, with the ranks of gold in each."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from runner.evaluation.losses import StageRanks
from runner.metrics.scores import UNRANKED

GOLD = 5
"""The number of gold documents."""

_RANKS = st.lists(st.sampled_from([1, 2, 3, 4, 9, UNRANKED]), min_size=GOLD, max_size=GOLD).map(
    lambda ranks: np.array(ranks, dtype=np.int32)
)
_STEPS = st.sampled_from(["fusion", "reranker", "expansion"])


def _compose(parts: st.SearchStrategy[StageRanks]) -> st.SearchStrategy[StageRanks]:
    inputs = st.lists(parts, min_size=1, max_size=3)
    return st.builds(StageRanks, st.just("stage"), _RANKS | st.none(), _STEPS, inputs, st.booleans())


STAGE_TREES = st.recursive(st.builds(StageRanks, st.just("part"), _RANKS | st.none()), _compose, max_leaves=6)
"""Stages within each other; the ranks of some are not known."""

GOLD_RANKS = _RANKS
"""The ranks of gold in a ranking."""

GOLD_FLAGS = st.lists(st.booleans(), min_size=GOLD, max_size=GOLD).map(np.array)
"""A flag for each gold document."""

UNREACHABLE = st.lists(st.sampled_from([-1, 0, 1, 2]), min_size=GOLD, max_size=GOLD).map(
    lambda codes: np.array(codes, dtype=np.int8)
)
"""The step before the search that loses each gold document, -1 for none."""
