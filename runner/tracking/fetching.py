"""Finds logged runs by the beginning of their ids, and reads their records. Nothing is written.

SQLite files are read without MLflow, which takes seconds to load.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from runner.config.objects import ConfigError
from runner.records import load_record
from runner.result import Result, ResultError
from runner.tracking.logged import local_path
from runner.tracking.mlflow_internals import ENDED_RUNS, RUNS_LIKE, RUNS_OF_SWEEP, STARTED_RUNS, read_sqlite
from runner.tracking.opening import explain_errors, open_client
from runner.tracking.record import REUSED, link_key
from runner.tracking.settings import Tracking

if TYPE_CHECKING:
    from mlflow.tracking import MlflowClient

_MOST_RUNS = 50_000  # in one reply of a server

RECORD = ("result.json", "per_query.parquet", "rankings.parquet", "grades.parquet")


@dataclass(frozen=True)
class Run:
    """A logged run. `kind` is "evaluation" or "sweep"; a sweep has the name and the run id of its best combination."""

    id: str
    name: str
    status: str
    kind: str
    best: str
    best_run: str
    artifacts: str


class Runs:
    """The runs of a tracking store; raises `ConfigError` if it cannot be read."""

    def __init__(self, tracking: Tracking) -> None:
        self.tracking = tracking

    def like(self, beginning: str) -> list[Run]:
        """Return the runs whose ids start with these hexadecimal digits."""
        return self._search(RUNS_LIKE, beginning, f"attributes.run_id LIKE '{beginning}%'")

    def of_sweep(self, parent: Run, status: Literal["FINISHED", "FAILED"] = "FINISHED") -> list[Run]:
        """Return the combinations of a sweep with a status, its own and reused ones."""
        own = f"tags.`mlflow.parentRunId` = '{parent.id}'"
        reused = f"tags.`{link_key(parent.id)}` = '{REUSED}'"
        return self._search(
            RUNS_OF_SWEEP,
            parent.id,
            *(f"{tag} and attributes.status = '{status}'" for tag in (own, reused)),
            status=status,
        )

    def list_ended(self) -> list[Run]:
        """Return the ended evaluations and sweeps of the experiment, latest first."""
        kinds = (f"tags.kind = '{kind}' and attributes.end_time > 0" for kind in ("evaluation", "sweep"))
        return self._search(ENDED_RUNS, self.tracking.experiment, *kinds, top_level=True)

    def list_started(self) -> list[Run]:
        """Return the evaluations and sweeps of the experiment, also those that are running, latest first."""
        kinds = (f"tags.kind = '{kind}'" for kind in ("evaluation", "sweep"))
        return self._search(STARTED_RUNS, self.tracking.experiment, *kinds, top_level=True)

    def record(self, run: Run, rankings: bool = True) -> Result:
        """Return the record of a run, with or without its rankings; raises `ResultError`."""
        folder = local_path(run.artifacts)
        if folder is not None:
            return load_record(folder, rankings)
        with tempfile.TemporaryDirectory() as copy, explain_errors(self.tracking, f"run {run.id} cannot be fetched"):
            client, _ = self._connection
            kept = {item.path for item in client.list_artifacts(run.id)}
            if "result.json" not in kept:
                raise ResultError(f"run {run.id} has no record of an evaluation in its artifacts")
            for name in kept.intersection(RECORD):
                client.download_artifacts(run.id, name, copy)
            return load_record(Path(copy), rankings)

    def list_files(self, run: Run) -> list[str]:
        """Return the names of the artifacts of a run; raises `ConfigError`."""
        folder = local_path(run.artifacts)
        if folder is not None:
            return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
        with explain_errors(self.tracking, f"run {run.id} cannot be fetched"):
            return sorted(item.path for item in self._connection[0].list_artifacts(run.id))

    def read_file(self, run: Run, name: str) -> str:
        """Return an artifact of a run as text; raises `ConfigError`."""
        folder = local_path(run.artifacts)
        if folder is not None:
            return (folder / name).read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as copy, explain_errors(self.tracking, f"run {run.id} cannot be fetched"):
            file = self._connection[0].download_artifacts(run.id, name, copy)
            return Path(file).read_text(encoding="utf-8")

    def _search(
        self, query: str, wanted: str, *searches: str, top_level: bool = False, status: str = "FINISHED"
    ) -> list[Run]:
        """Return the runs that an SQL query finds in a SQLite file, or else MLflow's searches.

        `status` is a parameter of the query. With `top_level`, MLflow's results are limited to runs without a parent,
        latest first, as the query does.
        """
        if (file := self.tracking.sqlite_file()) is not None:
            try:
                return [Run(*row) for row in read_sqlite(file)(query, {"wanted": wanted, "status": status})]
            except sqlite3.Error as error:
                raise ConfigError(f"tracking.uri={self.tracking.uri}: cannot be read ({error})") from error
        client, experiment = self._connection
        with explain_errors(self.tracking, "cannot be searched"):
            pages = [
                run for search in searches for run in client.search_runs([experiment], search, max_results=_MOST_RUNS)
            ]
        if top_level:
            pages = [run for run in pages if "mlflow.parentRunId" not in run.data.tags]
            by_start = query == STARTED_RUNS
            pages.sort(
                key=lambda run: (run.info.start_time if by_start else run.info.end_time, run.info.start_time),
                reverse=True,
            )
        return [
            Run(
                run.info.run_id,
                run.info.run_name,
                run.info.status,
                run.data.tags.get("kind", ""),
                run.data.tags.get("best", ""),
                run.data.tags.get("best_run", ""),
                run.info.artifact_uri,
            )
            for run in pages
        ]

    @cached_property
    def _connection(self) -> tuple[MlflowClient, str]:
        return open_client(self.tracking, self.tracking.absolute_uri())


def format_runs(runs: Sequence[Run], most: int = 10) -> str:
    """Return a list of runs by id and name, as the end of a message."""
    listed = [f"{run.id[:8]} ({run.name})" for run in runs[:most]]
    return ", ".join(listed) + (f" and {len(runs) - most:,} more" if len(runs) > most else "")
