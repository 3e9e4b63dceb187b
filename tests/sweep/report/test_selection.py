"""What is said of a choice and of a search: the figures, the sentences, and where they stand."""

from __future__ import annotations

import math
from dataclasses import replace

import orjson
import pytest

from runner.comparison.criteria import COSTS, mean_of
from runner.comparison.leaderboard import Leaderboard, build_leaderboard
from runner.comparison.search import FrontPoint, Search, SearchTrial
from runner.comparison.selection import DefaultComparison, Figures, FoldWinner, WinnerSelection
from runner.statistics.comparison import Difference
from runner.statistics.settings import Statistics
from runner.sweep.report.page import sweep_page
from runner.sweep.report.printing import show_leaderboard
from runner.sweep.report.sections import sweep_markdown
from runner.sweep.report.selection import (
    describe_default,
    describe_search,
    describe_selection,
    folds_table,
    front_table,
    importances_table,
    selection_table,
    selection_tags,
)
from runner.sweep.report.tables import cards, describe_best, notices
from tests.pages.factory import sweep
from tests.pages.reading import Page

PRIMARY = "nDCG@10"
FIGURES = {PRIMARY: Figures(0.7, 0.64, (0.6, 0.68)), "RR": Figures(0.5, 0.52, (0.4, 0.6))}
WARNING = (
    "The best was selected on the data it is reported on (test), so its score is too high on average; set "
    "sweep.select_on=kfold, or another split, to report it on queries that were not used to select it."
)
EVIL = "k1=<b>|*x*"


def selection(on: str = "dev", reported_on: str = "test", winner: str = "k1=1.2, b=0.75") -> WinnerSelection:
    folds = [FoldWinner("k1=1", 3, 0.7, 0.6), FoldWinner(winner, 2, 0.69, 0.7)] if on == "kfold" else []
    return WinnerSelection("harbour", on, reported_on, winner, {"k1": "1.2"}, PRIMARY, 5, FIGURES, folds)


def search(objectives: int = 2) -> Search:
    values = [(0.5, 2.0), (), (0.6, 4.0), (0.6, 3.0), (0.55, 1.0)]
    return Search(
        study="a study.1",
        sampler="tpe",
        objectives=[mean_of(PRIMARY), COSTS["mean_ms"]][:objectives],
        trials=[SearchTrial(i, f"k1={i % 4}", value[:objectives]) for i, value in enumerate(values)],
        importances={PRIMARY: {"": {"k1": 0.25, "b": 0.75}}},
        front=[FrontPoint(1, "k1=3", (0.6, 3.0), (0.58, 3.5)), FrontPoint(3, EVIL, (0.55, 1.0), ())],
        selected_on="dev",
        reported_on="test",
    )


def board(**found: WinnerSelection | Search) -> Leaderboard:
    return replace(build_leaderboard(sweep(6), PRIMARY), **found)


def test_both_figures_and_their_difference_are_shown() -> None:
    assert describe_selection(selection()) == (
        "Selected on dev: k1=1.2, b=0.75. It has nDCG@10 0.6400 [0.600, 0.680] on test and 0.7000 on dev (+0.0600)."
    )
    assert selection_table(selection()).texts() == [
        [PRIMARY, "0.6400", "[0.600, 0.680]", "0.7000", "+0.0600"],
        ["RR", "0.5200", "[0.400, 0.600]", "0.5000", "-0.0200"],
    ]
    assert [column.title for column in selection_table(selection()).columns[1:4]] == [
        "on test",
        "interval",
        "on dev",
    ]


def test_a_cross_validated_choice_says_that_it_is_nested_and_what_each_fold_chose() -> None:
    told = describe_selection(selection("kfold"))
    assert told == (
        "The winner on all queries is k1=1.2, b=0.75, with nDCG@10 0.7000 in-sample. Nested cross-validation over 5 "
        "queries of test: the selection has nDCG@10 0.6400 [0.600, 0.680] on held-out queries; 1 of 2 folds chose "
        "another combination (selection bias +0.0600)."
    )
    assert selection_tags(selection("kfold"))["selection_bias"] == "+0.0600"
    assert selection_table(selection("kfold")).columns[-1].title == "selection bias"
    assert folds_table(selection("kfold")).texts()[0] == ["1", "k1=1", "3", "0.7000", "0.6000"]
    assert not folds_table(selection()).rows


def test_folds_that_all_chose_the_winner_give_no_estimate_of_the_selection_bias() -> None:
    same = selection("kfold", winner="k1=1")
    same = replace(same, folds=same.folds[:1] * 2)
    assert describe_selection(same).endswith(
        "on held-out queries; all 2 folds chose the same combination (no estimate of the selection bias)."
    )
    assert "selection_bias" not in selection_tags(same)
    assert selection_table(same).texts()[0] == [PRIMARY, "0.6400", "[0.600, 0.680]", "0.7000", "–"]
    assert cards(board(selection=same))[0][0] == "nDCG@10 held out"
    titles = [title for title, _, _ in cards(board(selection=same))]
    assert titles[len(FIGURES) :][0] == "nDCG@10 in-sample"
    assert "query ms" in titles, "a cost is not selected in-sample"
    assert "query ms on dev" in [title for title, _, _ in cards(board(selection=selection("dev")))]
    assert describe_best(board(selection=same)) == "k1=1 with nDCG@10 held out 0.6400 [0.600, 0.680]"


def test_the_score_is_that_of_the_selection_if_folds_choose_otherwise() -> None:
    assert describe_best(board(selection=selection("kfold"))) == (
        "k1=1.2, b=0.75 with nDCG@10 in-sample 0.7000; nDCG@10 of the selection, held out 0.6400 [0.600, 0.680] "
        "(1 of 2 folds chose another combination)"
    )


def test_what_was_selected_on_what_is_reported_says_so() -> None:
    chosen = selection("test")
    assert chosen.is_on_reported_data
    assert describe_selection(chosen).endswith(WARNING)
    assert selection_tags(chosen)["selected_on_reported_data"] == "true"
    assert not {"split_difference", "selection_bias"} & set(selection_tags(chosen))
    assert [column.title for column in selection_table(chosen).columns] == ["measure", "on test", "interval"]
    assert selection_table(chosen).texts()[0] == [PRIMARY, "0.6400", "[0.600, 0.680]"]


def test_a_winner_that_failed_where_it_is_reported_has_no_figures() -> None:
    chosen = replace(selection(), figures={})
    assert describe_selection(chosen) == "Selected on dev: k1=1.2, b=0.75, which failed on test."
    assert set(selection_tags(chosen)) == {"selected_on", "reported_on", "selected_by", "selected_on_reported_data"}
    assert not selection_table(chosen).rows


def test_the_tags_and_the_record_have_both_figures() -> None:
    assert selection_tags(selection()) == {
        "selected_on": "dev",
        "reported_on": "test",
        "selected_by": PRIMARY,
        "selected_on_reported_data": "false",
        "selected": "0.7000",
        "reported": "0.6400",
        "split_difference": "+0.0600",
    }
    assert orjson.loads(selection("kfold").to_json())["folds"][0]["held_out"] == 0.6


def test_a_search_says_how_it_went() -> None:
    assert describe_search(search()) == (
        "5 trials (tpe) requested 4 combinations, 1 failed; the best nDCG@10 came with trial 3."
    )
    assert search().list_improvements() == [(0, 0.5), (2, 0.6)]
    smaller = replace(search(), objectives=[COSTS["index_s"]])
    assert smaller.list_improvements() == [(0, 0.5)]
    failed = replace(search(), trials=[SearchTrial(0, "k1=0", ())])
    assert describe_search(failed) == "1 trial (tpe) requested 1 combination, 1 failed."


def test_the_front_has_the_figures_of_both_splits() -> None:
    table = front_table(search())
    assert [column.title for column in table.columns[2:]] == [
        "nDCG@10 on dev",
        "nDCG@10 on test",
        "mean_ms on dev",
        "mean_ms on test",
    ]
    assert table.texts()[0][2:] == ["0.6000", "0.5800", "3.00", "3.50"]
    assert table.texts()[1][3] == "\N{EN DASH}"
    alone = front_table(replace(search(), selected_on="test"))
    assert [column.title for column in alone.columns[2:]] == [PRIMARY, "mean_ms"]


def test_importances_are_grouped_by_objective_and_product_if_there_are_several() -> None:
    assert importances_table(search(1)).texts() == [["b", "75.0%"], ["k1", "25.0%"]]
    groups = {PRIMARY: {"": {"k1": 1.0}, "retriever=bm25": {"b": 1.0}}, "mean_ms": {"": {"k1": 1.0}}}
    assert importances_table(replace(search(), importances=groups)).texts()[1] == [
        PRIMARY,
        "retriever=bm25",
        "b",
        "100.0%",
    ]


@pytest.mark.parametrize("on", ["dev", "kfold", "test"])
def test_the_notice_is_on_the_console_in_markdown_and_on_the_page(on: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = board(selection=selection(on), search=search())
    show_leaderboard(found)
    texts = [capsys.readouterr().out, sweep_markdown(found, sweep(6)).replace("\\", ""), sweep_page(found, sweep(6))]
    for text in texts:
        for notice in notices(found):
            assert notice in " ".join(text.split())
        assert "Pareto front" in text
    assert len(notices(found)) == 4


def test_a_page_draws_the_search_and_escapes_what_comes_from_settings() -> None:
    found = board(selection=selection(winner=EVIL), search=search())
    page = Page(sweep_page(found, sweep(6)))
    for title in (
        "Pareto front",
        "Progress of the search",
        "Importance of settings",
        "Score of the selected combination",
    ):
        assert title in page.texts
    assert page.tags["b"] == 0
    assert "\\*x\\*" in sweep_markdown(found, sweep(6))
    assert sweep_page(found, sweep(6)) == sweep_page(found, sweep(6))


def test_the_best_of_a_grid_is_said_to_be_selected_on_the_data_it_is_reported_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert notices(board())[2:] == [WARNING]
    show_leaderboard(board())
    texts = [
        capsys.readouterr().out,
        sweep_markdown(board(), sweep(6)).replace("\\", ""),
        sweep_page(board(), sweep(6)),
    ]
    for text in texts:
        assert WARNING in " ".join(text.split())
        assert "Pareto front" not in text
    assert notices(build_leaderboard(sweep(6)[:1], PRIMARY)) == [], "one combination was not selected"


def test_the_cards_show_where_the_winner_is_reported_first() -> None:
    chosen = board(selection=selection())
    assert cards(chosen)[:2] == [
        ("nDCG@10 on test", "0.6400", "[0.600, 0.680]"),
        ("RR on test", "0.5200", "[0.400, 0.600]"),
    ]
    assert all(title.endswith("on dev") for title, _, _ in cards(chosen)[2:])
    page = sweep_page(chosen, sweep(6))
    assert page.index("nDCG@10 on test") < page.index("nDCG@10 on dev")
    assert "**Best**: k1=1.2, b=0.75 with nDCG@10 on test 0.6400" in sweep_markdown(chosen, sweep(6)).replace("\\", "")
    assert cards(board(selection=selection("kfold")))[0][0] == "nDCG@10 of the selection, held out"
    assert cards(board(selection=selection("test"))) == cards(board())


def test_the_winner_is_compared_with_the_default_settings() -> None:
    own = Difference(0.01, -0.002, 0.022, 0.0421, wins=6, ties=22, losses=2)
    default = DefaultComparison(0.63, own, Statistics(correction="none"))
    chosen = replace(selection(), default=default)
    assert describe_selection(chosen).endswith(
        "Against the default settings (0.6300): +0.0100 (95% interval [-0.002, 0.022]), p = 0.042 (paired permutation "
        "test)."
    )
    tags = selection_tags(chosen)
    assert (tags["default"], tags["default_difference"], tags["default_p"]) == ("0.6300", "+0.0100", "0.0421")
    assert "p < 0.001" in describe_default(chosen, replace(default, difference=replace(own, p=0.0001)))
    few = replace(default, difference=replace(own, low=math.nan, high=math.nan, wins=3, ties=27, losses=0))
    assert describe_default(selection("kfold"), few) == (
        "Against the default settings (0.6300): +0.0100 (no interval: 3 of 30 queries differ), p = 0.042 (permutation "
        "test that repeats the selection)."
    )
