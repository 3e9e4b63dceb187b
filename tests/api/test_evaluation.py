"""A retriever that is an object is evaluated from Python as the command line evaluates a configured one."""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import runner
from retrievers import BM25, Analyzer, Corpus, Dense, Hybrid, LSAEncoder, MemoryStore, Rankings
from retrievers.store import Store
from runner.commands.evaluate import FailedEvaluation
from runner.evaluation.result import Result
from tests.api.conftest import DOCUMENTS, list_runs, load_result, run_command
from tests.retrievers.runs.test_existing_libraries import load


def assert_same(first: Result, second: Result) -> None:
    """Assert that two results have the same figures to the last digit, and the same settings."""
    assert first.means == second.means
    assert first.intervals == second.intervals
    assert np.array_equal(first.scores, second.scores, equal_nan=True)
    assert (first.name, first.config_hash, first.dataset) == (second.name, second.config_hash, second.dataset)


LSA = LSAEncoder(dimensions=2)


@pytest.mark.parametrize(
    ("retriever", "words"),
    [
        (BM25(), ["retriever=bm25"]),
        (BM25(k1=1.2, analyzer=Analyzer()), ["retriever=bm25", "retriever.k1=1.2"]),
        (BM25(variant="bm25l", delta=1), ["retriever=bm25", "retriever.variant=bm25l", "retriever.delta=1.0"]),
    ],
)
def test_figures_and_settings_equal_those_of_the_command_line(
    data: runner.Dataset, retriever: BM25, words: list[str]
) -> None:
    run_command(*words)
    (run,) = list_runs("evaluation")
    assert_same(runner.evaluate(retriever, data, tracking_uri="none"), load_result(run))


def test_a_hybrid_built_in_python_scores_the_same_as_on_the_command_line(data: runner.Dataset) -> None:
    run_command("retriever=hybrid", "encoder=lsa", "encoder.dimensions=2", "retriever.alpha=0.3")
    (run,) = list_runs("evaluation")
    hybrid = Hybrid({"lexical": BM25(), "semantic": Dense(LSA)}, alpha=0.3)
    assert runner.evaluate(hybrid, data, tracking_uri="none").means == load_result(run).means


def test_a_result_is_logged_as_a_run_unless_tracking_is_off(data: runner.Dataset) -> None:
    logged, unlogged = runner.evaluate(BM25(), data), runner.evaluate(BM25(), data, tracking_uri="none")
    (run,) = list_runs("evaluation")
    assert logged.run is not None
    assert logged.run.id == run.id
    assert unlogged.run is None
    assert_same(load_result(run), unlogged)


def test_values_in_memory_give_the_figures_of_the_same_files(data: runner.Dataset, given: runner.Dataset) -> None:
    assert given.fingerprint == data.fingerprint
    results = [runner.evaluate(BM25(), dataset, tracking_uri="none") for dataset in (data, given)]
    assert results[0].means == results[1].means


def test_other_settings_are_overrides_of_the_command_line(data: runner.Dataset) -> None:
    run_command("retriever=bm25", "metrics.depth=20", "metrics.k_values=[1,3]", "chunking=sentences")
    (run,) = list_runs("evaluation")
    overrides = ("metrics.depth=20", "metrics.k_values=[1,3]", "chunking=sentences")
    assert_same(runner.evaluate(BM25(), data, *overrides, tracking_uri="none"), load_result(run))
    split = runner.load_dataset("beir", path="DIR", split="test", chunking="sentences")
    assert_same(runner.evaluate(BM25(), split, *overrides[:2], tracking_uri="none"), load_result(run))


class Found:
    """A document of another library."""

    def __init__(self, name: str) -> None:
        self.metadata = {"source": name}


def search_words(query: str, k: int) -> list[tuple[str, float]]:
    words = set(query.split())
    scores = {name: len(words & set(document["text"].lower().split())) for name, document in DOCUMENTS.items()}
    return sorted(((name, score) for name, score in scores.items() if score), key=lambda hit: (-hit[1], hit[0]))[:k]


class InBatches:
    def search(self, queries: Sequence[str], k: int) -> list[list[tuple[str, float]]]:
        return [search_words(query, k) for query in queries]


class OneByOne:
    def search(self, query: str, k: int) -> list[tuple[str, float]]:
        return search_words(query, k)


class LikeLangChain:
    def invoke(self, query: str) -> list[Found]:
        return [Found(name) for name, _ in search_words(query, 100)]


class LikeLlamaIndex:
    def retrieve(self, query: str) -> list[Found]:
        return [Found(name) for name, _ in search_words(query, 100)]


class LikeHaystack:
    def inputs(self) -> dict[str, Any]:
        return {"retriever": {"query": {}, "top_k": {}}}

    def run(self, data: dict[str, Any]) -> dict[str, Any]:
        asked = data["retriever"]
        return {"retriever": {"documents": [Found(name) for name, _ in search_words(asked["query"], asked["top_k"])]}}


@pytest.mark.parametrize(
    "retriever", [search_words, InBatches(), OneByOne(), LikeLangChain(), LikeLlamaIndex(), LikeHaystack()]
)
def test_a_function_or_an_object_of_another_library_is_evaluated(given: runner.Dataset, retriever: object) -> None:
    result = runner.evaluate(retriever, given, tracking_uri="none")
    assert result.name == getattr(retriever, "__name__", type(retriever).__name__)
    assert result.per_query["RR@10"].tolist() == [1.0, 1.0, 1.0]
    assert result.rankings.to_frame().query("query_id == 'q1'")["document_id"].tolist() == ["d1", "d3"]
    assert not result.failures


def test_few_hits_are_not_a_shallow_search() -> None:
    documents = {"d1": {"text": "pier"}, "d2": {"text": "lamp"}, "d3": {"text": "rope"}}
    data = runner.Dataset.of(documents, {"q1": "pier"}, {"q1": {"d1": 1, "d2": 1}})

    def search(query: str, k: int) -> list[tuple[str, float]]:
        return [("d1", 1.0)]

    result = runner.evaluate(search, data, tracking_uri="none")
    assert result.means["R@10"] == 0.5
    assert not [warning for warning in result.warnings if "search depth" in warning]


@pytest.mark.filterwarnings("default")
def test_a_real_langchain_retriever_is_evaluated_in_one_line(given: runner.Dataset) -> None:
    retrievers, documents = load("langchain_core.retrievers"), load("langchain_core.documents")

    class Words(retrievers.BaseRetriever):  # type: ignore[misc]  # of a package without types here
        def _get_relevant_documents(self, query: str, *, run_manager: object) -> list[Any]:
            return [
                documents.Document(page_content="", metadata={"source": name}) for name, _ in search_words(query, 100)
            ]

    result = runner.evaluate(Words(), given, tracking_uri="none")
    assert result.means == runner.evaluate(LikeLangChain(), given, tracking_uri="none").means
    assert not result.failures


def test_the_rankings_of_a_searcher_are_taken_as_they_are(given: runner.Dataset) -> None:
    searcher = BM25().index(given.corpus, MemoryStore())
    result = runner.evaluate(searcher, given, tracking_uri="none")
    assert result.means == runner.evaluate(BM25(), given, tracking_uri="none").means


def test_a_retriever_that_is_not_a_dataclass_is_never_cached(given: runner.Dataset) -> None:
    indexed = []

    class Shortest:
        def index(self, corpus: Corpus, store: Store) -> Any:
            indexed.append(corpus)
            return BM25().index(corpus, store)

    for _ in range(2):
        result = runner.evaluate(Shortest(), given, tracking_uri="none")
    assert [corpus is given.corpus for corpus in indexed] == [True, True]
    assert result.means == runner.evaluate(BM25(), given, tracking_uri="none").means


def test_a_class_of_a_notebook_is_not_cached_as_its_code_cannot_be_read(
    given: runner.Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    @dataclass(frozen=True)
    class InNotebook:
        def index(self, corpus: Corpus, store: Store) -> Any:
            return BM25(k1=edited).index(corpus, store)

    monkeypatch.setattr(InNotebook, "__module__", "notebook_without_a_file")
    edited = 0.0
    first = runner.evaluate(InNotebook(), given, tracking_uri="none").rankings.to_frame()
    edited = 5.0  # what the class does, in the next cell
    second = runner.evaluate(InNotebook(), given, tracking_uri="none").rankings.to_frame()
    assert first["score"].tolist() != second["score"].tolist()


def test_a_failing_query_is_part_of_the_result(given: runner.Dataset) -> None:
    def fail(query: str) -> list[str]:
        if "islands" in query:
            raise ValueError("no islands")
        return ["d1"]

    result = runner.evaluate(fail, given, tracking_uri="none")
    assert result.failures == {"q2": "ValueError: no islands"}
    assert result.per_query.set_index("query_id").loc["q2", "error"] == "ValueError: no islands"


def test_a_retriever_that_fails_raises_its_error_after_it_was_logged(data: runner.Dataset) -> None:
    class Broken:
        def index(self, corpus: Corpus, store: Store) -> Any:
            raise KeyError("missing")

    with pytest.raises(FailedEvaluation, match=r"KeyError: 'missing' \(see .*traceback.txt\)") as caught:
        runner.evaluate(Broken(), data)
    assert isinstance(caught.value.__cause__, KeyError)


class TooFew:
    def search(self, queries: Sequence[str], k: int) -> list[list[str]]:
        return [["d1"]]


class Failing:
    def search(self, queries: Sequence[str], k: int) -> Rankings:
        raise OSError("the index is gone")


@pytest.mark.parametrize(
    ("retriever", "overrides", "message"),
    [
        (3, [], "not a retriever: int; expected a function or an object with retrieve, invoke, run, search"),
        ("bm25", [], "not a retriever: str; expected a function or an object with"),
        (BM25, [], "not a retriever: the class BM25; create an instance"),
        (TooFew(), [], "search: returned 1 lists of hits for 3 queries"),
        (Failing(), [], "search: OSError: the index is gone"),
        (BM25(), ["metrics.depht=10"], "metrics.depht: no such setting; did you mean metrics.depth?"),
        (BM25(), ["retriever.k1=2"], "retriever.k1=2: retriever is given as an argument"),
        (
            BM25(),
            ["analyzer=german"],
            "analyzer=german: has no effect, as the retriever is given with settings of its own",
        ),
        (BM25(), ["encoder=lsa"], "encoder=lsa: has no effect, as the retriever is given with settings of its own"),
        (BM25(), ["dataset.split=dev"], "dataset.split=dev: the dataset is given as an argument"),
        (BM25(), ["metrics.k_values=1,10"], "metrics.k_values=1,10: several values"),
        (BM25(), ["tracking=nowhere"], "tracking=nowhere: no such choice"),
    ],
)
def test_a_mistake_is_explained_in_one_line(
    given: runner.Dataset, retriever: object, overrides: list[str], message: str
) -> None:
    with pytest.raises(ValueError) as caught:
        runner.evaluate(retriever, given, *overrides)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_value_that_is_not_a_dataset_is_refused(data: runner.Dataset) -> None:
    with pytest.raises(TypeError, match=r"should be a Dataset, not list; use load_dataset or Dataset\.of"):
        runner.evaluate(BM25(), [data])  # type: ignore[arg-type]  # what is tested


def test_nothing_is_printed_and_the_command_line_of_the_caller_stays(
    data: runner.Dataset, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["kernel", "-f", "connection.json", "--config-dir"]
    monkeypatch.setattr("sys.argv", list(words))
    runner.evaluate(BM25(), data)
    assert sys.argv == words
    assert capsys.readouterr().out == ""


def test_threads_evaluate_side_by_side(given: runner.Dataset, here: Path) -> None:
    means: dict[float, float] = {}

    def evaluate(k1: float) -> None:
        means[k1] = runner.evaluate(BM25(k1=k1), given, store_path=here / f"store {k1}").means["nDCG@3"]

    threads = [threading.Thread(target=evaluate, args=(k1,)) for k1 in (0.5, 1.0, 1.5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    alone = {k1: runner.evaluate(BM25(k1=k1), given, tracking_uri="none").means["nDCG@3"] for k1 in means}
    assert means == alone
    assert len(alone) == len(threads) == len(list_runs("evaluation"))


def test_a_result_is_shown_as_tables(data: runner.Dataset) -> None:
    result = runner.evaluate(BM25(), data)
    page = result._repr_html_()
    assert f"nDCG@10 {result.means['nDCG@10']:.3f}" in page
    assert page.count("<table") == 2
    assert repr(result) == f"RunResult(bm25 on DIR: nDCG@10 {result.means['nDCG@10']:.3f})"


def test_data_frames_have_what_the_record_has(data: runner.Dataset, here: Path) -> None:
    import pandas as pd

    result = runner.evaluate(BM25(), data)
    assert result.run is not None
    assert result.run.folder is not None
    kept = pd.read_parquet(result.run.folder / "per_query.parquet")[list(result.per_query)]
    pd.testing.assert_frame_equal(result.per_query, kept, check_dtype=False, check_categorical=False)
    ranked = pd.read_parquet(result.run.folder / "rankings.parquet")
    frame = result.rankings.to_frame()
    assert frame["document_id"].tolist() == ranked["document_id"].tolist()
    assert frame["grade"].fillna(-1).tolist() == ranked["grade"].tolist()
    result.rankings.write_trec(here / "run.trec.gz")
    assert (here / "run.trec.gz").stat().st_size > 0
