"""Retrievers of other libraries give the rankings that they return themselves."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from retrievers.base import NOTHING, Corpus, QueryText, Rankings, RetrieverError
from retrievers.filters import parse_filter
from retrievers.lexical.bm25 import BM25
from retrievers.runs.existing import ExistingRetriever, GivenRetriever
from retrievers.search import search_cached
from retrievers.store import MemoryStore, NoStore
from runner.config.objects import ConfigError, build

CORPUS = Corpus(["a", "b", "c"], ["red boat", "blue boat", "green"], ["Red", "", ""])


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return the module of a user."""
    made = ModuleType("my_rag")
    monkeypatch.setitem(sys.modules, "my_rag", made)
    return made


def search(module: ModuleType, made: object, *queries: str, k: int = 3, **settings: Any) -> Rankings:
    module.build = lambda **arguments: made  # type: ignore[attr-defined]  # a module of the test
    retriever = ExistingRetriever("my_rag:build", **settings)
    return retriever.index(CORPUS, NoStore()).search(queries or ["q"], k)


def hits(rankings: Rankings, query: int = 0) -> list[tuple[str, float]]:
    names = [*CORPUS.ids, *rankings.unknown_ids]
    rows = zip(rankings.documents[query].tolist(), rankings.scores[query].tolist(), strict=True)
    return [(names[document], score) for document, score in rows if document != NOTHING]


class LangChain:
    def invoke(self, query: str, config: object = None) -> list[SimpleNamespace]:
        return [SimpleNamespace(id=None, page_content=query, metadata={"source": name}) for name in ("b", "a")]


class LlamaIndex:
    def retrieve(self, query: str) -> list[SimpleNamespace]:
        nodes = [("n1", "b", float("nan")), ("n2", "a", 0.5), ("n3", "a", 0.4), ("n4", None, 0.3)]
        return [
            SimpleNamespace(node=SimpleNamespace(ref_doc_id=of), node_id=name, score=score) for name, of, score in nodes
        ]


class Component:
    def run(self, query: str, top_k: int | None = None) -> dict[str, object]:
        rows = [("c", 0.9), ("a", 0.1)][:top_k]
        return {"documents": [SimpleNamespace(id=f"hash {n}", meta={"doc_id": n}, score=s) for n, s in rows]}


@dataclass
class Pipeline:
    given: list[Mapping[str, object]] = field(default_factory=list)

    def inputs(self) -> Mapping[str, Mapping[str, object]]:
        return {"embedder": {"text": {}}, "retriever": {"top_k": {}, "filters": {}}, "other": {"filters": {}}}

    def run(self, data: Mapping[str, object]) -> Mapping[str, object]:
        self.given.append(data)
        return {"embedder": {"meta": {}}, "retriever": Component().run("", 1)}


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (lambda query: ["b", "a"], [("b", 1.0), ("a", 0.5)]),
        (lambda query, k: [("b", 2.5), ("a", 0.5), ("c", 0.1)][: k - 1], [("b", 2.5), ("a", 0.5)]),
        (lambda query, k: [["b", 2.5], [7, np.float32(0.5)]], [("b", 2.5), ("7", 0.5)]),
        (lambda query: {"b": 2, "new": 1}, [("b", 2.0), ("new", 1.0)]),
        (lambda query: [{"id": 7, "score": 2.0}, {"_id": "a", "score": 1.0}], [("7", 2.0), ("a", 1.0)]),
        (LangChain(), [("b", 1.0), ("a", 0.5)]),
        (LlamaIndex(), [("a", 0.5), ("n4", pytest.approx(0.3))]),
        (Component(), [("c", pytest.approx(0.9)), ("a", pytest.approx(0.1))]),
        (Pipeline(), [("c", pytest.approx(0.9))]),
    ],
)
def test_an_object_is_called_as_its_library_does(module: ModuleType, made: object, expected: list[object]) -> None:
    assert hits(search(module, made)) == expected


def test_a_mapping_is_ranked_by_its_scores_and_then_by_id(module: ModuleType) -> None:
    found = search(module, lambda query, k: {"b": 0.25, "a": 0.75, "new": 0.25}, "ferry")
    assert hits(found) == [("a", 0.75), ("new", 0.25), ("b", 0.25)]


def test_numbers_of_numpy_are_ids(module: ModuleType) -> None:
    assert hits(search(module, lambda query, k: np.array([7, 12]), "ferry")) == [("7", 1.0), ("12", 0.5)]


def test_a_pipeline_gets_the_query_and_the_number_where_it_takes_them(module: ModuleType) -> None:
    pipeline = Pipeline()
    search(module, pipeline, "ships", k=2)
    assert pipeline.given == [{"embedder": {"text": "ships"}, "retriever": {"top_k": 2}}]


def test_nan_and_repeated_and_unknown_hits_are_counted(module: ModuleType) -> None:
    figures = search(module, LlamaIndex()).diagnostics
    assert figures == {"unknown_items": 1, "repeated_items": 1, "rising_scores": 0, "nan_scores": 1}


def test_an_id_and_a_score_may_be_at_other_places(module: ModuleType) -> None:
    rows = [{"page": {"number": 3}, "similarity": 0.5, "id": "a"}]
    assert hits(search(module, lambda query: rows, item_id="page.number", score="similarity")) == [("3", 0.5)]


def test_the_id_is_the_one_that_the_corpus_has(module: ModuleType) -> None:
    rows = [{"metadata": {"source": "/data/b.pdf"}, "id": "b"}, {"metadata": {"source": "x"}, "id": "y"}]
    assert [name for name, _ in hits(search(module, lambda query: rows))] == ["b", "x"]


def test_the_factory_gets_its_arguments_and_the_documents(module: ModuleType) -> None:
    seen: dict[str, Any] = {}

    def build(documents: Sequence[tuple[str, str, str]], words: int) -> Callable[[str], list[str]]:
        seen.update(documents=documents, words=words)
        return lambda query: [name for name, _, text in documents if query in text]

    module.build = build  # type: ignore[attr-defined]  # a module of the test
    retriever = ExistingRetriever("my_rag:build", {"words": 3}, pass_corpus=True)
    assert hits(retriever.index(CORPUS, NoStore()).search(["boat"], 3)) == [("a", 1.0), ("b", 0.5)]
    assert seen == {"documents": [("a", "Red", "red boat"), ("b", "", "blue boat"), ("c", "", "green")], "words": 3}
    with pytest.raises(RetrieverError, match="pass_corpus: the dataset has no documents to pass"):
        retriever.index(Corpus([], []), NoStore())


@pytest.mark.parametrize("arguments", [{}, {"metadata": "its own"}])
def test_a_factory_with_a_parameter_metadata_gets_that_of_the_documents(
    module: ModuleType, arguments: dict[str, Any]
) -> None:
    seen: list[object] = []

    def build(documents: Sequence[tuple[str, str, str]], metadata: Sequence[Mapping[str, Any]]) -> Callable[..., Any]:
        seen.append(metadata)
        return lambda query: [name for name, _, _ in documents]

    module.build = build  # type: ignore[attr-defined]  # a module of the test
    retriever, years = ExistingRetriever("my_rag:build", arguments, pass_corpus=True), [{"year": 1950}, {}]
    for rows in (years, ()):
        retriever.index(Corpus(["a", "b"], ["x", "y"], metadata=rows), NoStore())
    assert seen == ([years, [{}, {}]] if not arguments else ["its own"] * 2)


def test_a_query_that_raises_is_an_error_and_the_others_go_on(module: ModuleType) -> None:
    def find(query: str) -> list[str]:
        if query == "bad":
            raise LookupError("no index\nhere")
        return ["a"]

    rankings = search(module, find, "bad", "good")
    assert rankings.errors == {0: "LookupError: no index here"}
    assert hits(rankings, 1) == [("a", 1.0)]
    assert np.isnan(rankings.seconds[0]) and rankings.seconds[1] >= 0  # type: ignore[index]  # it has times


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda query: "text", "TypeError: returned str instead of a list of hits"),
        (
            lambda query: [{"text": "x"}],
            "ValueError: a hit has no id; set item_id to the path of its id (fields: text)",
        ),
        (lambda query: [{"id": True}], "ValueError: True is not an id; an id must be text or a whole number"),
        (lambda query: [{"id": 1.5}], "ValueError: 1.5 is not an id; an id must be text or a whole number"),
        (lambda query: [("a", "1_0")], "ValueError: '1_0' is not a number"),
        (lambda query: {"a": True}, "ValueError: True is not a number"),
        (lambda query: [("a", 1e99)], "ValueError: a score does not fit in a 32-bit float"),
    ],
)
def test_hits_that_cannot_be_read_are_errors_of_the_query(module: ModuleType, made: object, message: str) -> None:
    assert search(module, made).errors == {0: message}


@pytest.mark.parametrize(
    ("factory", "message"),
    [
        ("my_rag", "factory=my_rag: should be module:name, such as my_rag.search:build"),
        ("no_such:build", "factory=no_such:build: ModuleNotFoundError: No module named 'no_such'"),
        ("my_rag:missing", "AttributeError: module 'my_rag' has no attribute 'missing'"),
        ("my_rag:number", "expected a function, found int"),
        ("my_rag:fails", "factory=my_rag:fails: ZeroDivisionError: no index"),
        ("my_rag:nothing", "returned NoneType; expected a function or an object with retrieve, invoke, run, search"),
    ],
)
def test_a_factory_that_cannot_be_used_is_named(module: ModuleType, factory: str, message: str) -> None:
    def fails() -> None:
        raise ZeroDivisionError("no index")

    module.__dict__.update(number=3, fails=fails, nothing=lambda: None)
    with pytest.raises(RetrieverError) as error:
        ExistingRetriever(factory).index(CORPUS, NoStore())
    assert message in str(error.value)


CONDITIONS = {"year": {"from": 2000}, "language": "de"}
FILTERED = [QueryText("q", "1", own=parse_filter(CONDITIONS)), QueryText("p", "2")]
HAYSTACK = {
    "operator": "AND",
    "conditions": [
        {"field": "meta.language", "operator": "==", "value": "de"},
        {"field": "meta.year", "operator": ">=", "value": 2000},
    ],
}


class Filtering:
    """Notes the filters that it gets, in several interfaces."""

    def __init__(self) -> None:
        self.filters: list[object] = []

    def invoke(self, query: str, config: object = None, filter: object = None) -> list[str]:
        self.filters.append(filter)
        return ["a"]

    def run(self, query: str, filters: object = "none", top_k: int | None = None) -> Mapping[str, object]:
        self.filters.append(filters)
        return {"documents": [{"id": "a"}]}

    def search(self, queries: Sequence[str], k: int, filters: Sequence[object]) -> list[list[str]]:
        self.filters += filters
        return [["a"]] * len(queries)

    def __call__(self, query: str, filter: object, k: int) -> list[str]:
        return self.invoke(query, filter=filter)[:k]


@pytest.mark.parametrize(
    ("interface", "expected"),
    [
        ("langchain", [CONDITIONS, None]),
        ("haystack", [HAYSTACK, "none"]),
        ("search", [CONDITIONS, None]),
    ],
)
def test_an_object_that_takes_a_filter_gets_it(module: ModuleType, interface: Any, expected: list[object]) -> None:
    made = Filtering()
    module.build = lambda: made  # type: ignore[attr-defined]  # a module of the test
    own = ExistingRetriever("my_rag:build", interface=interface)
    rankings = search_cached(own, CORPUS, FILTERED, 1, NoStore())
    assert not rankings.errors
    assert made.filters == expected


def test_a_function_that_takes_a_filter_gets_it_and_filters_as_bm25_does(module: ModuleType) -> None:
    corpus = replace(CORPUS, metadata=[{"n": n} for n in range(3)], filter_fields=("n",))
    queries = [QueryText("boat", "1", own=parse_filter({"n": {"from": 1}})), QueryText("boat", "2")]

    def find(query: str, k: int, filter: Mapping[str, Any] | None = None) -> list[str]:
        first = 0 if filter is None else filter["n"]["from"]
        ranked = BM25().index(corpus, MemoryStore()).search([query], len(corpus)).documents[0].tolist()
        return [corpus.ids[d] for d in ranked if d >= first][:k]

    module.build = lambda: find  # type: ignore[attr-defined]  # a module of the test
    expected = search_cached(BM25(), corpus, queries, 2, MemoryStore()).documents
    for own in (ExistingRetriever("my_rag:build"), GivenRetriever("find", find)):
        assert search_cached(own, corpus, queries, 2, NoStore()).documents.tolist() == expected.tolist()
    given_here = GivenRetriever("bm25", BM25())
    assert search_cached(given_here, corpus, queries, 2, NoStore()).documents.tolist() == expected.tolist()


@pytest.mark.parametrize("made", [lambda query: ["a"], LangChain(), LlamaIndex(), Component()])
def test_an_object_that_takes_no_filter_refuses_queries_with_one(module: ModuleType, made: object) -> None:
    module.build = lambda: made  # type: ignore[attr-defined]  # a module of the test
    message = (
        "^ExistingRetriever does not apply filters, but 1 of 2 queries have one; give its function or method a "
        "parameter named filter, or set dataset.filter_field=null to ignore filters$"
    )
    with pytest.raises(RetrieverError, match=message):
        search_cached(ExistingRetriever("my_rag:build"), CORPUS, FILTERED, 1, NoStore())
    search_cached(ExistingRetriever("my_rag:build"), CORPUS, FILTERED[1:], 1, NoStore())


def test_a_pipeline_gets_the_filter_where_it_takes_one(module: ModuleType) -> None:
    pipeline = Pipeline()
    module.build = lambda: pipeline  # type: ignore[attr-defined]  # a module of the test
    search_cached(ExistingRetriever("my_rag:build"), CORPUS, FILTERED, 1, NoStore())
    assert [call["retriever"] for call in pipeline.given] == [{"top_k": 1, "filters": HAYSTACK}, {"top_k": 1}]


def test_results_are_not_cached(module: ModuleType) -> None:
    answers: Iterator[list[str]] = iter([["a"], ["b"]])
    module.build = lambda: lambda query: next(answers)  # type: ignore[attr-defined]  # a module of the test
    store = MemoryStore()
    first, second = (search_cached(ExistingRetriever("my_rag:build"), CORPUS, ["q"], 1, store) for _ in range(2))
    assert (hits(first), hits(second)) == ([("a", 1.0)], [("b", 1.0)])


def test_a_yaml_file_alone_imports_no_module(module: ModuleType) -> None:
    node = {"_target_": "retrievers.runs.existing.ExistingRetriever", "factory": "my_rag.search:build"}
    with pytest.raises(ConfigError, match=r"retriever.factory=my_rag.search:build: .*'plugins=\[my_rag\]'"):
        build(node, "retriever")
    assert build(node, "retriever", ["my_rag"]) == ExistingRetriever("my_rag.search:build")
