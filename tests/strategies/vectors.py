"""Vectors of documents and queries."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray


def integer_vectors(most: int, dimensions: int = 3) -> st.SearchStrategy[NDArray[Any]]:
    """Draw vectors of small integers: ties, opposites and zero vectors are common."""
    return arrays(np.int64, st.tuples(st.integers(1, most), st.just(dimensions)), elements=st.integers(-2, 2))
