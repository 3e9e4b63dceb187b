"""What the tables and sentences of a sweep say."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import numpy as np
import pytest

from runner.comparison.criteria import COSTS
from runner.comparison.leaderboard import FailedCombination, build_leaderboard
from runner.comparison.swept_settings import measure_effects
from runner.statistics.comparison import compare_pairs
from runner.statistics.settings import CorrectionName, Statistics, Test
from runner.sweep.report import tables
from runner.sweep.report.columns import build_columns
from tests.pages.factory import mixed, result, sweep

PRIMARY = "nDCG@10"


def test_the_verdict_counts_significant_and_insignificant_differences() -> None:
    board = build_leaderboard(sweep(25), PRIMARY)
    differ = sum(row.difference.significant for row in board.rows)
    assert 0 < differ < 24
    said = tables.verdict(board)
    assert said.startswith(f"{differ} of 25 differ from the best (p < 0.05, max-T over all pairs); the ")
    assert said.endswith(f" {25 - differ} do not differ significantly on these 30 queries.")


def test_the_verdict_covers_the_edges() -> None:
    assert "nothing to rank" in tables.verdict(build_leaderboard([], PRIMARY, [FailedCombination("a", "x")]))
    assert "nothing to compare" in tables.verdict(build_leaderboard([result()], PRIMARY))
    assert "None of 2 differs" in tables.verdict(build_leaderboard([result("a"), result("b")], PRIMARY))
    two = [result("a", quality=0.8), result("b", quality=0.3)]
    assert (
        tables.verdict(build_leaderboard(two, PRIMARY))
        == "The other one differs from the best (p < 0.05, max-T over all pairs)."
    )


def test_a_leaderboard_says_what_it_can_show_and_what_the_search_gained() -> None:
    board = build_leaderboard(sweep(9), PRIMARY)
    gain = board.search_gain
    assert tables.notices(board)[:2] == [
        f"30 queries: differences from the best below about {board.detectable:.4f} usually cannot be seen (power 80%, "
        "max-T over all pairs).",
        f"By chance alone, a search of 9 equal systems gains +{gain.expected:.4f} on these queries; yours gained "
        f"+{gain.observed:.4f} (the best minus the mean of all).",
    ]
    assert 0.01 < gain.expected < gain.observed
    few = build_leaderboard(sweep(9, queries=4), PRIMARY)
    assert tables.describe_detectable(few) == "4 queries: too few for any difference to be significant."
    for board in (build_leaderboard([result()], PRIMARY), build_leaderboard([result("a"), result("b")], PRIMARY)):
        assert tables.describe_detectable(board) == ""
    assert tables.describe_search_gain(build_leaderboard([result()], PRIMARY)) == ""


def test_a_dataset_without_gold_is_said_to_be_one() -> None:
    board = build_leaderboard([result(name, queries=0, no_result=5) for name in "ab"], PRIMARY)
    assert tables.verdict(board) == "No query has gold, so combinations cannot be compared."


def test_columns_about_thresholds_name_them() -> None:
    titles = [column.title for column in tables.leaderboard_table(build_leaderboard([result()], PRIMARY)).columns]
    assert titles[8:] == [
        "R@100",
        "RR",
        "TN rate@0.5",
        "recall lost@0.5",
        "answerable rejected@0.5",
        "AUROC",
        "query ms",
        "p95 ms",
        "index s",
    ]


def test_what_a_query_takes_is_its_median_and_the_mean_is_in_the_csv() -> None:
    """One slow query of a hundred makes the mean more than a hundred times the median."""
    found = result()
    each = [0.1] * 99 + [1000.0]
    slow = replace(found, timings=replace(found.timings, mean_ms=10.1, each_ms=each))
    board = build_leaderboard([slow], PRIMARY)
    for table in (tables.leaderboard_table(board), tables.pareto_table(board)):
        (row,) = table.texts()
        shown = dict(zip((column.title for column in table.columns), row, strict=True))
        assert shown["query ms"] == "0.10"
    (read,) = csv.DictReader(io.StringIO(board.to_csv()))
    assert (float(read["median_ms"]), float(read["mean_ms"])) == (0.1, 10.1)


def test_the_page_shows_the_columns_of_the_table() -> None:
    results = mixed()
    board = build_leaderboard(results, PRIMARY, runs=["a" * 32] * len(results))
    titles = [column.title for column in tables.leaderboard_table(board).columns]
    assert sorted(titles) == sorted(column.title for column in build_columns(board, results) if column.shown)
    assert {"run", "W/T/L", "to best"} <= set(titles)


def test_the_leaderboard_table_shows_the_numbers_of_its_rows() -> None:
    board = build_leaderboard(mixed(), PRIMARY)
    texts = tables.leaderboard_table(board).texts()
    for row, cells in zip(board.rows, texts, strict=True):
        assert cells[:3] == [str(row.rank), row.label, f"{row.mean:.4f}"]
        assert cells[3] == f"[{row.low:.3f}, {row.high:.3f}]"


def test_finalists_are_the_best_few_and_the_best_of_each_retriever() -> None:
    board = build_leaderboard(mixed(), PRIMARY)
    chosen = board.finalists
    assert [row.rank for row in chosen[:3]] == [1, 2, 3]
    assert {row.retriever for row in chosen} == {"bm25", "dense", "hybrid"}
    other = board.rival
    assert other is not None
    assert other.retriever != board.rows[0].retriever


def test_each_search_type_of_an_api_is_among_the_finalists() -> None:
    """Four of one API, beside a retriever here of the name of one of them."""
    types = ("bm25", "vector", "hybrid", "agentic")
    asked = [replace(result(kind, retriever="http", seed=i), search_type=kind) for i, kind in enumerate(types)]
    board = build_leaderboard([*asked, replace(result("here", seed=9), search_type="bm25")], PRIMARY)
    assert len(board.finalists) == 5
    assert len(tables.notices(board)[2:]) == 1, "the warning alone"


def test_a_notice_counts_the_finalists_that_do_not_fit() -> None:
    board = build_leaderboard([result(f"r{i}", retriever=f"r{i}", seed=i) for i in range(10)], PRIMARY)
    notice = tables.notices(board)[-1]
    assert notice == (
        "Reports describe at most 8 combinations in detail, here the best of 8 of 10 retrievers and search types."
    )


@pytest.mark.parametrize(("test", "correction"), [("permutation", "holm"), ("t", "bh"), ("wilcoxon", "tukey")])
def test_finalists_share_a_letter_if_they_do_not_differ_significantly(test: Test, correction: CorrectionName) -> None:
    results = mixed()
    board = build_leaderboard(results, PRIMARY, statistics=Statistics(test=test, correction=correction, seed=3))
    few = board.finalists
    table = tables.letters_table(board)
    assert [row[:3] for row in table.rows] == [[row.rank, row.label, row.mean] for row in few]
    scores = np.stack([results[row.position].of(PRIMARY) for row in board.rows])
    assert board.statistics == Statistics(seed=3, test=test, correction=correction)
    p_values = compare_pairs(scores, board.statistics).p_values
    places = [row.rank - 1 for row in few]
    differ = p_values[np.ix_(places, places)] < board.statistics.alpha
    apart = [[not set(a[3]) & set(b[3]) for b in table.rows] for a in table.rows]
    assert apart == differ.tolist()
    assert differ.any()
    assert not differ.all()


def test_there_are_no_letters_where_there_is_nothing_to_tell_apart() -> None:
    for results in ([], [result()], [result(name, queries=0) for name in "ab"]):
        assert not tables.letters_table(build_leaderboard(results, PRIMARY)).rows


@pytest.mark.parametrize("cost", ["median_ms", "index_s"])
def test_none_is_cheaper_and_better_than_one_on_the_front(cost: str) -> None:
    board = build_leaderboard(mixed(), PRIMARY)
    front = board.find_front(cost)
    assert board.rows[0] in front
    for row in front:
        assert not any(o.means[cost] < row.means[cost] and o.mean >= row.mean for o in board.rows)
    assert [row.means[cost] for row in front] == sorted(row.means[cost] for row in front)
    assert [row[0] for row in tables.pareto_table(board, cost).rows] == [row.rank for row in front]
    assert not build_leaderboard([result(mean_ms=None)], PRIMARY).find_front("median_ms")


def test_the_front_of_the_leaderboard_compares_what_a_page_compares() -> None:
    board = build_leaderboard(mixed(), PRIMARY)
    same = [replace(row, mean=0.5 + 1e-11 * row.rank, means={"median_ms": 1.0}) for row in board.rows]
    assert [row.rank for row in replace(board, rows=same).find_front("median_ms")] == [row.rank for row in board.rows]


def test_effects_are_means_by_value_and_what_matters_most_is_first() -> None:
    board = build_leaderboard(sweep(25), PRIMARY)
    effects = measure_effects(board)
    assert effects == sorted(effects, key=lambda effect: -effect.reach)
    assert {effect.setting for effect in effects} == {"retriever.k1", "retriever.b"}
    for effect in effects:
        for at in effect.means:
            means = [row.mean for row in board.rows if row.swept[effect.setting] == at.value]
            assert (at.combinations, at.best) == (len(means), max(means))
            assert at.mean == pytest.approx(sum(means) / len(means))
        assert effect.reach == max(at.mean for at in effect.means) - min(at.mean for at in effect.means)
        rows = [[at.value, at.combinations, at.mean, at.best] for at in effect.means]
        assert tables.effect_table(effect).rows == rows
        assert [column.title for column in tables.effect_table(effect).columns] == ["value", "n", "mean", "highest"]
    (k1,) = (effect for effect in effects if effect.setting == "retriever.k1")
    assert [at.value for at in k1.means] == ["0.4", "0.8", "1.2", "1.6", "2.0"]


def test_a_setting_is_numeric_if_all_its_values_are_however_typed() -> None:
    swept = [
        {"k": "2", "depth": 10, "name": "a", "on": True, "same": 1},
        {"k": "10", "depth": 20, "name": "3", "on": False, "same": 1},
    ]
    results = [result(str(i), swept=s) for i, s in enumerate(swept)]
    board = build_leaderboard(results, PRIMARY)
    columns = [column for column in build_columns(board, results) if column.kind == "setting"]
    assert [column.name for column in columns if column.format == "number"] == ["k", "depth"]
    assert [column.name for column in columns if column.format == "text"] == ["name", "on"]
    assert columns[0].values == [float(row.swept["k"]) for row in board.rows]
    assert [at.value for effect in measure_effects(board) if effect.setting == "k" for at in effect.means] == [
        "2",
        "10",
    ]


def test_a_cost_is_defined_by_its_criterion_and_less_of_it_is_better() -> None:
    results = [result("a"), result("b")]
    results = [replace(r, timings=replace(r.timings, index_bytes=1000, money=0.5)) for r in results]
    columns = build_columns(build_leaderboard(results, PRIMARY), results)
    definitions = {column.name: column.definition for column in columns if column.kind == "cost"}
    assert definitions.keys() == COSTS.keys()
    for name, definition in definitions.items():
        assert definition.removesuffix("Less is better").removesuffix(". ") == COSTS[name].definition
    assert "without intermediate results" in definitions["index_mb"]


@pytest.mark.parametrize("types", [(), ("only",)])
def test_fewer_than_two_types_make_no_table(types: tuple[str, ...]) -> None:
    results = [result("a", types=types), result("b", types=types)]
    assert not tables.finalists_by_type(build_leaderboard(results, PRIMARY), results).rows


def test_intervals_are_called_by_the_confidence_of_the_leaderboard() -> None:
    board = build_leaderboard(sweep(2), PRIMARY, statistics=Statistics(confidence=0.57))
    assert tables.leaderboard_table(board).columns[3].title == "57% interval"
