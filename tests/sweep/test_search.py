"""Searches by Optuna: what is asked for, resumed, failed and refused."""

from __future__ import annotations

import csv
import math
import os
import re
import shutil
import signal
import time
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path

import orjson
import pytest
from hydra.core.config_store import ConfigStore

import hydra_plugins.retrieval_runner  # noqa: F401 (registers its nodes)
from runner.__main__ import main
from runner.comparison.criteria import COSTS
from runner.sweep.search import SearchSettings, _at_once
from runner.sweep.settings import SweepSettings
from runner.sweep.study import PendingTrial, Study
from tests.documentation import chapters, documented, page
from tests.sweep.searches import (
    DATA,
    INLINE,
    PLANE,
    SEARCH,
    TEST,
    completed,
    finished,
    parent,
    points,
    results,
    rows,
    studies,
    trials,
)
from tests.warm import start_command


def test_a_search_logs_each_requested_combination_and_saves_its_study(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*SEARCH, *PLANE, *DATA, "hydra.sweeper.n_trials=12"]) == 0
    (study,) = studies(here)
    assert [trial.state.name for trial in study.trials] == ["COMPLETE"] * 12
    tags, folder = parent(here)
    assert study.user_attrs == {"sweep": tags["sweep_id"], "objectives": ["nDCG@10"], "selected_on": "train"}
    measured = results(here, "train")
    assert [trial["combination"] for trial in trials(here)] == [t.user_attrs["combination"] for t in study.trials]
    assert len(measured) == len({trial["combination"] for trial in trials(here)})
    assert study.best_value == max(result.means["nDCG@10"] for result in measured)
    shares = orjson.loads((folder / "importances.json").read_bytes())["nDCG@10"][""]
    assert set(shares) == {"retriever.k1", "retriever.b"}
    out = capsys.readouterr()
    assert "12 trials (tpe) requested 12 combinations" in out.out
    assert [line.partition(" in ")[0] for line in out.err.splitlines() if line.startswith("done ")] == [
        "done 12 of 12 trials",
        "done 1 of 1",
        "done 1 of 1",
    ]
    assert [line for line in out.err.splitlines() if "best:" in line and line.startswith("done 1 of 1")] == []


def test_the_same_command_again_does_nothing_and_says_the_same(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = [*SEARCH, *PLANE, *DATA, "hydra.sweeper.n_trials=5", "hydra.sweeper.objectives=[nDCG@10,mean_ms]"]
    assert main(command) == 0
    first, before = capsys.readouterr().out, rows(here, "select * from runs")
    files = sorted((path, path.stat().st_mtime_ns) for path in here.rglob("artifacts/**/*"))
    assert main(command) == 0
    out = capsys.readouterr()
    assert out.out == first
    assert out.err.splitlines() == ["all 5 trials are already finished; nothing to do"]
    assert rows(here, "select * from runs") == before
    assert sorted((path, path.stat().st_mtime_ns) for path in here.rglob("artifacts/**/*")) == files
    assert [len(study.trials) for study in studies(here)] == [5]


def test_more_trials_go_on_where_the_search_stopped_as_if_it_had_not(
    here: Path, migrated: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = [*SEARCH, *PLANE, *DATA, "sweep.name=in two parts"]
    assert main([*command, "hydra.sweeper.n_trials=4"]) == 0
    (study,) = studies(here)
    with pytest.MonkeyPatch.context() as patch:  # a trial that its process did not live to tell
        patch.setattr("runner.sweep.study.Study.tell", lambda *_: os.kill(os.getpid(), signal.SIGINT))
        assert main([*command, "hydra.sweeper.n_trials=12"]) == 130
    assert main([*command, "hydra.sweeper.n_trials=12"]) == 0
    assert Counter(trial.state.name for trial in study.trials) == {"COMPLETE": 12, "FAIL": 1}
    assert set(finished(here).values()) == {1}
    assert len(points(here)) == 12
    whole = tmp_path_factory.mktemp("whole")
    shutil.copytree(here / "data", whole / "data")
    shutil.copytree(migrated.parent, whole / "mlruns")
    in_two = points(here)
    monkeypatch.chdir(whole)
    assert main([*command, "hydra.sweeper.n_trials=12"]) == 0
    assert points(whole) == in_two


@pytest.mark.parametrize("on", ["train", "kfold"])
def test_a_search_with_more_trials_counts_trials_and_reports_finished_ones(
    here: Path, on: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [*SEARCH, *PLANE, *DATA, f"sweep.select_on={on}"]

    def search(n_trials: int) -> list[str]:
        assert main([*command, f"hydra.sweeper.n_trials={n_trials}"]) == 0
        lines = [re.sub(r" in \d+ s|; best: .*", "", line) for line in capsys.readouterr().err.splitlines()]
        return [line for line in lines if "trials" in line or "nothing to do" in line]

    assert search(3) == ["done 3 of 3 trials"]
    assert search(5) == ["done 2 of 2 trials; 3 were already finished"]
    assert search(5) == ["all 5 trials are already finished; nothing to do"]


def test_a_search_with_an_interrupted_trial_continues_in_a_new_study(here: Path) -> None:
    command = [*SEARCH, *PLANE, *DATA]
    assert main([*command, "hydra.sweeper.n_trials=4"]) == 0
    with pytest.MonkeyPatch.context() as patch:  # its combination is written, and not what came of it
        patch.setattr("runner.sweep.study.Study._end", lambda *_: os.kill(os.getpid(), signal.SIGINT))
        assert main([*command, "hydra.sweeper.n_trials=5"]) == 130
    assert main([*command, "hydra.sweeper.n_trials=6"]) == 0
    first, second = studies(here)
    assert Counter(trial.state.name for trial in first.trials) == {"COMPLETE": 4, "FAIL": 1}
    assert Counter(trial.state.name for trial in second.trials) == {"COMPLETE": 6}
    assert set(finished(here).values()) == {1}


def test_a_search_that_is_killed_goes_on_as_if_it_had_not_been(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = [*SEARCH[:-1], *PLANE, *DATA, "hydra.sweeper.n_trials=300", "sweep.output=out"]
    process = start_command(command, here)
    until = time.monotonic() + 120
    while (done := completed(here)) < 5 and process.is_alive() and time.monotonic() < until:
        time.sleep(0.05)
    process.kill()
    process.join()
    done = completed(here)
    assert 5 <= done < 100
    total = done + 3
    assert main([*SEARCH, *PLANE, *DATA, f"hydra.sweeper.n_trials={total}"]) == 0
    states = Counter(trial.state.name for trial in studies(here)[-1].trials)  # another one if it died amid an answer
    assert states["COMPLETE"] == total
    assert states["RUNNING"] == 0
    assert set(finished(here).values()) == {1}
    assert f"{total} trials (tpe)" in capsys.readouterr().out


def test_repeated_points_and_points_of_a_grid_are_not_evaluated_again(here: Path) -> None:
    axes = ("retriever.k1=0.5,1,2", "retriever.b=0.1,0.9")
    assert main(["-m", INLINE, *axes, *DATA, "sweep.select_on=train"]) == 0
    before = finished(here)
    assert main([*SEARCH, *axes, *DATA, "hydra.sweeper.n_trials=15"]) == 0
    assert finished(here) == before
    assert len(trials(here)) == 15
    assert len(set(points(here))) <= 6


def test_conditions_and_exclusions_hold_for_every_trial(here: Path) -> None:
    union = (
        "sweep.union=[{retriever:bm25,retriever.k1:'interval(0.1,3)',retriever.variant:[lucene,bm25+]},"
        "{retriever:sqlite_fts,retriever.tokenizer:[unicode61,porter]}]"
    )
    when, exclude = (
        "sweep.when={retriever.k1:'retriever.variant == lucene'}",
        "sweep.exclude=['retriever.tokenizer == porter']",
    )
    assert (
        main([*SEARCH, union, when, exclude, *DATA, "hydra.sweeper.n_trials=16", "hydra.sweeper.sampler=random"]) == 0
    )
    found = trials(here)
    assert {trial["retriever"] for trial in found} == {"bm25", "sqlite_fts"}
    assert {trial["retriever.tokenizer"] for trial in found} == {"", "unicode61"}
    assert all(bool(trial["retriever.k1"]) == (trial["retriever.variant"] == "lucene") for trial in found)


def test_several_objectives_have_a_front_with_both_figures(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    objectives = "hydra.sweeper.objectives=[index_s,nDCG@10,R@1]"
    axes = ("retriever=bm25,sqlite_fts,rank_bm25", "analyzer=english,plain")
    assert main([*SEARCH, *axes, *DATA, objectives, "hydra.sweeper.sampler=grid", "sweep.output=out"]) == 0
    with (parent(here)[1] / "pareto.csv").open() as file:
        found = list(csv.DictReader(file))
    chosen_on = {r.name: (r.means["nDCG@10"], -r.timings.index_s, r.means["R@1"]) for r in results(here, "train")}

    def beaten(name: str) -> bool:
        mine = chosen_on[name]
        return any(
            all(o >= m for o, m in zip(other, mine, strict=True)) and other != mine for other in chosen_on.values()
        )

    assert {row["combination"] for row in found} == {name for name in chosen_on if not beaten(name)}
    there = {result.name: result for result in results(here, "test")}
    for row in found:
        assert float(row["nDCG@10 on train"]) == chosen_on[row["combination"]][0]
        assert float(row["index_s on test"]) == there[f"{row['combination']} (test)"].timings.index_s
    assert "Pareto front" in capsys.readouterr().out
    assert "Pareto front" in (here / "out" / "report.md").read_text()
    assert "Pareto front" in (here / "out" / "report.html").read_text()


def test_changed_code_is_a_new_study_with_the_values_of_now(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = [*SEARCH, *PLANE, *DATA, TEST, "hydra.sweeper.n_trials=3"]
    assert main(command) == 0
    (old,) = studies(here)
    monkeypatch.setattr("retrievers.code.find_version", lambda module: f"new {module}")
    monkeypatch.setattr("runner.metrics.scores.Scores.means", lambda self: {str(m): 0.5 for m in self.measures})
    assert main([*command[:-1], "hydra.sweeper.n_trials=4"]) == 0
    _, new = studies(here)
    assert [trial.values for trial in new.trials] == [[0.5]] * 4
    assert [trial.params for trial in new.trials[:3]] == [trial.params for trial in old.trials]


def test_a_search_afresh_is_a_study_and_a_sweep_of_its_own(here: Path) -> None:
    command = [*SEARCH, *PLANE, *DATA, TEST, "hydra.sweeper.n_trials=3"]
    assert main(command) == 0
    assert main([*command, "sweep.resume=false"]) == 0
    assert [len(study.trials) for study in studies(here)] == [3, 3]
    assert set(finished(here).values()) == {2}


def test_failed_trials_are_recorded_as_failed_and_tried_again(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = [*SEARCH, *PLANE, *DATA, TEST, "hydra.sweeper.n_trials=3"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("retrievers.lexical.bm25.BM25Searcher.search", lambda *_: 1 / 0)
        assert main(command) == 1
    assert "All combinations failed" in capsys.readouterr().out
    assert [trial.state.name for trial in studies(here)[0].trials] == ["FAIL"] * 3
    assert main(command) == 0
    assert [trial.state.name for trial in studies(here)[-1].trials] == ["COMPLETE"] * 3


def test_a_failure_may_end_a_search(here: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("retrievers.lexical.bm25.BM25Searcher.search", lambda *_: 1 / 0)
        assert main([*SEARCH, *PLANE, *DATA, TEST, "sweep.fail_fast=true"]) == 1
    assert len(studies(here)[0].trials) == 1


def test_what_was_not_timed_cannot_be_searched_for_by_its_time(here: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        never = replace(COSTS["mean_ms"], value=lambda result: math.nan)
        patch.setattr("runner.comparison.criteria.COSTS", {**COSTS, "mean_ms": never})
        arguments = [*SEARCH, *PLANE, *DATA, TEST, "hydra.sweeper.objectives=[nDCG@10,mean_ms]"]
        assert main([*arguments, "hydra.sweeper.n_trials=2"]) == 0
    assert [trial.state.name for trial in studies(here)[0].trials] == ["FAIL"] * 2


def test_a_batch_is_as_large_as_there_are_workers(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batches = []
    ask = Study.ask

    def spied(self: Study, n: int) -> list[PendingTrial]:
        batches.append(n)
        return ask(self, n)

    assert _at_once(SweepSettings()) == 1
    assert _at_once(SweepSettings(backend="loky", workers=3)) == 3
    monkeypatch.setattr("runner.sweep.study.Study.ask", spied)
    monkeypatch.setattr("runner.sweep.search._at_once", lambda settings: 2)
    assert main([*SEARCH, *PLANE, *DATA, TEST, "hydra.sweeper.n_trials=5"]) == 0
    assert batches == [2, 2, 1]
    assert set(finished(here).values()) == {1}
    assert len(finished(here)) == 5


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["hydra.sweeper.n_trails=3"], "hydra.sweeper.n_trails: no such setting; did you mean hydra.sweeper.n_trials?"),
        (["hydra.sweeper.n_trials=0"], "hydra.sweeper.n_trials=0: should be greater than or equal to 1"),
        (["hydra.sweeper.sampler=tpee"], "hydra.sweeper.sampler=tpee: should be 'tpe'"),
        (["hydra.sweeper.sampler=grid"], "cannot enumerate the interval of retriever.k1=interval(0.1,3)"),
        (["hydra.sweeper.objectives=[nDGC@10]"], "nDGC@10 is not measured; did you mean nDCG@10?"),
        (["hydra.sweeper.objectives=[nDCG@10,Judged@10]"], "Judged@10 describes the judgments, not the retriever"),
        (["hydra.sweeper.objectives=[RR]"], "the primary measure nDCG@10 is missing"),
        (["hydra.sweeper.storage=nowhere"], "hydra.sweeper.storage=nowhere: cannot be opened"),
        (["sweep.select_on=dev"], "sweep.select_on=dev: no such split; the dataset's other splits are train"),
        (
            ["sweep.select_on=dev", "dataset=golden", "~dataset.path"],
            "sweep.select_on=dev: no such split; the dataset has no other split",
        ),
        (["sweep.select_on=kfold", "dataset.max_queries=1"], "sweep.select_on=kfold: data has 1 queries with gold"),
        (["sweep.sample=3"], "sweep.sample: has no effect on a search"),
        (["retriever.k2=interval(0,1)"], "retriever.k2: no such setting; did you mean retriever.k1?"),
        (["retriever.b=interval(-1,1)"], "retriever.b=-1.0: should be greater than or equal to 0"),
        (["dataset.split=train,test"], "dataset.split: cannot be an axis"),
        (["dataset.max_queries=3,4"], "dataset: a search supports only one"),
        (["sweep.exclude='retriever.k1 > 0'"], "the conditions exclude all combinations"),
        (["metrics.primary=AP,RR"], "a sweep needs one primary measure"),
    ],
)
def test_a_mistake_is_one_line_and_nothing_is_done(
    here: Path, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    data = [d for d in DATA if "dataset=golden" not in arguments]
    assert main([*SEARCH, "retriever.k1=interval(0.1,3)", *data, *(a for a in arguments if a[0] != "~")]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert len(err.strip().splitlines()) == 1
    assert not rows(here, "select * from runs")


def test_every_setting_is_documented_with_its_default() -> None:
    """In `docs/search.md`, as it is in Hydra's node and in the class that checks it."""
    node = dict(ConfigStore.instance().load("hydra/sweeper/optuna.yaml").node)
    assert documented(chapters(page("docs/search.md"))["Settings"]) == {k: v for k, v in node.items() if k[0] != "_"}
    assert asdict(SearchSettings()) == {k: v for k, v in node.items() if k[0] != "_" and k != "params"}
