"""BM25F, against its formula in plain Python, and against BM25 where the two are the same."""

from __future__ import annotations

import math
from collections import Counter
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from retrievers.base import NOTHING, Corpus, RetrieverError
from retrievers.lexical.analyzer import Analyzer
from retrievers.lexical.bm25 import BM25
from retrievers.lexical.bm25f import BM25F, FieldWeight
from retrievers.lexical.postings import load_postings
from retrievers.lexical.sqlite_fts import SqliteFts
from retrievers.search import search_cached
from retrievers.store import Arrays, Key, MemoryStore
from retrievers.work import POSTINGS
from tests.retrievers.test_contract import Counting
from tests.strategies.corpora import LETTER_QUERIES, TITLED_LETTER_CORPORA
from tests.strategies.settings import at_most
from tests.strategies.texts import LETTER_TEXTS

WORDS = Analyzer(stemmer=None, stopwords=None)
BS = (0.0, 0.3, 1.0)


def corpus_of(documents: list[tuple[str, str]]) -> Corpus:
    ids = [f"d{i}" for i in range(len(documents))]
    return Corpus(ids, [text for _, text in documents], [title for title, _ in documents])


def scores_of(retriever: BM25 | BM25F, corpus: Corpus, query: list[str]) -> dict[int, float]:
    rankings = retriever.index(corpus, MemoryStore()).search([" ".join(query)], k=len(corpus))
    hits = zip(rankings.documents[0], rankings.scores[0], strict=True)
    return {int(document): float(score) for document, score in hits if document != NOTHING}


def brute_force(
    documents: list[tuple[str, str]], query: list[str], weights: list[float], bs: list[float], k1: float, variant: str
) -> dict[int, float]:
    """Return the scores by the formula of Robertson and Zaragoza (2009), section 3.6; fields are title, text."""
    fields = [[Counter(document[f].split()) for document in documents] for f in range(2)]
    means = [sum(counts.total() for counts in field) / len(documents) or 1.0 for field in fields]
    scores = {}
    for d in range(len(documents)):
        gains = []
        for term in query:
            df = sum(any(weights[f] and term in fields[f][other] for f in range(2)) for other in range(len(documents)))
            used = [f for f in range(2) if weights[f] and term in fields[f][d]]
            tf = sum(
                weights[f] * fields[f][d][term] / (1 - bs[f] + bs[f] * fields[f][d].total() / means[f]) for f in used
            )
            odds = (len(documents) - df + 0.5) / (df + 0.5)
            if used and variant == "lucene":
                gains.append(math.log(1 + odds) * tf / (k1 + tf))
            elif used and variant == "robertson":
                gains.append(max(math.log(odds), 0.0) * tf / (k1 + tf))
            elif used:
                gains.append(math.log(len(documents) / df) * (k1 + 1) * tf / (k1 + tf))
        if gains:
            scores[d] = math.fsum(gains)
    return scores


@settings(max_examples=at_most(40))
@given(
    documents=TITLED_LETTER_CORPORA,
    query=LETTER_QUERIES,
    weights=st.sampled_from([[2.0, 1.0], [0.5, 3.0], [0.0, 1.0], [1.0, 0.0], [7.0, 1e-3]]),
    bs=st.sampled_from([list(bs) for bs in product(BS, BS)]),
    k1=st.sampled_from([0.0, 0.9, 2.0]),
)
@pytest.mark.parametrize("variant", ["lucene", "robertson", "atire"])
def test_scores_are_the_formula(
    variant: Any, documents: list[tuple[str, str]], query: list[str], weights: list[float], bs: list[float], k1: float
) -> None:
    fields: Any = {name: {"weight": w, "b": b} for name, w, b in zip(("title", "text"), weights, bs, strict=True)}
    found = scores_of(BM25F(WORDS, fields, k1, variant=variant), corpus_of(documents), query)
    assert found == pytest.approx(brute_force(documents, query, weights, bs, k1, variant), rel=1e-6, abs=1e-9)


@given(
    documents=st.lists(st.tuples(LETTER_TEXTS, LETTER_TEXTS, LETTER_TEXTS), min_size=1, max_size=6),
    query=LETTER_QUERIES,
    weights=st.tuples(*[st.sampled_from([0.5, 1.0, 3.0])] * 2),
    bs=st.tuples(*[st.sampled_from(BS)] * 2),
)
def test_a_field_of_the_metadata_is_scored_as_a_title_is(
    documents: list[tuple[str, str, str]], query: list[str], weights: tuple[float, float], bs: tuple[float, float]
) -> None:
    """So the formula holds for it, which the test above checks for titles."""
    rows: list[dict[str, Any]] = [{"abstract": first.split(), "other": third} for first, _, third in documents]
    corpus = Corpus(
        [f"d{i}" for i in range(len(documents))], [text for _, text, _ in documents], metadata=rows,
        search_fields=("abstract",),
    )  # fmt: skip
    own: Any = [{"weight": weight, "b": b} for weight, b in zip(weights, bs, strict=True)]
    found = scores_of(BM25F(WORDS, {"abstract": own[0], "text": own[1]}), corpus, query)
    titled = corpus_of([(first, text) for first, text, _ in documents])
    assert found == scores_of(BM25F(WORDS, {"title": own[0], "text": own[1]}), titled, query)


def test_three_fields_add_up_before_they_are_saturated() -> None:
    rows = [{"tags": ["a", "b"]}, {"tags": "b"}, {}]
    corpus = Corpus(["x", "y", "z"], ["a", "c", "c"], ["a", "", "c"], rows, search_fields=("tags",))
    fields: Any = {"title": {"weight": 2, "b": 0}, "text": {"weight": 1, "b": 0}, "tags": {"weight": 3, "b": 0}}
    tf = 2 + 1 + 3
    assert scores_of(BM25F(WORDS, fields), corpus, ["a"]) == {
        0: pytest.approx(math.log(1 + 2.5 / 1.5) * tf / (tf + 0.9))
    }


@pytest.mark.parametrize(
    ("retriever", "setting"),
    [
        (BM25F(fields={"text": FieldWeight(), "tags": FieldWeight()}), "fields"),
        (SqliteFts(field_weights={"tags": 1.0}), "field_weights"),
    ],
)
def test_a_field_that_the_documents_do_not_have_is_refused(retriever: Any, setting: str) -> None:
    corpus = Corpus(["x"], ["a"], metadata=[{"topics": "b", "tags": "c"}], search_fields=("topics",))
    message = (
        rf"^{setting}\.tags: the fields of the documents to search are title, text, topics; to search others, name "
        r"them in the dataset's search_fields, as in dataset.search_fields=\[tags\]$"
    )
    with pytest.raises(RetrieverError, match=message):
        retriever.index(corpus, MemoryStore())


def test_rankings_and_counts_follow_the_content_of_the_fields_to_search() -> None:
    store, own = Counting(), BM25F(WORDS, fields={"tags": FieldWeight()})
    tops = []
    for tags in (["a", "b"], ["b", "a"]):
        corpus = Corpus(["x", "y"], ["", ""], metadata=[{"tags": tag} for tag in tags], search_fields=("tags",))
        tops.append(search_cached(own, corpus, ["a"], 1, store).documents[0].tolist())
    assert tops == [[0], [1]]
    assert store.built["postings"] == 2
    plain = [Corpus(["x"], ["a"], metadata=[{"tags": tag}]) for tag in "ab"]
    assert plain[0].fingerprint == plain[1].fingerprint == Corpus(["x"], ["a"]).fingerprint


BOTH: Any = {"title": {"weight": 1, "b": 0}, "text": {"weight": 1, "b": 0}}


@given(documents=TITLED_LETTER_CORPORA, query=LETTER_QUERIES)
def test_equal_weights_without_length_normalisation_are_bm25_to_the_bit(
    documents: list[tuple[str, str]], query: list[str]
) -> None:
    corpus = corpus_of(documents)
    assert scores_of(BM25F(WORDS, BOTH), corpus, query) == scores_of(BM25(WORDS, b=0), corpus, query)


@given(documents=TITLED_LETTER_CORPORA, query=LETTER_QUERIES, b=st.sampled_from(BS))
def test_one_field_is_bm25_on_that_field(documents: list[tuple[str, str]], query: list[str], b: float) -> None:
    corpus = corpus_of(documents)
    texts = Corpus(corpus.ids, corpus.texts)
    fields: Any = {"text": {"weight": 1, "b": b}}
    expected = pytest.approx(scores_of(BM25(WORDS, b=b), texts, query), rel=1e-6)
    assert scores_of(BM25F(WORDS, fields), corpus, query) == expected
    fields["title"] = {"weight": 0}
    assert scores_of(BM25F(WORDS, fields), corpus, query) == expected
    assert scores_of(BM25F(WORDS), texts, query) == scores_of(BM25F(WORDS, {"text": {}}), texts, query)  # type: ignore[dict-item]  # as from YAML


@given(documents=TITLED_LETTER_CORPORA, query=LETTER_QUERIES, b=st.sampled_from(BS), weight=st.sampled_from([1.0, 2.0]))
def test_one_b_for_all_fields_is_bm25_on_a_text_that_repeats_them(
    documents: list[tuple[str, str]], query: list[str], b: float, weight: float
) -> None:
    """A field of weight 2 is a field that is there twice: Robertson, Zaragoza and Taylor (2004)."""
    fields: Any = {"title": {"weight": weight}, "text": {"weight": 1}}
    repeated = corpus_of([(" ".join([title] * int(weight)), text) for title, text in documents])
    found = scores_of(BM25F(WORDS, fields, b=b), corpus_of(documents), query)
    assert found == pytest.approx(scores_of(BM25(WORDS, b=b), repeated, query), rel=1e-6)


@given(documents=TITLED_LETTER_CORPORA, query=LETTER_QUERIES, factor=st.sampled_from([2.0, 8.0]))
def test_weights_of_a_common_factor_are_a_smaller_k1(
    documents: list[tuple[str, str]], query: list[str], factor: float
) -> None:
    corpus = corpus_of(documents)
    one: Any = {"title": {"weight": 2}, "text": {"weight": 1}}
    more: Any = {"title": {"weight": 2 * factor}, "text": {"weight": factor}}
    expected = scores_of(BM25F(WORDS, one, k1=1.0), corpus, query)
    assert scores_of(BM25F(WORDS, more, k1=factor), corpus, query) == pytest.approx(expected, rel=1e-6)


def test_a_word_in_the_title_counts_as_much_as_its_weight() -> None:
    def find_best(title: float) -> int:
        fields: Any = {"title": {"weight": title}, "text": {}}
        corpus = corpus_of([("boat", "sea sea"), ("sea", "boat boat")])
        return int(BM25F(WORDS, fields).index(corpus, MemoryStore()).search(["boat"], 1).documents[0, 0])

    assert (find_best(20), find_best(0.05)) == (0, 1)


def test_a_sweep_over_weights_counts_the_terms_once(harbour: Corpus) -> None:
    store = Counting()
    scores = set()
    for weight, b, k1 in product((0.5, 3.0), (0.1, 0.9), (0.5, 2.0)):
        fields: Any = {"title": {"weight": weight, "b": b}, "text": {}}
        rankings = BM25F(fields=fields, k1=k1).index(harbour, store).search(["ferries to the lighthouse"], 6, store)
        scores.add(rankings.scores.tobytes())
    assert store.built["postings"] == 1
    assert len(scores) == 8


def test_the_order_of_the_fields_does_not_change_the_identity() -> None:
    one: Any = {"text": {"weight": 1}, "title": {"weight": 2}}
    assert repr(BM25F(fields=one)) == repr(BM25F(fields=dict(reversed(one.items())))) == repr(BM25F())


def test_terms_of_fields_and_of_whole_documents_are_cached_separately(harbour: Corpus) -> None:
    store = MemoryStore()
    queries = ["lighthouse ships", "ferry"]
    for retriever in (BM25(), BM25F(), BM25F(fields={"text": {}})):  # type: ignore[dict-item]  # as from YAML
        shared = retriever.index(harbour, store).search(queries, 6, store)
        alone = retriever.index(harbour, MemoryStore()).search(queries, 6)
        np.testing.assert_array_equal(shared.documents, alone.documents)
        np.testing.assert_array_equal(shared.scores, alone.scores)


def test_stored_counts_of_other_fields_are_counted_again(harbour: Corpus, caplog: pytest.LogCaptureFixture) -> None:
    class Mistaken(MemoryStore):
        def arrays(self, key: Key, build: Any) -> Arrays:
            columns = dict(build())
            return columns | {"counts": columns["counts"][:, :1]} if key.kind == POSTINGS else columns

    postings = load_postings(harbour, WORDS, Mistaken(), ["text", "title"])
    assert postings.counts.shape == (len(postings.documents), 2)
    assert "the counts do not have 2 column(s), one for each field" in caplog.text


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"fields": {}}, "at least one field should have a weight above 0"),
        ({"fields": {"title": {"weight": 0}}}, "at least one field should have a weight above 0"),
        ({"fields": {"text": {"weight": -1}}}, "fields.text.weight"),
        ({"fields": {"text": {"b": 1.1}}}, "fields.text.b"),
        ({"fields": {"text": {"boost": 2}}}, "fields.text.boost"),
        ({"variant": "bm25l"}, "variant"),
        ({"b": 2}, "b"),
        ({"k1": math.inf}, "k1"),
    ],
)
def test_wrong_settings_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        BM25F(**wrong)


@pytest.mark.parametrize("weight", [1e6, 1e-300])
@pytest.mark.parametrize("k1", [0.0, 1e6])
def test_the_largest_and_smallest_values_give_numbers(harbour: Corpus, weight: float, k1: float) -> None:
    fields: Any = {"title": {"weight": weight, "b": 1}, "text": {"weight": weight, "b": 1}}
    rankings = BM25F(fields=fields, k1=k1).index(harbour, MemoryStore()).search(["ships and ferries"], 6)
    assert np.isfinite(rankings.scores[rankings.documents != NOTHING]).all()
    assert (rankings.documents[0] != NOTHING).any()
