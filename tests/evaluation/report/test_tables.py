"""What the tables and sentences of one evaluation say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from retrievers.work import Cost
from runner.comparison.queries import list_hardest
from runner.evaluation.report import tables
from runner.evaluation.result import Result
from runner.pages.numbers import interval_title
from tests.pages.factory import TYPES, result

PRIMARY = "nDCG@10"


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


def with_loss(of: Result) -> Result:
    first, other = of.abstention.thresholds
    return replace(of, abstention=replace(of.abstention, thresholds=(first, replace(other, recall_lost=0.125))))


def test_no_result_queries_make_a_row_for_each_threshold() -> None:
    found = result(no_result=4)
    assert tables.abstention_table(found).texts()[0][:3] == ["none", "2 of 4", "50.0%"]
    lost = [row[4] for row in tables.abstention_table(with_loss(found)).texts()]
    assert lost == ["–", "0.125"], "without a threshold, no loss is measured"
    assert not tables.abstention_table(result(no_result=0)).rows
    wrong = tables.no_result_queries(found, 10)
    assert sorted(row[0] for row in wrong.rows) == ["q031", "q033"]
    assert wrong.rows[0][3] >= wrong.rows[1][3]


def test_the_hardest_queries_are_those_of_the_lowest_value() -> None:
    found = result(errors={2: "timed out"})
    hardest = list_hardest(found)
    values = [query.values[PRIMARY] for query in hardest]
    assert values == sorted(values)
    assert len(hardest) == 29  # neither the no-result queries nor the one that failed
    assert list_hardest(found, 3) == hardest[:3]


def test_the_first_gold_rank_is_the_same_with_and_without_rankings() -> None:
    found = result()
    assert found.hits is not None
    ranks = [query.first_gold for query in list_hardest(found)]
    assert ranks == [query.first_gold for query in list_hardest(found.light())]
    assert any(rank is not None for rank in ranks)


def test_intervals_are_called_by_their_confidence() -> None:
    found = result()
    sure = replace(found, config={"statistics": {"confidence": 0.999}})
    assert tables.intervals_of(found) == tables.whole_table(found).columns[2].title == "95% interval"
    assert tables.intervals_of(sure) == tables.whole_table(sure).columns[2].title == "99.9% interval"
    assert tables.intervals_of(result(queries=20)) == "95% interval, small sample"


@pytest.mark.parametrize(("queries", "title"), [(29, "95% interval, small sample"), (30, "95% interval")])
def test_an_interval_over_few_queries_is_marked(queries: int, title: str) -> None:
    assert interval_title(0.95, queries) == title


def test_nested_settings_are_shown_in_one_level() -> None:
    rows = tables.settings_table({"a": {"b": 1, "c": {"d": None}}, "e": [1, 2], "f": {}}).rows
    assert rows == [["a.b", 1], ["a.c.d", None], ["e", [1, 2]], ["f", {}]]


def test_kinds_of_work_have_readable_names() -> None:
    """Where the store calls something live, that is nobody's word who reads a report."""
    made = result()
    stages = [Cost("live code", 1.0, False), Cost("live postings", 0.1, True), Cost("rankings", 0.2, False)]
    made = replace(made, timings=replace(made.timings, stages=stages))
    assert tables.cost(made).endswith("cached: postings in memory")
    twice = replace(made, timings=replace(made.timings, stages=[*made.timings.stages] * 2))
    assert tables.cost(twice) == tables.cost(made)
    assert [row[0] for row in tables.timings_table(made).rows[:3]] == [
        "compiled code",
        "postings in memory",
        "rankings",
    ]


def test_times_of_one_kind_of_work_are_added_and_cached_ones_are_separate() -> None:
    """As a hybrid has rankings of its own and of its parts; what was there already stays apart."""
    stages = [Cost("rankings", 0.25, False), Cost("lsa", 3.0, False), Cost("rankings", 0.5, False)]
    made = replace(result(), timings=replace(result().timings, stages=[*stages, Cost("rankings", 2.0, True)]))
    assert tables.timings_table(made).rows[:3] == [
        ["rankings", 0.75, ""],
        ["lsa", 3.0, ""],
        ["rankings", 2.0, "cached"],
    ]
