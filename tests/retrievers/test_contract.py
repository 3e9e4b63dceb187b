"""What every retriever promises, whatever is behind it."""

from __future__ import annotations

import copy
import json
import pickle
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from typing import ClassVar, TypeVar

import httpx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from retrievers.base import NOTHING, Corpus, Rankings, Retriever, Searcher
from retrievers.capabilities import Capabilities, is_live
from retrievers.composed.agentic import Agentic
from retrievers.composed.expanded import Expanded
from retrievers.composed.fusion import Hybrid
from retrievers.composed.reranked import Reranked
from retrievers.encoders.base import Embedded, Vectors
from retrievers.encoders.lsa import LSAEncoder
from retrievers.engines.qdrant import Qdrant
from retrievers.lexical.analyzer import Analyzer
from retrievers.lexical.bm25 import BM25
from retrievers.lexical.bm25f import BM25F
from retrievers.lexical.rank_bm25 import RankBM25
from retrievers.lexical.sqlite_fts import SqliteFts
from retrievers.rerankers.listwise import ListwiseReranker
from retrievers.search import Work, search_cached
from retrievers.services.http_api import Http
from retrievers.store import Arrays, Key, MemoryStore, NoStore, Store, fingerprint
from retrievers.vectors.dense import Dense
from retrievers.vectors.sparse import LearnedSparse
from retrievers.vectors.term_weights import TermWeights
from retrievers.work import QUERY_TERM_WEIGHTS
from tests.features.serve.process import shelf
from tests.retrievers.hits import list_rows
from tests.retrievers.http_search import FORM
from tests.retrievers.scripted import Echo, Overlap
from tests.strategies.corpora import corpora
from tests.strategies.settings import at_most
from tests.strategies.texts import MIXED_TEXTS

T = TypeVar("T")
QDRANT = find_spec("qdrant_edge") is not None  # tests/retrievers/engines skip with the reason where it is missing
FAISS, MODELS = find_spec("faiss") is not None, find_spec("sentence_transformers") is not None  # test_shipped skips


@dataclass(frozen=True)
class ServedBM25:
    """BM25 in a server of its own, given the corpus, and asked through `Http`."""

    capabilities: ClassVar[Capabilities] = Capabilities(live=True)
    concurrency: int = 8

    def index(self, corpus: Corpus, store: Store) -> Searcher:
        url = f"{shelf()}/{corpus.fingerprint}"
        columns = {"ids": list(corpus.ids), "texts": list(corpus.texts), "titles": list(corpus.titles)}
        httpx.put(
            url, content=json.dumps(columns), verify=False, timeout=60
        ).raise_for_status()  # reads no certificates
        return Http(url, **FORM, expected_items="corpus", concurrency=self.concurrency).index(corpus, store)


WITH_STOP_WORDS: dict[str, Retriever] = {
    "bm25": BM25(),
    "bm25 robertson": BM25(variant="robertson"),
    "bm25 atire": BM25(variant="atire", k1=1.2, b=0.75),
    "bm25 bm25l": BM25(variant="bm25l"),
    "bm25 bm25+": BM25(variant="bm25+", b=1.0),
    "bm25 identifiers": BM25(Analyzer(identifiers=True)),
    "bm25f": BM25F(),
    "bm25f one b": BM25F(b=0.75, variant="robertson"),
    "rank_bm25 okapi": RankBM25(),
    "rank_bm25 l": RankBM25(variant="l"),
    "rank_bm25 plus": RankBM25(variant="plus", b=1.0),
    "http": ServedBM25(),
    "hybrid of bm25": Hybrid({"bm25": BM25(), "rank_bm25": RankBM25()}, normalization="zscore", depth=20),
}


class SparseByWords(LearnedSparse):
    """Learned sparse retrieval by a model that weighs a word by a hash of it, whatever the text."""

    def weigh_documents(self, corpus: Corpus, store: Store) -> list[TermWeights]:
        return [self.weigh(list(corpus.contents()))]

    def weigh_queries(
        self, queries: Sequence[str], store: Store, live: Store
    ) -> tuple[TermWeights, NDArray[np.float32]]:
        (work,) = self.plan_encoding(Corpus([], []), queries, store)
        seconds = np.zeros(len(queries), dtype=np.float32)
        kept = store.arrays(work.key, lambda: {**self.weigh(queries).to_arrays(), "seconds": seconds})
        return TermWeights.of(kept), kept["seconds"]

    def list_parts(self, role: str) -> dict[str, object]:
        return {"model": self.model}

    def count_cuts(self, corpus: Corpus, queries: Sequence[str], store: Store) -> dict[str, float]:
        return {}

    def plan_encoding(self, corpus: Corpus, queries: Sequence[str], store: Store) -> Sequence[Work]:
        return [Work(Key.of(QUERY_TERM_WEIGHTS, __name__, queries=fingerprint(*queries)))]

    def weigh(self, texts: Sequence[str]) -> TermWeights:
        rows = [sorted({zlib.crc32(word.encode()) % 50_000 for word in re.findall(r"\w+", t.lower())}) for t in texts]
        terms = np.array([term for row in rows for term in row], dtype=np.int32)
        offsets = np.cumsum([0, *map(len, rows)], dtype=np.int64)
        return TermWeights(50_000, offsets, terms, (1 + terms % 7).astype(np.float32))

    def __repr__(self) -> str:
        return f"SparseByWords({self.document_terms})"


LEXICAL: dict[str, Retriever] = {
    **WITH_STOP_WORDS,
    **({"sparse": SparseByWords("words")} if MODELS else {}),
    "bm25 no stop words": BM25(Analyzer(stemmer=None, stopwords=None)),
    "sqlite_fts": SqliteFts(),
    "sqlite_fts porter": SqliteFts(tokenizer="porter", title_weight=3.0),
    "sqlite_fts trigram": SqliteFts(tokenizer="trigram"),
    "sqlite_fts all": SqliteFts(match="all"),
    "hybrid": Hybrid({"bm25": BM25(), "fts": SqliteFts()}, alpha=0.3, depth=20),
    "hybrid rrf": Hybrid({"fts": SqliteFts(), "bm25": BM25(), "rank": RankBM25()}, method="rrf", depth=20),
    "hybrid borda": Hybrid({"bm25": BM25(), "fts": SqliteFts()}, method="borda", depth=20),
    "reranked": Reranked(BM25(), Overlap(), depth=20),
    "reranked llm": Reranked(BM25(), ListwiseReranker(Echo(), 4, 2, prompt="{query}\n{passages}"), depth=20),
    "expanded": Expanded(BM25(), Echo(), depth=20, multi_query_prompt="{query}"),
    "expanded hyde": Expanded(SqliteFts(), Echo(), "hyde", depth=20, hyde_prompt="{query}"),
    "agentic": Agentic(BM25(), Echo(), depth=20, prompt="{query}\n{searches}"),
    "agentic last": Agentic(SqliteFts(), Echo(), merge="last", depth=20, prompt="{query}\n{searches}"),
}


@dataclass(frozen=True)
class WordHashes:
    """An encoder without a model: a text has the direction of its words' sum, a word a random one of its own."""

    width: int = 256

    def embed(self, corpus: Corpus, store: Store) -> Embedded:
        return Embedded([self.vectors(list(corpus.contents()))], self.queries)

    def queries(self, texts: Sequence[str], store: Store) -> tuple[Vectors, NDArray[np.float32]]:
        return self.vectors(texts), np.zeros(len(texts), dtype=np.float32)

    def vectors(self, texts: Sequence[str]) -> Vectors:
        vectors = np.zeros((len(texts), self.width), dtype=np.float32)
        for row, text in enumerate(texts):
            for word in re.findall(r"\w+", text.lower()):
                vectors[row] += np.random.default_rng(zlib.crc32(word.encode())).integers(-1, 2, self.width)
            vectors[row] /= np.linalg.norm(vectors[row]) or 1
        return vectors


EXACT: dict[str, Retriever] = {
    **LEXICAL,
    "dense": Dense(WordHashes()),
    "dense dot": Dense(WordHashes(), metric="dot"),
    "dense l2": Dense(WordHashes(), metric="l2"),
    "hybrid of both": Hybrid({"bm25": BM25(), "dense": Dense(WordHashes())}, alpha=0.5, depth=20),
}
BY_FAISS: dict[str, Callable[[], Retriever]] = {
    "dense ivf": lambda: Dense(WordHashes(), index_type="ivf", nlist=2),
    "dense hnsw": lambda: Dense(WordHashes(), index_type="hnsw"),
    "dense pq": lambda: Dense(WordHashes(), index_type="pq", pq_m=64),
    "dense int8": lambda: Dense(WordHashes(), index_type="hnsw", quantization="int8"),
    "dense binary": lambda: Dense(WordHashes(), quantization="binary"),
}
ALL: dict[str, Retriever] = {
    **EXACT,
    "dense lsa": Dense(LSAEncoder()),
    **{name: create() for name, create in BY_FAISS.items() if FAISS},
}
# Engines take a tenth of a second to open. Where flat ones are `dense` to the byte, drawn corpora add nothing.
FLAT: dict[str, Retriever] = {"qdrant flat": Qdrant(WordHashes(64), index_type="flat")} if QDRANT else {}
BY_WORDS: dict[str, Retriever] = (
    {"qdrant text": Qdrant(rank="text"), "qdrant bm25": Qdrant(rank="bm25")} if QDRANT else {}
)
FUSED: dict[str, Retriever] = (
    {f"qdrant {rank}": Qdrant(WordHashes(64), rank, index_type="flat") for rank in ("rrf", "dbsf")} if QDRANT else {}
)
GRAPHS: dict[str, Retriever] = {"qdrant hnsw": Qdrant(WordHashes(64), quantization="int8")} if QDRANT else {}
"""Their builds are not reproducible: two may give two rankings."""
ANY: dict[str, Retriever] = {**ALL, **FLAT, **BY_WORDS, **FUSED, **GRAPHS}


def each(retrievers: dict[str, Retriever]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("retriever", [pytest.param(r, id=name) for name, r in retrievers.items()])


QUERIES = ["boat", "red boat", "the blue house by the sea", "sea sea boats", "zeppelin", "", "tree red"]
ENGINES = MemoryStore()
"""The store of the engines, which take long to open: each index is built and opened once for all tests."""


@pytest.fixture(scope="module", autouse=True)
def close_engines() -> Iterator[None]:
    """Close the engines after the last test."""
    yield
    ENGINES._kept.clear()


def choose_store(retriever: Retriever) -> Store:
    return ENGINES if isinstance(retriever, Qdrant) else MemoryStore()


def search(retriever: Retriever, corpus: Corpus, queries: Sequence[str], k: int) -> Rankings:
    return retriever.index(corpus, choose_store(retriever)).search(queries, k)


def ids_of(rankings: Rankings, corpus: Corpus) -> list[list[str]]:
    return [[corpus.ids[document] for document in row if document != NOTHING] for row in rankings.documents]


FOR_EACH = settings(max_examples=at_most(5))
"""The corpora that a test draws for each of the retrievers, most of which share their code with others."""


@each(ALL)
@FOR_EACH
@given(corpus=corpora(), queries=st.lists(MIXED_TEXTS, max_size=4), k=st.integers(1, 12))
def test_rankings_are_tables_best_first_ties_by_id_descending(
    retriever: Retriever, corpus: Corpus, queries: list[str], k: int
) -> None:
    rankings = search(retriever, corpus, queries, k)
    assert rankings.documents.shape == rankings.scores.shape == (len(queries), rankings.depth)
    assert rankings.depth <= k
    assert rankings.documents.dtype == np.int32
    assert rankings.scores.dtype == np.float32
    assert rankings.errors is None
    assert rankings.seconds is None or rankings.seconds.shape == (len(queries),)
    for documents, scores in zip(rankings.documents, rankings.scores, strict=True):
        n = int((documents != NOTHING).sum())
        assert (documents[:n] >= 0).all()
        assert (documents[:n] < len(corpus)).all()
        assert (documents[n:] == NOTHING).all()
        assert (scores[n:] == -np.inf).all()
        assert np.isfinite(scores[:n]).all()
        assert len(set(documents[:n])) == n
        keys = [(score, corpus.ids[document]) for score, document in zip(scores[:n], documents[:n], strict=True)]
        assert keys == sorted(keys, reverse=True)


@each(ALL | FLAT | BY_WORDS | FUSED)
def test_a_search_takes_memory_for_documents_not_for_its_depth(retriever: Retriever, harbour: Corpus) -> None:
    deep, enough = (search(retriever, harbour, QUERIES, k) for k in (10**9, len(harbour)))
    assert deep.depth <= len(harbour)
    assert list_rows(deep) == list_rows(enough)


@each(EXACT)
@FOR_EACH
@given(corpus=corpora(), seed=st.randoms(use_true_random=False))
def test_the_order_of_the_corpus_changes_nothing(retriever: Retriever, corpus: Corpus, seed: object) -> None:
    order = list(range(len(corpus)))
    seed.shuffle(order)  # type: ignore[attr-defined]  # of random's methods
    ids, texts, titles = ([column[i] for i in order if column] for column in (corpus.ids, corpus.texts, corpus.titles))
    shuffled = Corpus(ids, texts, titles)
    there, here = (search(retriever, c, QUERIES, 10) for c in (corpus, shuffled))
    assert ids_of(there, corpus) == ids_of(here, shuffled)
    assert there.scores.tobytes() == here.scores.tobytes()


@each(EXACT)
@FOR_EACH
@given(corpus=corpora())
def test_the_first_three_are_the_first_three_of_ten(retriever: Retriever, corpus: Corpus) -> None:
    three, ten = (search(retriever, corpus, QUERIES, k) for k in (3, 10))
    assert list_rows(three) == list_rows(ten.cut(3))


@each(EXACT | FLAT | BY_WORDS | FUSED)
def test_queries_do_not_see_each_other(retriever: Retriever, harbour: Corpus) -> None:
    queries = ["ships", "the lighthouse", "", "fish market ferry", "ships"]
    searcher = retriever.index(harbour, MemoryStore())
    together = searcher.search(queries, 4)
    for position, query in enumerate(queries):
        assert list_rows(searcher.search([query], 4)) == [list_rows(together)[position]]


@each(ALL | FLAT | BY_WORDS | FUSED)
def test_the_same_input_gives_the_same_bytes(retriever: Retriever, harbour: Corpus) -> None:
    queries = ["ships and ferries", "café", "market"]
    first, second = (retriever.index(harbour, MemoryStore()).search(queries, 5) for _ in range(2))
    assert first.documents.tobytes() == second.documents.tobytes()
    assert first.scores.tobytes() == second.scores.tobytes()


@each(ANY)
def test_threads_may_share_a_searcher(retriever: Retriever, harbour: Corpus) -> None:
    searcher = retriever.index(harbour, choose_store(retriever))
    queries = ["ships", "lighthouse café", "ferries to the islands", "fish"] * 5
    expected = [searcher.search([query], 3).documents.tobytes() for query in queries]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda query: searcher.search([query], 3).documents.tobytes(), queries)) == expected


@each(ANY)
def test_the_document_that_answers_the_question_ranks_first(retriever: Retriever, harbour: Corpus) -> None:
    assert ids_of(search(retriever, harbour, ["fish bread flowers"], 3), harbour)[0][0] == "d4"


@each(EXACT | FLAT | BY_WORDS)
def test_equal_documents_come_by_id_descending(retriever: Retriever) -> None:
    ids = [f"d{i}" for i in range(12)]
    corpus = Corpus(ids, ["a red boat at sea"] * 12)
    expected = sorted(ids, reverse=True)
    assert ids_of(search(retriever, corpus, ["red boat"], 20), corpus) == [expected]
    assert ids_of(search(retriever, corpus, ["red boat"], 5), corpus) == [expected[:5]]


@each(ANY)
def test_one_document_is_a_corpus(retriever: Retriever) -> None:
    corpus = Corpus(["only"], ["a red boat at sea"])
    assert ids_of(search(retriever, corpus, ["red boat"], 3), corpus) == [["only"]]


@each(ANY)
def test_no_document_is_a_corpus(retriever: Retriever) -> None:
    assert (search(retriever, Corpus([], []), ["red boat", ""], 3).documents == NOTHING).all()


@each(ANY)
def test_no_query_is_a_batch(retriever: Retriever, harbour: Corpus) -> None:
    assert len(search(retriever, harbour, [], 3)) == 0


@each(LEXICAL | BY_WORDS)
def test_documents_without_text_are_never_retrieved(retriever: Retriever) -> None:
    corpus = Corpus(["full", "empty", "blank"], ["a red boat at sea", "", " \n\t"])
    assert ids_of(search(retriever, corpus, ["red boat"], 3), corpus) == [["full"]]
    assert (search(retriever, Corpus(["x", "y"], ["", " "]), ["red boat", ""], 3).documents == NOTHING).all()


NO_WORDS = ["", "   ", "\n\t\u00a0", "?!", "\0", "*", "\U0001f6a2"]


@each(ANY)
def test_queries_without_content_do_no_harm(retriever: Retriever, harbour: Corpus) -> None:
    found = ids_of(search(retriever, harbour, [*NO_WORDS, "the of and", "a", "market"], 3), harbour)
    assert found[-1][0] == "d4"


@each(LEXICAL | BY_WORDS)
def test_words_that_no_document_has_find_nothing(retriever: Retriever, harbour: Corpus) -> None:
    queries = [*NO_WORDS, "zeppelin"]
    assert ids_of(search(retriever, harbour, queries, 3), harbour) == [[]] * len(queries)


@each(WITH_STOP_WORDS | BY_WORDS)
def test_stop_words_find_nothing(retriever: Retriever, harbour: Corpus) -> None:
    assert ids_of(search(retriever, harbour, ["the of and", "The"], 3), harbour) == [[], []]


HOSTILE = [
    '"ships', '""ships"', "ships'", "ships AND", "AND ships", "NEAR(ships", "NEAR(ships, 2)", "ships*", "^ships",
    "text:ships", "ships) OR (1", "-ships", "{title} : ships", "ships; DROP TABLE documents", "ships\0museum",
    "ships \U0001f6a2", "ships \ud800", "\N{COMBINING ACUTE ACCENT} ships", "ships " * 2000, "%s ships {0}", "\\ships",
]  # fmt: skip


@each({name: retriever for name, retriever in (LEXICAL | BY_WORDS).items() if name != "sqlite_fts all"})
def test_whatever_is_typed_is_words(retriever: Retriever, harbour: Corpus) -> None:
    found = ids_of(search(retriever, harbour, HOSTILE, 6), harbour)
    assert [query for query, ids in zip(HOSTILE, found, strict=True) if "d3" not in ids] == []


@each(ANY)
def test_whatever_is_typed_does_no_harm(retriever: Retriever, harbour: Corpus) -> None:
    assert search(retriever, harbour, HOSTILE, 3).errors is None


@each(ANY)
def test_whatever_documents_hold_does_no_harm(retriever: Retriever) -> None:
    texts = [
        'a "red" boat',
        "boat\0house",
        "boat \ud800 sea",
        "\U0001f6a2 boat",
        "boat' OR 1=1 --",
        "x" * 10000 + " boat",
    ]
    corpus = Corpus(["a b", "c/d", "é", "小船", "", "'\""], texts)
    assert sorted(ids_of(search(retriever, corpus, ["boat"], 10), corpus)[0]) == sorted(corpus.ids)


@each(ANY)
def test_titles_are_read_too(retriever: Retriever) -> None:
    corpus = Corpus(["a", "b"], ["a red house by the sea", "it floats"], ["A house", "The zeppelin"])
    assert ids_of(search(retriever, corpus, ["zeppelin"], 1), corpus) == [["b"]]


@each(ANY)
def test_equal_settings_have_equal_reprs(retriever: Retriever) -> None:
    twin = copy.deepcopy(retriever)
    assert twin is not retriever
    assert repr(twin) == repr(retriever)
    assert " at 0x" not in repr(retriever)
    assert len({repr(other) for other in ANY.values()}) == len(ANY)


@each(ALL)
def test_settings_are_pickled(retriever: Retriever, harbour: Corpus) -> None:
    back = pickle.loads(pickle.dumps(retriever))
    assert back == retriever
    assert repr(back) == repr(retriever)
    first, second = (search(r, harbour, ["ships", "fish"], 4) for r in (retriever, back))
    assert first.documents.tobytes() == second.documents.tobytes()


class Counting(MemoryStore):
    """A store that counts what is built."""

    def __init__(self) -> None:
        super().__init__()
        self.built: Counter[str] = Counter()

    def share(self, key: Key, make: Callable[[], T]) -> T:
        def counted() -> T:
            self.built[key.kind.name] += 1
            return make()

        return super().share(key, counted)


@each({name: retriever for name, retriever in ANY.items() if not is_live(retriever)})
def test_a_store_makes_everything_once(retriever: Retriever, harbour: Corpus) -> None:
    store = Counting()
    first = search_cached(retriever, harbour, ["ships", "fish"], 3, store)
    before = dict(store.built)
    assert before
    again = Corpus(list(harbour.ids), list(harbour.texts), list(harbour.titles))
    second = search_cached(copy.deepcopy(retriever), again, ["ships", "fish"], 3, store)
    assert store.built == before
    assert first.documents.tobytes() == second.documents.tobytes()
    assert second.seconds is not None
    retriever.index(again, store).search(["market", "sea"], 5, NoStore())
    assert store.built == before


class Mapped(MemoryStore):
    """A store whose arrays cannot be written, as those that are mapped from a disk."""

    def arrays(self, key: Key, build: Callable[[], Arrays]) -> Arrays:
        arrays = super().arrays(key, build)
        for array in arrays.values():
            array.flags.writeable = False
        return arrays


@each(ALL)
def test_what_a_store_gives_may_be_read_only(retriever: Retriever, harbour: Corpus) -> None:
    store = Mapped()
    for queries in (["ships", "fish"], ["market"]):
        first, second = (search_cached(retriever, harbour, queries, 3, s) for s in (store, MemoryStore()))
        assert first.documents.tobytes() == second.documents.tobytes()
