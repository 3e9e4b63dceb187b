"""The rows of runs in MLflow's tables, in SQL that does not depend on the kind of database.

Tests compare them with those that MLflow's client writes, column by column. MLflow's client logs a run in four
transactions, in about 40 ms; a process that is killed between them leaves an incomplete run. Here, many runs are logged
in one transaction, all or none, in a tenth of the time.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from runner.tracking.record import LONGEST_NAME, REUSED, USER, LoggedDataset, Point, RunRecord, TagChanges, link_key

NewRun = tuple[str, str, RunRecord]
"""The id of a run, the address of its artifacts, and its content."""

Rows = Sequence[Sequence[Any]]


class Session(Protocol):
    """A transaction on a database."""

    def read(self, query: str, named: Mapping[str, Any]) -> Rows:
        """Return the rows that a query selects."""
        ...

    def insert(self, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Add rows with the same columns to a table."""
        ...

    def change(self, statement: str, named: Mapping[str, Any]) -> None:
        """Execute a statement that changes rows."""
        ...


def insert_runs(session: Session, experiment: str, runs: Sequence[NewRun]) -> None:
    """Add runs to an experiment."""
    session.insert("runs", [_run(*run, experiment) for run in runs])
    session.insert("tags", [_row(i, key, value) for i, _, r in runs for key, value in _tags(r).items()])
    session.insert("params", [_row(i, key, v) for i, _, r in runs for key, v in r.parameters.items()])
    session.insert("metrics", [_metric(i, r.ended, *point) for i, _, r in runs for point in r.metrics])
    session.insert("latest_metrics", [_metric(i, r.ended, *p) for i, _, r in runs for p in _latest(r.metrics)])
    _insert_datasets(session, experiment, runs)


def insert_links(session: Session, parent: str, runs: Collection[str]) -> None:
    """Tag runs as combinations that a parent run reports, except its children and runs that already have the tag."""
    own = {"mlflow.parentRunId": parent, link_key(parent): REUSED}
    linked: set[str] = set()
    for key, value in own.items():
        query = "select t.run_uuid from tags t where t.key = :key and t.value = :value"
        linked |= {run for (run,) in session.read(query, {"key": key, "value": value})}
    session.insert("tags", [_row(run, link_key(parent), REUSED) for run in sorted({*runs} - linked)])


def insert_metrics(session: Session, run_id: str, metrics: Sequence[Point], moment: int) -> None:
    """Add metrics to a run; MLflow shows them instead of those with the same names, unless these have later steps."""
    session.insert("metrics", [_metric(run_id, moment, *point) for point in metrics])
    shown = "select m.key, m.step from latest_metrics m where m.run_uuid = :run"
    before = {key: step for key, step in session.read(shown, {"run": run_id})}
    latest = [point for point in _latest(metrics) if point[2] >= before.get(point[0], point[2])]
    for key in (point[0] for point in latest if point[0] in before):
        session.change(_DELETE_FROM.format("latest_metrics"), {"run": run_id, "key": key})
    session.insert("latest_metrics", [_metric(run_id, moment, *point) for point in latest])


def select_existing(ids: Sequence[str]) -> tuple[str, dict[str, str]]:
    """Return the query for those of these run ids that are in the database, and its parameters."""
    named = {f"id{position}": run for position, run in enumerate(ids)}
    wanted = ", ".join(f":{name}" for name in named)
    return f"select run_uuid from runs where run_uuid in ({wanted})", named  # noqa: S608 (own names)


def update_tags(session: Session, run_id: str, tags: TagChanges) -> None:
    """Set tags of a run, or remove those that are None."""
    for key in tags:
        session.change(_DELETE_FROM.format("tags"), {"run": run_id, "key": key})
    session.insert("tags", [_row(run_id, key, value) for key, value in tags.items() if value is not None])


def update_status(session: Session, run_id: str, status: str | None, ended: int | None) -> None:
    """Set the status of a run and the time of its end if they are not None."""
    change = "set status = coalesce(:status, status), end_time = coalesce(:ended, end_time)"
    session.change(f"update runs {change} where run_uuid = :run", {"status": status, "ended": ended, "run": run_id})


_DELETE_FROM = "delete from {0} where {0}.run_uuid = :run and {0}.key = :key"  # a bare `key` is a keyword of MySQL

ARTIFACTS_OF = "select r.artifact_uri from runs r where r.run_uuid = :run"
"""The address of the artifacts of a run."""

PARENTS = """
select r.run_uuid, r.artifact_uri, r.status, coalesce(p.value, ''), coalesce(i.value, '')
from runs r
join experiments e on e.experiment_id = r.experiment_id and e.name = :experiment
join tags s on s.run_uuid = r.run_uuid and s.key = 'sweep_id' and s.value = :sweep
join tags k on k.run_uuid = r.run_uuid and k.key = 'kind' and k.value = 'sweep'
left join tags p on p.run_uuid = r.run_uuid and p.key = 'process'
left join tags i on i.run_uuid = r.run_uuid and i.key = 'report_id'
where r.lifecycle_stage = 'active' order by r.start_time"""
"""The parent runs of the sweep :sweep: id, address of artifacts, status, process, report; oldest first."""

FINISHED = """
select c.value, r.run_uuid, r.artifact_uri
from runs r
join experiments e on e.experiment_id = r.experiment_id and e.name = :experiment
join tags s on s.run_uuid = r.run_uuid and s.key = 'sweep_id' and s.value = :sweep
join tags c on c.run_uuid = r.run_uuid and c.key = 'combination'
left join tags q on q.run_uuid = r.run_uuid and q.key = 'mlflow.parentRunId'
where r.lifecycle_stage = 'active' and r.status = 'FINISHED' and (:parent = '' or q.value = :parent)
order by r.start_time"""
"""The finished combinations of a sweep, or of its :parent if that is not "": identity, run id, address of artifacts."""

_SELECTED = """
select r.run_uuid, r.name, r.status, coalesce(k.value, ''), coalesce(b.value, ''), coalesce(i.value, ''),
coalesce(p.value, ''), r.artifact_uri
from runs r
left join tags k on k.run_uuid = r.run_uuid and k.key = 'kind'
left join tags b on b.run_uuid = r.run_uuid and b.key = 'best'
left join tags i on i.run_uuid = r.run_uuid and i.key = 'best_run'
left join tags p on p.run_uuid = r.run_uuid and p.key = 'mlflow.parentRunId'
where r.lifecycle_stage = 'active' and """

RUNNING = """
select r.run_uuid, t.value
from runs r
join tags t on t.run_uuid = r.run_uuid and t.key = 'process'
where r.status = 'RUNNING' and r.lifecycle_stage = 'active' and r.experiment_id = :experiment order by r.start_time"""
"""The runs of an experiment that are still running, with their processes."""

RUNS_LIKE = f"{_SELECTED} r.run_uuid like :pattern order by r.start_time"
"""The runs whose ids match a pattern: id, name, status, kind, best combination, its run, parent run, address of
artifacts."""

_LINKED = "exists (select 1 from tags l where l.run_uuid = r.run_uuid and l.key = :link)"
RUNS_OF_SWEEP = f"{_SELECTED} (p.value = :parent or {_LINKED}) and r.status = :status order by r.start_time"
"""The combinations with a :status that a parent run computed, or reports (`link_key`), in the same columns."""

_EXPERIMENT = "r.experiment_id in (select e.experiment_id from experiments e where e.name = :experiment)"
RUNS_OF_KIND = f"{_SELECTED} k.value = :kind and r.status = 'FINISHED' and {_EXPERIMENT} order by r.start_time"
"""The finished runs of an :experiment with a :kind, oldest first, in the same columns."""

_TOP_LEVEL = f"""{_SELECTED} p.value is null and k.value in ('evaluation', 'sweep')
and {_EXPERIMENT}"""
STARTED_RUNS = f"{_TOP_LEVEL} order by r.start_time desc, r.end_time desc"
"""The evaluations and sweeps of an :experiment, also those that are running, latest first, in the same columns."""

ENDED_RUNS = f"{_TOP_LEVEL} and r.end_time is not null order by r.end_time desc, r.start_time desc"
"""The evaluations and sweeps of an :experiment that have ended, by their end."""


def _run(run_id: str, artifacts: str, record: RunRecord, experiment: str) -> dict[str, Any]:
    return {
        "run_uuid": run_id,
        "name": record.name[:LONGEST_NAME],
        "source_type": "UNKNOWN",
        "source_name": "",
        "entry_point_name": "",
        "user_id": record.tags[USER],
        "status": record.status,
        "start_time": record.started,
        "end_time": record.ended,
        "source_version": "",
        "lifecycle_stage": "active",
        "artifact_uri": artifacts,
        "experiment_id": int(experiment),
        "deleted_time": None,
    }


def _tags(record: RunRecord) -> dict[str, str]:
    return {**record.tags, "mlflow.runName": record.name[:LONGEST_NAME]}


def _row(run_id: str, key: str, value: str) -> dict[str, Any]:
    return {"run_uuid": run_id, "key": key, "value": value}


def _metric(run_id: str, moment: int | None, key: str, value: float, step: int) -> dict[str, Any]:
    return {**_row(run_id, key, ""), "value": value, "timestamp": moment, "step": step, "is_nan": False}


def _latest(metrics: Sequence[Point]) -> list[Point]:
    """Return for each metric the point that MLflow shows: that of the last step."""
    latest: dict[str, Point] = {}
    for point in metrics:
        name, _, step = point
        if name not in latest or step > latest[name][2]:
            latest[name] = point
    return list(latest.values())


def _insert_datasets(session: Session, experiment: str, runs: Sequence[NewRun]) -> None:
    """Link runs to their datasets; each dataset is added to the experiment once."""
    known: dict[tuple[str, str], str] = {}
    for run_id, _, record in runs:
        if record.dataset is not None:
            insert_dataset(session, experiment, run_id, record.dataset, known)


def insert_dataset(
    session: Session, experiment: str, run_id: str, dataset: LoggedDataset, known: dict[tuple[str, str], str]
) -> None:
    """Link a run to its dataset, adding the dataset to the experiment if necessary; `known` caches ids of datasets."""
    name, digest, source, profile, split = dataset
    if (name, digest) not in known:
        query = "select d.dataset_uuid from datasets d where d.experiment_id = :experiment and d.name = :name "
        there = session.read(
            query + "and d.digest = :digest", {"experiment": int(experiment), "name": name, "digest": digest}
        )
        known[name, digest] = str(there[0][0]) if there else uuid.uuid4().hex
        if not there:
            row = {"dataset_uuid": known[name, digest], "experiment_id": int(experiment), "name": name}
            row |= {"digest": digest, "dataset_source_type": "local", "dataset_source": source}
            session.insert("datasets", [row | {"dataset_schema": None, "dataset_profile": profile}])
    ends = {"source_type": "DATASET", "source_id": known[name, digest]}
    ends |= {"destination_type": "RUN", "destination_id": run_id}
    linked = "select i.input_uuid from inputs i where i.source_id = :source_id and i.destination_id = :destination_id"
    if session.read(linked, {key: ends[key] for key in ("source_id", "destination_id")}):
        return
    link = uuid.uuid4().hex
    session.insert("inputs", [{"input_uuid": link, **ends, "step": 0}])
    session.insert("input_tags", [{"input_uuid": link, "name": "mlflow.data.context", "value": split}])
