"""What people see at a terminal, narrow and wide, and where there is none."""

from __future__ import annotations

import io
import logging
import os
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
from rich.cells import cell_len

from runner.comparison.leaderboard import FailedCombination, build_leaderboard
from runner.evaluation.report.printing import show_result
from runner.evaluation.report.tables import cost
from runner.pages import console, progress
from runner.pages.progress import Progress, Status
from runner.pages.tables import Column, Table
from runner.statistics.settings import Statistics
from runner.sweep.report.printing import show_leaderboard
from tests.pages.factory import mixed, result, sweep

PRIMARY = "nDCG@10"


@pytest.fixture
def width(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Forget what the machine says of terminals; the first line of progress comes after ten seconds."""
    monkeypatch.setattr(progress, "FIRST_S", 10.0)
    for name in ("COLUMNS", "FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


class Clock:
    """A clock that is set by hand."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize("columns", [60, 100, 160])
def test_nothing_is_wider_than_the_terminal(
    columns: int, width: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    width.setenv("COLUMNS", str(columns))
    show_result(result(errors={3: "it timed out, and said so in a message that is longer than a line " * 2}))
    show_leaderboard(build_leaderboard(mixed(), PRIMARY, [FailedCombination("a", "boom " * 30)]))
    assert max(map(cell_len, capsys.readouterr().out.splitlines())) <= columns


def test_the_widest_text_is_wrapped_before_a_narrower_one(
    width: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    width.setenv("COLUMNS", "100")
    columns = [Column("query", least=12), Column("text", least=36)]
    console.show_table(Table(columns, [["q" * 40, "t" * 90], ["q" * 12, "t"]]))
    lines = capsys.readouterr().out.splitlines()
    assert any("q" * 40 in line for line in lines)
    assert max(map(cell_len, lines)) <= 100


def test_columns_go_by_importance(width: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def head(columns: int) -> list[str]:
        width.setenv("COLUMNS", str(columns))
        show_leaderboard(build_leaderboard(mixed(), PRIMARY))
        lines = capsys.readouterr().out.splitlines()
        return next(line for line in lines if "combination " in line).split()

    assert head(45) == ["#", "combination", PRIMARY]
    assert head(54) == ["#", "combination", PRIMARY, "95%", "interval"]
    assert head(64)[5:] == ["to", "best"]
    assert {"W/T/L", "p95", "AUROC", "R@100"} <= set(head(200))


def test_a_narrow_terminal_names_the_columns_that_it_hides(
    width: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    width.setenv("COLUMNS", "64")
    show_leaderboard(build_leaderboard(mixed(), PRIMARY))
    assert "a wider terminal also shows max-T p, W/T/L, R@100" in " ".join(capsys.readouterr().out.split())
    width.setenv("COLUMNS", "300")
    show_leaderboard(build_leaderboard(mixed(), PRIMARY))
    assert "a wider terminal" not in capsys.readouterr().out


def test_a_leaderboard_marks_what_does_not_differ_from_the_best(
    width: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    width.setenv("COLUMNS", "80")
    board = build_leaderboard(sweep(25), PRIMARY)
    show_leaderboard(board, top=25)
    lines = capsys.readouterr().out.splitlines()
    for row in board.rows:
        (line,) = (line for line in lines if line.startswith(f"{row.rank:>2}  "))
        assert (" = " in line) is not row.difference.significant
    assert any(row.difference.significant for row in board.rows)


@pytest.mark.parametrize("columns", [100, 200])
def test_runs_are_shown_by_how_their_ids_begin(
    columns: int, width: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    results = mixed()
    runs = [f"{i:08x}{'f' * 24}" for i in range(len(results))]
    board = build_leaderboard(results, PRIMARY, statistics=Statistics(permutations=50), runs=runs)
    width.setenv("COLUMNS", str(columns))
    show_leaderboard(board, top=len(results))
    lines = capsys.readouterr().out.splitlines()
    assert max(map(cell_len, lines)) <= columns
    for row in board.rows:
        assert any(row.run[:8] in line for line in lines)
        assert row.run == runs[row.position]
    assert not any("fffff" in line for line in lines)


def test_the_leaderboard_shows_labels_in_one_line_where_they_fit(
    width: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    width.setenv("COLUMNS", "60")
    board = build_leaderboard(sweep(25), PRIMARY)
    show_leaderboard(board, top=5)
    out = capsys.readouterr().out
    for row in board.rows[:5]:
        assert f"{row.rank}  {row.label}" in out
        assert f"{row.mean:.4f}" in out
    assert board.rows[5].label not in out
    assert "and 20 more" in out
    assert "all with retriever=bm25" in out
    assert "differ from the best (p < 0.05, max-T over all pairs)" in " ".join(out.split())


def test_a_result_shows_its_numbers(width: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    found = result(errors={3: "timed out"})
    show_result(found)
    out = capsys.readouterr().out
    assert f"{PRIMARY} {found.means[PRIMARY]:.3f}" in out
    assert f"RR {found.means['RR']:.3f}" in out
    assert "2 true negative, 2 false positive, 1 error" in out
    assert "1 x timed out" in out
    assert "index 2.5 s, search 250 ms, 1.50 ms a query (1 query); wall time" in out


def test_the_times_say_of_how_many_queries_they_are() -> None:
    found = result()
    timings = replace(found.timings, each_ms=[2.0, None, 4.0, 9.0], p95_ms=8.5)
    assert "4.00 ms a query (median of 3; p95 8.50 ms)" in cost(replace(found, timings=timings))


def test_a_result_says_which_measures_have_no_value_for_some_queries(
    width: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = result()
    scores = np.vstack([found.scores, np.where(np.arange(found.scores.shape[1]) < 2, np.nan, found.scores[0])])
    shown = replace(found, measures=[*found.measures, "Judged@10"], scores=scores)
    counted = int(np.count_nonzero(~np.isnan(found.of(found.primary))))
    known = int(np.count_nonzero(~np.isnan(scores[-1])))
    show_result(shown)
    text = " ".join(capsys.readouterr().out.split())
    assert f"Judged: mean over {known} of {counted} queries, as the others have no hits" in text
    show_result(found)
    assert "no hits" not in capsys.readouterr().out


def test_a_result_shows_the_confidence_of_its_interval(
    width: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    show_result(replace(result(), config={"statistics": {"confidence": 0.9}}))
    assert "(90% interval)" in capsys.readouterr().out


def test_failures_that_say_the_same_are_shown_once(
    width: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failures = [FailedCombination(name, "out of [memory]") for name in "abcde"]
    show_leaderboard(build_leaderboard([], PRIMARY, failures))
    out = capsys.readouterr().out
    assert "5 x out of [memory]" in out
    assert "a, b, c and 2 more" in out
    assert "All combinations failed" in out


def test_an_error_is_one_line_on_standard_error(width: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    console.error("retriever.k1=-1: too\nsmall [bold] " + "x" * 200)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "error: retriever.k1=-1: too small [bold] " + "x" * 200 + "\n"


def test_a_line_is_printed_as_it_is(width: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    console.line("[red]report[/] :smile: " + "path/" * 50)
    assert capsys.readouterr().out == "[red]report[/] :smile: " + "path/" * 50 + "\n"


def test_there_is_colour_on_a_terminal_alone(width: pytest.MonkeyPatch) -> None:
    width.setenv("TERM", "xterm-256color")

    def shown(stream: io.StringIO) -> str:
        width.setattr(sys, "stdout", stream)
        show_leaderboard(build_leaderboard([], PRIMARY, [FailedCombination("a", "x")]))
        return stream.getvalue()

    assert "\x1b[1;31m" in shown(Terminal())
    assert "\x1b" not in shown(io.StringIO())
    width.setenv("NO_COLOR", "1")
    assert "31m" not in shown(Terminal())


def test_a_log_has_a_line_at_the_start_at_each_quarter_and_at_the_end(
    width: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = Clock()
    with Progress(40, clock=clock) as progress:
        for i in range(40):
            clock.now += 7
            progress.note(f"step {i}")
            progress.advance(failed=i == 2, best="k1=1.2 with 0.5" if i == 4 else None)
    said = capsys.readouterr().err.splitlines()
    assert said == [
        "1 of 40, 14 s elapsed; step 1",
        "10 of 40, 1 failed, 1 min 17 s elapsed, about 3 min 23 s left; best: k1=1.2 with 0.5; step 10",
        "20 of 40, 1 failed, 2 min 20 s elapsed, about 2 min 20 s left; best: k1=1.2 with 0.5",
        "30 of 40, 1 failed, 3 min 30 s elapsed, about 1 min 10 s left; best: k1=1.2 with 0.5",
        "done 40 of 40, 1 failed in 4 min 40 s; best: k1=1.2 with 0.5",
    ]


def test_a_log_has_at_most_a_line_a_minute_and_one_after_five_silent_minutes(
    width: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = Clock()
    with Status("dense", clock=clock) as status:
        for minute in range(21):
            for second in range(60):
                clock.now = 60 * minute + second
                status.note(f"embedded {100 * minute + second:,} of 4,000 texts")
    said = capsys.readouterr().err.splitlines()
    assert said == [
        "dense, 10 s elapsed: embedded 10 of 4,000 texts",
        "dense, 5 min 10 s elapsed: embedded 510 of 4,000 texts",
        "dense, 10 min elapsed: embedded 1,000 of 4,000 texts",
        "dense, 15 min elapsed: embedded 1,500 of 4,000 texts",
        "dense, 20 min elapsed: embedded 2,000 of 4,000 texts",
    ]


def test_the_time_left_counts_down_during_a_combination() -> None:
    clock = Clock()
    progress = Progress(5, clock=clock)
    for _ in range(3):
        clock.now += 40
        progress.advance()
    left = []
    for clock.now in (120, 130, 150, 170):
        left.append(progress.remaining())
    assert left == [80, 70, 50, 40]


def test_long_work_is_announced_once_with_its_time_and_the_command_that_explains_it(
    width: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = Clock()
    with Progress(100, clock=clock) as progress:
        for _ in range(100):
            clock.now += 20
            progress.advance()
    said = capsys.readouterr().err.splitlines()
    assert said[2] == (
        "20 of 100, 6 min 40 s elapsed, about 27 min left; what takes this time: python -m runner plan, with the same "
        "settings"
    )
    assert sum("runner plan" in line for line in said) == 1


@pytest.mark.parametrize(
    ("pace", "stage", "line"),
    [
        (1, "ranked 5 queries", "4 of 6, 14 s elapsed, about 1 s left; ranked 5 queries"),
        (0.1, "ranked 5 queries", "4 of 6, 10 s elapsed; ranked 5 queries"),
        (1, "embedding 900 documents, about 60 s", "4 of 6, 14 s elapsed; embedding 900 documents, about 60 s"),
        (1, "embedded 8 of 9 texts, about 1 min left", "4 of 6, 14 s elapsed; embedded 8 of 9 texts, about 1 min left"),
    ],
)
def test_progress_tells_at_most_one_time_left(
    pace: float, stage: str, line: str, width: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = Clock()
    with Progress(6, clock=clock) as progress:
        for _ in range(4):
            clock.now += pace
            progress.advance()
        clock.now += 10
        progress.note(stage)
    assert capsys.readouterr().err.splitlines()[0] == line


def test_progress_says_where_it_stopped(width: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyboardInterrupt), Progress(3, clock=Clock()) as progress:
        progress.advance()
        raise KeyboardInterrupt
    assert capsys.readouterr().err == "stopped after 1 of 3 in 0 s\n"


def test_what_remains_is_judged_by_the_last_combinations() -> None:
    clock = Clock()
    progress = Progress(100, clock=clock)
    assert progress.remaining() is None
    clock.now = 500  # the first one embeds the corpus
    progress.advance()
    for _ in range(30):
        clock.now += 2
        progress.advance()
    assert progress.remaining() == 2 * 69


@pytest.mark.parametrize(("total", "enough"), [(3, 2), (25, 5), (261, 20), (10_000, 20)])
def test_what_remains_is_not_guessed_from_a_few_of_many_nor_from_the_first(total: int, enough: int) -> None:
    clock = Clock()
    progress = Progress(total, clock=clock)
    clock.now = 500  # the first one loads a model
    progress.advance()
    for _ in range(enough - 2):
        assert progress.remaining() is None
        clock.now += 2
        progress.advance()
    assert progress.remaining() is None
    clock.now += 2
    progress.advance()
    assert progress.remaining() == 2 * (total - enough)


def test_progress_on_a_terminal_is_drawn_and_taken_away(width: pytest.MonkeyPatch) -> None:
    width.setenv("TERM", "xterm-256color")
    stream = Terminal()
    width.setattr(sys, "stderr", stream)
    with Progress(2, clock=Clock()) as progress:
        progress.note("embedded 512 of 5,183 documents")
        progress.advance()
        progress.advance(best="dense with 0.7")
    out = stream.getvalue()
    assert "2 of 2" in out
    assert "\x1b[2K" in out  # lines were erased
    assert out.endswith("done 2 of 2 in 0 s; best: dense with 0.7\n")


def test_the_store_is_heard_and_warnings_stay(width: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    clock, logger = Clock(), logging.getLogger("runner.store")
    with Status("dense", clock=clock):
        logger.warning("postings are not kept")
        clock.now = 12
        logger.info("waiting for postings")
    assert capsys.readouterr().err == "postings are not kept\ndense, 12 s elapsed: waiting for postings\n"


def test_working_shows_what_the_retrievers_log(width: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    clock, logger = Clock(), logging.getLogger("retrievers.encoders")
    before = logging.getLogger("retrievers").level
    with Status("dense", clock=clock):
        logger.info("embedded 1 of 3")
        clock.now = 12
        logger.info("embedded 2 of 3")
    logger.info("embedded 3 of 3")
    assert capsys.readouterr().err == "dense, 12 s elapsed: embedded 2 of 3\n"
    assert logging.getLogger("retrievers").level == before


def test_a_long_stage_of_which_nothing_is_heard_is_said_to_go_on(width: pytest.MonkeyPatch) -> None:
    stream, clock, end = io.StringIO(), Clock(), time.monotonic() + 60
    width.setattr(sys, "stderr", stream)
    width.setattr(progress, "FIRST_S", 0.01)
    with Status("planning", clock=clock):
        clock.now = 12
        while not stream.getvalue() and time.monotonic() < end:
            time.sleep(0.01)
    assert stream.getvalue() == "planning, 12 s elapsed\n"


def test_work_goes_on_when_the_reader_has_seen_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as closed:
        monkeypatch.setattr(sys, "stdout", closed)
        console.line("nobody reads this")
        console.line("nor this, and neither raises")
