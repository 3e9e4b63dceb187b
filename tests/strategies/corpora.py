"""Small corpora, and queries on them."""

from __future__ import annotations

from hypothesis import strategies as st

from retrievers.base import Corpus
from tests.strategies.texts import LETTER_TEXTS, MIXED_TEXTS, texts_of

LETTER_CORPORA = st.lists(LETTER_TEXTS, min_size=1, max_size=8)
TITLED_LETTER_CORPORA = st.lists(st.tuples(LETTER_TEXTS, LETTER_TEXTS), min_size=1, max_size=8)
"""Titles and texts."""

LETTER_QUERIES = st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=5)
"""Words of a query, one of which is in no document."""

REPETITIVE_CORPORA = st.lists(
    texts_of(st.sampled_from(["alpha", "Beta", "gamma,", "DELTA", "epsilon"]), 9), max_size=14
)
"""Texts of which many have phrases in common."""


@st.composite
def corpora(draw: st.DrawFn) -> Corpus:
    """Draw a corpus with or without titles, whose ids have white space, slashes and upper case."""
    ids = draw(st.lists(st.text("aB1 /é-", max_size=4), max_size=8, unique=True))
    texts = draw(st.lists(MIXED_TEXTS, min_size=len(ids), max_size=len(ids)))
    titles = draw(st.one_of(st.just([]), st.lists(MIXED_TEXTS, min_size=len(ids), max_size=len(ids))))
    return Corpus(ids, texts, titles)
