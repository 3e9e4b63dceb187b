"""Logs to an open tracking store: an evaluation is a run; a sweep is a parent run with its combinations as children.

Runs are found by their tags: `sweep_id`, `report_id` (the identity of the report of a parent run), `combination` (the
identity of a combination) and, while they are running, `process`.
"""

from __future__ import annotations

import getpass
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from runner.evaluation.result import Result
from runner.system.processes import is_gone
from runner.tracking.fetching import fetch_record
from runner.tracking.logged import LoggedRun, State, Sweep, state_of
from runner.tracking.record import (
    LONGEST_NAME,
    LONGEST_TAG,
    USER,
    DatasetMade,
    Dropped,
    Failed,
    Finished,
    RunRecord,
    axes_of,
    dataset_of,
    metrics_of,
    now,
    points_of,
    sanitize_name,
)
from runner.tracking.settings import Tracking
from runner.tracking.store import choose_store
from runner.tracking.unlogged import Waiting

Entry = Finished | Failed | Dropped | DatasetMade | Waiting


class Tracker:
    """An open tracking store; raises `ConfigError` if it cannot be opened."""

    def __init__(self, tracking: Tracking) -> None:
        self._store = choose_store(tracking)
        self._store.open()
        self._parents: dict[str, LoggedRun] = {}

    def log(self, entries: Sequence[Entry], sweep: Sweep | None = None, again: bool = False) -> list[LoggedRun]:
        """Log finished evaluations, as combinations of a sweep if one is given, and new datasets.

        In a database, they become visible together and complete; on a server, one after the other. If an earlier
        attempt may have succeeded (`again`), runs that are already logged are left out. The file of a waiting result is
        removed once the result is logged; a file that cannot be read is skipped.
        """
        parent = None if sweep is None else self.start_sweep(sweep)
        if again and sweep is not None and parent is not None:
            _, done = self._store.read_sweep(sweep.id, parent.id)
            entries = [e for e in entries if isinstance(e, Waiting) or e.tags.get("combination") not in done]
        doubtful = [entry.run_id for entry in entries if isinstance(entry, Waiting) and (again or entry.attempted)]
        before = self._store.find_logged(doubtful)
        for entry in entries:
            if isinstance(entry, Waiting) and entry.run_id in before:
                entry.remove()
        read = _read([e for e in entries if not (isinstance(e, Waiting) and e.run_id in before)])
        new = [(waiting.run_id if waiting else "", _of_sweep(entry.record, sweep, parent)) for entry, waiting in read]
        logged = list(before.values())
        for (_, waiting), run in zip(read, self._store.log(new), strict=True):
            if waiting:
                waiting.remove()
            logged.append(run)
        return logged

    def state(self, sweep_id: str, report: str = "") -> State:
        """Return the state of a sweep, with the parent run of one of its reports."""
        return state_of(*self._store.read_sweep(sweep_id), report)

    def link(self, sweep: Sweep, runs: Collection[str]) -> None:
        """Tag combinations of another command as also reported by the parent run of this sweep."""
        self._store.link(self.start_sweep(sweep).id, sweep.id, runs)

    def result(self, run: LoggedRun, rankings: bool = False) -> Result:
        """Return the record of a run, with or without its rankings; raises `ResultError`."""
        return fetch_record(self._store, run, rankings)

    def has_file(self, run: LoggedRun, name: str) -> bool:
        """Return whether a run has an artifact at the top of its folder."""
        return name in self._store.list_files(run.id) if run.folder is None else (run.folder / name).is_file()

    def add_files(self, run: LoggedRun, files: Mapping[str, str]) -> None:
        """Add texts to the artifacts of a finished run."""
        self._store.add_files(run.id, files)

    def reject(self, run: LoggedRun, why: str) -> None:
        """Mark a finished run as failed, with the reason."""
        self._store.update_run(run.id, {"error": why[:LONGEST_TAG]}, "FAILED", now())

    def recover(self) -> int:
        """Mark the runs of dead processes of this machine as KILLED, and return their number."""
        left = [run for run, process in self._store.find_running() if is_gone(process.partition(" ")[0])]
        for run in left:
            self._store.update_run(run, {"error": "the process ended without finishing the run"}, "KILLED", now())
        return len(left)

    def start_sweep(self, sweep: Sweep) -> LoggedRun:
        """Open the parent run of a sweep, or create one, and return it; repeated calls return the same run."""
        if sweep.process in self._parents:
            return self._parents[sweep.process]
        tags = {"kind": "sweep", "sweep_id": sweep.id, "report_id": sweep.report, "process": sweep.process}
        tags |= {"combinations": str(sweep.combinations)} | axes_of(sweep.axes)
        tags = {sanitize_name(key): value[:LONGEST_TAG] for key, value in tags.items()}
        made = [parent for parent in self._store.read_sweep(sweep.id)[0] if parent.process == sweep.process]
        if sweep.run is not None:
            parent = sweep.run
            self._store.update_run(parent.id, {**tags, "error": None}, "RUNNING")  # the error of an earlier execution
        elif made:  # before a crash
            parent = made[-1].run
        else:
            own = {USER: _user(), "mlflow.source.name": "retrieval-runner"}
            parent = self._store.create_run(sweep.name[:LONGEST_NAME], now(), {**own, **tags})
        self._parents[sweep.process] = parent
        return parent

    def finish_sweep(
        self,
        sweep: Sweep,
        best: Result | None,
        reports: Mapping[str, str],
        status: str,
        tags: Mapping[str, str] | None = None,
        spending: Mapping[str, float] | None = None,
    ) -> LoggedRun:
        """Close a sweep with its reports and tags.

        The parent run has the metrics of the best combination, and the spending of all combinations.
        """
        parent = self.start_sweep(sweep)
        own = {sanitize_name(key): value[:LONGEST_TAG] for key, value in (tags or {}).items()}
        if best is not None:
            self._store.add_metrics(parent.id, [*metrics_of(best), *points_of(spending or {})], dataset_of(best))
            own = {"best": best.name, **own}
        self._store.add_files(parent.id, reports)
        self._store.update_run(parent.id, own, status, now())
        del self._parents[sweep.process]
        return parent


def _read(entries: Sequence[Entry]) -> list[tuple[Finished | Failed | Dropped | DatasetMade, Waiting | None]]:
    """Return the content of entries, each with its `Waiting` file or None; entries that cannot be read are left out."""
    read = [(entry.read() if isinstance(entry, Waiting) else entry, entry) for entry in entries]
    return [(content, entry if isinstance(entry, Waiting) else None) for content, entry in read if content is not None]


def _of_sweep(record: RunRecord, sweep: Sweep | None, parent: LoggedRun | None) -> RunRecord:
    # Without MLFLOW_SOURCE_TYPE, the UI shows only the name.
    tags = {USER: _user(), "mlflow.source.name": "retrieval-runner"}
    if sweep is not None and parent is not None:
        tags |= {"mlflow.parentRunId": parent.id, "sweep_id": sweep.id}
    return replace(record, tags={**tags, **record.tags})


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # in a container, the user may have no name
        return "unknown"
