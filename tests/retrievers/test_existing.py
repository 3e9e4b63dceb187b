"""Retrievers of other libraries give the rankings that they return themselves."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from retrievers.base import NOTHING, Corpus, Rankings, RetrieverError
from retrievers.existing import ExistingRetriever
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
        ("my_rag:nothing", "returned NoneType, which has none of retrieve, invoke, run, search, a function"),
    ],
)
def test_a_factory_that_cannot_be_used_is_named(module: ModuleType, factory: str, message: str) -> None:
    def fails() -> None:
        raise ZeroDivisionError("no index")

    module.__dict__.update(number=3, fails=fails, nothing=lambda: None)
    with pytest.raises(RetrieverError) as error:
        ExistingRetriever(factory).index(CORPUS, NoStore())
    assert message in str(error.value)


def test_results_are_not_cached(module: ModuleType) -> None:
    answers: Iterator[list[str]] = iter([["a"], ["b"]])
    module.build = lambda: lambda query: next(answers)  # type: ignore[attr-defined]  # a module of the test
    store = MemoryStore()
    first, second = (search_cached(ExistingRetriever("my_rag:build"), CORPUS, ["q"], 1, store) for _ in range(2))
    assert (hits(first), hits(second)) == ([("a", 1.0)], [("b", 1.0)])


def test_a_yaml_file_alone_imports_no_module(module: ModuleType) -> None:
    node = {"_target_": "retrievers.existing.ExistingRetriever", "factory": "my_rag.search:build"}
    with pytest.raises(ConfigError, match=r"retriever.factory=my_rag.search:build: .*'plugins=\[my_rag\]'"):
        build(node, "retriever")
    assert build(node, "retriever", ["my_rag"]) == ExistingRetriever("my_rag.search:build")
