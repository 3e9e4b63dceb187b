"""The rank_bm25 package as a retriever, against the package itself."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import rank_bm25
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from retrievers.base import NOTHING, Corpus
from retrievers.lexical.analyzer import Analyzer
from retrievers.lexical.rank_bm25 import RankBM25
from retrievers.store import MemoryStore
from tests.retrievers.hits import list_rows
from tests.strategies.settings import at_most
from tests.strategies.texts import WORDS

PLAIN = Analyzer(stemmer=None, stopwords=None)

SETTINGS: list[tuple[dict[str, Any], Any, dict[str, Any]]] = [
    ({}, rank_bm25.BM25Okapi, {}),
    ({"k1": 0.9, "b": 0.4, "epsilon": 0.5}, rank_bm25.BM25Okapi, {"k1": 0.9, "b": 0.4, "epsilon": 0.5}),
    ({"variant": "l"}, rank_bm25.BM25L, {}),
    ({"variant": "l", "b": 0.3, "delta": 0.7}, rank_bm25.BM25L, {"b": 0.3, "delta": 0.7}),
    ({"variant": "plus"}, rank_bm25.BM25Plus, {}),
    ({"variant": "plus", "k1": 2, "delta": 0.7}, rank_bm25.BM25Plus, {"k1": 2, "delta": 0.7}),
]


@pytest.mark.parametrize(("ours", "model", "theirs"), SETTINGS)
@settings(max_examples=at_most(30))
@given(
    texts=st.lists(st.lists(WORDS, min_size=1, max_size=6), min_size=1, max_size=8),
    query=st.lists(WORDS, max_size=4),
    k=st.integers(1, 9),
)
def test_order_and_scores_are_the_packages(
    ours: dict[str, Any], model: Any, theirs: dict[str, Any], texts: list[list[str]], query: list[str], k: int
) -> None:
    corpus = Corpus([f"d{i}" for i in range(len(texts))], [" ".join(text) for text in texts])
    rankings = RankBM25(PLAIN, **ours).index(corpus, MemoryStore()).search([" ".join(query)], k)
    descending = list(reversed(range(len(texts))))  # as the package is given them: its sums depend on it
    scores = model([texts[document] for document in descending], **theirs).get_scores(query).astype(np.float32)
    hits = [
        (float(score), document)
        for score, document in zip(scores, descending, strict=True)
        if set(query) & set(texts[document])
    ]
    best = sorted(hits, reverse=True)[:k]
    assert list_rows(rankings) == [[(document, score) for score, document in best]]


def test_the_package_is_given_documents_in_tie_order() -> None:
    """So that its sums, and with them the last bits of scores, do not depend on the order of the corpus."""
    corpus = Corpus(["b", "c", "a"], ["boat", "red boat", "a red boat"])
    assert RankBM25(PLAIN).index(corpus, MemoryStore()).model.doc_len == [2, 1, 3]


def test_a_document_with_a_query_term_is_retrieved_despite_a_negative_score() -> None:
    corpus = Corpus(["a", "b", "c"], ["boat", "boat sea", "boat boat"])
    rankings = RankBM25(PLAIN).index(corpus, MemoryStore()).search(["boat"], 3)
    assert sorted(rankings.documents[0]) == [0, 1, 2]
    assert (rankings.scores < 0).all()


def test_full_length_normalisation_of_an_empty_document_does_not_fail() -> None:
    corpus = Corpus(["a", "b"], ["", "red boat"])
    for variant in ("okapi", "l", "plus"):
        rankings = RankBM25(b=1, variant=variant).index(corpus, MemoryStore()).search(["boat sea"], 2)
        assert rankings.documents.tolist() == [[1, NOTHING]]


@pytest.mark.parametrize("texts", [["", " "], ["the", "of the"], []])
def test_a_corpus_without_terms_has_nothing_to_find(texts: list[str]) -> None:
    corpus = Corpus([str(i) for i in range(len(texts))], texts)
    assert (RankBM25().index(corpus, MemoryStore()).search(["the boat", ""], 2).documents == NOTHING).all()


def test_settings_share_the_tokens_of_an_analyzer(harbour: Corpus) -> None:
    analyzed: list[str] = []

    class Counted(Analyzer):
        def tokens(self, text: str) -> list[str]:
            analyzed.append(text)
            return super().tokens(text)

    store = MemoryStore()
    for variant in ("okapi", "l", "plus"):
        RankBM25(Counted(), variant=variant).index(harbour, store)
    assert len(analyzed) == len(harbour)


@pytest.mark.parametrize("name", ["k1", "b", "epsilon", "delta"])
@pytest.mark.parametrize("value", [math.inf, math.nan, 1e39])
def test_values_that_32_bits_do_not_hold_are_refused(name: str, value: float) -> None:
    with pytest.raises(ValidationError, match=name):
        RankBM25(**{name: value})  # type: ignore[arg-type]  # any value, as from YAML


@pytest.mark.parametrize("variant", ["okapi", "l", "plus"])
def test_the_largest_values_give_numbers(harbour: Corpus, variant: Any) -> None:
    searcher = RankBM25(variant=variant, k1=1e6, epsilon=1e6, delta=1e6).index(harbour, MemoryStore())
    found = searcher.search(["ships and ferries"], 6)
    assert np.isfinite(found.scores[found.documents != NOTHING]).all()


def test_who_has_a_term_is_written_down_once_for_all_settings(harbour: Corpus) -> None:
    store = MemoryStore()
    first, second = (RankBM25(k1=k1).index(harbour, store) for k1 in (1.0, 2.0))
    assert first.holders is second.holders
    for term, holders in first.holders.items():
        assert holders == [i for i, terms in enumerate(first.model.doc_freqs) if term in terms]


@pytest.mark.parametrize("wrong", [{"k1": 0}, {"b": 1.1}, {"epsilon": -1}, {"delta": -1}, {"variant": "lucene"}])
def test_wrong_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=next(iter(wrong))):
        RankBM25(**wrong)


def test_every_query_is_timed(harbour: Corpus) -> None:
    seconds = RankBM25().index(harbour, MemoryStore()).search(["ships", "", "fish"], 3).seconds
    assert seconds is not None
    assert (seconds >= 0).all()
