"""The words every retriever shares: corpora, rankings, the one tie rule."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from retrievers.base import NOTHING, Corpus, RetrieverError, build_rankings, rank


@given(
    arrays.arrays(
        np.float32,
        st.tuples(st.integers(1, 3), st.integers(0, 8)),
        elements=st.sampled_from([-1.5, -0.0, 0.0, 0.25, 1.0, 1e9, -1e9, 1e-30]),
    ),
    st.integers(1, 10),
    st.randoms(use_true_random=False),
)
def test_the_tie_rule_is_score_down_then_place(scores: np.ndarray, k: int, random: object) -> None:
    n, m = scores.shape
    documents = np.stack([random.sample(range(-2, m), m) for _ in range(n)]).astype(np.int32)  # type: ignore[attr-defined]  # of random's methods
    documents[documents < 0] = NOTHING
    order = np.array(random.sample(range(m), m), dtype=np.int32)  # type: ignore[attr-defined]  # of random's methods
    found = rank(documents, scores, order, k)
    for row in range(n):
        there = [(-float(s), int(order[d]), int(d)) for d, s in zip(documents[row], scores[row], strict=True) if d >= 0]
        expected = [d for _, _, d in sorted(there)][:k]
        assert found.documents[row].tolist() == expected + [NOTHING] * (min(k, m) - len(expected))
        assert np.isneginf(found.scores[row][len(expected) :]).all()


def test_equal_scores_are_ordered_by_id_descending() -> None:
    corpus = Corpus(["b", "é", "a", "10", "9"], ["x"] * 5)
    found = build_rankings([[(d, 1.0) for d in range(5)]], corpus.tie_order, 5)
    assert [corpus.ids[d] for d in found.documents[0]] == sorted(corpus.ids, reverse=True)


def test_a_nan_score_is_refused_except_where_nothing_is_retrieved() -> None:
    documents, scores = np.array([[0, 1]], dtype=np.int32), np.array([[1, np.nan]], dtype=np.float32)
    with pytest.raises(RetrieverError, match="NaN"):
        rank(documents, scores, np.arange(2, dtype=np.int32), 2)
    documents[0, 1] = NOTHING
    assert rank(documents, scores, np.arange(2, dtype=np.int32), 2).documents.tolist() == [[0, NOTHING]]


def test_a_cut_keeps_the_first_places() -> None:
    found = build_rankings([[(0, 2.0), (1, 1.0)]], Corpus(["a", "b"], ["", ""]).tie_order, 2).cut(1)
    assert found.depth == 1
    assert found.documents.tolist() == [[0]]


def test_a_corpus_is_known_by_its_content() -> None:
    corpora = [
        Corpus(["a"], ["b c"]),
        Corpus(["a"], ["c"], ["b"]),
        Corpus(["a"], [""], ["b c"]),
        Corpus(["b"], ["b c"]),
        Corpus(["a", "b"], ["b c", ""]),
        Corpus(["b", "a"], ["", "b c"]),
    ]
    assert len({corpus.fingerprint for corpus in corpora}) == len(corpora)
    assert Corpus(["a"], ["b c"]).fingerprint == Corpus(("a",), ("b c",)).fingerprint


@pytest.mark.parametrize("columns", [(["a", "a"], ["x", "y"]), (["a"], []), (["a"], ["x"], ["t", "u"])])
def test_columns_that_do_not_fit_are_refused(columns: tuple[list[str], ...]) -> None:
    with pytest.raises(RetrieverError):
        Corpus(*columns)
