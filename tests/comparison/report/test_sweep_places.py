"""Every place that shows two combinations of a sweep shows the p-value of its leaderboard, and what corrects it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson
import pytest

import runner
from runner.__main__ import main
from runner.comparison.compare import TableStatistics
from runner.comparison.leaderboard import Leaderboard
from runner.config.consent import Consent
from runner.evaluation.bench import Bench
from runner.evaluation.result import Result
from runner.features.golden.comparison import comparison as compare_search_types
from runner.features.golden.document import measure_names
from runner.features.golden.report.markdown import _differences
from runner.features.look.pages import PageBuilder
from runner.features.look.results import StoredResults
from runner.features.look.shown import ShownRuns
from runner.features.table.paper_table import build_paper_table
from runner.pages.numbers import p_value
from runner.statistics.corrections import CORRECTIONS
from runner.statistics.settings import Statistics
from runner.store.opening import open_store
from runner.store.settings import StoreSettings
from runner.sweep.boards import SweepCourse, build_boards
from runner.sweep.report.page import sweep_page
from runner.sweep.report.tables import compare_command
from runner.tracking.fetching import Runs
from runner.tracking.logged import Sweep, this_time
from runner.tracking.pages import create_place
from runner.tracking.record import Finished
from runner.tracking.settings import Tracking
from runner.tracking.tracker import Tracker
from tests.pages.factory import result
from tests.pages.reading import read_explorer_data

PRIMARY = "nDCG@10"
CASES = [("permutation", correction) for correction in CORRECTIONS] + [("t", "maxt"), ("wilcoxon", "maxt")]


@dataclass(frozen=True)
class LoggedSweep:
    """A sweep in a store: its results by run, its leaderboard, and its statistics as they were recorded."""

    tracking: Tracking
    results: dict[str, Result]
    board: Leaderboard
    recorded: dict[str, Any]

    @property
    def pair(self) -> list[str]:
        """Return the runs of the best combination and of the third."""
        return [self.board.rows[place].run for place in (0, 2)]

    @property
    def expected(self) -> float:
        """Return the p-value of the third combination on the leaderboard."""
        return self.board.rows[2].difference.corrected


def log_sweep(tracking: Tracking, test: str, correction: str) -> LoggedSweep:
    """Log a sweep of five combinations, of which some differ."""
    recorded = {"test": test, "correction": correction, "permutations": 400}
    tracker, sweep = Tracker(tracking), Sweep("abc", "a sweep", {"k1": "0, 1, 2, 3, 4"}, 5, this_time())
    results = [
        replace(one, config={**one.config, "retriever": {"k1": k1}, "statistics": recorded})
        for k1 in range(5)
        for one in [result(f"k1={k1}", swept={"retriever.k1": k1}, seed=k1, quality=0.5 + 0.02 * k1)]
    ]
    runs = [run.id for run in tracker.log([Finished(one, {}) for one in results], sweep)]
    parent = tracker.finish_sweep(sweep, results[4], {}, "FINISHED")
    by_run = dict(zip(runs, results, strict=True))
    course = SweepCourse({run: run for run in runs}, sweep=parent.id)
    (board,) = build_boards(by_run, [], PRIMARY, Statistics(**recorded), course)
    return LoggedSweep(tracking, by_run, board.leaderboard, recorded)


def list_p_values(logged: LoggedSweep, document: dict[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield the p-value of the third combination against the best, by the place that has it as a number."""
    first, second = (logged.results[run] for run in logged.pair)
    yield "leaderboard.csv", float(logged.board.to_frame()["p"][2])
    page = sweep_page(logged.board, list(logged.results.values()), create_place(logged.tracking))
    columns = {column["id"]: column["values"] for column in read_explorer_data(page)["columns"]}
    yield "explorer", columns["p"][2]
    (_, own) = document["measures"][PRIMARY]["systems"].values()
    yield "compare", own["corrected"]
    (check,) = (c for c in document["gate"]["checks"] if c["measure"] == PRIMARY and not c["type"])
    yield "gate", check["p"]
    every = list(logged.results.values())
    own_statistics = {name: value for name, value in logged.recorded.items() if name != "correction"}
    in_python = runner.compare(first, second, among=every, **own_statistics)
    yield "runner.compare", in_python.difference().difference.corrected
    table = build_paper_table(every, statistics=Statistics(**logged.recorded))
    yield "table", next(cell.difference.corrected for cell in table.list_cells() if cell.system == second.name)
    golden = compare_search_types({"a": first, "b": second}, measure_names(first.measures), every)
    yield "golden report", golden["metric_differences"]["ndcg@10"]["others"]["b"]["p"]


@pytest.mark.parametrize(("test", "correction"), CASES)
def test_two_combinations_have_the_p_value_of_the_leaderboard(
    test: str,
    correction: str,
    tracking: Tracking,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    logged = log_sweep(tracking, test, correction)
    best, own = logged.pair
    page = sweep_page(logged.board, list(logged.results.values()), create_place(logged.tracking))
    on_page = f"compare baseline={best} candidate={own} {read_explorer_data(page)['comparing']}"
    assert main([*shlex.split(on_page), "--json"]) in (0, 1, 4)
    p_values = dict(list_p_values(logged, orjson.loads(capsys.readouterr().out)))
    assert len(p_values) == 7
    assert main(shlex.split(on_page)) in (0, 1, 4)
    texts = {"terminal": " ".join(capsys.readouterr().out.split())}
    assert 0.003 < logged.expected < 0.9
    assert p_values == pytest.approx(dict.fromkeys(p_values, logged.expected))
    results = StoredResults(Runs(tracking), Bench(open_store(StoreSettings(str(tmp_path / "cache")))), Consent())
    chosen = ShownRuns(tuple(run for word in logged.pair for run in results.runs.like(word)))
    texts["look"] = " ".join(PageBuilder(results, TableStatistics()).build(chosen).html.split())
    golden = compare_search_types(
        {"a": logged.results[best], "b": logged.results[own]}, measure_names(logged.results[best].measures),
        list(logged.results.values()),
    )  # fmt: skip
    texts["golden report"] = " ".join(_differences(golden, ["a", "b"]))
    assert {place for place, text in texts.items() if p_value(logged.expected) not in text} == set()
    assert {place for place, text in texts.items() if "for all pairs of" not in text} == set()


def test_the_command_of_a_sweep_leads_to_its_runs_and_its_correction(tracking: Tracking) -> None:
    logged = log_sweep(tracking, "t", "maxt")
    words = compare_command(logged.board, ["tracking.experiment=x"]).split()
    assert words[:4] == ["python", "-m", "runner", "compare"]
    assert words[6:] == [
        "tracking.experiment=x", f"compare.among={logged.board.sweep[:8]}", "statistics.test=t",
        "statistics.permutations=400",
    ]  # fmt: skip
    assert "compare.among" not in compare_command(replace(logged.board, rows=logged.board.rows[:2]))
