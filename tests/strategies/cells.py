"""Cells of tables that are written as CSV."""

from __future__ import annotations

import math

from hypothesis import strategies as st

NUMBERS = st.one_of(
    st.integers(-(2**63), 2**63 - 1), st.integers(0, 3), st.floats(), st.sampled_from([1e16, 0.1, -0.0])
)
OTHERS = st.one_of(st.text('ab,"\n \u00e9', max_size=3), st.booleans(), st.just(["x", 1]), st.just({"a": None}))
CELLS = st.one_of(
    st.one_of(NUMBERS, st.sampled_from([None, math.nan])),
    st.one_of(st.integers(0, 9), st.none()),
    st.one_of(NUMBERS, OTHERS, st.none()),
    st.one_of(st.booleans(), st.none()),
)
