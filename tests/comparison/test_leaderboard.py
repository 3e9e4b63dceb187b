"""The order of a leaderboard, what it says of each row, and how rows are told apart."""

from __future__ import annotations

import io
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrievers.choices import list_choices
from runner.comparison.comparability import ReportError
from runner.comparison.labels import label_results
from runner.comparison.leaderboard import FailedCombination, Leaderboard, build_leaderboard
from runner.evaluation.result import Result, ResultError
from runner.statistics.comparison import Differences, compare_pairs, compare_to
from runner.statistics.effects import detectable_difference, queries_needed
from runner.statistics.maxt import run_max_t
from runner.statistics.paired_tests import PAIRED_TESTS
from runner.statistics.settings import CorrectionName, Statistics, Test
from runner.statistics.significance import mean_interval
from runner.sweep.report.page import sweep_page
from runner.sweep.report.printing import show_leaderboard
from runner.sweep.report.sections import sweep_markdown
from runner.sweep.report.tables import compare_command
from tests.pages.factory import mixed, result, sweep

PRIMARY = "nDCG@10"


def test_rows_are_ordered_by_the_primary_mean_and_know_their_result() -> None:
    results = sweep(10)
    board = build_leaderboard(results, PRIMARY)
    means = [row.mean for row in board.rows]
    assert means == sorted(means, reverse=True)
    assert [row.rank for row in board.rows] == list(range(1, 11))
    for row in board.rows:
        assert row.name == results[row.position].name
        assert row.mean == results[row.position].means[PRIMARY]
        assert row.means["RR"] == results[row.position].means["RR"]
        assert row.means["R@100"] == results[row.position].means["R@100"]
        assert row.means["p95_ms"] == results[row.position].timings.p95_ms


def test_equal_means_are_ordered_by_name() -> None:
    results = [result(name) for name in ("c", "a", "b")]
    board = build_leaderboard(results, PRIMARY)
    assert [row.name for row in board.rows] == ["a", "b", "c"]
    assert [row.position for row in board.rows] == [1, 2, 0]
    assert not any(row.difference.significant for row in board.rows)


def names(board: Leaderboard) -> list[str]:
    return [criterion.name for criterion in board.criteria]


def to_best(results: list[Result], order: list[int], **options: Any) -> Differences:
    """Return the comparison of results, in some order, to the first."""
    scores = np.stack([results[position].of(PRIMARY) for position in order])
    return compare_to(0, scores, compare_pairs(scores, Statistics(**options)))


def test_significance_is_that_of_the_comparison_to_the_best() -> None:
    board = build_leaderboard(sweep(8), PRIMARY)
    results = sweep(8)
    found = to_best(results, [row.position for row in board.rows])
    for i, row in enumerate(board.rows[1:], start=1):
        own = row.difference
        assert (own.mean, own.corrected) == (found.differences[i], found.p_values[i])
        assert own.significant == (own.corrected < 0.05)
        assert (own.wins, own.ties, own.losses) == (found.wins[i], found.ties[i], found.losses[i])


@pytest.mark.parametrize("test", list_choices(Test))
@pytest.mark.parametrize("correction", [name for name in list_choices(CorrectionName) if name != "maxt"])
def test_the_leaderboard_uses_and_names_the_requested_test_and_correction(
    test: Test, correction: CorrectionName
) -> None:
    results = sweep(6)
    board = build_leaderboard(
        results, PRIMARY, statistics=Statistics(test=test, correction=correction, permutations=500)
    )
    assert (board.statistics.test, board.statistics.correction) == (test, correction)
    order = [row.position for row in board.rows]
    expected = to_best(results, order, permutations=500, test=test, correction=correction).p_values
    assert [row.difference.corrected for row in board.rows[1:]] == expected[1:].tolist()


@pytest.mark.parametrize("test", list_choices(Test))
def test_max_t_is_the_default_correction_of_every_test_that_supports_it(
    test: Test, monkeypatch: pytest.MonkeyPatch
) -> None:
    statistics = Statistics(test=test, permutations=500)
    assert build_leaderboard(sweep(4), PRIMARY, statistics=statistics).statistics.correction == (
        "maxt" if PAIRED_TESTS[test].run_max_t else "holm"
    )
    with_max_t = replace(PAIRED_TESTS[test], run_max_t=run_max_t)
    monkeypatch.setitem(PAIRED_TESTS, test, with_max_t)  # type: ignore[arg-type]  # a dict
    assert build_leaderboard(sweep(4), PRIMARY, statistics=statistics).statistics.correction == "maxt"


def test_each_difference_has_its_interval_its_size_and_the_queries_it_takes_to_see() -> None:
    results = sweep(8)
    board = build_leaderboard(results, PRIMARY, statistics=Statistics(confidence=0.8, seed=2))
    found = to_best(results, [row.position for row in board.rows], confidence=0.8, seed=2)
    alone = queries_needed(found.differences, found.deviations)
    for i, row in enumerate(board.rows[1:], start=1):
        own = row.difference
        assert (own.low, own.high) == tuple(found.intervals[i])
        assert own.low <= own.mean <= own.high
        assert (own.effect, own.needed) == (found.effects[i], found.needed[i])
        assert own.needed > alone[i]  # 28 pairs are corrected for
    expected = np.median(detectable_difference(found.queries, found.deviations, found.levels)[1:])
    assert board.detectable == expected > np.median(detectable_difference(found.queries, found.deviations)[1:])
    assert math.isnan(board.rows[0].difference.needed)
    assert math.isnan(build_leaderboard(results[:1], PRIMARY).detectable)


def test_copies_of_the_best_do_not_change_the_detectable_difference() -> None:
    results, statistics = sweep(3), Statistics(correction="none")
    board = build_leaderboard(results, PRIMARY, statistics=statistics)
    copies = [replace(results[board.rows[0].position], name=f"z{i}") for i in range(4)]
    again = build_leaderboard([*results, *copies], PRIMARY, statistics=statistics)
    assert again.detectable == board.detectable > 0


def test_the_gain_of_a_search_is_the_best_mean_less_the_mean_of_all() -> None:
    board = build_leaderboard(sweep(8), PRIMARY)
    means = [row.mean for row in board.rows]
    assert board.search_gain.systems == 8
    assert board.search_gain.observed == pytest.approx(means[0] - np.mean(means))
    assert 0 < board.search_gain.expected < board.search_gain.observed
    assert math.isnan(build_leaderboard(sweep(1), PRIMARY).search_gain.expected)


def test_the_best_has_no_difference_to_itself() -> None:
    board = build_leaderboard(sweep(3), PRIMARY)
    assert math.isnan(board.rows[0].difference.mean)
    assert math.isnan(board.rows[0].difference.p)
    frame = pd.read_csv(io.StringIO(board.to_csv()))
    assert frame["difference"].isna().tolist() == frame["p"].isna().tolist() == [True, False, False]


def test_intervals_are_those_of_each_result_alone() -> None:
    results = sweep(4)
    board = build_leaderboard(results, PRIMARY, statistics=Statistics(confidence=0.8))
    assert board.statistics.confidence == 0.8
    for row in board.rows:
        values = results[row.position].of(PRIMARY)
        alone = mean_interval(values[~np.isnan(values)], 0.8)
        np.testing.assert_allclose((row.low, row.high), alone, atol=1e-12)


def test_the_settings_of_the_tests_are_followed() -> None:
    results = [result("a", quality=0.9), result("b", quality=0.2)]
    worse = build_leaderboard(results, PRIMARY, statistics=Statistics(permutations=99)).rows[1]
    assert worse.difference.corrected == pytest.approx(1 / 100)
    boards = [
        build_leaderboard(results, PRIMARY, statistics=Statistics(permutations=99, alpha=alpha))
        for alpha in (0.05, 0.005)
    ]
    assert [board.rows[1].difference.significant for board in boards] == [True, False]


def test_results_on_different_datasets_are_refused() -> None:
    other = result("b")
    other = replace(other, dataset=replace(other.dataset, name="island", fingerprint="e" * 32))
    with pytest.raises(
        ReportError, match=r"a was measured on harbour \(test, d1d1d1d1\), but b on island.*same dataset"
    ):
        build_leaderboard([result("a"), other], PRIMARY)


def of_type(name: str, gold: str, **options: Any) -> Result:
    """Return a result of a search type of which the dataset expects this as the first query's gold."""
    made = result(name, retriever=name, **options)
    return replace(made, queries=replace(made.queries, expected=[[gold], *made.queries.expected[1:]]))


def test_other_gold_of_a_search_type_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    """A dataset may expect other items of one search type: then the leaderboard ranks what is not quite alike."""
    best, alike, apart = of_type("a", "d0", quality=0.9), of_type("b", "d0"), of_type("c", "d7")
    board = build_leaderboard([apart, alike, best], "nDCG@10", statistics=Statistics(permutations=50))
    (told,) = board.notes
    assert told.startswith(
        "1 of 34 queries have different gold in c and in the best (q000), because the dataset expects different"
    )
    for shown in (sweep_markdown(board, [apart, alike, best]), sweep_page(board, [apart, alike, best])):
        assert told in shown
    show_leaderboard(board)
    assert told in " ".join(capsys.readouterr().out.split())
    assert build_leaderboard([alike, best], "nDCG@10", statistics=Statistics(permutations=50)).notes == []


def test_a_measure_that_is_missing_is_named() -> None:
    with pytest.raises(ResultError, match="bm25 has no nDCG@7"):
        build_leaderboard([result()], "nDCG@7")


def test_a_result_without_any_counted_query_comes_last() -> None:
    nothing = result("a", queries=3, no_result=0, errors={0: "x", 1: "x", 2: "x"})
    some = result("b", queries=3, no_result=0)
    board = build_leaderboard([nothing, some], PRIMARY)
    assert [row.name for row in board.rows] == ["b", "a"]
    assert math.isnan(board.rows[1].mean)


def test_means_that_a_record_holds_as_null_are_not_a_number() -> None:
    nothing = result("a", queries=1, no_result=0, errors={0: "x"})
    null = replace(nothing, means=dict.fromkeys(nothing.means), intervals=dict.fromkeys(nothing.means, (None, None)))  # type: ignore[arg-type]  # null
    row = build_leaderboard([null], PRIMARY).rows[0]
    assert math.isnan(row.mean)
    assert math.isnan(row.low)


def test_columns_about_no_result_queries_are_there_only_with_such_queries() -> None:
    assert {"tn_rate@0.5", "auroc"} <= set(names(build_leaderboard([result()], PRIMARY)))
    assert not {"tn_rate@0.5", "auroc"} & set(names(build_leaderboard([result(no_result=0)], PRIMARY)))


def test_the_rate_of_true_negatives_is_there_at_each_threshold_that_was_set() -> None:
    found = result()
    without = found.abstention.everything
    at = [replace(without, threshold=t, tn_rate=rate) for t, rate in ((0.5, 0.25), (2.0, 0.75))]
    tuned = replace(found, abstention=replace(found.abstention, thresholds=(without, *at)))
    plain = replace(found, abstention=replace(found.abstention, thresholds=(without,)))
    means = build_leaderboard([tuned], PRIMARY).rows[0].means
    assert (means["tn_rate@0.5"], means["tn_rate@2"]) == (0.25, 0.75)
    others = names(build_leaderboard([plain], PRIMARY))
    assert "auroc" in others
    assert not any(name.startswith("tn_rate") for name in others)


def test_the_primary_measure_has_no_second_column() -> None:
    assert "RR" not in names(build_leaderboard([result()], "RR"))


def test_failures_that_say_the_same_are_one_group() -> None:
    failures = [
        FailedCombination("a", "no such file"),
        FailedCombination("b", "out of memory"),
        FailedCombination("c", "out of memory"),
    ]
    groups = build_leaderboard([], PRIMARY, failures).group_failures()
    assert [(error, [f.name for f in group]) for error, group in groups.items()] == [
        ("out of memory", ["b", "c"]),
        ("no such file", ["a"]),
    ]


def test_the_csv_holds_every_row_with_a_column_for_each_swept_setting() -> None:
    board = build_leaderboard(mixed(), PRIMARY)
    frame = pd.read_csv(io.StringIO(board.to_csv()))
    assert list(frame["name"]) == [row.name for row in board.rows]
    assert {"retriever", "retriever.k1", "retriever.b", "encoder"} <= set(frame.columns)
    np.testing.assert_allclose(frame[PRIMARY], [row.mean for row in board.rows])
    dense = frame[frame["retriever"] == "dense"]
    assert dense["retriever.k1"].isna().all()
    empty = build_leaderboard([], PRIMARY)
    assert list(empty.to_frame().columns)[:3] == ["rank", "name", "retriever"]
    for one in (board, empty, build_leaderboard(sweep(3), PRIMARY, runs=["a", "b", ""])):
        assert one.to_csv() == one.to_frame().to_csv(index=False)


def test_the_csv_has_the_difference_from_the_best_in_columns_of_fixed_order() -> None:
    board = build_leaderboard(sweep(4), PRIMARY)
    frame = pd.read_csv(io.StringIO(board.to_csv()))
    first = list(frame.columns).index("low")
    assert list(frame.columns)[first - 1 : first + 13] == [
        PRIMARY, "low", "high", "difference", "difference_low", "difference_high", "effect", "p", "differs", "needed",
        "wins", "ties", "losses", board.criteria[0].name,
    ]  # fmt: skip
    last, own = frame.iloc[-1], board.rows[-1].difference
    assert (last["difference_low"], last["difference_high"]) == pytest.approx((own.low, own.high))
    assert (last["difference"], last["p"], last["needed"]) == pytest.approx((own.mean, own.corrected, own.needed))
    assert (last["wins"], last["ties"], last["losses"]) == (own.wins, own.ties, own.losses)
    assert (own.mean < -0.01, own.losses > own.wins > 0) == (True, True)
    best = frame.iloc[0]
    assert (best["wins"], best["ties"], best["losses"]) == (0, own.queries, 0)


def test_judgments_that_were_added_are_named() -> None:
    assert not [note for note in build_leaderboard(sweep(2), PRIMARY).notes if "extra_qrels" in note]
    for setting, files in (("mine.tsv", "mine.tsv"), (["mine.tsv", "b.tsv"], "b.tsv, mine.tsv")):
        added = [replace(one, config={**one.config, "dataset": {"extra_qrels": setting}}) for one in sweep(2)]
        (note,) = (note for note in build_leaderboard(added, PRIMARY).notes if "extra_qrels" in note)
        assert note == f"The {added[0].dataset.judgments:,} judgments include those of {files} (dataset.extra_qrels)."


def test_where_runs_are_known_the_csv_has_them_whole_and_two_can_be_compared() -> None:
    results = sweep(2)
    runs = ["a" * 32, "b" * 32]
    board = build_leaderboard(results, PRIMARY, runs=runs)
    frame = pd.read_csv(io.StringIO(board.to_csv()))
    assert list(frame["run"]) == [runs[row.position] for row in board.rows]
    first, second = (runs[row.position][:8] for row in board.rows)
    assert compare_command(board) == f"python -m runner compare baseline={second} candidate={first}"
    command = f"python -m runner compare baseline={second} candidate={first}"
    assert compare_command(board, ["tracking.uri=http://h:5000"]) == f"{command} tracking.uri=http://h:5000"
    strict = build_leaderboard(results, PRIMARY, runs=runs, statistics=Statistics(alpha=0.01, seed=7))
    assert compare_command(strict) == f"{command} statistics.alpha=0.01 statistics.seed=7"
    unknown = build_leaderboard(results, PRIMARY, runs=["", "b" * 32])
    assert compare_command(unknown) == ""
    unscored = replace(board, rows=[replace(row, mean=math.nan) for row in board.rows])
    assert compare_command(unscored) == ""
    three = build_leaderboard(sweep(3), PRIMARY)
    best = three.rows[0].position
    runs = ["" if position == best else "c" * 32 for position in range(3)]
    others = build_leaderboard(sweep(3), PRIMARY, runs=runs)
    assert compare_command(others) == ""  # the best is not logged yet: no other two are the best two
    assert "run" in unknown.to_frame().columns
    assert "run" not in build_leaderboard(results, PRIMARY).to_frame().columns


def test_labels_leave_out_what_all_share_and_shorten_keys() -> None:
    results = sweep(3)
    assert label_results(results) == ["b=0.0", "b=0.3", "b=0.5"]
    assert build_leaderboard(results, PRIMARY).shared == {"retriever": "bm25", "retriever.k1": "0.4"}
    assert label_results(mixed())[0] == "bm25 k1=0.4 b=0.0"
    assert label_results(mixed())[-2:] == ["dense encoder=potion", "hybrid"]


def test_labels_keep_as_much_of_a_key_as_tells_it_from_another() -> None:
    keys = ("retriever.k1", "retriever.parts.lexical.k1")
    results = [result(swept={keys[0]: i, keys[1]: 0.1 * i}) for i in (1, 3)]
    assert label_results(results) == ["retriever.k1=1 lexical.k1=0.1", "retriever.k1=3 lexical.k1=0.3"]


def test_labels_show_the_last_part_of_a_path_if_that_is_enough() -> None:
    assert label_results([result(swept={"model": m}) for m in ("org/a", "org/b")]) == ["model=a", "model=b"]
    assert label_results([result(swept={"model": m}) for m in ("x/a", "y/a")]) == ["model=x/a", "model=y/a"]


def test_results_that_settings_do_not_tell_apart_go_by_name() -> None:
    assert label_results([result("monday"), result("tuesday")]) == ["monday", "tuesday"]
    assert label_results([result("bm25"), result("bm25"), result("dense")]) == ["bm25", "bm25 (2)", "dense"]


def test_results_of_one_name_are_told_apart_by_their_chunks() -> None:
    chunked = [
        replace(result("bm25"), config={"dataset": {"chunking": {"_target_": "T", "size": size, "overlap": 0}}})
        for size in (128, 512)
    ]
    assert label_results(chunked) == ["bm25 size=128", "bm25 size=512"]


@given(
    st.lists(
        st.dictionaries(st.sampled_from(["a.k", "b.k", "c"]), st.one_of(st.integers(0, 2), st.text(max_size=3))),
        min_size=1,
        max_size=6,
    )
)
def test_labels_always_tell_results_apart(swept: list[dict[str, object]]) -> None:
    base = result(queries=1, no_result=0, hits=False)
    found = label_results([replace(base, swept=s) for s in swept])
    assert len(set(found)) == len(found)


def test_among_many_what_clearly_differs_does_so() -> None:
    """However few permutations are asked for: Holm's correction multiplies by the number of tests."""
    best, *others = (result(str(i), quality=0.9 if i == 0 else 0.1, queries=60) for i in range(60))
    rows = build_leaderboard([best, *others], PRIMARY, statistics=Statistics(permutations=100)).rows
    assert all(row.difference.significant for row in rows[1:])


def test_results_with_the_same_name_are_labelled_by_their_settings() -> None:
    def configured(**settings: Any) -> Result:
        retriever = {
            "_target_": "retrievers.lexical.bm25.BM25",
            "k1": 0.9,
            "b": 0.4,
            "analyzer": {"stemmer": "english"},
        }
        choices = {"retriever": "bm25", "analyzer": settings.pop("analyzer", "english")}
        return replace(result("bm25"), config={"retriever": retriever | settings, "choices": choices})

    few = [configured(), configured(k1=0.0, analyzer="plain")]
    assert label_results(few) == ["bm25 analyzer=english k1=0.9", "bm25 analyzer=plain k1=0"]
    assert label_results([configured(), configured()]) == ["bm25", "bm25 (2)"]
