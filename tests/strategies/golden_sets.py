"""Golden sets: documents by id, and questions with their gold."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import strategies as st

PLAIN_IDS = st.from_regex(r"[a-z]{2,6}(-[0-9])?", fullmatch=True)

QUESTIONS = st.text("aé\"',;|\t\n?–.", min_size=1, max_size=9).map(lambda text: f"Who {text}{len(text)}?")


class GoldenSet(NamedTuple):
    """Ids of documents, and questions, each with its id and its gold documents."""

    documents: list[str]
    questions: list[tuple[str, str, list[str]]]


@st.composite
def golden_sets(draw: st.DrawFn, ids: st.SearchStrategy[str], texts: st.SearchStrategy[str]) -> GoldenSet:
    documents = draw(st.lists(ids, min_size=2, max_size=4, unique_by=str.casefold))
    words = draw(st.lists(texts, min_size=1, max_size=4, unique_by=str.strip))
    gold = st.lists(st.sampled_from(documents), min_size=1, max_size=3, unique=True)
    names = draw(st.lists(ids, min_size=len(words), max_size=len(words), unique=True))
    return GoldenSet(documents, [(name, text, draw(gold)) for name, text in zip(names, words, strict=True)])
