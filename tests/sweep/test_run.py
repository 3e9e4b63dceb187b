from __future__ import annotations

import csv
import random
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir, closing
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import psutil
import pytest
from filelock import FileLock
from mlflow.tracking import MlflowClient

from retrievers.encoders.base import Vectors
from retrievers.encoders.sentence_transformer import SentenceTransformerEncoder
from runner.__main__ import main
from runner.evaluation.bench import Bench
from runner.evaluation.experiment import Experiment
from runner.sweep import computation, workers
from runner.tracking.fetching import Runs
from runner.tracking.settings import Tracking
from runner.tracking.unlogged import waiting_in
from tests.warm import WarmProcess, run_command, start_command

SWEEP = ("-m", "retriever=bm25", "retriever.k1=0.6,0.9", "retriever.b=0.3,0.7")
INLINE = "tracking.background=false"
KILLS = 5
MANY_KILLS = 30


@pytest.fixture
def here(tracking: Tracking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working directory, which has a store of runs."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _rows(folder: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(folder / "mlruns" / "mlflow.db")) as database:
        return database.execute(query).fetchall()


def _finished(folder: Path) -> Counter[str]:
    """Return how many finished runs each combination has."""
    query = "select value from tags join runs using (run_uuid) where key = 'combination' and status = 'FINISHED'"
    return Counter(value for (value,) in _rows(folder, query))


def _statuses(folder: Path) -> Counter[str]:
    return Counter(status for (status,) in _rows(folder, "select status from runs"))


def test_the_same_command_again_does_nothing(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SWEEP, INLINE]) == 0
    first, before = capsys.readouterr().out, _rows(here, "select * from runs")
    artifacts = sorted((path, path.stat().st_mtime_ns) for path in here.rglob("artifacts/**/*"))
    assert main([*SWEEP, INLINE]) == 0
    assert capsys.readouterr().out == first
    assert _rows(here, "select * from runs") == before
    assert sorted((path, path.stat().st_mtime_ns) for path in here.rglob("artifacts/**/*")) == artifacts


def test_combinations_without_a_model_come_first(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def encode(encoder: object, model: object, role: str, texts: Sequence[str]) -> Vectors:
        return np.array([[len(text), 1, 1 + text.count("e")] for text in texts], dtype=np.float32)

    def note(tasks: Mapping[str, Experiment], crew: workers.Crew, retries: int) -> Iterator[tuple[str, Any]]:
        parts.append([type(task.retriever).__name__ for task in tasks.values()])
        return workers.answers(tasks, crew, retries)

    parts: list[list[str]] = []
    monkeypatch.setattr(SentenceTransformerEncoder, "_open", lambda encoder, store: None)
    monkeypatch.setattr(SentenceTransformerEncoder, "_encode", encode)
    monkeypatch.setattr(SentenceTransformerEncoder, "count_cuts", lambda encoder, corpus, queries, store: {})
    monkeypatch.setattr(computation, "answers", note)
    assert main(["-m", "retriever=dense,bm25,hybrid,sqlite_fts", INLINE]) == 0
    assert [sorted(part) for part in parts] == [["BM25", "SqliteFts"], ["Dense", "Hybrid"]]
    assert _statuses(here)["FINISHED"] == 5


def test_a_leaderboard_has_the_id_of_each_combinations_run(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SWEEP, INLINE]) == 0
    out = capsys.readouterr().out
    ids = dict(_rows(here, "select name, run_uuid from runs"))
    (file,) = here.rglob("leaderboard.csv")
    with file.open() as lines:
        rows = list(csv.DictReader(lines))
    assert [row["run"] for row in rows] == [ids[row["name"]] for row in rows]
    report = file.with_name("report.md").read_text()
    assert all(row["run"][:8] in out and row["run"][:8] in report for row in rows)
    assert f"compare baseline={rows[1]['run'][:8]} candidate={rows[0]['run'][:8]}" in out


def test_each_run_of_a_sweep_has_a_report_of_its_own_on_request(here: Path) -> None:
    wanted = ["-m", "retriever=bm25,sqlite_fts", INLINE]  # the second has no analyzer of its own
    assert main(wanted) == 0
    assert len(list(here.rglob("report.html"))) == 1, "the sweep's"
    assert main([*wanted, "sweep.reports=true"]) == 0, "of what is finished already"
    assert set(_finished(here).values()) == {1}
    reports = {path for path in here.rglob("report.html") if (path.parent / "result.json").is_file()}
    assert len(reports) == 2
    assert all("vocabulary mismatch" in path.read_text() for path in reports)


def test_a_new_value_of_an_axis_runs_only_what_is_new(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SWEEP, INLINE]) == 0
    before = set(_rows(here, "select run_uuid from runs"))
    assert main([*SWEEP[:-1], "retriever.b=0.3,0.5,0.7", INLINE]) == 0
    out = capsys.readouterr()
    assert "done 2 of 2" in out.err
    assert "4 were already finished" in out.err
    assert "6 combinations by" in out.out
    new = {run for (run,) in set(_rows(here, "select run_uuid from runs")) - before}
    names = {name for (name, run) in _rows(here, "select name, run_uuid from runs") if run in new}
    assert names == {"k1=0.6, b=0.5", "k1=0.9, b=0.5", "sweep over k1, b"}
    assert set(_finished(here).values()) == {1}
    assert _statuses(here) == {"FINISHED": 8}  # six combinations, and a parent run for each command


def _parents(folder: Path) -> list[dict[str, str]]:
    """Return the tags of the sweeps' runs, the oldest first, with the run's id and primary measure."""
    query = "select run_uuid from tags join runs using (run_uuid) where key = 'kind' and value = 'sweep'"
    ids = [run for (run,) in _rows(folder, f"{query} order by start_time")]
    return [
        dict(_rows(folder, f"select key, value from tags where run_uuid = '{run}'"))
        | {"run": run}
        | dict(_rows(folder, f"select key, value from latest_metrics where run_uuid = '{run}' and key = 'ndcg_at_10'"))
        for run in ids
    ]


def _names(folder: Path, parent: dict[str, str]) -> set[str]:
    """Return the combinations that `export` and `compare` take for those of a sweep."""
    runs = Runs(Tracking(uri=f"sqlite:///{folder}/mlruns/mlflow.db"))
    (run,) = runs.like(parent["run"])
    return {combination.name for combination in runs.of_sweep(run)}


def test_two_commands_never_share_a_parent_run(here: Path) -> None:
    fixed = ["-m", "retriever=bm25", INLINE]
    assert main([*fixed, "retriever.k1=0.1,0.9", "sweep.select_on=kfold"]) == 0
    (first,) = _parents(here)
    assert main([*fixed, "retriever.k1=2.5,3"]) == 0
    before, second = _parents(here)
    assert before == first
    assert second["sweep_id"] == first["sweep_id"]
    assert second["report_id"] != first["report_id"]
    assert "selection.json" not in {path.name for path in (here / "mlruns/artifacts" / second["run"]).rglob("*")}
    assert second.get("selected_on") != "kfold"
    assert (_names(here, first), _names(here, second)) == ({"k1=0.1", "k1=0.9"}, {"k1=2.5", "k1=3"})


def test_what_changes_the_report_is_another_parent_run_of_the_same_combinations(here: Path) -> None:
    fixed = ["-m", "retriever=bm25", INLINE, "sweep.name=one"]
    others = [
        ["retriever.k1=0.6"],
        ["retriever.k1=0.6,0.9", "sweep.exclude=retriever.k1 < 0.7"],
        ["retriever.k1=0.6,0.9", "statistics.alpha=0.01"],
        ["retriever.k1=0.6,0.9", "sweep.select_on=kfold"],
        ["retriever.k1=0.6,0.9", "sweep.select_on=kfold", "sweep.resamples=99"],
    ]
    assert main([*fixed, "retriever.k1=0.6,0.9"]) == 0
    combinations = _finished(here)
    for number, arguments in enumerate(others, start=2):
        before = _parents(here)
        assert main([*fixed, *arguments]) == 0
        *same, new = _parents(here)
        assert (same, len(same)) == (before, number - 1)
        assert set(combinations) <= set(_finished(here)), "none is lost"
        assert set(_finished(here).values()) == {1}, "none is computed twice"
        assert new["best_run"] in {run for (run,) in _rows(here, "select run_uuid from runs")}
    assert _names(here, _parents(here)[2]) == {"k1=0.9"}


def test_each_part_of_a_fusion_is_searched_once(here: Path) -> None:
    """Of any number of weights and normalisations: the sweep counts the work that it does."""
    weights = ["retriever.alpha=range(0.1,1.0,0.1)", "retriever.normalization=minmax,zscore", "encoder=lsa"]
    assert main(["-m", "retriever=hybrid", *weights, INLINE]) == 0
    work = dict(_rows(here, "select key, value from tags where key like 'work/%'"))
    assert work["work/postings"] == "1"
    assert work["work/rankings"] == str(2 + 9 * 2)


def test_two_ways_to_write_a_combination_are_one(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-m", "retriever=bm25", "retriever.k1=0.9,9e-1", INLINE]) == 0
    assert "1 combination by" in capsys.readouterr().out
    assert main(["-m", "retriever=bm25,dense", "encoder=lsa", "encoder.dimensions=2,3", INLINE]) == 0
    out = capsys.readouterr()
    assert "3 combinations by" in out.out
    assert "1 of 4 combinations is a duplicate and runs only once: " in out.err
    assert "[retriever=bm25, dimensions=3] repeats [retriever=bm25, dimensions=2]\n" in out.err
    assert len(_finished(here)) == 3  # 0.9 is the default of k1


@pytest.mark.usefixtures("here")
def test_afresh_is_a_sweep_of_its_own(here: Path) -> None:
    assert main([*SWEEP, INLINE]) == 0
    assert main([*SWEEP, INLINE, "sweep.resume=false"]) == 0
    assert set(_finished(here).values()) == {2}
    assert len(_rows(here, "select distinct value from tags where key = 'mlflow.parentRunId'")) == 2


def test_what_failed_is_tried_again(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = ["-m", "retriever=bm25", "retriever.k1=0.6,0.9", INLINE]
    with monkeypatch.context() as patch:
        patch.setattr("retrievers.lexical.bm25.BM25Searcher.search", lambda *_: 1 / 0)
        assert main(broken) == 1
    assert main(broken) == 0
    assert _statuses(here) == {"FAILED": 2, "FINISHED": 3}


def test_a_finished_run_whose_record_is_gone_is_done_again(here: Path) -> None:
    assert main([*SWEEP, INLINE]) == 0
    record = next(path for path in here.rglob("result.json"))
    record.unlink()
    assert main([*SWEEP, INLINE]) == 0
    assert set(_finished(here).values()) == {1}
    assert _statuses(here) == {"FINISHED": 5, "FAILED": 1}


def test_a_run_that_was_deleted_in_mlflow_is_done_again(here: Path) -> None:
    assert main([*SWEEP, INLINE]) == 0
    ((run,),) = _rows(here, "select run_uuid from runs where name = 'k1=0.6, b=0.3'")
    MlflowClient(f"sqlite:///{here}/mlruns/mlflow.db").delete_run(run)
    assert main([*SWEEP, INLINE]) == 0
    assert len(_rows(here, "select * from runs where name = 'k1=0.6, b=0.3' and lifecycle_stage = 'active'")) == 1


def test_another_dataset_another_code_and_another_library_are_other_combinations(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: set[str] = set()
    one = ["-m", "retriever=bm25", "retriever.k1=0.6", INLINE, "sweep.name=one"]

    def new() -> bool:
        assert main(one) == 0
        found = set(_finished(here)) - seen
        seen.update(found)
        return bool(found)

    assert new()
    assert not new()
    monkeypatch.setattr("retrievers.code.find_version", lambda module: f"new {module}")
    assert new()
    monkeypatch.setattr("runner.sweep.identity._versions", lambda: "new")
    assert new()
    one.append("dataset.max_queries=40")
    assert new()


def test_results_that_the_store_of_runs_does_not_take_wait_and_are_logged_later(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The table of metrics is away in the middle of the sweep, and there again before the next start."""
    file = here / "mlruns" / "mlflow.db"
    first = [*SWEEP[:-1], "retriever.b=0.3", INLINE, "sweep.name=it"]
    assert main(first) == 0
    with closing(sqlite3.connect(file, isolation_level=None)) as database:
        database.execute("ALTER TABLE metrics RENAME TO gone")
        assert main([*SWEEP, INLINE, "sweep.name=it"]) == 1
        out = capsys.readouterr()
        assert "the sweep continues, and results wait in" in out.err
        assert "4 combinations by" in out.out
        (folder,) = (here / "mlruns" / "unlogged").iterdir()
        entries = [waiting.read() for waiting in waiting_in(folder)]
        assert {entry.result.name for entry in entries if entry} == {"k1=0.6, b=0.7", "k1=0.9, b=0.7"}
        database.execute("ALTER TABLE gone RENAME TO metrics")
    assert main([*SWEEP, INLINE, "sweep.name=it"]) == 0
    assert sum(_finished(here).values()) == len(_finished(here)) == 4
    assert not list((here / "mlruns" / "unlogged").glob("*/*"))


def test_who_stops_a_sweep_does_not_wait_for_mlflow_and_loses_nothing(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """MLflow cannot open its database, as long as another has its lock; the sweep is stopped at its third."""
    _interrupt_after(2, monkeypatch)
    with FileLock(here / "mlruns" / "mlflow.lock"):
        assert main([*SWEEP]) == 130
    out = capsys.readouterr()
    assert "2 combinations by" in out.out
    assert "compare the best two" not in out.out  # which no store of runs has yet
    assert "the work was stopped before MLflow was ready; results wait in" in out.err
    assert "stopped after 2 of 4; run the same command to resume" in out.out
    assert "report:" not in out.out
    assert len(list((here / "mlruns" / "unlogged").glob("*/*"))) == 2
    monkeypatch.undo()
    monkeypatch.chdir(here)
    assert main([*SWEEP, INLINE]) == 0
    assert "computed 2 searches" in capsys.readouterr().err  # the other two were kept
    assert sum(_finished(here).values()) == len(_finished(here)) == 4


def test_a_sweep_that_is_stopped_before_anything_is_done_reports_nothing(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _interrupt_after(0, monkeypatch)
    assert main([*SWEEP, INLINE]) == 130
    out = capsys.readouterr().out.splitlines()
    assert out == ["stopped after 0 of 4; run the same command to resume"]
    assert _statuses(here) == {"KILLED": 1}
    assert not list((here / "mlruns" / "artifacts").rglob("report*"))


def _interrupt_after(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have Ctrl-C pressed once n combinations are done."""
    calls, attempt = count(), workers.attempt

    def pressed(bench: Bench, experiment: Experiment) -> workers.Answer:
        if next(calls) >= n:
            raise KeyboardInterrupt
        return attempt(bench, experiment)

    monkeypatch.setattr(workers, "attempt", pressed)


@pytest.mark.parametrize("kills", [KILLS, pytest.param(MANY_KILLS, marks=pytest.mark.slow(reason="takes minutes"))])
def test_whatever_is_killed_nothing_is_lost_or_doubled(
    kills: int, here: Path, migrated: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Workers, the process that logs and the parent are killed at random moments, again and again.

    In the end the leaderboard is that of an undisturbed sweep, and each combination has one finished run.
    """
    grid = ["-m", "retriever=hybrid", "encoder=lsa"]
    grid += ["retriever.alpha=range(0.1,1.0,0.1)", "retriever.parts.lexical.k1=0.6,0.9"]
    command = [*grid, "hydra.run.dir=hydra", "sweep.backend=loky", "sweep.workers=2", "sweep.retries=99"]
    undisturbed = tmp_path_factory.mktemp("undisturbed")
    (undisturbed / "mlruns").mkdir()
    (undisturbed / "mlruns" / "mlflow.db").write_bytes(migrated.read_bytes())
    with chdir(undisturbed):
        assert main([*grid, INLINE]) == 0

    chance = random.Random(kills)
    killed = 0
    while killed < kills:
        process = start_command(command, here)
        while process.is_alive() and killed < kills:
            time.sleep(chance.uniform(0.2, 3.0))
            killed += _kill_one(process, chance)
        family = _family(process)
        process.kill()
        process.join()
        _leave_nobody(family)
    done = run_command(command, here)
    assert done.returncode == 0, done.stderr
    assert _means(here) == _means(undisturbed)
    assert set(_finished(here).values()) == {1}
    assert "RUNNING" not in _statuses(here)


def _kill_one(process: WarmProcess, chance: random.Random) -> int:
    """Kill the parent or one of its processes; return how many died."""
    try:
        chance.choice(_family(process)).send_signal(signal.SIGKILL)
    except (psutil.NoSuchProcess, IndexError):
        return 0
    return 1


def _leave_nobody(family: list[psutil.Process]) -> None:
    """Wait until processes whose parent was killed have noticed."""
    end = time.monotonic() + 20
    while time.monotonic() < end and any(map(_lives, family)):
        time.sleep(0.1)


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _family(process: WarmProcess) -> list[psutil.Process]:
    """Return a process and those that it began, none if it has ended."""
    try:
        return [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _means(folder: Path) -> dict[str, dict[str, float]]:
    """Return the measures of each finished combination, by its name."""
    found = {}
    for path in folder.rglob("artifacts/*/artifacts/result.json"):
        record = orjson.loads(path.read_bytes())
        found[record["name"]] = record["means"]
    return found
