"""Texts to be cut into chunks, and sizes of chunks."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.strategies.texts import texts_of

MARKDOWN_TEXTS = texts_of(
    st.sampled_from(
        [
            "word ",
            "it's ",
            "Two. ",
            "e.g. ",
            "港の灯台。",
            "\n",
            "\n\n",
            "# Top\n",
            "## Part\n",
            "```\n",
            "- ",
            '"Said" ',
            "---\n",
        ]
    ),
    40,
    separator="",
)

CHUNK_SIZES = st.integers(1, 9).flatmap(lambda size: st.tuples(st.just(size), st.integers(0, size - 1)))
"""A size and a smaller overlap."""
