"""The stand-in for a search cluster: its documents, and its search against this program's own."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.stand_in.documents import Documents
from benchmarks.stand_in.search import Index, build_index
from benchmarks.stand_in.server import Api, RequestError
from retrievers.base import NOTHING, Corpus
from retrievers.lexical.analyzer import Analyzer
from retrievers.lexical.bm25 import BM25
from retrievers.store import NoStore

COUNT = 601


@pytest.fixture(scope="module")
def index() -> Index:
    return build_index(Documents(COUNT))


def test_a_text_has_the_words_of_its_document(index: Index) -> None:
    documents = index.documents
    for number in (0, 7, COUNT - 1):
        assert documents.parse_words(documents.write_text(number)) == documents.list_words(number).tolist()
    assert documents.parse_words("unknown words") == []


def test_full_text_is_bm25(index: Index) -> None:
    texts = [index.documents.write_text(number) for number in range(COUNT)]
    questions = [text for _, text, _ in index.documents.iter_questions(20)]
    bm25 = BM25(Analyzer(stemmer=None, stopwords=None), k1=1.2, b=0.75)
    rankings = bm25.index(Corpus([str(i) for i in range(COUNT)], texts), NoStore()).search(questions, COUNT)
    for row, question in enumerate(questions):
        hits = dict(index.search_text(question, COUNT))
        places = rankings.documents[row][rankings.documents[row] != NOTHING]
        assert sorted(hits) == sorted(places.tolist())
        np.testing.assert_allclose(rankings.scores[row, : len(places)], [hits[i] for i in places.tolist()], rtol=1e-5)
        assert index.search_text(question, 5) == index.search_text(question, COUNT)[:5]


def test_vectors_are_compared_by_cosine_and_more_candidates_find_more(index: Index) -> None:
    documents, found = index.documents, []
    vectors = np.stack([documents.word_vectors[documents.list_words(number)].sum(axis=0) for number in range(COUNT)])
    for _, question, _ in documents.iter_questions(20):
        vector = documents.word_vectors[documents.parse_words(question)].mean(axis=0)
        cosines = vectors @ vector / np.linalg.norm(vectors, axis=1) / np.linalg.norm(vector)
        exact = index.search_vector(vector.tolist(), COUNT)
        np.testing.assert_allclose([score for _, score in exact], np.sort(cosines)[::-1], atol=1e-5)
        nearest = {number for number, _ in exact[:10]}
        sizes = [
            len(nearest & {number for number, _ in index.search_vector(vector.tolist(), 10, n)}) for n in (1, 10, 999)
        ]
        assert sizes == sorted(sizes)
        found.append(sizes)
    assert np.mean(found, axis=0)[0] < np.mean(found, axis=0)[2] == 10


def test_the_api_answers_as_an_engine_does(index: Index) -> None:
    api = Api(index)
    question = next(iter(index.documents.iter_questions(1)))[1]
    query = {"bool": {"must": {"match": {"text": question}}}}
    _, reply = api.answer("/articles/_search", {"query": query, "size": 3, "_source": False})
    hits = [(hit["_id"], hit["_score"]) for hit in reply["hits"]["hits"]]
    assert hits == [(f"d{number}", score) for number, score in index.search_text(question, 3)]
    assert api.answer("/articles/_count", None)[1]["count"] == COUNT
    assert api.answer("/articles/_doc/d7", None)[1]["_source"] == {"text": index.documents.write_text(7)}
    assert api.answer(f"/articles/_doc/d{COUNT}", None)[0] == 404
    both = {"hybrid": {"queries": [{"match": {"text": question}}, {"match": {"text": question}}]}}
    _, fused = api.answer("/articles/_search", {"query": both, "size": 3})
    assert fused["hits"]["hits"][0]["_score"] == 1
    with pytest.raises(RequestError, match=r"no such index \[other\]"):
        api.answer("/other/_search", {})
    with pytest.raises(RequestError, match="unknown query"):
        api.answer("/articles/_search", {"query": {"bool": {**query["bool"], "filter": [{"term": {"year": 2000}}]}}})
    with pytest.raises(RequestError, match="unknown query"):
        api.answer("/articles/_search", {"query": {"fuzzy": {}}})
