"""What every tracking store promises: a SQLite file, another database, an MLflow server, and none at all.

`client` is a SQLite file whose tables were not tested, so that MLflow's client writes to it.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import uuid
from dataclasses import replace
from pathlib import Path

import pytest
from mlflow.tracking import MlflowClient

from runner.config.objects import ConfigError
from runner.evaluation.records import load_record
from runner.system.processes import holder
from runner.tracking.client import ClientStore
from runner.tracking.fetching import Runs
from runner.tracking.logged import LoggedRun, State, Sweep, this_time
from runner.tracking.record import USER, Failed, Finished, RunRecord
from runner.tracking.revisions import TESTED, find_installed_revision
from runner.tracking.settings import OFF, Tracking
from runner.tracking.store import RunStore, choose_store
from runner.tracking.tracker import Tracker
from runner.tracking.unlogged import Unlogged
from tests.pages.factory import result as make_result

pytestmark = pytest.mark.usefixtures("starting")  # the MLflow server starts while the first tests run

KEEPING = ("sqlite", "client", "postgresql", "server")
"""The stores whose runs are there after the process has ended."""

kept = pytest.mark.parametrize("tracking", KEEPING, indirect=True)


@pytest.fixture(params=[*KEEPING, OFF])
def tracking(request: pytest.FixtureRequest, tracking: Tracking, monkeypatch: pytest.MonkeyPatch) -> Tracking:
    """Return the settings of an empty store."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    if request.param == "client":
        monkeypatch.delitem(TESTED, find_installed_revision())
    if request.param in ("sqlite", "client"):
        return tracking
    uri = OFF if request.param == OFF else request.getfixturevalue(request.param)
    return replace(tracking, uri=uri, experiment=uuid.uuid4().hex)


@pytest.fixture
def store(tracking: Tracking) -> RunStore:
    """Return the open store."""
    store = choose_store(tracking)
    store.open()
    return store


def finished(name: str = "a", started: int = 1000, **tags: str) -> RunRecord:
    """Return an evaluation to log."""
    record = Finished(make_result(name), {"k1": "1"}, {"report.md": name}, {USER: "u", **tags}).record
    return replace(record, started=started, ended=started + 10)


def test_a_store_that_is_slower_since_its_tables_were_not_tested_says_so(
    store: RunStore, tracking: Tracking, request: pytest.FixtureRequest
) -> None:
    by_client = "[client]" in request.node.name
    assert isinstance(store, ClientStore) == (by_client or tracking.is_server())
    slower = f"tracking.uri={tracking.uri}: logged through MLflow's client, which is slower: the tables of MLflow "
    assert store.relocate().startswith(slower) == by_client


@kept
def test_finished_runs_are_listed_by_their_kind(store: RunStore, tracking: Tracking) -> None:
    list(store.log([("", finished(kind="window")), ("", finished())]))
    list(store.log([("", finished("b", 2000, kind="window"))]))
    assert [run.name for run in Runs(tracking).list_kind("window")] == ["a", "b"]


def test_runs_outlive_their_store_if_it_says_so(store: RunStore, tracking: Tracking) -> None:
    (run,) = store.log([("", finished())])
    assert [found.id for found in store.find_runs(run.id[:8])] == [run.id]
    other = Runs(tracking)
    if store.keeps_runs:
        assert [(found.id, found.status, found.kind) for found in other.like(run.id[:8])] == [
            (run.id, "FINISHED", "evaluation")
        ]
        assert other.like("fff0" * 8) == []
    else:
        with pytest.raises(ConfigError, match="no runs are stored, so none can be read"):
            other.like(run.id[:8])


@kept
def test_a_run_is_read_with_its_files(store: RunStore, tracking: Tracking) -> None:
    (logged,) = store.log([("", finished())])
    store.add_files(logged.id, {"more.txt": "möre"})
    runs = Runs(tracking)
    (run,) = runs.list_ended()
    assert runs.list_files(run) == [
        "config.yaml", "more.txt", "per_query.parquet", "rankings.parquet", "rankings.trec.gz", "report.md",
        "result.json",
    ]  # fmt: skip
    assert runs.read_file(run, "more.txt") == "möre"
    assert runs.record(run).means == pytest.approx(dict(make_result().means), nan_ok=True)
    assert runs.record(run).hits is not None
    assert runs.record(run, rankings=False).hits is None


def test_if_a_run_cannot_be_logged_those_that_were_returned_before_are_there_alone(store: RunStore) -> None:
    broken = replace(finished("b"), dataset=("only a name",))  # type: ignore[arg-type]  # found after the run is created
    logged: list[str] = []
    with pytest.raises(Exception, match="not enough values"):
        logged.extend(run.id for run in store.log([("", finished("a")), ("", broken), ("", finished("c"))]))
    assert [run.id for run in store.list_runs(ended=True) if run.status == "FINISHED"] == logged


def test_a_logged_result_is_looked_up_by_its_id(store: RunStore) -> None:
    result = uuid.uuid4().hex
    first, second = store.log([(result, finished("a")), ("", finished("b"))])
    assert store.find_logged([result, uuid.uuid4().hex]) == {result: first}
    assert first.id != second.id


@pytest.mark.parametrize("again", [False, True])
def test_a_result_whose_file_was_not_removed_has_one_run(again: bool, tracking: Tracking, tmp_path: Path) -> None:
    """As if the process had been killed after it closed the run."""
    tracker, sweep = Tracker(tracking), Sweep("abc", "a sweep", {"k1": "1, 2"}, 2)
    unlogged = Unlogged(tmp_path / "unlogged")
    fresh = unlogged.keep("a combination", Finished(make_result("a"), {}, tags={"combination": "c"}))
    copy = shutil.copy(fresh.file, tmp_path / "copy")
    (first,) = tracker.log([fresh], sweep)
    shutil.move(copy, fresh.file)
    (left,) = unlogged.all()
    assert tracker.log([fresh if again else left], sweep, again) == [first]
    assert not unlogged.all()
    assert tracker.state("abc").finished == {"c": first}


def test_the_state_of_a_sweep_has_its_parent_and_finished_combinations(tracking: Tracking) -> None:
    tracker = Tracker(tracking)
    assert tracker.state("abc") == State()
    sweep = Sweep("abc", "a sweep", {}, 2, this_time())
    parent = tracker.start_sweep(sweep)
    done = Finished(make_result(), {}, tags={"combination": "1"})
    run, _ = tracker.log([done, Failed("k1=2", {}, "no luck", "", {"combination": "2"})], sweep)
    assert tracker.state("abc") == State(parent, "RUNNING", {"1": run})
    tracker.finish_sweep(sweep, None, {}, "FAILED")
    assert tracker.state("abc") == State(parent, "FAILED", {"1": run})
    assert tracker.state("abc", "another report") == State(finished={"1": run})
    assert tracker.state("another") == State()
    again = replace(sweep, run=parent, process=this_time())
    assert tracker.start_sweep(again) == tracker.start_sweep(again) == parent
    assert tracker.log([done], again, again=True) == []
    tracker.reject(run, "its record is damaged")
    assert tracker.state("abc").finished == {}


@kept
def test_a_sweep_is_read_by_another_process_without_deleted_runs(tracking: Tracking) -> None:
    tracker, sweep = Tracker(tracking), Sweep("abc", "a sweep", {}, 2, this_time())
    runs = tracker.log([Finished(make_result(), {}, tags={"combination": name}) for name in ("1", "2")], sweep)
    MlflowClient(tracking.uri).delete_run(runs[0].id)
    _, combinations = choose_store(tracking).read_sweep("abc")
    assert combinations == {"2": runs[1]}


@kept
def test_a_sweep_is_a_parent_with_its_combinations(tracking: Tracking) -> None:
    tracker = Tracker(tracking)
    sweep = Sweep("abc", "a sweep", {"k1": "1, 2"}, 2, this_time())
    entries = (
        Finished(make_result(), {"k1": "1"}, trec=False),
        Failed("k1=2", {"k1": "2"}, "RuntimeError: no luck", "tr"),
    )
    child, failed = (run.id for run in tracker.log(entries, sweep))
    parent = tracker.finish_sweep(sweep, make_result(), {"report.md": "x"}, "FAILED").id
    client = MlflowClient(tracking.uri)
    assert client.get_run(child).data.tags["mlflow.parentRunId"] == parent
    assert client.get_run(child).data.tags["sweep_id"] == "abc"
    assert "rankings.trec.gz" not in {item.path for item in client.list_artifacts(child)}
    assert client.get_run(failed).info.status == "FAILED"
    assert client.get_run(failed).data.tags["error"] == "RuntimeError: no luck"
    assert [item.path for item in client.list_artifacts(failed)] == ["traceback.txt"]
    assert client.get_run(parent).info.status == "FAILED"
    assert client.get_run(parent).data.tags["best"] == make_result().name


@kept
def test_starting_a_sweep_again_reuses_its_parent_run(tracking: Tracking) -> None:
    sweep = Sweep("abc", "a sweep", {}, 2, this_time())
    assert Tracker(tracking).start_sweep(sweep) == Tracker(tracking).start_sweep(sweep)


@kept
def test_runs_that_a_dead_process_left_open_are_marked(tracking: Tracking) -> None:
    tracker = Tracker(tracking)
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    gone = f"{holder().rpartition('.')[0]}.{ended.pid} 1"
    left = tracker.start_sweep(Sweep("abc", "left", {}, 1, gone))
    mine = tracker.start_sweep(Sweep("def", "mine", {}, 1, this_time()))
    elsewhere = tracker.start_sweep(Sweep("ghi", "elsewhere", {}, 1, "anothermachine.1 1"))
    assert tracker.recover() == 1
    client = MlflowClient(tracking.uri)
    statuses = [client.get_run(run.id).info.status for run in (left, mine, elsewhere)]
    assert statuses == ["KILLED", "RUNNING", "RUNNING"]
    assert client.get_run(left.id).data.tags["error"] == "the process ended without finishing the run"
    again = Sweep("abc", "left", {}, 1, this_time(), left)
    tracker.start_sweep(again)
    tracker.finish_sweep(again, None, {}, "FINISHED")
    whole = client.get_run(left.id)  # it went on to its end: nothing is wrong with it any more
    assert (whole.info.status, whole.data.tags.get("error")) == ("FINISHED", None)


def test_a_combination_is_linked_once_to_another_parent_and_never_to_its_own(store: RunStore) -> None:
    parents = [store.create_run(name, 1000, {USER: "u", "kind": "sweep", "sweep_id": "abc"}) for name in ("p", "q")]
    tags = {"sweep_id": "abc", "combination": "c", "mlflow.parentRunId": parents[0].id}
    combinations = [("", finished("b", 3000, **tags)), ("", finished("a", 2000, **tags))]
    late, early = (run.id for run in store.log(combinations))
    for parent in parents:
        for _ in range(2):
            store.link(parent.id, "abc", {early})
    assert combination_ids(store, parents[0]) == [early, late]
    assert combination_ids(store, parents[1]) == [early]
    assert store.list_combinations(parents[1].id, "FAILED") == []
    assert store.read_sweep("abc", parents[1].id)[1] == {}
    store.update_run(early, {f"sweep/{parents[1].id}": None})
    assert combination_ids(store, parents[1]) == []


def combination_ids(store: RunStore, parent: LoggedRun) -> list[str]:
    return [run.id for run in store.list_combinations(parent.id, "FINISHED")]


def test_runs_are_listed_latest_first_without_combinations(store: RunStore) -> None:
    running = store.create_run("sweep", 500, {USER: "u", "kind": "sweep", "best": "x"})
    child = finished("child", 1500, **{"mlflow.parentRunId": running.id})
    list(store.log([("", finished("old", 1000)), ("", child), ("", finished("new", 2000))]))
    assert [run.name for run in store.list_runs(ended=True)] == ["new", "old"]
    assert [run.name for run in store.list_runs(ended=False)] == ["new", "old", "sweep"]
    assert store.find_running() == []  # without the name of a process, nothing is known of it
    store.update_run(running.id, {"best": "y", "best_run": "1", "process": "p 1"})
    assert store.find_running() == [(running.id, "p 1")]
    store.update_run(running.id, {}, "FINISHED", 9000)
    ended = store.list_runs(ended=True)
    assert [run.name for run in ended] == ["sweep", "new", "old"]
    assert (ended[0].kind, ended[0].status, ended[0].best, ended[0].best_run) == ("sweep", "FINISHED", "y", "1")
    assert store.find_running() == []


@kept
def test_the_value_of_a_metric_is_that_of_its_last_step(store: RunStore, tracking: Tracking) -> None:
    run, dataset = store.create_run("sweep", 500, {USER: "u"}), ("d", "1", "{}", "{}", "test")
    for metrics in ([("a", 1.0, 5), ("b", 1.0, 1)], [("a", 2.0, 3), ("b", 2.0, 1)]):
        store.add_metrics(run.id, metrics, dataset)
    logged = MlflowClient(tracking.uri).get_run(run.id)
    assert logged.data.metrics == {"a": 1.0, "b": 2.0}
    assert [inputs.dataset.name for inputs in logged.inputs.dataset_inputs] == ["d"]


def test_no_folder_is_left_that_belongs_to_no_run(store: RunStore) -> None:
    (run,) = store.log([("", finished())])
    assert store.find_orphans() == []
    assert run.folder is None or load_record(run.folder).name == "a"
