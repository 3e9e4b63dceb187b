"""An evaluation in Markdown: its numbers are those of the result."""

from __future__ import annotations

import re
from dataclasses import replace

from runner.comparison.insights import find_insights
from runner.evaluation.report.sections import result_markdown
from tests.pages.factory import TYPES, result
from tests.pages.reading import rows

PRIMARY = "nDCG@10"


def test_the_measures_of_a_result_are_its_means() -> None:
    found = result()
    table = {row[0]: row[1:] for row in rows(result_markdown(found, find_insights(found)), "Summary measures")}
    assert table["nDCG"] == [f"{found.means['nDCG@1']:.3f}", f"{found.means['nDCG@10']:.3f}", "–"]
    assert table["R"] == [f"{found.means[f'R@{k}']:.3f}" for k in (1, 10, 100)]
    assert f"**RR**: {found.means['RR']:.3f}" in result_markdown(found, find_insights(found))


def test_a_result_has_the_sections_of_a_report() -> None:
    found = result(errors={3: "timed out"}, retriever="dense")
    text = result_markdown(found, find_insights(found))
    sections = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert sections == [
        "Summary measures",
        "Queries without gold (AUROC 0.875)",
        "False positives",
        "Choosing a threshold",
        "By query type",
        "Query performance prediction",
        "Diagnostics",
        "Queries that raised an error",
        "Missed queries and their causes",
        "Missed queries, with evidence",
        "Hardest queries",
        "Timings",
        "Configuration",
        "Environment",
    ]
    assert [row[0] for row in rows(text, "By query type")] == list(TYPES)


def test_a_hard_query_shows_its_expected_and_retrieved_documents() -> None:
    found = result()
    text = result_markdown(found, find_insights(found), hardest=29)
    part = text.partition("### q005: ")[2].partition("###")[0]
    assert "- **Expected**: d5, d55\n" in part
    rank = re.search(r"\*\*First gold at rank\*\*: (\d+)", part)
    assert rank is not None
    retrieved = re.search(r"gold in bold\): (.*) and 2 more", part)
    assert retrieved is not None
    assert retrieved[1].split(", ")[int(rank[1]) - 1] == "**d5** (2)"
    assert f"{PRIMARY} {found.of(PRIMARY)[5]:.3f}" in part
    assert "- **Status**: ~ partial\n" in part


def test_a_result_without_types_or_no_result_queries_has_no_such_sections() -> None:
    found = result(types=(), no_result=0, hits=False)
    text = result_markdown(found, find_insights(found))
    assert "By query type" not in text
    assert "nothing is right" not in text
    assert "Retrieved" not in text


def test_a_result_of_which_every_query_failed_is_still_a_report() -> None:
    found = result(queries=2, no_result=0, errors={0: "down", 1: "down"})
    text = result_markdown(found, find_insights(found))
    assert "| down | 2 | q000, q001 |" in text
    assert "**nDCG@10**: –, 95% interval –" in text


def test_the_confidence_of_the_config_is_that_of_the_interval() -> None:
    found = replace(result(), config={"statistics": {"confidence": 0.9}})
    assert "90% interval [" in result_markdown(found, find_insights(found))


def test_queries_with_filters_are_shown_by_selectivity() -> None:
    diagnostics = {
        "queries.filter_up_to_1_percent": 12.0,
        "nDCG@10.filter_up_to_1_percent": 0.25,
        "short_results_at_10.filter_up_to_1_percent": 1234.0,
        "part.index_recall_at_10.filter_up_to_1_percent": 0.125,
        "queries.filter_over_20_percent": 3.0,
        "index_recall_at_10": 0.5,
    }
    found = replace(result(), diagnostics=diagnostics)
    text = result_markdown(found, find_insights(found))
    assert rows(text, "Filters, by selectivity") == [
        ["up to 1 %", "12", "0.250", "1,234", "0.125"],
        ["over 20 %", "3", "–", "–", "–"],
    ]
    assert rows(text, "Diagnostics") == [["index_recall_at_10", "0.5"]]
    assert "Filters" not in result_markdown(result(), find_insights(found))
