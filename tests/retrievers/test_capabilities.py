"""What a retriever can do: each declaration against the behaviour of its class, and what composed retrievers derive."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import pytest

from retrievers.base import NOTHING, Corpus, QueryText, Rankings, Retriever, RetrieverError, create_empty_rankings
from retrievers.capabilities import Capabilities, derive_capabilities, is_live, iter_filtering, read_declaration
from retrievers.composed.expanded import Expanded
from retrievers.composed.fusion import Hybrid
from retrievers.composed.query_weights import load_query_weights
from retrievers.composed.reranked import Reranked
from retrievers.filters import parse_filter
from retrievers.lexical.bm25 import BM25
from retrievers.lexical.rank_bm25 import RankBM25
from retrievers.runs.existing import GivenRetriever
from retrievers.runs.run_file import RunFile
from retrievers.search import search_cached
from retrievers.store import MemoryStore, Store
from tests.retrievers.scripted import Echo, Overlap
from tests.retrievers.test_contract import ANY, choose_store, each

RUN = "q1 Q0 d1 1 3 run\nq1 Q0 d3 2 1 run\nq2 Q0 d4 1 3 run\nq2 Q0 d2 2 2 run\n"


@pytest.fixture
def declaring(tmp_path: Path) -> dict[str, Retriever]:
    """Return retrievers that declare what those of the contract do not: rankings of ids, and weights by query."""
    (tmp_path / "run.trec").write_text(RUN)
    (tmp_path / "weights.json").write_text(json.dumps({"q1": 0.0, "q2": 1.0}))
    run, parts = RunFile(str(tmp_path / "run.trec")), {"a": BM25(), "b": BM25(b=0.0, k1=9.0)}
    return {
        "run": run,
        "hybrid of runs": Hybrid({"a": run, "b": run}),
        "hybrid with a run": Hybrid({"a": run, "b": BM25()}),
        "weights by type": Hybrid({"a": BM25(), "b": RankBM25()}, weights_by_type={"t1": 0.0, "t2": 1.0}),
        "weights by id": Hybrid(parts, weights_file=load_query_weights(str(tmp_path / "weights.json"))),
    }


def rank_queries(retriever: Retriever, corpus: Corpus, queries: Sequence[str]) -> list[tuple[bytes, bytes]]:
    """Return the ranking of each query."""
    rankings = retriever.index(corpus, choose_store(retriever)).search(queries, 4)
    return [(d.tobytes(), s.tobytes()) for d, s in zip(rankings.documents, rankings.scores, strict=True)]


@each(ANY)
def test_a_class_applies_filters_if_and_only_if_it_declares_them(retriever: Retriever) -> None:
    texts = [f"red boat {'sea ' * n}" for n in range(6)]
    rows = [{"even": n % 2 == 0} for n in range(6)]
    corpus = Corpus([f"d{n}" for n in range(6)], texts, metadata=rows, filter_fields=("even",))
    queries = [QueryText("red boat", "q1", own=parse_filter({"even": True}))]
    if not derive_capabilities(retriever).filters:
        with pytest.raises(RetrieverError, match="does not apply filters, but 1 of 1 queries have one"):
            search_cached(retriever, corpus, queries, 6, choose_store(retriever))
        return
    hits = search_cached(retriever, corpus, queries, 6, choose_store(retriever)).documents
    assert sorted(hits[hits != NOTHING].tolist()) == [0, 2, 4]


@each(ANY)
def test_a_class_that_declares_nothing_of_it_reads_texts_and_neither_ids_nor_types(
    retriever: Retriever, harbour: Corpus
) -> None:
    assert derive_capabilities(retriever).texts
    assert not derive_capabilities(retriever).ids
    assert not derive_capabilities(retriever).types
    texts = ["ships lighthouse", "fish market"]
    first, second = rank_queries(retriever, harbour, [QueryText(text, "q1", "t1") for text in texts])
    assert first != second
    assert rank_queries(retriever, harbour, [QueryText(texts[0], "q2", "t2")])[0] == first


@pytest.mark.parametrize("name", ["run", "hybrid of runs"])
def test_rankings_without_texts_follow_the_ids(name: str, declaring: dict[str, Retriever], harbour: Corpus) -> None:
    retriever = declaring[name]
    assert not derive_capabilities(retriever).texts
    first, other, second = (
        rank_queries(retriever, harbour, [QueryText(text, own)])
        for text, own in (("ships", "q1"), ("fish", "q1"), ("ships", "q2"))
    )
    assert first == other != second
    unknown = [QueryText("", "q1", is_known=False)]
    assert search_cached(retriever, harbour, unknown, 4, MemoryStore()).documents[0, 0] == 0


@pytest.mark.parametrize("name", ["run", "hybrid of runs", "hybrid with a run"])
def test_queries_with_equal_texts_have_rankings_of_their_own_in_a_sweep(
    name: str, declaring: dict[str, Retriever], harbour: Corpus
) -> None:
    retriever, store = declaring[name], MemoryStore()
    assert derive_capabilities(retriever).ids
    first, second = (
        search_cached(retriever, harbour, [QueryText("ships", own)], 4, store).documents.tolist()
        for own in ("q1", "q2")
    )
    assert first != second


def test_a_hybrid_reads_texts_if_one_of_its_searched_parts_does(
    declaring: dict[str, Retriever], harbour: Corpus
) -> None:
    unknown = [QueryText("", "q1", is_known=False)]
    with pytest.raises(RetrieverError, match="reads the texts of queries, but the dataset has only their ids"):
        search_cached(declaring["hybrid with a run"], harbour, unknown, 4, MemoryStore())
    unsearched = Hybrid({"a": declaring["run"], "b": BM25()}, weights=[1.0, 0.0])
    assert not derive_capabilities(unsearched).texts


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [("weights by type", ("q", "t1"), ("q", "t2")), ("weights by id", ("q1", ""), ("q2", ""))],
)
def test_rankings_that_follow_ids_or_types_are_stored_for_each(
    name: str, before: tuple[str, str], after: tuple[str, str], declaring: dict[str, Retriever], harbour: Corpus
) -> None:
    retriever, store = declaring[name], MemoryStore()
    own = derive_capabilities(retriever)
    assert (own.ids, own.types) == (name == "weights by id", name == "weights by type")
    first, second = (
        search_cached(retriever, harbour, [QueryText("ships lighthouse", *which)], 4, store).scores.tolist()
        for which in (before, after)
    )
    assert first != second


@each(ANY)
def test_rankings_are_stored_unless_they_are_live(retriever: Retriever, harbour: Corpus) -> None:
    searches, store = list[int](), MemoryStore()

    def search() -> Rankings:
        searches.append(len(searches))
        return create_empty_rankings(1, 2)

    for _ in range(2):
        search_cached(retriever, harbour, ["ships"], 2, store, search)
    assert len(searches) == (2 if is_live(retriever) else 1)


NOTHING_SPECIAL = Capabilities()


@dataclass(frozen=True)
class Part:
    """A retriever with some capabilities, which perhaps searches with others."""

    capabilities: Capabilities = NOTHING_SPECIAL
    parts: Sequence[object] = field(default=())

    def index(self, corpus: Corpus, store: Store) -> Part:
        return self

    def search(self, queries: Sequence[str], k: int, store: Store | None = None) -> Rankings:
        return create_empty_rankings(len(queries), k)


ALL_OF_IT = Capabilities(filters=True, texts=True, ids=True, types=True, live=True)
NOTHING_OF_IT = Capabilities(texts=False)


def test_a_search_with_parts_filters_if_all_do_and_has_the_rest_if_any_does() -> None:
    both = Capabilities.of_parts([Part(ALL_OF_IT), Part(NOTHING_OF_IT)])
    assert both == Capabilities(filters=False, texts=True, ids=True, types=True, live=True)
    assert Capabilities.of_parts([Part(ALL_OF_IT), Part(ALL_OF_IT)]) == ALL_OF_IT
    assert Capabilities.of_parts([Part(NOTHING_OF_IT), Part(NOTHING_OF_IT)]) == NOTHING_OF_IT


def test_composed_retrievers_derive_theirs_from_their_parts() -> None:
    live, plain = Part(Capabilities(filters=True, live=True)), Part()
    nested = Hybrid({"a": BM25(), "b": Hybrid({"a": BM25(), "b": live})})
    assert derive_capabilities(nested) == Capabilities(filters=True, live=True, scans=False)
    assert derive_capabilities(Hybrid({"a": BM25(), "b": plain})) == Capabilities(scans=False)
    assert derive_capabilities(Hybrid({"a": BM25(), "b": plain}, weights=[1.0, 0.0])).filters
    assert derive_capabilities(Reranked(live, Overlap())) == Capabilities(filters=True, live=True, scans=False)
    assert derive_capabilities(Expanded(plain, Echo())) == Capabilities(scans=False)


def test_a_class_without_a_declaration_has_the_defaults_and_what_is_within_it() -> None:
    @dataclass(frozen=True)
    class Undeclared:
        parts: Sequence[object] = ()

        def index(self, corpus: Corpus, store: Store) -> Undeclared:
            return self

    assert derive_capabilities(Undeclared()) == Capabilities()
    around = Undeclared([Part(ALL_OF_IT)])
    assert derive_capabilities(around) == Capabilities(texts=True, ids=True, types=True, live=True)
    assert read_declaration(around) == Capabilities()


def test_an_object_of_this_library_keeps_its_capabilities_when_it_is_given() -> None:
    assert derive_capabilities(GivenRetriever("own", Part(NOTHING_OF_IT), "langchain")) == Capabilities(
        texts=False, live=True
    )
    assert derive_capabilities(GivenRetriever("own", lambda query: [])) == Capabilities(filters=True, live=True)


def test_a_wrong_declaration_is_an_error_of_one_line() -> None:
    with pytest.raises(RetrieverError, match=r"^Capabilities: filters='yes' should be True or False$"):
        Capabilities(filters="yes")  # type: ignore[arg-type]  # as a user may
    with pytest.raises(RetrieverError, match=r"^Capabilities: search_type=None should be a string$"):
        Capabilities(search_type=None)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^Capabilities\.__init__\(\) got an unexpected keyword argument 'filter'$"):
        Capabilities(filter=True)  # type: ignore[call-arg]

    class Wrong(Part):
        capabilities: ClassVar[dict[str, bool]] = {"filters": True}  # type: ignore[assignment, misc]

        def __init__(self) -> None:
            pass

    expected = r"^Wrong\.capabilities: expected retrievers\.capabilities\.Capabilities, found dict$"
    with pytest.raises(RetrieverError, match=expected):
        derive_capabilities(Wrong())


def test_the_message_names_the_classes_that_declare_filters_and_loads_no_engine() -> None:
    assert "bm25" in set(iter_filtering())
    assert "rank_bm25" not in set(iter_filtering())
    heavy = ("numba", "torch", "faiss", "qdrant_edge", "psycopg", "sentence_transformers", "scipy", "httpx")
    code = (
        "import sys; from retrievers.capabilities import iter_filtering; list(iter_filtering()); "
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"
