"""Filters: how they are written, which documents pass, and that retrievers return the best of these."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrievers.base import NOTHING, Corpus, QueryText, Rankings, Retriever, RetrieverError
from retrievers.capabilities import derive_capabilities
from retrievers.composed.agentic import Agentic
from retrievers.composed.expanded import Expanded
from retrievers.composed.fusion import Hybrid
from retrievers.composed.reranked import Reranked
from retrievers.engines.qdrant import Qdrant
from retrievers.filters import (
    LARGEST_CACHE,
    SELECTIVITY,
    Filter,
    FilterError,
    Metadata,
    find_kind,
    group_by_selectivity,
    parse_filter,
)
from retrievers.lexical.bm25 import BM25
from retrievers.lexical.rank_bm25 import RankBM25
from retrievers.runs.run_file import RunFile
from retrievers.search import search_cached
from retrievers.store import MemoryStore, NoStore
from retrievers.vectors.dense import Dense
from tests.retrievers.hits import list_rows
from tests.retrievers.scripted import Echo, Overlap
from tests.retrievers.test_contract import BY_WORDS, EXACT, FLAT, QDRANT, WordHashes
from tests.retrievers.vectors.test_dense import Numbers, corpus_of, texts_of
from tests.strategies.filters import FILTERS, METADATA
from tests.strategies.settings import at_most
from tests.strategies.texts import WORDS


def passes(metadata: Mapping[str, Any], conditions: Mapping[str, Any]) -> bool:
    """Return whether a document passes, by the definition."""
    for field, wanted in conditions.items():
        value = metadata.get(field)
        values = value if isinstance(value, list) else [] if value is None else [value]
        if isinstance(wanted, dict):
            some = any(wanted.get("from", v) <= v <= wanted.get("to", v) for v in values)
        else:
            some = any(v in (wanted if isinstance(wanted, list) else [wanted]) for v in values)
        if not some:
            return False
    return True


@given(st.lists(METADATA, max_size=8), FILTERS)
def test_a_document_passes_if_all_conditions_hold(rows: list[dict[str, Any]], conditions: dict[str, Any]) -> None:
    own = parse_filter(conditions)
    assert (own is None) == (not conditions)
    if own is not None:
        mask = Metadata(rows, ()).select(own)
        assert mask.tolist() == [passes(row, conditions) for row in rows]


@given(FILTERS)
def test_the_text_of_a_filter_reads_back_as_the_filter(conditions: dict[str, Any]) -> None:
    own = parse_filter(conditions)
    assert parse_filter(json.dumps(conditions)) == own
    assert parse_filter("" if own is None else str(own)) == own
    if own is not None:
        assert parse_filter(dict(reversed(conditions.items()))) == own


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("{year", r"invalid JSON \("),
        ([2000], r'expected an object such as \{"year": \{"from": 2000\}\}, found \[2000\]'),
        ({"year": {"form": 2000}}, "year: a range can only have from and to, not form"),
        ({"year": {}}, "year: the range has neither from nor to"),
        ({"year": {"from": None, "to": None}}, "year: the range has neither from nor to"),
        ({"year": {"from": 2010, "to": 2000}}, r"year: the range begins at 2010 \(from\), after its end 2000 \(to\)"),
        ({"year": {"from": 2000, "to": "x"}}, "year: mixes number and text values; use one type"),
        ({"year": [2000, "2001"]}, "year: mixes number and text values; use one type"),
        ({"fresh": {"from": True}}, "fresh: a range needs numbers or text, found {'from': True}"),
        ({"year": []}, "year: the list of values is empty"),
        ({"year": [[1]]}, r"year: \[1\] is neither text, a number nor a boolean"),
        ({"year": float("inf")}, "year: inf is neither text, a number nor a boolean"),
    ],
)
def test_a_malformed_filter_is_refused_with_the_field(value: object, problem: str) -> None:
    with pytest.raises(FilterError, match=f"^{problem}"):
        parse_filter(value)


@pytest.mark.parametrize("value", [None, "", " ", {}, {"year": None}, float("nan")])
def test_a_query_without_conditions_has_no_filter(value: object) -> None:
    assert parse_filter(value) is None


def test_values_of_different_types_are_never_equal() -> None:
    rows = [{"a": True, "b": 1, "c": "1"}, {"a": False, "b": 0.5, "c": date(2020, 5, 17)}, {"b": float("nan"), "c": ""}]
    metadata = Metadata(rows, ("a", "b", "c"))

    def select(conditions: dict[str, object]) -> list[bool]:
        own = parse_filter(conditions)
        assert own is not None
        return metadata.select(own).tolist()

    assert [find_kind(value) for value in (True, 1, 0.5, "1")] == ["boolean", "number", "number", "text"]
    assert select({"a": True}) == select({"b": 1.0}) == select({"c": "1"}) == [True, False, False]
    assert not any([*select({"a": 1}), *select({"b": "1"}), *select({"c": 1}), *select({"b": True})])
    assert select({"c": {"from": "2020-01-01", "to": "2020-12-31"}}) == [False, True, False]
    assert select({"c": {"to": "9"}}) == [True, True, False]  # an empty text is missing
    with pytest.raises(FilterError, match="d: documents have number and text values; use one type"):
        Metadata([{"d": 1}, {"d": "1"}], ()).read("d")


def test_masks_are_computed_once_and_only_the_latest_are_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    metadata, computed = Metadata([{"n": n} for n in range(3)], ("n",)), list[Filter]()
    compute = Metadata._compute_mask
    monkeypatch.setattr(Metadata, "_compute_mask", lambda self, own: (computed.append(own), compute(self, own))[1])
    filters = [parse_filter({"n": n}) for n in range(LARGEST_CACHE + 1)]
    masks, at = metadata.stack([filters[1], None, filters[0], filters[1]])
    assert (masks.tolist(), at.tolist()) == ([[False, True, False], [True, False, False]], [0, -1, 1, 0])
    metadata.stack([filters[1]])
    assert len(computed) == 2
    metadata.stack(filters)
    metadata.stack([filters[0]])  # it was dropped for the last one
    assert len(computed) == LARGEST_CACHE + 2
    assert pickle.loads(pickle.dumps(metadata)).fingerprint == copy.deepcopy(metadata).fingerprint


def test_the_fingerprint_follows_the_values_of_the_fields_alone() -> None:
    rows: list[dict[str, Any]] = [{"a": 1, "b": "x"}, {"a": 2, "b": ["x", "y"]}, {}]
    own = Metadata(rows, ("a", "b")).fingerprint
    changed = [[{**rows[0], "a": 3}, *rows[1:]], [rows[0], {"a": 2, "b": ["x"]}, {}], [*rows[1:], rows[0]]]
    assert len({own, *(Metadata(other, ("a", "b")).fingerprint for other in changed)}) == 4
    assert Metadata([{**row, "c": 1} for row in rows], ("a", "b")).fingerprint == own


APPLIED = {name: retriever for name, retriever in EXACT.items() if derive_capabilities(retriever).filters}
ALONE = {
    name: retriever for name, retriever in APPLIED.items() if not isinstance(retriever, (Expanded, Hybrid, Reranked))
}


def filter_by_hand(rankings: Rankings, masks: Sequence[Sequence[bool]], k: int) -> list[list[tuple[int, float]]]:
    """Return the first k hits of each ranking that pass, with their scores."""
    rows = zip(rankings.documents.tolist(), rankings.scores.tolist(), masks, strict=True)
    return [
        [(d, s) for d, s in zip(docs, scores, strict=True) if d != NOTHING and mask[d]][:k]
        for docs, scores, mask in rows
    ]


def list_hits(rankings: Rankings) -> list[list[tuple[int, float]]]:
    return filter_by_hand(
        rankings, [[True] * (int(rankings.documents.max(initial=0)) + 1)] * len(rankings), rankings.depth
    )


def check_filtered_rankings(retriever: Retriever, data: st.DataObject) -> None:
    """Check that rankings under filters are the full ones without the documents that fail."""
    texts = data.draw(st.lists(st.lists(WORDS, max_size=5).map(" ".join), min_size=1, max_size=12))
    rows = data.draw(st.lists(METADATA, min_size=len(texts), max_size=len(texts)))
    corpus = Corpus(
        [f"d{i}" for i in range(len(texts))], texts, metadata=rows, filter_fields=("language", "tags", "year")
    )
    asked = data.draw(st.lists(st.tuples(st.lists(WORDS, max_size=3).map(" ".join), FILTERS), max_size=4))
    k = data.draw(st.integers(1, 5))
    searcher = retriever.index(corpus, MemoryStore())
    full = searcher.search([text for text, _ in asked], len(texts))
    queries = [QueryText(text, str(i), own=parse_filter(own)) for i, (text, own) in enumerate(asked)]
    masks = [[passes(row, own) for row in rows] for _, own in asked]
    assert list_hits(searcher.search(queries, k)) == filter_by_hand(full, masks, k)


@pytest.mark.parametrize("retriever", [pytest.param(r, id=name) for name, r in ALONE.items()])
@settings(max_examples=at_most(10))
@given(data=st.data())
def test_the_ranking_is_the_full_one_without_the_documents_that_fail(retriever: Retriever, data: st.DataObject) -> None:
    check_filtered_rankings(retriever, data)


@pytest.mark.parametrize("retriever", [pytest.param(r, id=name) for name, r in (FLAT | BY_WORDS).items()])
@settings(max_examples=at_most(4))  # each opens an engine, which takes a tenth of a second
@given(data=st.data())
def test_the_ranking_of_an_engine_is_the_full_one_without_the_documents_that_fail(
    retriever: Retriever, data: st.DataObject
) -> None:
    check_filtered_rankings(retriever, data)


def test_many_queries_with_filters_of_many_are_searched_like_few() -> None:
    rng = np.random.default_rng(3)
    words = ["red", "boat", "blue", "house", "tree", "sea"]
    texts = [" ".join(rng.choice(words, 4)) for _ in range(300)]
    corpus = Corpus([f"d{i}" for i in range(300)], texts, metadata=[{"n": i % 97} for i in range(300)])
    queries = [
        QueryText(words[i % 6], str(i), own=None if i % 5 == 0 else parse_filter({"n": {"to": i}})) for i in range(150)
    ]
    for retriever in (BM25(), Dense(WordHashes())):
        searcher = retriever.index(corpus, MemoryStore())
        together = searcher.search(queries, 10)
        for query, documents in zip(queries, together.documents.tolist(), strict=True):
            assert documents == searcher.search([query], 10).documents[0].tolist()
        full = searcher.search([str(query) for query in queries], 300)
        masks = [[query.filter is None or i % 97 <= int(query.id) for i in range(300)] for query in queries]
        assert list_hits(together) == filter_by_hand(full, masks, 10)


SEA = Corpus(
    ["a", "b", "c", "d"],
    ["sea boat", "sea", "boat sea sea", "tree"],
    metadata=[{"year": 2001}, {"year": 2002}, {"year": 2003}, {"year": 2004}],
    filter_fields=("year",),
)
LATE = QueryText("sea", "q1", own=parse_filter({"year": {"from": 2002}}))


def numbers(n: int = 400) -> tuple[Corpus, list[str]]:
    """Return random points, with fields by which 1 in 200, 50, 10 and 2 pass, and queries near some of them."""
    vectors = np.random.default_rng(0).normal(size=(n, 8))
    plain = corpus_of(vectors)
    rows = [{f"of {size}": i % size for size in SIZES} for i in range(n)]
    return replace(plain, metadata=rows, filter_fields=tuple(rows[0])), texts_of(vectors[:20] + 0.1)


SIZES = (200, 50, 10, 2)
BANDS = dict(zip(SIZES, (name for _, name in SELECTIVITY), strict=True))


def filter_queries(texts: Sequence[str], conditions: object) -> list[str]:
    return [QueryText(text, str(i), own=parse_filter(conditions)) for i, text in enumerate(texts)]


APPROXIMATE: dict[str, Retriever] = {
    "ivf": Dense(Numbers(), index_type="ivf", nlist=20, nprobe=20),  # all cells, so that it is exact
    "hnsw": Dense(Numbers(), index_type="hnsw", ef_search=400),
    "pq": Dense(Numbers(), index_type="pq", pq_m=8),
    "int8": Dense(Numbers(), quantization="int8", rescore=True, oversampling=4),
    "binary": Dense(Numbers(), quantization="binary", rescore=True, oversampling=4),
}
if QDRANT:
    APPROXIMATE["qdrant int8"] = Qdrant(Numbers(), index_type="flat", quantization="int8")


@pytest.mark.parametrize("name", APPROXIMATE)
@pytest.mark.parametrize("size", SIZES)
def test_an_approximate_index_returns_documents_that_pass(name: str, size: int) -> None:
    corpus, texts = numbers()
    queries = filter_queries(texts, {f"of {size}": 0})
    exact = Dense(Numbers()).index(corpus, MemoryStore()).search(queries, 10).documents
    rankings = APPROXIMATE[name].index(corpus, MemoryStore()).search(queries, 10).documents
    assert all(document % size == 0 for document in rankings[rankings != NOTHING].tolist())
    assert np.count_nonzero(rankings != NOTHING) == np.count_nonzero(exact != NOTHING) or name == "hnsw"
    if name == "ivf":
        assert rankings.tolist() == exact.tolist()
    assert np.count_nonzero(np.isin(rankings[rankings != NOTHING], exact)) > 0


def test_recall_and_short_answers_are_given_by_selectivity() -> None:
    corpus, texts = numbers()
    queries = [q for size in SIZES for q in filter_queries(texts[:5], {f"of {size}": 0})]
    queries += filter_queries(texts, None)
    own, store = Dense(Numbers(), index_type="ivf", nlist=40, nprobe=1), MemoryStore()
    figures = search_cached(own, corpus, queries, 10, store).diagnostics
    exact = Dense(Numbers()).index(corpus, store).search(queries, 10).documents
    nearly = own.index(corpus, store).search(queries, 10).documents
    for place, name in enumerate(BANDS.values()):
        rows = range(5 * place, 5 * place + 5)
        there = [[d for d in exact[row].tolist() if d != NOTHING] for row in rows]
        recalls = [np.isin(best, nearly[row]).mean() for row, best in zip(rows, there, strict=True)]
        short = [np.count_nonzero(nearly[row] != NOTHING) < len(best) for row, best in zip(rows, there, strict=True)]
        assert figures[f"index_recall_at_10.{name}"] == pytest.approx(np.mean(recalls))
        assert figures[f"short_answers_at_10.{name}"] == sum(short)
    assert figures["short_answers_at_10.filter_up_to_1_percent"] > 0
    plain = search_cached(own, corpus, texts, 10, store).diagnostics
    assert plain.keys() == {"index_recall_at_10", "short_answers_at_10"}


@pytest.mark.parametrize(
    ("share", "name"),
    [
        (0.0, "filter_up_to_1_percent"),
        (0.01, "filter_up_to_1_percent"),
        (0.02, "filter_1_to_5_percent"),
        (0.05, "filter_1_to_5_percent"),
        (0.2, "filter_5_to_20_percent"),
        (0.21, "filter_over_20_percent"),
        (1.0, "filter_over_20_percent"),
    ],
)
def test_a_band_of_selectivity_includes_its_upper_end(share: float, name: str) -> None:
    groups = group_by_selectivity([float("nan"), share, share])
    assert {band: rows.tolist() for band, rows in groups.items()} == {name: [1, 2]}


def test_a_hybrid_fuses_only_hits_that_pass_the_filter() -> None:
    parts: dict[str, Retriever] = {"cosine": Dense(WordHashes()), "dot": Dense(WordHashes(), metric="dot")}
    hybrid = Hybrid(parts, normalization="zscore", weights=[0.3, 0.7])
    late = Corpus(SEA.ids[1:], SEA.texts[1:])
    expected = hybrid.index(late, MemoryStore()).search(["sea"], 3)
    for store in (MemoryStore(), NoStore()):
        rankings = search_cached(hybrid, SEA, [LATE], 3, store)
        assert (rankings.documents - 1).tolist() == expected.documents.tolist()
        assert rankings.scores.tolist() == expected.scores.tolist()


def test_variants_of_a_query_are_searched_for_with_its_filter() -> None:
    expanded = Expanded(BM25(), Echo(), depth=4, multi_query_prompt="boat {query}")
    queries = [LATE, QueryText("sea", "q2")]
    rankings = search_cached(expanded, SEA, queries, 4, MemoryStore())
    assert [sorted(document for document, _ in row) for row in list_rows(rankings)] == [[1, 2], [0, 1, 2]]


def test_a_reranker_scores_the_documents_that_pass() -> None:
    rankings = search_cached(Reranked(BM25(), Overlap(), depth=4), SEA, [LATE], 4, MemoryStore())
    assert sorted(rankings.documents[0].tolist()) == [NOTHING, NOTHING, 1, 2]


@pytest.mark.parametrize(
    ("retriever", "name"),
    [
        (RankBM25(), "RankBM25"),
        (Hybrid({"a": BM25(), "b": RankBM25()}), "RankBM25"),
        (Reranked(Hybrid({"a": BM25(), "b": RankBM25()}), Overlap()), "RankBM25"),
        (Agentic(BM25(), Echo(), prompt="{query}\n{searches}"), "Agentic"),
    ],
)
def test_a_retriever_that_does_not_apply_filters_refuses_them(retriever: Retriever, name: str) -> None:
    with pytest.raises(RetrieverError, match=rf"^{name} does not apply filters, but 1 of 2 queries .* choose bm25"):
        search_cached(retriever, SEA, [LATE, QueryText("boat", "q2")], 3, MemoryStore())
    search_cached(retriever, SEA, [QueryText("boat", "q2")], 3, MemoryStore())
    without = Hybrid({"a": BM25(), "b": RankBM25()}, weights=[1.0, 0.0])  # the second part is not searched
    assert search_cached(without, SEA, [LATE], 3, MemoryStore()).documents[0, 0] == 2


def test_a_run_keeps_the_hits_of_the_system_that_wrote_it(tmp_path: Path) -> None:
    path = tmp_path / "run.trec"
    path.write_text("q1 Q0 a 1 2.0 other\nq1 Q0 b 2 1.0 other\n")
    assert search_cached(RunFile(str(path)), SEA, [LATE], 2, MemoryStore()).documents.tolist() == [[0, 1]]


def test_rankings_are_cached_by_the_filters_and_the_metadata() -> None:
    store = MemoryStore()
    other = replace(SEA, metadata=[{"year": 2001}] * 4)
    plain, early = QueryText("sea", "q1"), QueryText("sea", "q1", own=parse_filter({"year": 2001}))
    tops = [
        [d for d in search_cached(BM25(), corpus, [query], 4, store).documents[0].tolist() if d != NOTHING]
        for corpus in (SEA, other)
        for query in (plain, LATE, early)
    ]
    assert tops == [[2, 1, 0], [2, 1], [0], [2, 1, 0], [], [2, 1, 0]]
