from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from retrievers.analyzer import Analyzer
from retrievers.base import Corpus, MemoryStore
from retrievers.postings import Postings, postings_of

ANALYZER = Analyzer(identifiers=True, stemmer=None, stopwords=("the",))


def counted(postings: Postings) -> dict[str, dict[int, int]]:
    found = {}
    for position, term in enumerate(postings.vocabulary):
        span = slice(postings.offsets[position], postings.offsets[position + 1])
        found[term] = dict(zip(postings.documents[span].tolist(), postings.counts[span].tolist(), strict=True))
    return found


@settings(max_examples=50, deadline=None)
@given(st.lists(st.text("ab cdE_. the東京", max_size=30), min_size=1, max_size=8))
def test_counts_are_those_of_a_counter(texts: list[str]) -> None:
    corpus = Corpus([str(i) for i in range(len(texts))], texts)
    postings = postings_of(corpus, ANALYZER, MemoryStore())
    expected: dict[str, dict[int, int]] = {}
    for document, text in enumerate(texts):
        for term, count in Counter(ANALYZER.tokens(text)).items():
            expected.setdefault(term, {})[document] = count
    assert counted(postings) == expected
    assert postings.lengths.tolist() == [len(ANALYZER.tokens(text)) for text in texts]


def test_documents_ascend_for_each_term(harbour: Corpus) -> None:
    for documents in counted(postings_of(harbour, ANALYZER, MemoryStore())).values():
        assert list(documents) == sorted(documents)


def test_many_repeats_fit_the_counts() -> None:
    postings = postings_of(Corpus(["a", "b"], ["x " * 70000, "x"]), ANALYZER, MemoryStore())
    assert counted(postings) == {"x": {0: 70000, 1: 1}}


def test_they_are_counted_once_for_each_corpus_and_analyzer(harbour: Corpus) -> None:
    store = MemoryStore()
    assert postings_of(harbour, ANALYZER, store) is postings_of(harbour, ANALYZER, store)
    assert postings_of(harbour, Analyzer(), store) is not postings_of(harbour, ANALYZER, store)
