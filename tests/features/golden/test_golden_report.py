"""Reports of a golden evaluation as results: the published ones are the oracle, malformed ones are refused."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retrievers.base import Corpus, Rankings, create_empty_rankings
from retrievers.store import NoStore, Store
from runner.comparison.comparability import compute_depth
from runner.comparison.compare import TableStatistics, compare_results
from runner.datasets.golden_json import GoldenJson
from runner.evaluation.bench import Bench
from runner.evaluation.experiment import Experiment
from runner.evaluation.records import load_record, save_record
from runner.evaluation.result import Result, ResultError
from runner.features.golden.document import golden_report, measure_names
from runner.metrics.formulas import FORMULAS
from runner.metrics.measures import REPORT_MEASURES
from runner.metrics.settings import MetricSettings
from runner.results.golden_reports import is_report, read_report
from runner.store.disk import DiskStore

SINGLE = ("eval_20251214_204125_report.json", "eval_20251222_212728_report.json")
SEVERAL = "eval_20251221_070214_report.json"
KEYS = {"P": "precision", "R": "recall"}


def query(identifier: str, expected: Mapping[str, str], found: list[str], **others: Any) -> dict[str, Any]:
    return {
        "query_id": identifier,
        "query_text": f"text of {identifier}",
        "query_type": "precise",
        "expected_items": list(expected),
        "expected_relevance": dict(expected),
        "retrieved_items": found,
        **others,
    }


def report(*queries: dict[str, Any], **config: Any) -> dict[str, Any]:
    return {"run_id": "eval_1", "config": {"top_k_values": [1, 3], **config}, "query_results": list(queries)}


def written(folder: Path, content: object) -> Path:
    file = folder / "report.json"
    file.write_text(json.dumps(content), encoding="utf-8")
    return file


def parts(path: Path) -> dict[str, dict[str, Any]]:
    """Return what a published report says, by search type."""
    content = json.loads(path.read_text(encoding="utf-8"))
    return content.get("results_by_search_type") or {content["config"].get("search_type") or "search": content}


@pytest.mark.parametrize("name", [*SINGLE, SEVERAL])
def test_precision_recall_and_rr_are_those_that_the_report_has(real_golden: Path, name: str) -> None:
    for result in read_report(real_golden / "reports" / name):
        said = parts(real_golden / "reports" / name)[result.retriever]
        for measure, key in KEYS.items():
            for k in (1, 3, 5, 10):
                assert result.means[f"{measure}@{k}"] == pytest.approx(said["summary"][key][f"@{k}"], abs=1e-12)
                for i, query in enumerate(said["query_results"]):
                    if query["metrics"]:
                        value = query["metrics"][key][f"@{k}"]
                        assert result.of(f"{measure}@{k}")[i] == pytest.approx(value, abs=1e-12)
        assert result.means["RR"] == pytest.approx(said["summary"]["mrr"], abs=1e-12)
        assert list(result.queries.statuses) == [query["status"] for query in said["query_results"]]
        for kind, of_type in said["by_query_type"].items():
            assert result.by_type[kind]["queries"] == of_type["count"]
            assert result.by_type[kind]["RR"] == pytest.approx(of_type["mrr"], abs=1e-12)


@pytest.mark.parametrize("name", [*SINGLE, SEVERAL])
def test_times_and_no_result_queries_are_those_that_the_report_has(real_golden: Path, name: str) -> None:
    for result in read_report(real_golden / "reports" / name):
        said = parts(real_golden / "reports" / name)[result.retriever]
        timed = [ms for ms in result.timings.each_ms if ms is not None]
        assert min(timed) == pytest.approx(said["timing"]["min_retrieval_time_ms"])
        assert max(timed) == pytest.approx(said["timing"]["max_retrieval_time_ms"])
        assert result.timings.mean_ms == pytest.approx(said["timing"]["avg_retrieval_time_ms"])
        assert result.abstention.everything.true_negatives == said["summary"]["edge_cases"]["true_negatives"]


def test_a_report_of_several_search_types_is_as_many_results(real_golden: Path) -> None:
    results = read_report(real_golden / "reports" / SEVERAL)
    assert [result.retriever for result in results] == ["bm25", "vector"]


def test_a_failed_query_counts_for_nothing_and_says_why(real_golden: Path) -> None:
    (result,) = read_report(real_golden / "reports" / SINGLE[0])
    assert result.failures.keys() == {"q014", "q022"} or len(result.failures) == 2
    for failed in result.failures:
        assert np.isnan(result.of("RR")[result.queries.ids.index(failed)])
    assert all("500 Server Error" in error for error in result.failures.values())


def test_ndcg_has_linear_gains_and_the_usual_discount(tmp_path: Path) -> None:
    asked = query("q1", {"a": "high", "b": "low"}, ["b", "a"])
    (result,) = read_report(written(tmp_path, report(asked)))
    ideal = 3 + 1 / np.log2(3)
    assert result.of("nDCG@3")[0] == pytest.approx((1 + 3 / np.log2(3)) / ideal)
    assert result.queries.expected == [["a", "b"]]
    assert result.queries.expected_grades == [[3, 1]]


@dataclass(frozen=True)
class Shuffling:
    """Finds anything, in an order that depends on the query alone; an even number of its letters finds half of it."""

    def index(self, corpus: Corpus, store: Store) -> Shuffling:
        object.__setattr__(self, "_documents", len(corpus.ids))
        return self

    def search(self, queries: Sequence[str], k: int, store: Store = NoStore()) -> Rankings:  # noqa: B008 (immutable)
        found, documents = create_empty_rankings(len(queries), k), vars(self)["_documents"]
        for i, text in enumerate(queries):
            order = np.random.default_rng(list(text.encode())).permutation(documents)[:k]
            order = order[: len(order) // (1 if len(text) % 2 else 2)]
            found.documents[i, : len(order)], found.scores[i, : len(order)] = order, -np.arange(len(order))
        return replace(found, errors={0: "down"})


WORDS = {"vital": 5, "of use": 2}


def evaluated(folder: Path, items: int, k_values: tuple[int, ...], depth: int) -> Result:
    """Return the evaluation of a golden dataset with words of its own for relevance."""
    queries = [
        {
            "query_id": f"q{i}",
            "query_text": "a ship " * (i + 1) + "x" * (i % 3),
            "query_type": ("precise", "wide")[i % 2],
            "expected_items": [
                {"item_id": f"i{(7 * i + 3 * j) % items}", "relevance": list(WORDS)[j % 2]} for j in range(i % 5)
            ],
        }
        for i in range(20)
    ]
    (folder / "queries.json").write_text(json.dumps({"queries": queries}))
    (folder / "items.json").write_text(json.dumps([{"item_id": f"i{i}", "headline": "ship"} for i in range(items)]))
    source = GoldenJson(
        path=str(folder / "queries.json"), items=str(folder / "items.json"), text_fields=("headline",), relevance=WORDS
    )
    metrics = MetricSettings(k_values=k_values, depth=depth, primary="nDCG@10")
    config = {"dataset": {"path": source.path, "relevance": WORDS}, "metrics": {"depth": depth, "k_values": k_values}}
    experiment = Experiment("shuffled", "shuffled", Shuffling(), source, metrics, config, {})
    return Bench(DiskStore(folder / "cache")).evaluate(experiment)


@pytest.mark.parametrize(
    ("items", "k_values", "depth", "whole"),
    [(60, (1, 10, 30), 30, True), (60, (1, 10), 40, False), (20, (1, 10, 30), 100, True), (5, (1, 10), 10, True)],
    ids=["as deep as the largest cutoff", "deeper", "deeper than the collection", "a tiny collection"],
)
def test_a_report_of_our_own_is_read_back_as_the_result_that_it_is_of(
    tmp_path: Path, items: int, k_values: tuple[int, ...], depth: int, whole: bool
) -> None:
    result = evaluated(tmp_path, items, k_values, depth)
    (again,) = read_report(written(tmp_path, golden_report([result], datetime(2026, 1, 2, tzinfo=UTC))))
    missing = {*result.measures} - {*again.measures}
    unread = {measure for measure in missing if FORMULAS[measure.partition("@")[0]].not_in_reports}
    assert missing - unread == (set() if whole else {"RR", f"AP@{depth}"})
    for measure in again.measures:
        np.testing.assert_allclose(again.of(measure), result.of(measure), atol=1e-12, err_msg=measure)
    assert again.queries.expected_grades == [sorted(of, reverse=True) for of in result.queries.expected_grades]
    assert again.dataset.fingerprint == result.dataset.fingerprint
    if whole:
        assert compute_depth(again) == compute_depth(result)
        assert list(again.queries.statuses) == list(result.queries.statuses)


def test_the_search_configuration_of_a_report_survives_a_round_trip(tmp_path: Path) -> None:
    own = {"retriever": {"k1": 1.2}, "rrf_k": 60}
    (one,) = read_report(written(tmp_path, {**report(query("q1", {"a": "high"}, ["a"])), "search_configuration": own}))
    assert one.config["search_configuration"] == own
    again = golden_report([one], datetime(2026, 1, 1, tzinfo=UTC))
    assert again["search_configuration"] == own


def test_a_report_begins_with_precision_and_recall() -> None:
    assert list(measure_names(REPORT_MEASURES)) == ["P", "R", "nDCG", *REPORT_MEASURES[3:]]


def test_what_lies_deeper_than_the_lists_is_not_measured(tmp_path: Path) -> None:
    asked = query("q1", {"a": "high"}, [f"i{i}" for i in range(10)])
    (result,) = read_report(written(tmp_path, report(asked, top_k_values=[1, 10, 100])))
    assert {measure.partition("@")[2] for measure in result.measures} == {"1", "10"}
    assert compute_depth(result) == 10
    with pytest.raises(ResultError, match="top_k_values begin at 100, but queries list at most 10 items"):
        read_report(written(tmp_path, report(asked, top_k_values=[100])))


def test_search_types_of_one_report_may_expect_other_items(tmp_path: Path) -> None:
    parts = [{"query_results": [query("q1", {item: "high"}, ["a", "b"])]} for item in "ab"]
    config = {"top_k_values": [1, 3], "dataset_version": "f" * 32, "listed_items": 10, "depth": 10}
    content = {"run_id": "r", "config": config, "results_by_search_type": dict(zip(("x", "y"), parts, strict=True))}
    comparison = compare_results(read_report(written(tmp_path, content)), TableStatistics(permutations=10))
    assert [note.partition(" in ")[0] for note in comparison.notes] == ["1 of 1 queries have different gold"]
    assert [versus.mean for versus in comparison.table["P@1"]] == [1, 0]


def test_the_best_may_score_lowest(tmp_path: Path) -> None:
    asked = query("q1", {"a": "high"}, ["a", "b"], retrieved_scores=[-4.5, -3.0])
    (result,) = read_report(written(tmp_path, report(asked)))
    assert result.hits is not None
    assert result.hits.rankings.scores[0].tolist() == [4.5, 3.0, -np.inf]
    assert result.hits.ids(0) == ["a", "b"]


def test_a_result_of_a_report_can_be_saved_as_a_record(tmp_path: Path) -> None:
    (result,) = read_report(written(tmp_path, report(query("q1", {"a": "2"}, ["b", "a"], retrieval_time_ms=3.5))))
    save_record(result, tmp_path / "record")
    again = load_record(tmp_path / "record")
    assert again.means == pytest.approx(dict(result.means))
    assert again.queries.expected_grades == [[2]]
    assert again.timings.each_ms == [3.5]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (report(), "query_results"),
        ({"query_results": []}, "run_id"),
        (report(query("q1", {"a": "high"}, ["a", "a"])), "q1 retrieved the same item twice"),
        (report(query("q1", {"a": "great"}, ["a"])), "unknown relevance 'great' (known: high, medium, low"),
        (report(query("q1", {"a": "high"}, ["a"], retrieved_scores=[1.0, 2.0])), "1 items, but has 2 scores"),
        (report(query("q1", {"a": "high"}, ["a"]), top_k_values=[]), "top_k_values"),
        (report({"query_id": "q1"}), "query_text"),
        (
            {"run_id": "r", "config": {"top_k_values": [1]}, "results_by_search_type": {}},
            "no results for any search type",
        ),
    ],
)
def test_a_malformed_report_is_refused_in_a_line_that_names_the_place(
    tmp_path: Path, content: object, said: str
) -> None:
    with pytest.raises(ResultError, match=r"report\.json: ") as caught:
        read_report(written(tmp_path, content))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "expected"),
    [({"query_results": []}, True), ({"results_by_search_type": {}}, True), ({"version": 1}, False), ([], False)],
)
def test_a_report_is_distinguished_from_other_json(content: object, expected: bool) -> None:
    assert is_report(content) is expected
