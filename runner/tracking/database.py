"""Finished runs as rows of MLflow's own tables, many in one transaction.

MLflow's client makes a run in four calls, each a transaction, in about 40 ms; between them a run is half there, and
stays so if the process is killed. Here a run is in the database with all that it has, or not at all, in a tenth of the
time. The rows are those that the client makes, which a test compares, column by column. It knows nothing of results.
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
    from sqlalchemy.orm import Session

_PATIENCE_S = 60  # with a database that another program writes to

Run = tuple[str, str, RunRecord]
"""A run's id, the address of its artifacts, and what is logged of it."""


def insert_runs(store: SqlAlchemyStore, experiment: str, user: str, runs: Sequence[Run]) -> None:
    """Add runs that are over to an experiment, all or none of them."""
    from mlflow.store.tracking.dbmodels import models

    with store.ManagedSessionMaker(read_only=False) as session:
        _insert(session, models.SqlRun, [_run(*run, experiment, user) for run in runs])
        _insert(session, models.SqlTag, [_row(i, key, value) for i, _, r in runs for key, value in _tags(r).items()])
        _insert(session, models.SqlParam, [_row(i, key, v) for i, _, r in runs for key, v in r.parameters.items()])
        _insert(session, models.SqlMetric, [_metric(i, r, *point) for i, _, r in runs for point in r.metrics])
        _insert(session, models.SqlLatestMetric, [_metric(i, r, *p) for i, _, r in runs for p in _latest(r)])
        _insert_datasets(session, experiment, runs)


def insert_links(store: SqlAlchemyStore, parent: str, runs: Collection[str]) -> None:
    """Tag runs as combinations that a parent run reports without being their parent, those not tagged before."""
    from mlflow.store.tracking.dbmodels.models import SqlTag

    with store.ManagedSessionMaker(read_only=False) as session:
        own = {"mlflow.parentRunId": parent, link_key(parent): REUSED}
        linked: set[str] = set()
        for key, value in own.items():
            linked |= {run for (run,) in session.query(SqlTag.run_uuid).filter_by(key=key, value=value)}
        _insert(session, SqlTag, [_row(run, link_key(parent), REUSED) for run in sorted({*runs} - linked)])


def existing_runs(store: SqlAlchemyStore, ids: Sequence[str]) -> set[str]:
    """Return which of these ids are of runs that a database has."""
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

Rows = Sequence[Sequence[Any]]

Ask = Callable[[str, dict[str, str]], Rows]
"""What answers a query in SQL with rows."""


def sweep_rows(ask: Ask, experiment: str, sweep_id: str, parent: str = "") -> tuple[Rows, Rows]:
    """Return what a database has of a sweep, or of one parent run of it, the oldest first.

    These are its parent runs (id, address of the artifacts, status, process, report) and its finished combinations
    (identity, run id, address of the artifacts).
    """
    named = {"experiment": experiment, "sweep": sweep_id}
    return ask(_PARENTS, named), ask(_FINISHED, {**named, "parent": parent})


def read_sqlite(file: Path) -> Ask:
    """Return what answers queries from a SQLite file, without MLflow, which takes seconds to load.

    Where there is no database yet, or no tables, there are no rows.
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
    """Return what answers queries from any database that MLflow has open."""
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
    """Return of each metric the point that MLflow shows: the last step's."""
    latest: dict[str, tuple[str, float, int]] = {}
    for point in record.metrics:
        name, _, step = point
        if name not in latest or step > latest[name][2]:
            latest[name] = point
    return list(latest.values())


def _insert_datasets(session: Session, experiment: str, runs: Sequence[Run]) -> None:
    """Link runs to their datasets, which an experiment has once each."""
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
