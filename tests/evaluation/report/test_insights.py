"""What the reports say of failures, predictions and thresholds: the numbers are those of the analysis."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retrievers.base import Corpus
from retrievers.lexical.analyzer import Analyzer
from retrievers.store import MemoryStore
from runner.comparison.insights import Insights, find_insights
from runner.evaluation.failure_classes import ADVICE
from runner.evaluation.failures import FailureSettings, Lexicon, QueryFailure
from runner.evaluation.records import save_record
from runner.evaluation.report import insights as insight_tables
from runner.evaluation.report.page import result_page
from runner.evaluation.report.sections import result_markdown
from runner.evaluation.result import Result
from runner.pages.tables import Table
from runner.statistics.prediction import PREDICTORS
from runner.statistics.thresholds import ThresholdSettings
from tests.documentation import blocks, chapters, documented, page
from tests.pages.factory import result
from tests.pages.reading import Page, read_explorer_data, rows

WIDE = 30


@pytest.fixture(scope="module")
def hard() -> Result:
    """Return a result of which several queries miss their gold, and ten have none."""
    return result(quality=0.2, queries=WIDE, no_result=10)


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    """Return a lexicon of the documents of such a result."""
    texts = [f"the lamp of lighthouse number {i}" if i % 2 else f"a storm {i}" for i in range(300)]
    return Lexicon(Corpus([f"d{i}" for i in range(300)], texts), Analyzer(), MemoryStore())


def reports(found: Result) -> tuple[str, str]:
    """Return a result's reports without the texts of its corpus."""
    told = find_insights(found)
    return result_markdown(found, told), result_page(found, told)


def test_the_missed_queries_are_those_without_gold_above_the_cutoff(hard: Result) -> None:
    found = find_insights(hard)
    assert hard.hits is not None
    gold = (hard.hits.grades[:WIDE, :10] > 0).any(axis=1)
    assert {failure.query for failure in found.failures} == set(np.flatnonzero(~gold))
    assert found.failures
    assert f"{len(found.failures)} queries have no gold in the first 10" in insight_tables.failures_note(found)


def test_classes_are_counted_over_the_missed(hard: Result, lexicon: Lexicon) -> None:
    found = find_insights(hard, lexicon)
    table = insight_tables.classes_table(found)
    assert table.columns[2].title == "share of missed"
    counted = {row[0]: row[1:3] for row in table.rows}
    for name, (count, share) in counted.items():
        having = sum(name in failure.labels for failure in found.failures)
        assert count == having
        assert share == pytest.approx(count / len(found.failures))


def test_what_needs_the_texts_is_shown_with_them_and_said_to_be_missing_without(hard: Result, lexicon: Lexicon) -> None:
    without, with_texts = find_insights(hard), find_insights(hard, lexicon)
    few, more = (insight_tables.failures_table(hard, each, 50) for each in (without, with_texts))
    assert {"overlap", "IDF"} <= titles(more) & {"LSA rank", "overlap", "overlap above", "IDF", "similar to gold"}
    assert not titles(few) & {"LSA rank", "overlap", "overlap above", "IDF", "similar to gold"}
    for table in (few, more):
        said = insight_tables.evidence_note(table)
        assert {name for name in insight_tables.EVIDENCE if f"{name}: " in said} == titles(
            table
        ) & insight_tables.EVIDENCE.keys()
    assert "texts were not available" in insight_tables.failures_note(without)
    assert "texts were not available" not in insight_tables.failures_note(with_texts)


def test_the_failures_table_shows_all_evidence_beside_its_query(hard: Result) -> None:
    told = QueryFailure(
        0, ("distractor overlap", "unjudged above gold"), "d1", gold_rank=12, semantic_rank=3, overlap=0.25, rival="d7",
        rival_grade=0, rival_overlap=0.5, lead=1.5, unjudged=2, lookalike="d9", likeness=0.812,
    )  # fmt: skip
    table = insight_tables.failures_table(hard, Insights(failures=[told]), 5)
    ((query, _, *shown),) = table.texts()
    assert query == hard.queries.ids[0]
    assert shown == [
        "distractor overlap, unjudged above gold", "d1 at 12", "3", "d7 (judged irrelevant)", "1.5", "25.0%", "50.0%",
        "2", "d9 (0.81)",
    ]  # fmt: skip


def titles(table: Table) -> set[str]:
    return {column.title for column in table.columns}


def test_a_report_has_a_section_for_each_insight(hard: Result, lexicon: Lexicon) -> None:
    found = find_insights(hard, lexicon)
    text = result_markdown(hard, found)
    assert [row[0] for row in rows(text, "Missed queries and their causes")]
    assert len(rows(text, "Missed queries, with evidence")) == min(len(found.failures), 10)
    predictors = rows(text, "Query performance prediction")
    assert [row[1] for row in predictors] == sorted((row[1] for row in predictors), key=float, reverse=True)
    chosen = rows(text, "Choosing a threshold")
    assert [row[1] for row in chosen] == ["unthresholded", *["in fold", "out of fold", "difference"] * 2]
    html = Page(result_page(hard, found))
    for title in ("Missed queries and their causes", "Missed queries, with evidence", "Query performance prediction"):
        assert title in html.texts
    assert "Choosing a threshold" in html.texts
    assert [row[1] for row in html.table("selected for")] == [row[1] for row in chosen]
    assert [plot["id"] for plot in read_explorer_data(result_page(hard, found))["plots"]] == [
        "cutoffs", "histogram", "types", "thresholds",
    ]  # fmt: skip


def test_in_fold_less_out_of_fold_is_the_difference(hard: Result) -> None:
    _, in_fold, out_of_fold, differences, *_ = insight_tables.thresholds_table(find_insights(hard)).rows
    for within, without, difference in zip(in_fold[3:], out_of_fold[3:], differences[3:], strict=True):
        assert difference == pytest.approx(within - without)


def test_a_result_without_rankings_leaves_out_what_needs_them(hard: Result) -> None:
    titles = (
        "Missed queries and their causes",
        "Missed queries, with evidence",
        "Query performance prediction",
        "Choosing a threshold",
    )
    for text in reports(hard.light()):
        assert not any(title in text for title in titles)


def test_a_result_without_no_result_queries_has_no_threshold_to_choose() -> None:
    for text in reports(result(no_result=0)):
        assert "Choosing a threshold" not in text


def test_where_no_threshold_can_be_chosen_the_report_says_why() -> None:
    for text in reports(result(no_result=1)):
        assert "Choosing a threshold" in text
        assert "No threshold was selected, because there is only one no-result query" in text


def test_gold_is_said_to_be_absent_only_where_all_ids_are_known(hard: Result) -> None:
    assert hard.hits is not None
    complete = replace(hard, dataset=replace(hard.dataset, documents=300))
    moved = replace(complete, queries=replace(hard.queries, expected=[["gone"]] * WIDE + [[]] * 10))
    assert all(failure.absent == ("gone",) for failure in find_insights(moved).failures)
    assert not any(failure.absent for failure in find_insights(replace(moved, dataset=hard.dataset)).failures)


@pytest.mark.parametrize(("primary", "cutoff"), [("nDCG@10", 10), ("P@1", 10), ("RR", 10), ("R@100", 100)])
def test_a_query_is_missed_by_the_cutoff_of_the_primary_measure(primary: str, cutoff: int) -> None:
    assert find_insights(result(primary=primary)).cutoff == cutoff


DOCS = chapters(page("docs/insight.md"))


@pytest.mark.parametrize(
    ("heading", "settings"),
    [("Missed queries and their causes", FailureSettings()), ("Choosing a threshold", ThresholdSettings())],
)
def test_every_setting_is_documented_with_its_default(heading: str, settings: Any) -> None:
    assert documented(DOCS[heading]) == asdict(settings)


def test_every_class_and_predictor_is_documented() -> None:
    for name, advice in ADVICE.items():
        page, _, anchor = advice.page.removeprefix("docs/").partition("#")
        link = f"[{page}]({page}{anchor and '#'}{anchor})"
        assert f"| {name} | {advice.meaning} | {advice.remedy} | {link} |" in DOCS["Missed queries and their causes"]
    for name in PREDICTORS:
        assert f"| {name} |" in DOCS["Query performance prediction"]


def test_the_documented_code_runs(
    hard: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    save_record(hard, tmp_path / "RECORD")
    (code,) = blocks(DOCS["Choosing a threshold"], "python")
    exec(code, {})
    assert "Outcome(f1=" in capsys.readouterr().out
