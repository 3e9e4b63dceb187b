"""Values of JSON, and the numbers in them."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import strategies as st

from tests.strategies.texts import TEXTS

NUMBERS = st.integers() | st.floats()
EXACT_NUMBERS = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
"""Numbers that any reader of JSON reads as they are."""


def json_values(
    numbers: st.SearchStrategy[Any] = NUMBERS,
    texts: st.SearchStrategy[str] = TEXTS,
    keys: st.SearchStrategy[str] = TEXTS,
) -> st.SearchStrategy[Any]:
    """Draw values of JSON with these numbers, texts and keys."""
    return st.recursive(
        st.none() | st.booleans() | numbers | texts,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
        max_leaves=12,
    )


JSON = json_values()
EXACT_JSON = json_values(numbers=EXACT_NUMBERS)
JSON_WITH_INFINITIES = json_values(numbers=EXACT_NUMBERS | st.sampled_from([math.inf, -math.inf]))

KEYS = st.sampled_from(["a", "b", "a:", 'a"', 'a":', "a\\", "\\", "é"])
REPEATING_PAIRS = st.lists(st.tuples(KEYS, KEYS | st.integers(0, 3)), max_size=5)
"""Keys and values of an object, in which a key may occur twice; some texts look like keys."""


def json_objects(values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Draw objects of JSON with any keys and these values."""
    return st.dictionaries(TEXTS, values, max_size=4)
