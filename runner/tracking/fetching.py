"""Runs that were logged, found by how their ids begin, and their records read back.

A SQLite store is read without loading MLflow, which takes seconds. It writes nothing.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from runner.config.objects import ConfigError
from runner.records import load_record
from runner.result import Result, ResultError
from runner.tracking.database import read_sqlite
from runner.tracking.logged import local_path
from runner.tracking.opening import explain_errors, open_store
from runner.tracking.record import REUSED, link_key
from runner.tracking.settings import Tracking

if TYPE_CHECKING:
    from mlflow.tracking import MlflowClient

_RUN = """
select r.run_uuid, r.name, r.status, coalesce(k.value, ''), coalesce(b.value, ''), coalesce(i.value, ''), r.artifact_uri
from runs r
left join tags k on k.run_uuid = r.run_uuid and k.key = 'kind'
left join tags b on b.run_uuid = r.run_uuid and b.key = 'best'
left join tags i on i.run_uuid = r.run_uuid and i.key = 'best_run'
left join tags p on p.run_uuid = r.run_uuid and p.key = 'mlflow.parentRunId'
where r.lifecycle_stage = 'active' and """

_LIKE = _RUN + "r.run_uuid like :wanted || '%' order by r.start_time"
_LINKED = "exists (select 1 from tags l where l.run_uuid = r.run_uuid and l.key = 'sweep/' || :wanted)"  # `link_key`
_OF_SWEEP = _RUN + "(p.value = :wanted or " + _LINKED + ") and r.status = 'FINISHED' order by r.start_time"

_MOST_RUNS = 50_000  # what a server returns at once

RECORD = ("result.json", "per_query.parquet", "rankings.parquet", "grades.parquet")


@dataclass(frozen=True)
class Run:
    """A run that was logged: its kind ("evaluation", "sweep"), and of a sweep its best combination, by name and id."""

    id: str
    name: str
    status: str
    kind: str
    best: str
    best_run: str
    artifacts: str


class Runs:
    """The runs of a store; raises `ConfigError` where it can't be read."""

    def __init__(self, tracking: Tracking) -> None:
        self.tracking = tracking

    def like(self, beginning: str) -> list[Run]:
        """Return the runs whose ids begin so; the beginning has hexadecimal digits only."""
        return self._search(_LIKE, beginning, f"attributes.run_id LIKE '{beginning}%'")

    def of_sweep(self, parent: Run) -> list[Run]:
        """Return the finished combinations of a sweep, its own and those that it reuses."""
        own = f"tags.`mlflow.parentRunId` = '{parent.id}'"
        reused = f"tags.`{link_key(parent.id)}` = '{REUSED}'"
        return self._search(
            _OF_SWEEP, parent.id, *(f"{tag} and attributes.status = 'FINISHED'" for tag in (own, reused))
        )

    def record(self, run: Run) -> Result:
        """Return a run's record with its rankings; raises `ResultError`."""
        folder = local_path(run.artifacts)
        if folder is not None:
            return load_record(folder)
        with tempfile.TemporaryDirectory() as copy, explain_errors(self.tracking, f"run {run.id} cannot be fetched"):
            client, _ = self._opened
            kept = {item.path for item in client.list_artifacts(run.id)}
            if "result.json" not in kept:
                raise ResultError(f"run {run.id} has no record of an evaluation among its artifacts")
            for name in kept.intersection(RECORD):
                client.download_artifacts(run.id, name, copy)
            return load_record(Path(copy))

    def _search(self, query: str, wanted: str, *searches: str) -> list[Run]:
        if self.tracking.uri.startswith("sqlite:"):
            file = Path(self.tracking.absolute_uri().removeprefix("sqlite:///").partition("?")[0])
            try:
                return [Run(*row) for row in read_sqlite(file)(query, {"wanted": wanted})]
            except sqlite3.Error as error:
                raise ConfigError(f"tracking.uri={self.tracking.uri}: cannot be read ({error})") from error
        client, experiment = self._opened
        with explain_errors(self.tracking, "cannot be searched"):
            pages = [
                run for search in searches for run in client.search_runs([experiment], search, max_results=_MOST_RUNS)
            ]
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
    def _opened(self) -> tuple[MlflowClient, str]:
        return open_store(self.tracking, self.tracking.absolute_uri())


def format_runs(runs: Sequence[Run], most: int = 10) -> str:
    """Return runs by id and name, as the end of a message."""
    listed = [f"{run.id[:8]} ({run.name})" for run in runs[:most]]
    return ", ".join(listed) + (f" and {len(runs) - most:,} more" if len(runs) > most else "")
