"""Metadata of documents, and filters on them."""

from __future__ import annotations

from hypothesis import strategies as st

YEARS = st.integers(2000, 2005)
LANGUAGES = st.sampled_from(["de", "en", "fr"])
METADATA = st.fixed_dictionaries(
    {}, optional={"year": YEARS | st.none(), "language": LANGUAGES, "tags": st.lists(LANGUAGES, max_size=3)}
)
YEAR_RANGES = (
    st.tuples(YEARS, YEARS)
    .map(sorted)
    .flatmap(lambda ends: st.sampled_from([{"from": ends[0]}, {"to": ends[1]}, {"from": ends[0], "to": ends[1]}]))
)
FILTERS = st.fixed_dictionaries(
    {},
    optional={
        "year": YEARS | YEAR_RANGES | st.lists(YEARS, min_size=1, max_size=3),
        "language": LANGUAGES | st.lists(LANGUAGES, min_size=1, max_size=2) | st.just({"from": "df"}),
        "tags": LANGUAGES,
    },
)
