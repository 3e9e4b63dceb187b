"""Datasets, in memory and as rows to be written."""

from __future__ import annotations

from hypothesis import strategies as st

from runner.datasets.dataset import Dataset
from tests.datasets.rows import Rows, make_dataset
from tests.strategies.ids import STRIPPED_IDS
from tests.strategies.texts import ONE_LINE_TEXTS, STRIPPED_TEXTS, TEXTS

GRADES = st.integers(0, 3)


@st.composite
def datasets(
    draw: st.DrawFn,
    ids: st.SearchStrategy[str],
    texts: st.SearchStrategy[str],
    typed: bool,
    grades: st.SearchStrategy[int] = GRADES,
    fewest: int = 1,
    document_texts: st.SearchStrategy[str] = TEXTS,
) -> Dataset:
    """Draw a dataset in which each query has at least `fewest` judgments."""
    documents = draw(st.dictionaries(ids, st.tuples(TEXTS, document_texts), min_size=1, max_size=5))
    queries = draw(st.dictionaries(ids, st.tuples(texts, ONE_LINE_TEXTS, TEXTS), min_size=1, max_size=4))
    judged = {
        query: draw(st.dictionaries(st.sampled_from(sorted(documents)), grades, min_size=fewest)) for query in queries
    }
    return make_dataset(
        documents,
        {i: (text, kind if typed else "", answer if typed else "") for i, (text, kind, answer) in queries.items()},
        judged,
    )


@st.composite
def dataset_rows(draw: st.DrawFn) -> Rows:
    """Draw rows that every format can hold: a text may hold anything but white space around it, an id no tab either."""
    documents = draw(st.dictionaries(STRIPPED_IDS, st.tuples(STRIPPED_TEXTS, STRIPPED_TEXTS), min_size=1, max_size=5))
    queries = draw(st.dictionaries(STRIPPED_IDS, STRIPPED_TEXTS, min_size=1, max_size=4))
    pairs = st.tuples(st.sampled_from(sorted(queries)), st.sampled_from(sorted(documents)))
    return Rows(documents, queries, draw(st.dictionaries(pairs, st.integers(-1, 3), min_size=1)))
