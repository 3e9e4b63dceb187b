"""Every place that shows a p-value or a verdict on the same two results shows the same one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import orjson
import pytest

import runner
from retrievers.choices import list_choices
from runner.comparison.compare import Comparison, TableStatistics, compare_results
from runner.comparison.gate import Gate, check_gate
from runner.comparison.leaderboard import build_leaderboard
from runner.comparison.report import gate_rules, tables
from runner.comparison.report.ci import comparison_junit, iter_annotations
from runner.comparison.report.json import comparison_json
from runner.comparison.report.page import comparison_page
from runner.comparison.report.sections import comparison_markdown
from runner.config.consent import Consent
from runner.evaluation.result import Result
from runner.features.explain.explanation import ExplanationSettings, explain_difference
from runner.features.explain.report.json import explanation_json
from runner.features.explain.terms import Explanation
from runner.features.golden.comparison import comparison as compare_search_types
from runner.features.golden.document import measure_names
from runner.features.golden.report.markdown import _differences
from runner.features.table.paper_table import build_paper_table
from runner.pages.numbers import p_value
from runner.results.lookup import Named
from runner.statistics.settings import Statistics, Test
from runner.sweep.report import tables as sweep_tables
from runner.testing.regression import assert_no_regression
from tests.pages.factory import result

RULES = Gate(drops={"primary": 0.0, "RR": 0.0})
TESTS = tuple(list_choices(Test))


def draw_pair(test: Test, loss: float) -> tuple[Result, Result]:
    """Return two results of which the second lost about this much, by all measures."""
    first = replace(result("a", retriever="a"), config={"statistics": {"test": test}})
    noise = np.random.default_rng(3).normal(-loss, 0.15, first.scores.shape)
    scores = first.scores + noise
    means = {m: float(np.nanmean(row)) for m, row in zip(first.means, scores, strict=True)}
    return first, replace(first, name="b", retriever="b", swept={"retriever": "b"}, scores=scores, means=means)


def explain_pair(pair: tuple[Result, Result], test: Test) -> Explanation:
    """Return the explanation of the difference of two results by their records."""
    baseline, candidate = (Named(result, result.name) for result in pair)
    statistics, options = TableStatistics(test=test), ExplanationSettings()
    return explain_difference(baseline, candidate, statistics, options, pytest.fail, Consent(), RULES.measures)


def list_p_values(pair: tuple[Result, Result], test: Test, measure: str) -> Iterator[tuple[str, float]]:
    """Yield the p-value of a measure, with its correction, by the place that has it as a number."""
    comparison = compare_results(pair, TableStatistics(test=test), rules=RULES.measures)
    yield "compare", comparison.table[measure][1].difference.corrected
    document = orjson.loads(comparison_json(comparison, check_gate(RULES, comparison)))
    yield "comparison.json", document["measures"][measure]["systems"]["b"]["corrected"]
    yield from (("gate", check["p"]) for check in document["gate"]["checks"] if check["measure"] == measure)
    explained = orjson.loads(explanation_json(explain_pair(pair, test)))
    yield "explanation.json", explained["measures"][measure]["total"]["corrected"]
    if measure == comparison.primary:
        in_python = runner.compare(*pair, test=test)
        yield "runner.compare", in_python.difference().difference.corrected
        (_, row) = (row for _, row in in_python.frame.iterrows() if row["measure"] == measure)
        yield "frame", row["corrected"]
        board = build_leaderboard(pair, measure, statistics=Statistics(test=test))
        yield "leaderboard", board.rows[1].difference.corrected
        yield "leaderboard.csv", float(board.to_frame()["p"][1])
        table = build_paper_table(pair, statistics=Statistics(test=test))
        yield "table", next(cell.difference.corrected for cell in table.list_cells() if cell.system == "b")
        golden = compare_search_types({"a": pair[0], "b": pair[1]}, measure_names(pair[0].measures))
        yield "golden report", golden["metric_differences"]["ndcg@10"]["others"]["b"]["p"]


@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize("measure", ["nDCG@10", "RR", "AP"])
def test_all_places_have_the_same_p_value(test: Any, measure: str) -> None:
    found = dict(list_p_values(draw_pair(test, 0.07), test, measure))
    assert len(found) == {"nDCG@10": 10, "RR": 4, "AP": 3}[measure]
    assert 1e-4 < found["compare"] < 0.9
    assert found == pytest.approx(dict.fromkeys(found, found["compare"]))


def list_texts(pair: tuple[Result, Result], comparison: Comparison) -> Iterator[tuple[str, str]]:
    """Yield the texts that show a verdict on two results, by their place."""
    checks = check_gate(RULES, comparison)
    yield "terminal", " ".join(tables.verdicts(comparison))
    yield "gate", " ".join(map(gate_rules.describe_check, checks))
    yield "comparison.md", comparison_markdown(comparison, checks)
    yield "comparison.html", comparison_page(comparison, checks)
    yield "JUnit", comparison_junit(comparison, checks, RULES)
    yield "annotations", " ".join(iter_annotations(comparison, checks, 5, RULES))
    golden = compare_search_types({"a": pair[0], "b": pair[1]}, measure_names(pair[0].measures))
    yield "golden report", " ".join(_differences(golden, ["a", "b"]))
    yield "leaderboard", " ".join(sweep_tables.leaderboard_table(build_leaderboard(pair, "nDCG@10")).texts()[1])
    with pytest.raises(AssertionError) as caught:
        assert_no_regression(pair[1], pair[0], gate=RULES)
    yield "pytest", str(caught.value)


@pytest.mark.parametrize(("loss", "is_significant"), [(0.07, True), (0.03, False)])
def test_all_places_show_the_same_p_value_and_verdict(loss: float, is_significant: bool) -> None:
    pair = draw_pair("permutation", loss)
    comparison = compare_results(pair, TableStatistics(), rules=RULES.measures)
    own = comparison.table["nDCG@10"][1].difference
    assert own.significant == is_significant
    texts = dict(list_texts(pair, comparison))
    assert len(texts) == 9
    assert {place for place, text in texts.items() if p_value(own.corrected) not in text} == set()
    assert ("not significantly worse" in texts["terminal"]) != is_significant
    verdict = check_gate(RULES, comparison)[0].verdict
    assert verdict == ("fail" if is_significant else "undecided")
    assert ("<failure" if is_significant else "<error") in texts["JUnit"]
    board = build_leaderboard(pair, "nDCG@10")
    assert board.rows[1].difference.significant == is_significant
    assert json.loads(comparison_json(comparison, check_gate(RULES, comparison)))["gate"]["verdict"] == (
        "fail" if is_significant else "undecided"
    )


@pytest.mark.parametrize("test", TESTS)
def test_all_places_have_the_same_number_of_queries_needed(test: Any) -> None:
    pair = draw_pair(test, 0.03)
    comparison = compare_results(pair, TableStatistics(test=test))
    needed = comparison.table["nDCG@10"][1].difference.needed
    assert 30 < needed < 1000
    assert build_leaderboard(pair, "nDCG@10", statistics=Statistics(test=test)).rows[1].difference.needed == needed
    (check,) = check_gate(Gate(drops={"primary": 0.01}), comparison)
    assert check.more == needed - 30
    assert f"about {needed:,.0f} queries would be needed" in tables.verdicts(comparison)[0]


@pytest.mark.parametrize("test", ["permutation", "t"])
def test_results_chosen_among_others_have_the_figures_of_the_leaderboard(test: Any) -> None:
    others = [result(name, retriever=name, seed=seed, quality=0.5) for seed, name in enumerate("cdefg", 2)]
    pair = draw_pair(test, 0.07)
    board = build_leaderboard([*pair, *others], "nDCG@10", statistics=Statistics(test=test))
    best, rival = (board.rows[place].position for place in (0, 1))
    every = [*pair, *others]
    chosen = [every[best], every[rival]]
    comparison = compare_results(chosen, TableStatistics(test=test), rules=RULES.measures, rivals=every)
    own, alone = (
        of.table["nDCG@10"][1].difference for of in (comparison, compare_results(chosen, TableStatistics(test=test)))
    )
    expected = board.rows[1].difference
    assert (own.corrected, own.significant) == (pytest.approx(expected.corrected), expected.significant)
    assert own.needed == expected.needed > alone.needed
    assert (own.low, own.high) == pytest.approx((expected.low, expected.high))
    assert own.low < alone.low < alone.high < own.high
    assert own.p == alone.p
    assert alone.corrected < own.corrected < 0.9
    assert comparison.count_tests()["primary"] == 21
    assert "corrected for all pairs of 7 systems" in tables.verdicts(comparison)[0]
    (check, _) = check_gate(RULES, comparison)
    assert check.p == own.corrected
