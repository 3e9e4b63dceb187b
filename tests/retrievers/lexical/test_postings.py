from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrievers.base import Corpus
from retrievers.lexical import postings as module
from retrievers.lexical import term_ids
from retrievers.lexical.analyzer import Analyzer
from retrievers.lexical.postings import Column, Postings, load_postings
from retrievers.store import Arrays, Key, MemoryStore

ANALYZER = Analyzer(identifiers=True, stemmer=None, stopwords=("the",))


def counted(postings: Postings) -> dict[str, dict[int, int]]:
    found = {}
    for position, term in enumerate(postings.vocabulary):
        span = slice(postings.offsets[position], postings.offsets[position + 1])
        found[term] = dict(zip(postings.documents[span].tolist(), postings.counts[span].tolist(), strict=True))
    return found


@given(st.lists(st.text("ab cdE_. the東京", max_size=30), min_size=1, max_size=8))
def test_counts_are_those_of_a_counter(texts: list[str]) -> None:
    corpus = Corpus([str(i) for i in range(len(texts))], texts)
    postings = load_postings(corpus, ANALYZER, MemoryStore())
    expected: dict[str, dict[int, int]] = {}
    for document, text in enumerate(texts):
        for term, count in Counter(ANALYZER.tokens(text)).items():
            expected.setdefault(term, {})[document] = count
    assert counted(postings) == expected
    assert postings.lengths.tolist() == [len(ANALYZER.tokens(text)) for text in texts]


def test_documents_ascend_for_each_term(harbour: Corpus) -> None:
    for documents in counted(load_postings(harbour, ANALYZER, MemoryStore())).values():
        assert list(documents) == sorted(documents)


def test_many_repeats_fit_the_counts() -> None:
    postings = load_postings(Corpus(["a", "b"], ["x " * 70000, "x"]), ANALYZER, MemoryStore())
    assert counted(postings) == {"x": {0: 70000, 1: 1}}


def test_they_are_counted_once_for_each_corpus_and_analyzer(harbour: Corpus) -> None:
    store = MemoryStore()
    assert load_postings(harbour, ANALYZER, store) is load_postings(harbour, ANALYZER, store)
    assert load_postings(harbour, Analyzer(), store) is not load_postings(harbour, ANALYZER, store)


def test_the_number_of_threads_and_the_size_of_chunks_change_no_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    texts = [" ".join(f"w{word}" for word in rng.zipf(1.3, rng.integers(0, 40)) % 500) for _ in range(300)]
    corpus = Corpus([str(position) for position in range(len(texts))], [*texts[:-1], "w1 " * 300])
    made = set()
    for threads, size in [(1, 1 << 20), (1, 1000), (2, 1000), (3, 5000), (16, 1)]:
        monkeypatch.setattr("numba.config.NUMBA_NUM_THREADS", threads)
        monkeypatch.setattr(term_ids, "CHUNK_CHARACTERS", size)
        postings = load_postings(corpus, ANALYZER, MemoryStore())
        columns = (postings.offsets, postings.documents, postings.counts, postings.lengths)
        made.add((*postings.vocabulary, *(column.tobytes() for column in columns)))
        assert postings.counts.dtype == np.uint16
    assert len(made) == 1


def test_a_corpus_without_documents_or_terms_has_none() -> None:
    for texts in ([], ["", " - "]):
        postings = load_postings(Corpus([str(i) for i in range(len(texts))], texts), ANALYZER, MemoryStore())
        assert counted(postings) == {}
        assert postings.lengths.tolist() == [0] * len(texts)


class Stored(MemoryStore):
    """A store in which a column of postings was changed after they were counted."""

    def __init__(self, name: str, change: Callable[[Column], Column]) -> None:
        super().__init__()
        self._name, self._change = name, change

    def arrays(self, key: Key, build: Callable[[], Arrays]) -> Arrays:
        columns = dict(build())
        columns[self._name] = self._change(columns[self._name].copy())
        columns[self._name].flags.writeable = False
        return columns


def with_value(position: int, value: int) -> Callable[[Column], Column]:
    def change(column: Column) -> Column:
        column[position] = value
        return column

    return change


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("documents", with_value(0, 10**9)),
        ("documents", with_value(0, -5)),
        ("documents", with_value(-1, 10**6)),
        ("documents", lambda documents: documents[::-1].copy()),
        ("documents", lambda documents: documents[:-1].copy()),
        ("offsets", with_value(0, -3)),
        ("offsets", with_value(1, 2**40)),
        ("offsets", with_value(-1, 10**9)),
        ("offsets", lambda offsets: offsets[:-1].copy()),
        ("lengths", lambda lengths: lengths[:-1].copy()),
        ("counts", lambda counts: counts[:-1].copy()),
        ("vocabulary", with_value(0, 10)),
        ("vocabulary", with_value(0, 255)),
    ],
)
def test_stored_postings_out_of_bounds_never_reach_compiled_code(
    harbour: Corpus, name: str, change: Callable[[Column], Column], caplog: pytest.LogCaptureFixture
) -> None:
    intact = load_postings(harbour, ANALYZER, MemoryStore())
    postings = load_postings(harbour, ANALYZER, Stored(name, change))
    assert counted(postings) == counted(intact)
    assert postings.lengths.tolist() == intact.lengths.tolist()
    (line,) = caplog.messages
    assert line.startswith("the stored postings are damaged; counting the terms again: ")


@pytest.mark.parametrize("size", [1, 2, 7, 1 << 20])
def test_misplaced_documents_are_detected_at_any_block_size(
    size: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "_BLOCK", size)
    corpus = Corpus(["a", "b", "c", "d"], ["x y", "x z", "y x", "z x x"])
    documents = load_postings(corpus, ANALYZER, MemoryStore()).documents.tolist()
    assert documents == [0, 1, 2, 3, 0, 2, 1, 3]
    for position in (1, 2, 3, 5, 7):  # where a document follows another of its term
        caplog.clear()
        load_postings(corpus, ANALYZER, Stored("documents", with_value(position, documents[position - 1])))
        assert len(caplog.messages) == 1


def test_stored_postings_are_loaded_without_compiled_code(harbour: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    intact = load_postings(harbour, ANALYZER, MemoryStore())
    kept = {name: getattr(intact, name) for name in ("offsets", "documents", "counts", "lengths")}
    kept["vocabulary"] = np.frombuffer("\n".join(intact.vocabulary).encode(), np.uint8)
    for name in ("retrievers.compiled.postings", "retrievers.compiled.term_ids", "numba"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr(MemoryStore, "arrays", lambda *_: kept)
    assert counted(load_postings(harbour, ANALYZER, MemoryStore())) == counted(intact)
