"""What the tables and sentences of the reports say."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import replace

import numpy as np
import pytest

from runner.analysis.comparison import compare_pairs
from runner.metrics.settings import Correction, Test
from runner.reports import numbers, sweep_tables, tables
from runner.reports.leaderboard import Failure, leaderboard
from runner.result import Stage
from tests.reports.factory import TYPES, mixed, result, sweep

PRIMARY = "nDCG@10"


@pytest.mark.parametrize(
    ("show", "value", "text"),
    [
        (numbers.score, 0.12345, "0.123"),
        (numbers.score, None, "–"),
        (numbers.score, math.nan, "–"),
        (numbers.score4, 0.12345, "0.1235"),
        (numbers.signed, 0.05, "+0.0500"),
        (numbers.signed, -0.05, "-0.0500"),
        (numbers.p_value, 0.0004, "<0.001"),
        (numbers.p_value, 0.05, "0.050"),
        (numbers.interval, (0.1, 0.25), "[0.100, 0.250]"),
        (numbers.interval, None, "–"),
        (numbers.percent, 0.875, "87.5%"),
        (numbers.number, 5183, "5,183"),
        (numbers.milliseconds, 0.416, "0.42"),
        (numbers.milliseconds, 12.34, "12.3"),
        (numbers.milliseconds, 1234.5, "1,234"),
        (numbers.duration, 0.0021, "2.10 ms"),
        (numbers.duration, 12.34, "12.3 s"),
        (numbers.duration, 119.9, "2 min 0 s"),
        (numbers.duration, 200, "3 min 20 s"),
        (numbers.duration, 1800, "30 min"),
        (numbers.duration, 7500, "2 h 5 min"),
    ],
)
def test_numbers_read_well(show: object, value: object, text: str) -> None:
    assert callable(show)
    assert show(value) == text


def test_measures_stand_by_cutoff() -> None:
    found = result()
    table = tables.measures_table(found)
    assert [column.title for column in table.columns] == ["measure", "@1", "@10", "@100"]
    rows = {row[0]: row[1:] for row in table.rows}
    assert rows["nDCG"] == [found.means["nDCG@1"], found.means["nDCG@10"], None]
    assert rows["R"] == [found.means["R@1"], found.means["R@10"], found.means["R@100"]]
    assert tables.whole_measures(found) == ["RR", "AP"]


def test_types_stand_with_the_headline_measures() -> None:
    found = result()
    table = tables.types_table(found)
    assert [row[0] for row in table.rows] == list(TYPES)
    assert [column.title for column in table.columns[2:]] == ["nDCG@10", "P@10", "R@10", "R@100", "RR"]
    assert table.rows[0][2] == found.by_type[TYPES[0]]["nDCG@10"]


@pytest.mark.parametrize("types", [(), ("only",)])
def test_fewer_than_two_types_make_no_table(types: tuple[str, ...]) -> None:
    assert not tables.types_table(result(types=types)).rows
    results = [result("a", types=types), result("b", types=types)]
    assert not sweep_tables.finalists_by_type(leaderboard(results, PRIMARY), results).rows


def test_no_result_queries_make_a_row_for_each_threshold() -> None:
    found = result(no_result=4)
    assert tables.abstention_table(found).texts()[0][:3] == ["none", "2 of 4", "50.0%"]
    assert not tables.abstention_table(result(no_result=0)).rows
    wrong = tables.no_result_queries(found, 10)
    assert sorted(row[0] for row in wrong.rows) == ["q031", "q033"]
    assert wrong.rows[0][3] >= wrong.rows[1][3]


def test_the_hardest_queries_are_those_of_the_lowest_value() -> None:
    found = result(errors={2: "timed out"})
    hardest = tables.hardest(found)
    values = [query.values[PRIMARY] for query in hardest]
    assert values == sorted(values)
    assert len(hardest) == 29  # neither the no-result queries nor the one that failed
    assert tables.hardest(found, 3) == hardest[:3]


def test_the_first_gold_rank_is_the_same_with_and_without_rankings() -> None:
    found = result()
    assert found.found is not None
    ranks = [query.first_gold for query in tables.hardest(found)]
    assert ranks == [query.first_gold for query in tables.hardest(found.light())]
    assert any(rank is not None for rank in ranks)


def test_the_verdict_says_how_many_differ_and_how_many_cannot_be_told_apart() -> None:
    board = leaderboard(sweep(25), PRIMARY)
    differ = sum(row.differs for row in board.rows)
    assert 0 < differ < 24
    said = sweep_tables.verdict(board)
    assert said.startswith(f"{differ} of 25 differ from the best (p < 0.05, Holm); the ")
    assert said.endswith(f" {25 - differ} can't be told apart on these 30 queries.")


def test_the_verdict_covers_the_edges() -> None:
    assert "nothing to rank" in sweep_tables.verdict(leaderboard([], PRIMARY, [Failure("a", "x")]))
    assert "nothing to compare" in sweep_tables.verdict(leaderboard([result()], PRIMARY))
    assert "None of 2 differs" in sweep_tables.verdict(leaderboard([result("a"), result("b")], PRIMARY))
    two = [result("a", quality=0.8), result("b", quality=0.3)]
    assert sweep_tables.verdict(leaderboard(two, PRIMARY)) == "The other differs from it (p < 0.05, Holm)."


def test_a_dataset_without_gold_is_said_to_be_one() -> None:
    board = leaderboard([result(name, queries=0, no_result=5) for name in "ab"], PRIMARY)
    assert sweep_tables.verdict(board) == "No query has gold: there is nothing to compare by."


def test_intervals_are_called_by_their_confidence() -> None:
    found = result()
    sure = replace(found, config={"metrics": {"confidence": 0.999}})
    assert tables.intervals_of(found) == tables.whole_table(found).columns[2].title == "95% interval"
    assert tables.intervals_of(sure) == tables.whole_table(sure).columns[2].title == "99.9% interval"
    board = leaderboard(sweep(2), PRIMARY, confidence=0.57)
    assert sweep_tables.leaderboard_table(board).columns[3].title == "57% interval"


def test_columns_about_thresholds_name_them() -> None:
    titles = [column.title for column in sweep_tables.leaderboard_table(leaderboard([result()], PRIMARY)).columns]
    assert titles[8:] == ["R@100", "RR", "TN rate@0.5", "AUROC", "query ms", "p95 ms", "index s"]


def test_what_a_query_takes_is_its_median_and_the_mean_is_in_the_csv() -> None:
    """One slow query of a hundred makes the mean more than a hundred times the median."""
    found = result()
    each = [0.1] * 99 + [1000.0]
    slow = replace(found, timings=replace(found.timings, mean_ms=10.1, each_ms=each))
    board = leaderboard([slow], PRIMARY)
    for table in (sweep_tables.leaderboard_table(board), sweep_tables.pareto_table(board)):
        (row,) = table.texts()
        shown = dict(zip((column.title for column in table.columns), row, strict=True))
        assert shown["query ms"] == "0.10"
    (read,) = csv.DictReader(io.StringIO(board.to_csv()))
    assert (float(read["median_ms"]), float(read["mean_ms"])) == (0.1, 10.1)


def test_the_leaderboard_table_shows_the_numbers_of_its_rows() -> None:
    board = leaderboard(mixed(), PRIMARY)
    texts = sweep_tables.leaderboard_table(board).texts()
    for row, cells in zip(board.rows, texts, strict=True):
        assert cells[:3] == [str(row.rank), row.label, f"{row.mean:.4f}"]
        assert cells[3] == f"[{row.low:.3f}, {row.high:.3f}]"


def test_finalists_are_the_best_few_and_the_best_of_each_retriever() -> None:
    board = leaderboard(mixed(), PRIMARY)
    chosen = sweep_tables.finalists(board)
    assert [row.rank for row in chosen[:3]] == [1, 2, 3]
    assert {row.retriever for row in chosen} == {"bm25", "dense", "hybrid"}
    other = sweep_tables.rival(board)
    assert other is not None
    assert other.retriever != board.rows[0].retriever


@pytest.mark.parametrize(("test", "correction"), [("permutation", "holm"), ("t", "bh"), ("wilcoxon", "tukey")])
def test_finalists_have_a_letter_in_common_if_they_cannot_be_told_apart(test: Test, correction: Correction) -> None:
    results = mixed()
    board = leaderboard(results, PRIMARY, test=test, correction=correction, seed=3)
    few = sweep_tables.finalists(board)
    table = sweep_tables.letters_table(board)
    assert [row[:3] for row in table.rows] == [[row.rank, row.label, row.mean] for row in few]
    scores = np.stack([results[row.position].of(PRIMARY) for row in few])
    differ = compare_pairs(scores, board.alpha, seed=3, test=test, correction=correction).significant
    apart = [[not set(a[3]) & set(b[3]) for b in table.rows] for a in table.rows]
    assert apart == differ.tolist()
    assert differ.any()
    assert not differ.all()


def test_there_are_no_letters_where_there_is_nothing_to_tell_apart() -> None:
    for results in ([], [result()], [result(name, queries=0) for name in "ab"]):
        assert not sweep_tables.letters_table(leaderboard(results, PRIMARY)).rows


def test_none_is_quicker_and_better_than_one_on_the_front() -> None:
    board = leaderboard(mixed(), PRIMARY)
    front = sweep_tables.pareto(board)
    assert board.rows[0] in front
    for row in front:
        assert not any(o.means["median_ms"] < row.means["median_ms"] and o.mean >= row.mean for o in board.rows)
    assert not sweep_tables.pareto(leaderboard([result(mean_ms=None)], PRIMARY))


def test_effects_are_means_by_value_and_what_matters_most_is_first() -> None:
    board = leaderboard(sweep(25), PRIMARY)
    found = sweep_tables.effects(board)
    assert list(found) == sorted(found, key=lambda key: -sweep_tables.reach(found[key]))
    assert set(found) == {"retriever.k1", "retriever.b"}
    for key, table in found.items():
        for value, n, mean, best in table.rows:
            means = [row.mean for row in board.rows if row.swept[key] == value]
            assert (n, best) == (len(means), max(means))
            assert mean == pytest.approx(sum(means) / len(means))
    assert [row[0] for row in found["retriever.k1"].rows] == ["0.4", "0.8", "1.2", "1.6", "2.0"]


def test_numeric_settings_are_those_that_are_numbers_throughout_however_they_were_typed() -> None:
    swept = [
        {"k": "2", "depth": 10, "name": "a", "on": True, "same": 1},
        {"k": "10", "depth": 20, "name": "3", "on": False, "same": 1},
    ]
    board = leaderboard([result(str(i), swept=s) for i, s in enumerate(swept)], PRIMARY)
    assert sweep_tables.numeric_settings(board) == ["k", "depth"]
    assert [row[0] for row in sweep_tables.effects(board)["k"].rows] == ["2", "10"]


def test_nested_settings_are_shown_in_one_level() -> None:
    rows = tables.settings_table({"a": {"b": 1, "c": {"d": None}}, "e": [1, 2], "f": {}}).rows
    assert rows == [["a.b", 1], ["a.c.d", None], ["e", [1, 2]], ["f", {}]]


def test_kinds_of_work_are_told_in_plain_words() -> None:
    """Where the store calls something live, that is nobody's word who reads a report."""
    made = result()
    stages = [Stage("live code", 1.0, False), Stage("live postings", 0.1, True), Stage("rankings", 0.2, False)]
    made = replace(made, timings=replace(made.timings, stages=stages))
    assert tables.cost(made).endswith("there already: postings in memory")
    twice = replace(made, timings=replace(made.timings, stages=[*made.timings.stages] * 2))
    assert tables.cost(twice) == tables.cost(made)
    assert [row[0] for row in tables.timings_table(made).rows[:3]] == [
        "compiled code",
        "postings in memory",
        "rankings",
    ]
