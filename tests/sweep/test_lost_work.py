"""What a sweep keeps when its process is killed, when a combination crashes it, or when its store of runs goes away."""

from __future__ import annotations

import io
import os
import re
import shutil
import signal
import sqlite3
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from runner.__main__ import main
from runner.evaluation.bench import Bench
from runner.evaluation.experiment import Experiment
from runner.pages import console
from runner.store.base import RunFiles
from runner.sweep import run as sweep_run
from runner.sweep import workers
from runner.tracking.background import BackgroundTracker
from runner.tracking.leftovers import find_orphaned_artifacts, waiting_results
from runner.tracking.settings import Tracking
from runner.tracking.tracker import Tracker
from runner.tracking.unlogged import Waiting, waiting_in
from tests.warm import run_command

SWEEP = ("-m", "retriever=bm25", "retriever.k1=0.6,0.9", "retriever.b=0.3,0.7")
INLINE = "tracking.background=false"


@pytest.fixture
def here(tracking: Tracking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working directory, which has a store of runs."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _rows(folder: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(folder / "mlruns" / "mlflow.db")) as database:
        return database.execute(query).fetchall()


def _finished(folder: Path) -> Counter[str]:
    query = "select value from tags join runs using (run_uuid) where key = 'combination' and status = 'FINISHED'"
    return Counter(value for (value,) in _rows(folder, query))


def _waiting(folder: Path) -> list[Waiting]:
    return [waiting for place in (folder / "mlruns" / "unlogged").glob("*") for waiting in waiting_in(place)]


def test_a_result_is_on_disk_before_it_is_reported(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store of runs takes nothing, so that all that is reported can only be on disk."""
    seen = []
    evaluate = sweep_run.SweepRun.evaluate

    def watched(self: sweep_run.SweepRun, *arguments: Any) -> Any:
        for combination, answer in evaluate(self, *arguments):
            seen.append(
                {combination for combination in self.outcome.results} == {w.combination for w in _waiting(here)}
            )
            yield combination, answer

    monkeypatch.setattr(sweep_run.SweepRun, "evaluate", watched)
    monkeypatch.setattr("runner.tracking.background.BackgroundTracker._send", lambda self: None)
    monkeypatch.setattr("runner.tracking.background.BackgroundTracker.flush", lambda self: None)
    main([*SWEEP, INLINE])
    assert seen == [True] * 4


def test_a_killed_sweep_loses_nothing_that_it_reported(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The process dies at its third combination, while MLflow loads."""
    code = (
        "import itertools, os, signal; from runner.sweep import workers; "
        "n, attempt = itertools.count(), workers.attempt; "
        "workers.attempt = lambda *a: os.kill(os.getpid(), signal.SIGKILL) if next(n) == 2 else attempt(*a)"
    )
    killed = run_command(SWEEP, here, code)
    assert killed.returncode == -signal.SIGKILL
    assert len(_waiting(here)) + len(_finished(here)) == 2
    assert re.search("the sweep's process died while evaluating k1=0.9, b=0.3; run the same", killed.stderr)
    assert main([*SWEEP, INLINE]) == 0
    said = capsys.readouterr().err
    assert (
        "last time, the process died while evaluating k1=0.9, b=0.3; this combination now runs last, in a "
        "process of its own"
    ) in said
    assert list(_finished(here).values()) == [1] * 4
    assert not _waiting(here)
    folders = {path.name for path in (here / "mlruns" / "artifacts").iterdir() if not path.name.startswith(".")}
    assert folders == {run for (run,) in _rows(here, "select run_uuid from runs")}
    assert {status for (status,) in _rows(here, "select status from runs")} == {"FINISHED"}


def test_a_result_that_is_logged_already_is_not_logged_again(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the process had been killed after its run was in the database, before the file was removed."""
    with monkeypatch.context() as patch:
        patch.setattr(Waiting, "remove", lambda self: None)
        assert main([*SWEEP, INLINE]) == 1  # they seem to wait
    assert len(_waiting(here)) == 4
    assert main([*SWEEP, INLINE]) == 0
    assert list(_finished(here).values()) == [1] * 4
    assert not _waiting(here)


def test_a_damaged_file_is_computed_again(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Tracker, "log", _refuse)
        assert main([*SWEEP, INLINE]) == 1
    for waiting, size in zip(_waiting(here), (0, 10, 100, 1000), strict=True):  # what a power failure may leave
        os.truncate(waiting.file, size)
    assert main([*SWEEP, INLINE]) == 0
    assert list(_finished(here).values()) == [1] * 4
    assert not _waiting(here)


def _refuse(*_: object, **__: object) -> None:
    raise OSError("the server is away")


def test_what_is_not_logged_keeps_a_sweep_open_and_the_last_line_tells_what_logs_it(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The store of runs is back when the parent run is closed."""
    with monkeypatch.context() as patch:
        patch.setattr(Tracker, "log", _refuse)
        assert main([*SWEEP, INLINE]) == 1
    last = capsys.readouterr().out.splitlines()[-1]
    assert re.fullmatch(r"not finished: 4 of 4 results wait in \S+; run the same command to log them", last)
    ((parent, status),) = _rows(here, "select run_uuid, status from runs")
    assert status == "KILLED"
    assert [last] == [value for (value,) in _rows(here, "select value from tags where key = 'error'")]
    assert main([*SWEEP, INLINE]) == 0
    assert list(_finished(here).values()) == [1] * 4
    assert _rows(here, f"select status from runs where run_uuid = '{parent}'") == [("FINISHED",)]
    assert not _rows(here, "select value from tags where key = 'error'")


def test_unlogged_folders_of_a_killed_process_are_removed_at_the_next_start(
    here: Path, tracking: Tracking, capsys: pytest.CaptureFixture[str]
) -> None:
    code = (
        "from runner.tracking import tables; import os, signal; "
        "tables.insert_runs = lambda *_: os.kill(os.getpid(), signal.SIGKILL)"
    )
    artifacts = here / "mlruns" / "artifacts"
    (artifacts / "of another database").mkdir(parents=True)
    another = shutil.copy(here / "mlruns" / "mlflow.db", here / "another.db")
    assert run_command(["retriever=bm25", INLINE], here, code).returncode == -signal.SIGKILL
    assert len([path for path in artifacts.iterdir() if not path.name.startswith(".")]) == 2
    Tracker(Tracking(f"sqlite:///{another}", artifacts=str(artifacts)))  # whose they are not
    assert len([path for path in artifacts.iterdir() if not path.name.startswith(".")]) == 2
    (orphan,) = find_orphaned_artifacts(tracking)
    waiting = waiting_results(RunFiles(Path("mlruns")))
    assert [each.results for each in waiting] == [1]
    assert main(["cache"]) == 0
    said = capsys.readouterr().out
    assert f"{waiting[0].folder}: 1 result waits to be logged" in said
    assert f"{artifacts}: 1 folder without a run, removed when the next evaluation or sweep starts" in said
    Tracker(tracking)
    assert not orphan.exists()
    assert [path.name for path in artifacts.iterdir() if not path.name.startswith(".")] == ["of another database"]
    assert not list((artifacts / ".unlogged").iterdir())


@pytest.mark.usefixtures("warm_workers")
@pytest.mark.parametrize("more", ["sweep.resume=true", "sweep.resume=false", "sweep.race=true"])
def test_a_combination_that_crashes_the_process_costs_itself_alone(
    more: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It ends the process once: the next starts leave it for last, in a process of its own."""
    (here / "conf" / "retriever").mkdir(parents=True)
    (here / "conf" / "retriever" / "unruly.yaml").write_text("_target_: tests.unruly.Unruly\nnumber: 0\ndoes: search\n")
    sweep = ["--config-dir=conf", "-m", "plugins=[tests]", "retriever=unruly", INLINE, more]
    sweep.append("retriever.does=exit,search")
    assert run_command(sweep, here).returncode == 3
    for _ in range(2):
        assert main(sweep) == 1
        said = capsys.readouterr()
        assert "1 failed" in said.out
        assert "the worker died" in said.out
    assert list(_finished(here).values()) == [2 if more == "sweep.resume=false" else 1]
    assert "the last start died at" not in said.err, "it is known"
    assert not list((here / "mlruns" / "sweeps").glob("*.under-way"))


def test_a_sweep_goes_on_where_no_disk_takes_its_results(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("runner.tracking.unlogged.Unlogged.keep", _refuse)
    assert main([*SWEEP, INLINE]) == 0
    assert "results cannot be saved before they are logged" in capsys.readouterr().err
    assert list(_finished(here).values()) == [1] * 4


def test_where_no_disk_takes_results_they_are_logged_before_they_are_reported(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []

    def watched(self: sweep_run.SweepRun, *arguments: Any) -> Any:
        for answer in evaluate(self, *arguments):
            calls.append("report")
            yield answer

    def log(self: BackgroundTracker, entry: Any) -> None:
        calls.append("log")
        originals[0](self, entry)

    def flush(self: BackgroundTracker) -> None:
        calls.append("flush")
        originals[1](self)

    evaluate, originals = sweep_run.SweepRun.evaluate, (BackgroundTracker.log, BackgroundTracker.flush)
    monkeypatch.setattr("runner.tracking.unlogged.Unlogged.keep", _refuse)
    monkeypatch.setattr(sweep_run.SweepRun, "evaluate", watched)
    monkeypatch.setattr(BackgroundTracker, "log", log)
    monkeypatch.setattr(BackgroundTracker, "flush", flush)
    assert main([*SWEEP, INLINE]) == 0
    assert calls[:12] == ["log", "flush", "report"] * 4


def test_results_refused_by_disk_and_store_are_logged_at_the_end_or_keep_it_open(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, away = Tracker.log, iter((True,))

    def log_unless_away(self: Tracker, *arguments: Any) -> Any:
        return _refuse() if next(away, False) else log(self, *arguments)

    monkeypatch.setattr("runner.tracking.unlogged.Unlogged.keep", _refuse)
    with monkeypatch.context() as patch:
        patch.setattr(Tracker, "log", _refuse)
        assert main([*SWEEP, INLINE]) == 1
    monkeypatch.setattr(Tracker, "log", log_unless_away)
    assert main([*SWEEP, INLINE]) == 0
    assert list(_finished(here).values()) == [1] * 4


def test_a_damaged_file_of_another_set_of_values_is_removed(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Tracker, "log", _refuse)
        assert main([*SWEEP, INLINE, "sweep.name=it"]) == 1
    (damaged, *_) = _waiting(here)
    os.truncate(damaged.file, 100)
    assert main([*SWEEP[:2], "retriever.k1=0.6", "retriever.b=0.5", INLINE, "sweep.name=it"]) == 0
    assert f"{damaged.file.name}: removed, because the result is damaged" in capsys.readouterr().err
    assert list(_finished(here).values()) == [1] * 4
    assert not _waiting(here)


def test_fresh_sweeps_that_died_leave_one_result_of_each_combination(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Tracker, "log", _refuse)
        for number in range(2):
            assert main([*SWEEP, INLINE, "sweep.resume=false"]) == 1
            assert capsys.readouterr().out.endswith("run the same command without sweep.resume=false to log them\n")
            (left,) = (here / "mlruns" / "unlogged").glob(f"*{os.getpid()}.*")  # whose process is still there
            left.rename(str(left).replace(f".{os.getpid()}.", f".{2**31 - 1 - number}."))  # and now is not
    assert len(_waiting(here)) == 8
    monkeypatch.setattr(Bench, "measure", _refuse)
    assert main([*SWEEP, INLINE]) == 0
    assert list(_finished(here).values()) == [1] * 4
    assert not _waiting(here)


def test_a_service_is_queried_again_and_its_earlier_result_is_logged_too(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The earlier process was killed after the run was in the database, before the file was removed."""
    (here / "conf" / "retriever").mkdir(parents=True)
    (here / "conf" / "retriever" / "service.yaml").write_text("_target_: tests.unruly.Service\nnumber: 0\n")
    sweep = ["--config-dir=conf", "-m", "plugins=[tests]", "retriever=service", INLINE, "retriever.number=0,1"]
    for expected in ([1, 1], [2, 2], [3, 3]):
        with monkeypatch.context() as patch:
            patch.setattr(Waiting, "remove", lambda self: None)
            main(sweep)
        assert list(_finished(here).values()) == expected
    with monkeypatch.context() as patch:
        patch.setattr(Tracker, "log", _refuse)
        main(sweep)
    assert main(sweep) == 0
    assert list(_finished(here).values()) == [5, 5]
    assert not _waiting(here)


def test_what_another_set_of_values_left_is_logged_too(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Tracker, "log", _refuse)
        assert main([*SWEEP, INLINE, "sweep.name=it"]) == 1
    assert main([*SWEEP[:2], "retriever.k1=0.6", "retriever.b=0.5", INLINE, "sweep.name=it"]) == 0
    assert list(_finished(here).values()) == [1] * 5
    assert not _waiting(here)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_signal_ends_a_sweep_as_ctrl_c_does(
    name: str, here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    number = getattr(signal, name)
    before, calls, attempt = signal.signal(number, signal.SIG_DFL), iter((False, True)), workers.attempt

    def hangs_up(bench: Bench, experiment: Experiment) -> workers.Answer:
        if next(calls):
            signal.raise_signal(number)
        return attempt(bench, experiment)

    monkeypatch.setattr(workers, "attempt", hangs_up)
    try:
        assert main([*SWEEP, INLINE]) == 130
    finally:
        signal.signal(number, before)
    assert "stopped after 1 of 4" in capsys.readouterr().out
    assert list(_finished(here).values()) == [1]


def test_a_sweep_that_was_begun_by_nohup_outlives_its_terminal(here: Path) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert main(["--version"]) == 0
        assert main(["retriever=bm25", INLINE, "metrics.k_values=[0]"]) == 2
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("setting", ["statistics.seed", "retriever.k1"])
def test_a_number_that_no_record_holds_is_refused_before_any_work(
    setting: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([f"{setting}=99999999999999999999", INLINE]) == 2
    said = capsys.readouterr().err
    assert f"{setting}: " in said
    assert len(said.splitlines()) == 1
    assert not (here / "mlruns" / "cache").exists()


def test_a_console_that_lacks_a_character_costs_nothing(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name, out = "Zürich – Größe", io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", out)
    assert main([*SWEEP[:3], INLINE, f"sweep.output='{name}'"]) == 0
    out.flush()
    assert rb"Z\xfcrich" in out.buffer.getvalue()  # type: ignore[attr-defined]  # of bytes
    assert list(_finished(here).values()) == [1] * 2


def test_a_terminal_that_is_closed_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    controller, terminal = os.openpty()
    with os.fdopen(terminal, "w") as stream:
        os.close(controller)
        monkeypatch.setattr(sys, "stdout", stream)
        console.line("nobody reads this")
        console.line("nor this")


def test_an_unlogged_evaluation_is_saved_and_logged_by_the_same_command(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with closing(sqlite3.connect(here / "mlruns" / "mlflow.db", isolation_level=None)) as database:
        database.execute("create trigger no before insert on runs begin select raise(abort, 'read only'); end")
        assert main(["retriever=bm25", INLINE]) == 1
        said = capsys.readouterr()
        assert "nDCG@10" in said.out
        file = re.search(r"the result is saved in (\S+); run the same command to log it", said.err)
        assert file
        assert Path(file[1]).is_file()
        database.execute("drop trigger no")
    monkeypatch.setattr(Bench, "measure", _refuse)
    assert main(["retriever=bm25", INLINE]) == 0
    assert "already evaluated; logging the result saved" in capsys.readouterr().err
    assert _rows(here, "select name, status from runs") == [("bm25", "FINISHED")]
    assert not list((here / "mlruns" / "unlogged").glob("*"))


def test_mlflows_variables_decide_where_runs_go_unless_the_user_does(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{here}/mlruns/mlflow.db")
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "theirs")
    assert Tracking() == Tracking(f"sqlite:///{here}/mlruns/mlflow.db", "theirs")
    assert Tracking("sqlite:///mine.db", "mine").uri == "sqlite:///mine.db"
    monkeypatch.chdir(_elsewhere(here))
    assert main(["retriever=bm25", INLINE]) == 0
    assert f"logged to sqlite:///{here}/mlruns/mlflow.db, experiment theirs (from MLFLOW_TR" in capsys.readouterr().out
    assert _rows(here, "select e.name from runs join experiments e using (experiment_id)") == [("theirs",)]
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "file:///somewhere")
    assert main(["retriever=bm25", INLINE]) == 2
    assert "MLFLOW_TRACKING_URI is not the address of a store" in capsys.readouterr().err


def _elsewhere(folder: Path) -> Path:
    """Return an empty folder beside others."""
    (folder / "elsewhere").mkdir()
    return folder / "elsewhere"
