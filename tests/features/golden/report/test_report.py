"""Golden reports: any number of search types, ties, errors, times, and data that stays data."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrievers.base import Rankings
from runner.comparison.comparability import NotComparable, ReportError
from runner.evaluation.result import Hits, Result
from runner.features.golden.document import golden_report, search_types
from runner.features.golden.report.files import golden_files
from runner.features.golden.report.markdown import golden_markdown
from runner.results.golden_reports import read_report
from tests.pages.factory import TYPES, result
from tests.strategies.settings import at_most

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
QUICK = {"statistics": {"permutations": 200}}


def configured(found: Result, own_gold: Sequence[str] = (), **config: Any) -> Result:
    return replace(found, config={**found.config, **QUICK, **config}, own_gold=own_gold)


def three() -> list[Result]:
    return [
        configured(result(name, retriever=name, seed=seed, quality=quality))
        for name, seed, quality in (("bm25", 0, 0.5), ("dense", 1, 0.55), ("hybrid", 2, 0.7))
    ]


def block(markdown: str, query: str) -> str:
    """Return what a report says of a query."""
    return re.split(r"^### ", markdown.partition(f"### Query: {query} ")[2], flags=re.M)[0]


def table(markdown: str, title: str) -> list[list[str]]:
    """Return the rows of the table under a title."""
    lines = markdown.partition(f"{title}\n")[2].lstrip().splitlines()
    end = next(i for i, line in enumerate([*lines, ""]) if not line.startswith("|"))
    return [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines[2:end]]


def test_any_number_of_search_types_is_compared_to_the_first() -> None:
    results = three()
    report = golden_report(results, AT, parallel=True)
    assert report["config"]["search_types_evaluated"] == ["bm25", "dense", "hybrid"]
    assert report["config"]["parallel_execution"] is True
    differences = report["comparison"]["metric_differences"]
    assert [name for name in differences if "@1" in name[-2:]] == ["precision@1", "recall@1", "ndcg@1"]
    for name, measure in (("precision@10", "P@10"), ("mrr", "RR"), ("ndcg@10", "nDCG@10")):
        said = differences[name]
        means = {each.retriever: each.means[measure] for each in results}
        assert {kind: said[kind] for kind in means} == pytest.approx(means)
        assert said["winner"] == max(means, key=means.__getitem__)
        for kind, other in said["others"].items():
            assert other["difference"] == pytest.approx(means[kind] - means["bm25"])
            assert other["percent_change"] == pytest.approx(100 * (means[kind] / means["bm25"] - 1))
            assert other["interval"][0] <= other["difference"] <= other["interval"][1]
            assert other["wins"] + other["ties"] + other["losses"] == 30
        best = max(said["others"], key=said.__getitem__)
        assert said["difference"] == said["others"][best]["difference"]
    assert report["comparison"]["tests"]["comparisons"] == 2  # of the primary measure


def test_the_markdown_of_many_search_types_has_all_their_differences() -> None:
    report = golden_report(three(), AT)
    markdown = golden_markdown(report)
    rows = table(markdown, "### All Differences to bm25")
    assert len(rows) == 2 * len(report["comparison"]["metric_differences"])
    assert {row[1] for row in rows} == {"dense", "hybrid"}
    (mrr,) = table(markdown, "### Mean Reciprocal Rank (MRR)")
    said = report["comparison"]["metric_differences"]["mrr"]
    assert mrr[1:4] == [f"{said[kind]:.3f}" for kind in ("bm25", "dense", "hybrid")]
    better = said["others"][max(said["others"], key=said.__getitem__)]
    counts = (better["losses"], better["wins"]) if said["winner"] == "bm25" else (better["wins"], better["losses"])
    ahead = "" if better["significant"] else f" ahead ({counts[0]} better, {counts[1]} worse)"
    assert mrr[-1] == said["winner"].upper() + ahead
    assert len(table(markdown, "The figures above are means of all pairs:")) == 3
    assert len(table(markdown, "The outcome of each query and the rank of its first relevant item.")) == 34
    assert all(f"### {kind}\n\n10 queries" in markdown for kind in TYPES)


def test_gold_of_a_search_types_own_is_said_of_one_and_of_several(tmp_path: Path) -> None:
    """It is said as well by what is read back of the JSON."""
    made = result()
    graded = replace(made.queries, expected_grades=[[2] * len(gold) for gold in made.queries.expected])
    own = configured(replace(made, queries=graded), own_gold=["q001", "q004"])
    told = "**Gold of Its Own**: bm25 for 2 of 34 queries"
    for results in ([own], [replace(own, retriever="dense", own_gold=[]), own]):
        report = golden_report(results, AT)
        assert told in golden_markdown(report)
        (tmp_path / "report.json").write_text(json.dumps(report))
        *_, again = read_report(tmp_path / "report.json")
        assert again.own_gold == ["q001", "q004"]
    assert "Gold of Its Own" not in golden_markdown(golden_report([configured(result())], AT))


def test_a_tie_has_no_winner() -> None:
    same = configured(result("again", retriever="again"))
    report = golden_report([configured(result()), same], AT)
    assert {said["winner"] for said in report["comparison"]["metric_differences"].values()} == {"tie"}
    agreement = report["comparison"]["agreement"]
    figures = ("rank_1_agreement", "top_3_overlap", "top_5_overlap", "rbo", "kendall_tau")
    assert [agreement[figure] for figure in figures] == pytest.approx([1] * 5)
    assert agreement["headroom"]["oracle_mean"] == agreement["headroom"]["best_mean"]
    assert {row[-1] for row in table(golden_markdown(report), "### Precision")} == {"tie"}


def test_the_cutoffs_that_include_all_documents_are_left_out_by_name() -> None:
    small = [replace(each, dataset=replace(each.dataset, documents=55)) for each in three()]
    report = golden_report(small, AT)
    assert "recall@10" in report["comparison"]["metric_differences"]
    assert "recall@100" not in report["comparison"]["metric_differences"]
    assert report["comparison"]["tests"]["notes"][-1].startswith(
        "without the cutoffs 100, which include all 55 documents"
    )
    assert "a recall of 1 there, in any order." in golden_markdown(report)
    assert not golden_report(three(), AT)["comparison"]["tests"]["notes"]


def test_only_a_significant_difference_has_a_winner() -> None:
    worse = configured(result("worse", retriever="worse", seed=4, quality=0.3))
    report = golden_report([worse, configured(result())], AT)
    rows, markdown = report["comparison"]["metric_differences"], golden_markdown(report)
    other = rows["mrr"]["others"]["bm25"]
    assert rows["ndcg@10"]["others"]["bm25"]["significant"] and rows["mrr"]["winner"] == "bm25"
    assert [row[-1] for row in table(markdown, "### NDCG")][1] == "BM25"
    (mrr,) = table(markdown, "### Mean Reciprocal Rank (MRR)")
    assert other["wins"] > 10
    assert (other["significant"], mrr[-1]) == (True, "BM25")
    near = golden_report([configured(result("near", retriever="near", seed=4)), configured(result())], AT)
    other = near["comparison"]["metric_differences"]["mrr"]["others"]["bm25"]
    assert not other["significant"]
    (mrr,) = table(golden_markdown(near), "### Mean Reciprocal Rank (MRR)")
    assert " ahead (" in mrr[-1]


def test_those_that_share_the_best_value_are_named() -> None:
    worse = configured(result("worse", retriever="worse", seed=4, quality=0.3))
    again = configured(result("again", retriever="again"))
    report = golden_report([worse, configured(result()), again], AT)
    said = report["comparison"]["metric_differences"]["mrr"]
    assert (said["winner"], said["leaders"]) == ("tie", ["bm25", "again"])
    assert table(golden_markdown(report), "### Mean Reciprocal Rank (MRR)")[0][-1] == "tie: BM25, AGAIN"


def test_an_error_enters_no_mean_and_is_listed() -> None:
    failed = configured(result(errors={1: "500 Server Error"}))
    report = golden_report([failed], AT)
    assert report["summary"]["errors"] == [{"query_id": "q001", "error": "500 Server Error"}]
    assert report["summary"]["statuses"]["error"] == 1
    assert report["query_results"][1]["metrics"] == {}
    measured = [query["metrics"]["precision"]["@10"] for query in report["query_results"] if query["metrics"]]
    assert len(measured) == 29
    assert report["summary"]["precision"]["@10"] == pytest.approx(np.mean(measured))
    markdown = golden_markdown(report)
    assert "- 1 query raised an error and enters no mean: q001" in markdown
    assert "- **Status**: ⚠ ERROR\n- **Error**: 500 Server Error" in block(markdown, "q001")


def test_a_query_without_a_right_answer_has_no_metrics_and_lists_its_results() -> None:
    found = result()
    assert found.hits is not None
    metadata = [{"category": "Food" if i % 2 else "Travel", "headline": f"Item {i}"} for i in range(300)]
    shown = configured(replace(found, hits=replace(found.hits, metadata=metadata)))
    report = golden_report([shown], AT)
    wrong = next(query for query in report["query_results"] if query["status"] == "false_positive")
    assert (wrong["metrics"], wrong["first_relevant_rank"], wrong["expected_relevance"]) == ({}, None, {})
    kinds = [item["category"] for item in wrong["retrieved_metadata"]]
    assert list(wrong["retrieved_metadata"][0]) == ["item_id", "category", "headline", "score"]
    said = block(golden_markdown(report), wrong["query_id"])
    assert f"  - Categories: Food ({kinds.count('Food')}), Travel ({kinds.count('Travel')})" in said
    assert "- **False Positive Analysis**:\n  - Top scores: " in said
    assert re.search(r'- (Food|Travel): "Item \d+"$', said, re.M)


def test_relevance_is_said_in_the_words_of_the_dataset_or_else_as_a_grade() -> None:
    found = result()
    grades = [[3, 1] if each else [] for each in found.queries.expected]
    graded = replace(found, queries=replace(found.queries, expected_grades=grades))
    words = {"dataset": {"relevance": {"vital": 3}}}
    relevance = golden_report([configured(graded, **words)], AT)["query_results"][0]["expected_relevance"]
    assert relevance == {"d0": "vital", "d50": "1"}


def test_a_query_that_takes_much_longer_than_the_mean_is_marked() -> None:
    each = [1.0] * 9 + [11.0] + [None] * 20
    timed = configured(result())
    report = golden_report([replace(timed, timings=replace(timed.timings, each_ms=each, mean_ms=2.0))], AT)
    assert (report["timing"]["median_retrieval_time_ms"], report["timing"]["timed_queries"]) == (1.0, 10)
    markdown = golden_markdown(report)
    assert "- **Retrieval Time**: 11.0ms ⚠ (outlier - 5.5x average)" in block(markdown, "q009")
    assert "- **Retrieval Time**: 1.0ms\n" in block(markdown, "q000")
    assert "- **Retrieval Time**: not timed\n" in block(markdown, "q010")


def test_times_are_compared_by_medians_which_one_cold_query_does_not_change() -> None:
    cold, warm = ([first] + [each] * 9 + [None] * 20 for first, each in ((1.0, 1.0), (500.0, 4.5)))
    timed = [
        replace(found, timings=replace(found.timings, each_ms=each))
        for found, each in zip(three()[:2], (cold, warm), strict=True)
    ]
    markdown = golden_markdown(golden_report(timed, AT))
    assert "| Max (ms) | Relative median |" in markdown
    assert [row[-1] for row in table(markdown, "## Performance Comparison")] == ["1.0x", "4.5x"]


@settings(max_examples=at_most(30))
@given(st.lists(st.floats(0, 1, width=32), min_size=4, max_size=12), st.floats(0.5, 100), st.floats(-50, 50))
def test_confidence_does_not_depend_on_the_scale_of_scores(gaps: list[float], factor: float, shift: float) -> None:
    one, other = (confidences([[round(g, 2) * a + b, b] for g in gaps]) for a, b in ((1, 0), (factor, shift)))
    distinct = len({round(g, 2) for g in gaps})
    assert one == other or distinct < len(gaps)  # equal gaps may round apart
    assert None not in one


def confidences(rows: list[list[float]]) -> list[str | None]:
    found = configured(result(queries=len(rows), no_result=0))
    documents = np.tile(np.arange(2, dtype=np.int32), (len(rows), 1))
    ranked = Hits(Rankings(documents, np.array(rows, np.float32)), ["a", "b"], np.zeros_like(documents))
    report = golden_report([replace(found, hits=ranked)], AT)
    return [query["score_confidence"] for query in report["query_results"]]


def test_confidence_is_high_where_the_best_score_stands_out() -> None:
    assert confidences([[1, 0.9], [1, 0.5], [1, 0.1]]) == ["low", "medium", "high"]
    assert confidences([[1, -np.inf], [1, 0.5]]) == [None, "medium"]


def test_text_from_the_data_is_escaped_in_markdown() -> None:
    one = configured(result(text="*a* | <b>b</b>"))
    other = configured(result(retriever="other", text="*a* | <b>b</b>"))
    assert r'q000 - "\*a\* \| \<b>b\</b> 0"' in golden_markdown(golden_report([one], AT))
    assert r"\*a\* \| \<b>b\</b> 0" in golden_markdown(golden_report([one, other], AT))


def test_the_markdown_says_what_the_json_says() -> None:
    for results in (three(), three()[:1]):
        files = golden_files(results, AT)
        report = json.loads(files["eval_20260102_030405_report.json"])
        assert golden_markdown(report) == files["eval_20260102_030405_report.md"]


def test_cutoffs_that_take_in_the_whole_corpus_are_not_shown() -> None:
    found = result()
    small = configured(replace(found, dataset=replace(found.dataset, documents=55)))
    report = golden_report([small], AT)
    assert list(report["summary"]["recall"]) == ["@1", "@10"]
    assert all("@100" not in means["recall"] for means in report["by_query_type"].values())
    assert "@100" not in report["query_results"][0]["metrics"]["recall"]
    assert "@100" not in golden_markdown(report)
    assert report["config"]["top_k_values"] == [1, 10, 100]  # who reads the report back measures them all


def test_the_time_of_a_report_is_in_utc() -> None:
    east = AT.astimezone(timezone(timedelta(hours=9)))
    assert golden_report([configured(result())], east) == golden_report([configured(result())], AT)


def test_the_head_says_what_was_searched() -> None:
    config: Mapping[str, Any] = {
        "dataset": {"path": "folder/queries.json", "expected_items": 120},
        "retriever": {"base_url": "http://127.0.0.1:8001"},
    }
    searched = replace(configured(result(), **config), search_type="bm25-lc")
    report = golden_report([searched], AT)
    assert report["config"]["dataset_version"] == "d1" * 16
    head = golden_markdown(report).partition("## ")[0]
    assert "**API Endpoint**: http://127.0.0.1:8001  \n**Search Type**: bm25-lc  \n" in head
    assert "**Dataset**: queries.json (34 queries)  \n**Target Items**: 120 | **Actual Items**: 120 ✓" in head


def test_search_types_of_the_same_name_are_labelled_by_their_swept_values() -> None:
    twice = [result(f"k1={k1}", swept={"retriever.k1": k1}) for k1 in (0.9, 1.2)]
    assert search_types(twice) == ["k1=0.9", "k1=1.2"]
    assert search_types([result(), result(retriever="dense")]) == ["bm25", "dense"]


def test_what_cannot_be_reported_is_refused() -> None:
    with pytest.raises(ReportError, match="needs at least one result"):
        golden_report([], AT)
    with pytest.raises(ReportError, match="bm25 was loaded without its rankings"):
        golden_report([configured(result(hits=False))], AT)
    other = configured(result("other", retriever="other"))
    other = replace(other, dataset=replace(other.dataset, fingerprint="e" * 32))
    with pytest.raises(NotComparable, match="different datasets"):
        golden_report([configured(result()), other], AT)
