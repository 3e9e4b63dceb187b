"""The reports of real golden evaluations are an oracle: what they found, evaluated here, gives the same reports.

What each query found, its scores and its time are taken from the published report, by a retriever that repeats them;
all else is computed by this program. Precision, recall, reciprocal rank, statuses, true negatives, score gaps and
agreement are exact in the published reports. nDCG is not: another discount was used there. Neither is the winner of a
tie, which is the first search type there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retrievers.base import Corpus, Rankings, create_empty_rankings
from retrievers.store import NoStore, Store
from runner.datasets.golden_json import GoldenJson
from runner.evaluation.bench import Bench
from runner.evaluation.experiment import Experiment
from runner.evaluation.records import load_record, save_record
from runner.evaluation.result import Result
from runner.features.golden.document import golden_report
from runner.features.golden.report.files import golden_files
from runner.features.golden.report.markdown import golden_markdown
from runner.metrics.settings import MetricSettings
from runner.store.disk import DiskStore

SINGLE = ["20251214_204125", "20251222_212728"]
SEVERAL = "20251221_070214"
K = (1, 3, 5, 10)
AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@dataclass(frozen=True)
class Recorded:
    """Finds again what a published report says that a search type found."""

    report: str
    search_type: str | None = None

    def index(self, corpus: Corpus, store: Store) -> Recorded:
        object.__setattr__(self, "_position", {item: place for place, item in enumerate(corpus.ids)})
        return self

    def search(self, queries: Sequence[str], k: int, store: Store = NoStore()) -> Rankings:  # noqa: B008 (immutable)
        said = queries_of(Path(self.report), self.search_type)
        assert [query["query_text"] for query in said] == list(queries)
        found, seconds, errors = create_empty_rankings(len(queries), k), np.full(len(queries), np.nan, np.float32), {}
        for i, query in enumerate(said):
            n = len(query["retrieved_items"])
            found.documents[i, :n] = [vars(self)["_position"][item] for item in query["retrieved_items"]]
            found.scores[i, :n] = query["retrieved_scores"]
            if query["status"] == "error":
                errors[i] = query["error"]
            else:
                seconds[i] = query["retrieval_time_ms"] / 1000
        return Rankings(found.documents, found.scores, seconds=seconds, errors=errors or None)


def published(folder: Path, run: str) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((folder / f"reports/eval_{run}_report.json").read_text(encoding="utf-8"))
    return report


def queries_of(path: Path, search_type: str | None) -> list[dict[str, Any]]:
    report = json.loads(path.read_text(encoding="utf-8"))
    found = report["results_by_search_type"][search_type] if search_type else report
    queries: list[dict[str, Any]] = found["query_results"]
    return queries


def evaluated(folder: Path, store: Path, run: str, search_type: str | None = None) -> Result:
    """Return the evaluation of what a published report found, as it is after it was saved and loaded again."""
    path = folder / f"reports/eval_{run}_report.json"
    source = GoldenJson(
        path=str(folder / "retrieval_evaluation_dataset.json"),
        items=str(folder / "golden_analyses.json"),
        expected_items=55,
    )
    config = {
        "dataset": {"path": source.path, "relevance": source.relevance, "expected_items": 55},
        "retriever": {"search_type": search_type} if search_type else {},
        "statistics": {"permutations": 200},
    }
    metrics = MetricSettings(measures=("P", "R", "nDCG", "RR"), k_values=K, depth=10)
    retriever = Recorded(str(path), search_type)
    experiment = Experiment(search_type or "recorded", "recorded", retriever, source, metrics, config, {})
    result = Bench(DiskStore(store / "cache")).evaluate(experiment)
    save_record(result, store / "record")
    return load_record(store / "record")


@pytest.fixture(scope="module", params=SINGLE)
def single(
    request: pytest.FixtureRequest, real_golden: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, Any], dict[str, Any], str]:
    """Return a published report of one search type, ours of what it found, and the Markdown of the published one."""
    result = evaluated(real_golden, tmp_path_factory.mktemp("single"), request.param)
    markdown = (real_golden / f"reports/eval_{request.param}_report.md").read_text(encoding="utf-8")
    return published(real_golden, request.param), golden_report([result], AT), markdown


@pytest.fixture(scope="module")
def several(real_golden: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, Any], str]:
    """Return the same of a published report of two search types."""
    report = published(real_golden, SEVERAL)
    types = report["config"]["search_types_evaluated"]
    results = [evaluated(real_golden, tmp_path_factory.mktemp(name), SEVERAL, name) for name in types]
    markdown = (real_golden / f"reports/eval_{SEVERAL}_report.md").read_text(encoding="utf-8")
    return report, golden_report(results, AT, parallel=True), markdown


def figures(query: dict[str, Any], name: str) -> Any:
    """Return figures of a query, without a median of an even number: there it is the larger of the middle two."""
    said = query[name]
    even = name == "score_stats" and len(query["retrieved_items"]) % 2 == 0
    return {figure: said[figure] for figure in said if figure != "median"} if even else said


def near(value: object) -> Any:
    """Return numbers, nested, to compare with: scores have 32 bits here."""
    return pytest.approx(value, rel=1e-6, abs=1e-6) if isinstance(value, float) else value


def check_evaluation(theirs: dict[str, Any], ours: dict[str, Any]) -> None:
    """Check every exact value of a published evaluation of one search type: the summary, each type and each query."""
    for part, mine in [
        (theirs["summary"], ours["summary"]),
        *((of, ours["by_query_type"][kind]) for kind, of in theirs["by_query_type"].items()),
    ]:
        for name in ("precision", "recall"):
            assert mine[name] == pytest.approx(part[name], abs=1e-12)
        assert mine["mrr"] == pytest.approx(part["mrr"], abs=1e-12)
        assert mine.get("count") == part.get("count")
    edges = theirs["summary"]["edge_cases"]
    assert {name: ours["summary"]["edge_cases"][name] for name in edges} == edges
    assert ours["by_query_type"].keys() == theirs["by_query_type"].keys()
    for query, mine in zip(theirs["query_results"], ours["query_results"], strict=True):
        assert {name: mine[name] for name in ("query_id", "query_text", "query_type", "status", "retrieved_items")} == {
            name: query[name] for name in ("query_id", "query_text", "query_type", "status", "retrieved_items")
        }
        assert sorted(mine["expected_items"]) == sorted(query["expected_items"])
        assert mine["expected_relevance"] == query["expected_relevance"]
        assert mine["first_relevant_rank"] == query.get("first_relevant_rank")
        assert bool(mine["metrics"]) == bool(query["metrics"])
        if query["metrics"]:
            for name in ("precision", "recall"):
                assert mine["metrics"][name] == pytest.approx(query["metrics"][name], abs=1e-12)
            assert mine["metrics"]["reciprocal_rank"] == pytest.approx(query["metrics"]["reciprocal_rank"], abs=1e-12)
        for name in ("retrieved_scores", "score_gaps", "score_stats"):
            if name in query:
                assert figures(mine, name) == pytest.approx(figures(query, name), rel=1e-5, abs=1e-6)
        for item, score in query.get("expected_item_scores", {}).items():
            assert mine["expected_item_scores"][item] == near(score)
        ranks = {each["item_id"]: each["actual_rank"] for each in mine["relevance_alignment"]}
        for each in query.get("relevance_alignment", []):
            assert ranks[each["item_id"]] == each["actual_rank"]
        assert mine.get("error") == query.get("error")


def keys(value: object, path: str = "") -> set[str]:
    """Return the paths of all keys in nested values, those of the elements of a list together."""
    if isinstance(value, dict):
        return {p for key, of in value.items() for p in ({f"{path}/{key}"} | keys(of, f"{path}/{key}"))}
    return {p for of in value for p in keys(of, f"{path}[]")} if isinstance(value, list) else set()


def blocks(markdown: str) -> dict[str, list[str]]:
    """Return the lines about each query, by its id."""
    return {part.partition(" ")[0]: part.splitlines() for part in re.split(r"^### Query: ", markdown, flags=re.M)[1:]}


def lines(markdown: str) -> set[str]:
    return {line.rstrip() for line in markdown.splitlines()}


def test_every_exact_value_of_a_published_report_is_computed_again(single: tuple[Any, ...]) -> None:
    theirs, ours, _ = single
    check_evaluation(theirs, ours)


def test_every_exact_value_of_a_published_comparison_is_computed_again(several: tuple[Any, ...]) -> None:
    theirs, ours, _ = several
    for name, evaluation in theirs["results_by_search_type"].items():
        check_evaluation(evaluation, ours["results_by_search_type"][name])


def test_the_ndcg_of_the_published_reports_is_that_of_another_discount(single: tuple[Any, ...]) -> None:
    theirs, ours, _ = single
    assert ours["summary"]["ndcg"]["@1"] == pytest.approx(theirs["summary"]["ndcg"]["@1"], abs=1e-12)
    for k in ("@3", "@5", "@10"):
        assert ours["summary"]["ndcg"][k] != pytest.approx(theirs["summary"]["ndcg"][k], abs=1e-4)


def test_a_report_has_the_keys_of_the_published_one(single: tuple[Any, ...], several: tuple[Any, ...]) -> None:
    for theirs, ours, _ in (single, several):
        assert not keys(theirs) - keys(ours)


def test_times_are_those_of_the_published_reports(single: tuple[Any, ...], several: tuple[Any, ...]) -> None:
    for theirs, ours in [
        (single[0]["timing"], single[1]["timing"]),
        *(
            (several[0]["comparison"]["performance"][name], several[1]["comparison"]["performance"][name])
            for name in several[0]["comparison"]["performance"]
        ),
    ]:
        for name, value in theirs.items():
            if name != "total_evaluation_time_s":
                assert ours[name] == pytest.approx(value, rel=1e-5)


def test_differences_are_those_of_the_published_comparison_and_ties_are_ties(several: tuple[Any, ...]) -> None:
    theirs, ours = (each["comparison"]["metric_differences"] for each in several[:2])
    for name, said in theirs.items():
        if name.startswith("ndcg"):
            continue
        for figure in ("bm25", "vector", "difference", "percent_change"):
            assert ours[name][figure] == pytest.approx(said[figure], abs=1e-9)
        assert ours[name]["winner"] == (said["winner"] if abs(said["difference"]) > 1e-12 else "tie")
    types = several[1]["results_by_search_type"]
    kind = "single-item-precision"
    assert all(of["by_query_type"][kind]["precision"]["@5"] == pytest.approx(0.2) for of in types.values())
    markdown = golden_markdown(several[1])
    assert re.search(r"^### single-item-precision\n.*?^\| P@5 \| 0.200 \| 0.200 \| tie \|$", markdown, re.M | re.S)


def test_agreement_is_that_of_the_published_comparison(several: tuple[Any, ...]) -> None:
    theirs, ours = (each["comparison"]["agreement"] for each in several[:2])
    assert {name: ours[name] for name in theirs} == pytest.approx(theirs, abs=1e-12)


def test_the_markdown_of_one_search_type_has_the_figures_of_the_published_one(single: tuple[Any, ...]) -> None:
    _, ours, published = single
    markdown = golden_markdown(ours)
    exact = ("| Precision |", "| Recall |", "**MRR**", "- True Negatives", "- False Positives", "**Target Items**")
    said = {line for line in lines(published) if line.startswith(exact)}
    assert len(said) == 6
    assert said <= lines(markdown)
    theirs, mine = blocks(published), blocks(markdown)
    assert theirs.keys() == mine.keys()
    exact = ("- **Status**", "- **Type**", "- **Error**", "- **Retrieved**: 0")
    if "- **Retrieval Time**" in published:
        exact = (*exact, "- **First Relevant", "- **Retrieval Time**", "  - ... (+")
    for query, block in theirs.items():
        assert block[0] == mine[query][0]
        assert {line for line in block if line.startswith(exact)} <= set(mine[query]), query


def test_the_markdown_of_a_comparison_has_the_figures_of_the_published_one(several: tuple[Any, ...]) -> None:
    _, ours, published = several
    markdown = golden_markdown(ours)
    assert [line for line in published.splitlines() if line.startswith("#")] == [
        line for line in markdown.splitlines() if line.startswith("#") and line in lines(published)
    ]
    mine = {tuple(cells(line)[:5]): cells(line)[-1] for line in markdown.splitlines() if line.startswith("| **@")}
    shown = [cells(line) for line in published.partition("### NDCG")[0].splitlines() if line.startswith("| **@")]
    assert len(shown) == 8
    for *figures, winner in shown:
        assert mine[tuple(figures)].partition(" ahead")[0] == winner, "no difference of four queries is significant"
    assert {line for line in lines(published) if line.startswith(("- **", "- Based"))} <= lines(markdown)


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("| ").split("|")]


def test_a_report_is_two_files_named_by_its_time(real_golden: Path, tmp_path: Path) -> None:
    result = evaluated(real_golden, tmp_path, SINGLE[1])
    files = golden_files([result], AT)
    assert list(files) == ["eval_20260102_030405_report.json", "eval_20260102_030405_report.md"]
    report = json.loads(files["eval_20260102_030405_report.json"])
    assert report["run_id"] == "eval_20260102_030405"
    assert report["timestamp"] == "2026-01-02T03:04:05+00:00"
    assert files == golden_files([result], AT)
