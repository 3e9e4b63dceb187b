"""The private parts of MLflow that this program uses: its tables and the classes behind its client.

They may change in any release, so `TESTED_WITH` names the version they were tested with, and tests compare it with what
is installed and the rows written here with those of MLflow's client, column by column. After an upgrade, run
`tests/test_tracking*.py`, then update the version.

MLflow's client logs a run in four transactions and about 40 ms; a process that is killed between them leaves half a
run. Here many runs are logged in one transaction, all or none, in a tenth of the time.
"""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Callable, Collection, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.tracking.record import LONGEST_NAME, REUSED, RunRecord, link_key

if TYPE_CHECKING:
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore
    from mlflow.tracking import MlflowClient
    from sqlalchemy import Engine
    from sqlalchemy.orm import Session

TESTED_WITH = {"mlflow": "3.17.2"}

SQL_LOGGER = "mlflow.store.db.utils"
"""The logger that prints each error of a database before it is raised."""

_PATIENCE_S = 60  # how long to wait for a database that another program writes to

Run = tuple[str, str, RunRecord]
"""The id of a run, the address of its artifacts, and its content."""


def store_of(client: MlflowClient) -> SqlAlchemyStore:
    """Return the store of a client of a database."""
    store: SqlAlchemyStore = client._tracking_client.store
    return store


def upload_artifacts(uri: str, folder: str) -> None:
    """Copy the files of a folder to an address of artifacts."""
    from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

    get_artifact_repository(uri).log_artifacts(folder)  # type: ignore[no-untyped-call]  # MLflow has no types


def create_engine(uri: str) -> Engine:
    """Return an engine with MLflow's own settings of connections."""
    from mlflow.store.db.utils import create_sqlalchemy_engine

    engine: Engine = create_sqlalchemy_engine(uri)  # type: ignore[no-untyped-call]  # MLflow has no types
    return engine


def create_tables(engine: Engine) -> None:
    """Create MLflow's tables in an empty database."""
    from mlflow.store.db.utils import _initialize_tables

    _initialize_tables(engine)  # type: ignore[no-untyped-call]  # MLflow has no types


def insert_runs(store: SqlAlchemyStore, experiment: str, user: str, runs: Sequence[Run]) -> None:
    """Add finished runs to an experiment, all or none."""
    from mlflow.store.tracking.dbmodels import models

    with store.ManagedSessionMaker(read_only=False) as session:
        _insert(session, models.SqlRun, [_run(*run, experiment, user) for run in runs])
        _insert(session, models.SqlTag, [_row(i, key, value) for i, _, r in runs for key, value in _tags(r).items()])
        _insert(session, models.SqlParam, [_row(i, key, v) for i, _, r in runs for key, v in r.parameters.items()])
        _insert(session, models.SqlMetric, [_metric(i, r, *point) for i, _, r in runs for point in r.metrics])
        _insert(session, models.SqlLatestMetric, [_metric(i, r, *p) for i, _, r in runs for p in _latest(r)])
        _insert_datasets(session, experiment, runs)


def insert_links(store: SqlAlchemyStore, parent: str, runs: Collection[str]) -> None:
    """Tag runs as combinations that a parent run reports but did not compute, if they are not tagged yet."""
    from mlflow.store.tracking.dbmodels.models import SqlTag

    with store.ManagedSessionMaker(read_only=False) as session:
        own = {"mlflow.parentRunId": parent, link_key(parent): REUSED}
        linked: set[str] = set()
        for key, value in own.items():
            linked |= {run for (run,) in session.query(SqlTag.run_uuid).filter_by(key=key, value=value)}
        _insert(session, SqlTag, [_row(run, link_key(parent), REUSED) for run in sorted({*runs} - linked)])


def existing_runs(store: SqlAlchemyStore, ids: Sequence[str]) -> set[str]:
    """Return the ids that a database has runs of."""
    from mlflow.store.tracking.dbmodels.models import SqlRun

    if not ids:
        return set()
    with store.ManagedSessionMaker() as session:
        return {run_id for (run_id,) in session.query(SqlRun.run_uuid).filter(SqlRun.run_uuid.in_(ids))}


_PARENTS = """
select r.run_uuid, r.artifact_uri, r.status, p.value, i.value
from runs r
join experiments e on e.experiment_id = r.experiment_id and e.name = :experiment
join tags s on s.run_uuid = r.run_uuid and s.key = 'sweep_id' and s.value = :sweep
join tags k on k.run_uuid = r.run_uuid and k.key = 'kind' and k.value = 'sweep'
left join tags p on p.run_uuid = r.run_uuid and p.key = 'process'
left join tags i on i.run_uuid = r.run_uuid and i.key = 'report_id'
where r.lifecycle_stage = 'active' order by r.start_time"""

_FINISHED = """
select c.value, r.run_uuid, r.artifact_uri
from runs r
join experiments e on e.experiment_id = r.experiment_id and e.name = :experiment
join tags s on s.run_uuid = r.run_uuid and s.key = 'sweep_id' and s.value = :sweep
join tags c on c.run_uuid = r.run_uuid and c.key = 'combination'
left join tags q on q.run_uuid = r.run_uuid and q.key = 'mlflow.parentRunId'
where r.lifecycle_stage = 'active' and r.status = 'FINISHED' and (:parent = '' or q.value = :parent)
order by r.start_time"""

_SELECTED = """
select r.run_uuid, r.name, r.status, coalesce(k.value, ''), coalesce(b.value, ''), coalesce(i.value, ''), r.artifact_uri
from runs r
left join tags k on k.run_uuid = r.run_uuid and k.key = 'kind'
left join tags b on b.run_uuid = r.run_uuid and b.key = 'best'
left join tags i on i.run_uuid = r.run_uuid and i.key = 'best_run'
left join tags p on p.run_uuid = r.run_uuid and p.key = 'mlflow.parentRunId'
where r.lifecycle_stage = 'active' and """

RUNS_LIKE = f"{_SELECTED} r.run_uuid like :wanted || '%' order by r.start_time"
"""The runs whose ids begin with :wanted: id, name, status, kind, best combination, its run, address of artifacts."""

_LINKED = "exists (select 1 from tags l where l.run_uuid = r.run_uuid and l.key = 'sweep/' || :wanted)"  # `link_key`
RUNS_OF_SWEEP = f"{_SELECTED} (p.value = :wanted or {_LINKED}) and r.status = 'FINISHED' order by r.start_time"
"""The finished combinations that the parent run :wanted computed or reports, in the same columns."""

Rows = Sequence[Sequence[Any]]

Ask = Callable[[str, dict[str, str]], Rows]
"""A function that returns the rows of a query in SQL, given its parameters."""


def sweep_rows(ask: Ask, experiment: str, sweep_id: str, parent: str = "") -> tuple[Rows, Rows]:
    """Return the parent runs and the finished combinations of a sweep, or of one of its parent runs, oldest first.

    The columns of a parent run are id, address of artifacts, status, process, report; those of a combination are
    identity, run id, address of artifacts.
    """
    named = {"experiment": experiment, "sweep": sweep_id}
    return ask(_PARENTS, named), ask(_FINISHED, {**named, "parent": parent})


def read_sqlite(file: Path) -> Ask:
    """Return a function that queries a SQLite file without MLflow, which takes seconds to load.

    Without a database or tables there are no rows.
    """

    def ask(query: str, named: dict[str, str]) -> Rows:
        if not file.is_file():
            return []
        with closing(sqlite3.connect(file, timeout=_PATIENCE_S)) as database:
            try:
                return database.execute(query, named).fetchall()
            except sqlite3.OperationalError as error:
                if "no such table" in str(error):
                    return []
                raise

    return ask


def read_store(store: SqlAlchemyStore) -> Ask:
    """Return a function that queries a database that MLflow has open."""
    from sqlalchemy import text

    def ask(query: str, named: dict[str, str]) -> Rows:
        with store.ManagedSessionMaker() as session:
            return [tuple(row) for row in session.execute(text(query), named)]

    return ask


def _insert(session: Session, table: Any, rows: list[dict[str, Any]]) -> None:  # noqa: ANN401 (MLflow's have no type)
    if rows:
        session.execute(table.__table__.insert(), rows)


def _run(run_id: str, artifacts: str, record: RunRecord, experiment: str, user: str) -> dict[str, Any]:
    return {
        "run_uuid": run_id,
        "name": record.name[:LONGEST_NAME],
        "source_type": "UNKNOWN",
        "source_name": "",
        "entry_point_name": "",
        "user_id": user,
        "status": record.status,
        "start_time": record.started,
        "end_time": record.ended,
        "source_version": "",
        "lifecycle_stage": "active",
        "artifact_uri": artifacts,
        "experiment_id": int(experiment),
    }


def _tags(record: RunRecord) -> dict[str, str]:
    return {**record.tags, "mlflow.runName": record.name[:LONGEST_NAME]}


def _row(run_id: str, key: str, value: str) -> dict[str, Any]:
    return {"run_uuid": run_id, "key": key, "value": value}


def _metric(run_id: str, record: RunRecord, key: str, value: float, step: int) -> dict[str, Any]:
    return {**_row(run_id, key, ""), "value": value, "timestamp": record.ended, "step": step, "is_nan": False}


def _latest(record: RunRecord) -> list[tuple[str, float, int]]:
    """Return the point of each metric that MLflow shows, that of the last step."""
    latest: dict[str, tuple[str, float, int]] = {}
    for point in record.metrics:
        name, _, step = point
        if name not in latest or step > latest[name][2]:
            latest[name] = point
    return list(latest.values())


def _insert_datasets(session: Session, experiment: str, runs: Sequence[Run]) -> None:
    """Link runs to their datasets; an experiment has one row for each dataset."""
    from mlflow.store.tracking.dbmodels.models import SqlDataset, SqlInput, SqlInputTag

    known: dict[tuple[str, str], str] = {}
    for run_id, _, record in runs:
        if record.dataset is None:
            continue
        name, digest, source, profile, split = record.dataset
        if (name, digest) not in known:
            query = session.query(SqlDataset).filter_by(experiment_id=int(experiment), name=name, digest=digest)
            dataset = query.one_or_none()
            known[name, digest] = str(dataset.dataset_uuid) if dataset else uuid.uuid4().hex
            if not dataset:
                row = {"dataset_uuid": known[name, digest], "experiment_id": int(experiment), "name": name}
                row |= {"digest": digest, "dataset_source_type": "local", "dataset_source": source}
                _insert(session, SqlDataset, [row | {"dataset_schema": None, "dataset_profile": profile}])
        link = uuid.uuid4().hex
        ends = {"source_type": "DATASET", "source_id": known[name, digest]}
        ends |= {"destination_type": "RUN", "destination_id": run_id}
        _insert(session, SqlInput, [{"input_uuid": link, **ends}])
        _insert(session, SqlInputTag, [{"input_uuid": link, "name": "mlflow.data.context", "value": split}])
