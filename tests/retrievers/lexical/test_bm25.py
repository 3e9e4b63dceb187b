from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from itertools import product
from pathlib import Path

import bm25s
import numpy as np
import orjson
import pytest
import rank_bm25
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from retrievers.base import NOTHING, Corpus, rank
from retrievers.lexical.analyzer import Analyzer
from retrievers.lexical.bm25 import BM25, BM25Searcher, Variant
from retrievers.store import Arrays, Key, MemoryStore
from tests.strategies.corpora import LETTER_CORPORA

WORDS = Analyzer(stemmer=None, stopwords=None)
VARIANTS: tuple[Variant, ...] = ("lucene", "robertson", "atire", "bm25l", "bm25+")
SETTINGS = list(product(VARIANTS, (0.0, 0.9, 1.5), (0.0, 0.4, 1.0)))


def scores_of(bm25: BM25, texts: list[str], query: str) -> dict[int, float]:
    corpus = Corpus([str(i) for i in range(len(texts))], texts)
    found = bm25.index(corpus, MemoryStore()).search([query], k=len(texts))
    return {int(d): float(s) for d, s in zip(found.documents[0], found.scores[0], strict=True) if d != NOTHING}


def formula(variant: str, tf: int, df: int, n: int, length: float, k1: float, b: float, delta: float) -> float:
    """Each variant as its paper writes it, for one term of one document."""
    norm = 1 - b + b * length
    if variant == "lucene":
        return math.log(1 + (n - df + 0.5) / (df + 0.5)) * tf / (tf + k1 * norm)
    if variant == "robertson":
        return max(math.log((n - df + 0.5) / (df + 0.5)), 0) * tf / (tf + k1 * norm)
    if variant == "atire":
        return math.log(n / df) * (k1 + 1) * tf / (tf + k1 * norm)
    if variant == "bm25+":
        return math.log((n + 1) / df) * ((k1 + 1) * tf / (tf + k1 * norm) + delta)
    c = tf / norm
    return math.log((n + 1) / (df + 0.5)) * (k1 + 1) * (c + delta) / (k1 + c + delta)


@given(LETTER_CORPORA, st.lists(st.sampled_from("abcdefgh"), max_size=5), st.sampled_from(SETTINGS))
def test_scores_are_the_formulas(texts: list[str], query: list[str], setting: tuple[Variant, float, float]) -> None:
    variant, k1, b = setting
    if b == 1:
        texts = [text or "a" for text in texts]
    documents = [text.split() for text in texts]
    mean = sum(map(len, documents)) / len(documents) or 1.0
    delta = 0.7
    expected = {}
    for position, words in enumerate(documents):
        counts = Counter(words)
        parts = [
            formula(variant, counts[t], sum(t in d for d in documents), len(texts), len(words) / mean, k1, b, delta)
            for t in query
            if counts[t]
        ]
        if parts:
            expected[position] = sum(parts)
    found = scores_of(BM25(analyzer=WORDS, k1=k1, b=b, variant=variant, delta=delta), texts, " ".join(query))
    assert found == pytest.approx(expected, abs=1e-5)


@given(LETTER_CORPORA.filter(lambda texts: any(texts)), st.sampled_from("abc"), st.sampled_from(SETTINGS))
def test_scores_are_those_of_bm25s(texts: list[str], query: str, setting: tuple[Variant, float, float]) -> None:
    """bm25s adds to every document what a term adds to documents without it, which moves no document past another."""
    variant, k1, b = setting
    k1 = max(k1, 0.1)
    delta = 0.5 if variant == "bm25l" else 1.0
    peer = bm25s.BM25(method=variant, k1=k1, b=b, delta=delta)
    tokens = [text.split() for text in texts]
    peer.index(tokens, show_progress=False)
    if query not in {word for words in tokens for word in words}:
        return
    theirs = peer.get_scores([query])
    df, n = sum(query in words for words in tokens), len(texts)
    absent = {"bm25l": math.log((n + 1) / (df + 0.5)) * (k1 + 1) * delta / (k1 + delta)}.get(variant, 0.0)
    absent = math.log((n + 1) / df) * delta if variant == "bm25+" else absent
    for document, score in scores_of(BM25(analyzer=WORDS, k1=k1, b=b, variant=variant), texts, query).items():
        assert score == pytest.approx(theirs[document], abs=1e-5)
    for document in set(range(n)) - {d for d, words in enumerate(tokens) if query in words}:
        assert theirs[document] == pytest.approx(absent, abs=1e-5)


def test_scores_are_those_of_rank_bm25_where_the_formula_is_the_same(collections: Path) -> None:
    """rank_bm25's BM25Plus is bm25+, but it gives delta to documents without the term as well."""
    lines = (collections / "cranfield" / "corpus.jsonl").read_bytes().splitlines()[:300]
    texts = [orjson.loads(line)["text"] or "empty" for line in lines]
    queries = [orjson.loads(q)["text"] for q in (collections / "cranfield" / "queries.jsonl").read_bytes().splitlines()]
    tokens = [WORDS.tokens(text) for text in texts]
    peer = rank_bm25.BM25Plus(tokens, k1=1.2, b=0.75, delta=1)
    for query in queries[:30]:
        terms = [t for t in WORDS.tokens(query) if t in peer.idf]
        theirs = peer.get_scores(terms)
        found = scores_of(BM25(analyzer=WORDS, k1=1.2, b=0.75, variant="bm25+"), texts, query)
        for document, score in found.items():
            absent = sum(peer.idf[t] for t in terms if t not in tokens[document])
            assert score == pytest.approx(theirs[document] - absent, rel=1e-6, abs=1e-5)


@given(LETTER_CORPORA, st.integers(1, 5), st.sampled_from(["a", "a b", "c c d", "e f g a"]))
def test_the_best_k_are_exact_under_the_tie_rule(texts: list[str], k: int, query: str) -> None:
    corpus = Corpus([f"d{i}" for i in range(len(texts))], texts)
    searcher = BM25(analyzer=WORDS, k1=0.0, b=0.0).index(corpus, MemoryStore())  # k1 = 0 makes ties
    everything, best = searcher.search([query], len(texts)), searcher.search([query], k)
    hits = [(s, corpus.ids[d]) for d, s in zip(everything.documents[0], everything.scores[0], strict=True) if d >= 0]
    assert hits == sorted(hits, reverse=True)
    assert best.documents[0].tolist()[: len(texts)] == everything.documents[0].tolist()[:k]
    assert (best.documents[0][len(hits) :] == NOTHING).all()


def test_published_figures_hold_on_scifact(collections: Path) -> None:
    """BM25 with k1 0.9 and b 0.4 reaches nDCG@10 0.679 and Recall@100 0.925 in Anserini (flat index)."""
    import ir_measures

    folder = collections / "scifact"
    documents = [orjson.loads(line) for line in (folder / "corpus.jsonl").read_bytes().splitlines()]
    rows = [line.split("\t") for line in (folder / "qrels" / "test.tsv").read_text().splitlines()[1:]]
    judged = {query for query, _, _ in rows}
    queries = [q for q in map(orjson.loads, (folder / "queries.jsonl").read_bytes().splitlines()) if q["_id"] in judged]
    corpus = Corpus([d["_id"] for d in documents], [d["text"] for d in documents], [d["title"] for d in documents])
    found = BM25(k1=0.9, b=0.4).index(corpus, MemoryStore()).search([q["text"] for q in queries], k=100)
    run = {
        query["_id"]: {corpus.ids[d]: float(s) for d, s in zip(ds, ss, strict=True) if d != NOTHING}
        for query, ds, ss in zip(queries, found.documents, found.scores, strict=True)
    }
    qrels: dict[str, dict[str, int]] = {}
    for query, document, grade in rows:
        qrels.setdefault(query, {})[document] = int(grade)
    measures = [ir_measures.nDCG @ 10, ir_measures.R @ 100]
    ndcg, recall = (ir_measures.calc_aggregate(measures, qrels, run)[m] for m in measures)
    assert ndcg >= 0.67
    assert recall >= 0.91


@pytest.mark.parametrize(
    "setting", [{"k1": -1}, {"b": 1.1}, {"b": -0.1}, {"variant": "bm26"}, {"delta": -1}, {"k2": 1}]
)
def test_values_out_of_range_are_refused(setting: dict[str, object]) -> None:
    with pytest.raises((ValidationError, TypeError), match=next(iter(setting))):
        BM25(**setting)  # type: ignore[arg-type]  # any value, as from YAML


@pytest.mark.parametrize("value", [math.inf, math.nan, 1e39, 1.1e6])
@pytest.mark.parametrize("name", ["k1", "b", "delta"])
def test_values_that_32_bits_do_not_hold_are_refused(name: str, value: float) -> None:
    with pytest.raises(ValidationError, match=name):
        BM25(**{name: value})  # type: ignore[arg-type]  # any value, as from YAML


@pytest.mark.parametrize(("variant", "k1", "delta"), list(product(VARIANTS, (0.0, 1e6), (0.0, 1e6))))
def test_the_largest_values_give_numbers(harbour: Corpus, variant: Variant, k1: float, delta: float) -> None:
    searcher = BM25(variant=variant, k1=k1, b=1, delta=delta).index(harbour, MemoryStore())
    found = searcher.search(["ships and ferries", "lighthouse " * 100], 6)
    assert np.isfinite(found.scores[found.documents != NOTHING]).all()


def test_settings_of_weights_share_the_counts(harbour: Corpus) -> None:
    store = MemoryStore()
    searchers = [BM25(k1=k1, b=b).index(harbour, store) for k1, b in product((0.5, 2.0), (0.0, 1.0))]
    assert all(searcher.postings is searchers[0].postings for searcher in searchers)
    assert len({searcher.search(["lighthouse ships"], 3).scores.tobytes() for searcher in searchers}) > 1
    assert np.isfinite(searchers[0].search(["lighthouse"], 1).scores).all()


@pytest.fixture(scope="module")
def many() -> Corpus:
    """Return more documents than are scored at a time, in two blocks, with ids in no order."""
    rng = np.random.default_rng(0)
    ranks = np.minimum(rng.zipf(1.2, (50_000, 6)), 2_000)
    return Corpus([f"{i:x}" for i in rng.permutation(50_000)], [" ".join(f"w{rank}" for rank in row) for row in ranks])


@pytest.fixture(scope="module")
def counts() -> MemoryStore:
    """Return a store in which the terms of many documents are counted once."""
    return MemoryStore()


MANY_QUERIES = [f"w{a} w{b} w{a} unknown w{a + b}" for a, b in product((1, 2, 7, 50, 300, 1_999), range(1, 30))]


def everything(searcher: BM25Searcher, query: str) -> np.ndarray:
    """Return the sum of each document's gains, a term of the query after the other."""
    postings, (idf, norm, _, _) = searcher.postings, searcher.weights
    total = np.zeros(len(postings.lengths), dtype=np.float32)
    for term in postings.find_terms([query], WORDS)[0]:
        span = slice(postings.offsets[term], postings.offsets[term + 1])
        documents, counts = postings.documents[span], postings.counts[span].astype(np.float32)
        total[documents] += idf[term] * (counts / (counts + norm[documents]))
    return total


@pytest.mark.parametrize(("k1", "depth"), [(0.9, 10), (0.9, 2_000), (0.0, 100)])
def test_the_best_of_many_documents_are_those_of_scoring_and_ranking_them_all(
    many: Corpus, counts: MemoryStore, k1: float, depth: int
) -> None:
    searcher = BM25(analyzer=WORDS, k1=k1).index(many, counts)
    found = searcher.search(MANY_QUERIES, depth)
    for position in range(0, len(MANY_QUERIES), 9):
        total = everything(searcher, MANY_QUERIES[position])
        documents = np.where(total > 0, np.arange(len(many), dtype=np.int32), NOTHING)
        best = rank(documents[None], total[None], many.tie_order, depth)
        np.testing.assert_array_equal(found.documents[position], best.documents[0])
        np.testing.assert_array_equal(found.scores[position], best.scores[0])


def test_documents_with_score_zero_are_in_tie_break_order(many: Corpus) -> None:
    """In robertson a term of more than half of the documents weighs nothing, however often it is there."""
    texts = [f"{text} common{' common' * (position % 3)}" for position, text in enumerate(many.texts)]
    corpus = Corpus(many.ids, texts)
    found = BM25(analyzer=WORDS, variant="robertson").index(corpus, MemoryStore()).search(["common", "common w7"], 50)
    assert found.documents[0].tolist() == np.argsort(corpus.tie_order)[:50].tolist()
    assert (found.scores[0] == 0).all()
    assert (found.scores[1] > 0).all()


def test_threads_and_company_change_no_byte(many: Corpus, counts: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    searcher = BM25(analyzer=WORDS).index(many, counts)
    made = set()
    for threads in (1, 2, 5):
        monkeypatch.setattr("numba.config.NUMBA_NUM_THREADS", threads)
        found = searcher.search(MANY_QUERIES, 30)
        made.add((found.documents.tobytes(), found.scores.tobytes()))
    assert len(made) == 1
    alone = searcher.search(MANY_QUERIES[40:41], 30)
    np.testing.assert_array_equal(alone.documents[0], found.documents[40])
    np.testing.assert_array_equal(alone.scores[0], found.scores[40])


def test_counts_may_be_mapped_from_a_file(harbour: Corpus, tmp_path: Path) -> None:
    class Mapped(MemoryStore):
        def arrays(self, key: Key, build: Callable[[], Arrays]) -> Arrays:
            for name, array in build().items():
                np.save(tmp_path / f"{name}.npy", array)
            return {path.stem: np.load(path, mmap_mode="r") for path in tmp_path.glob("*.npy")}

    mapped, kept = (BM25().index(harbour, store).search(["lighthouse ships"], 3) for store in (Mapped(), MemoryStore()))
    np.testing.assert_array_equal(mapped.documents, kept.documents)
    np.testing.assert_array_equal(mapped.scores, kept.scores)
