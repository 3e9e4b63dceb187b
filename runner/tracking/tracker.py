"""An open store of runs: a single evaluation is one run; a sweep is a parent run with its combinations as children."""

from __future__ import annotations

import getpass
import logging
import os
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import yaml
from filelock import FileLock

from runner.config.objects import ConfigError
from runner.config.values import public
from runner.result import Result, save, write_trec
from runner.tracking.record import allowed, axes_of, dataset_of, metrics_of, now, tags_of
from runner.tracking.settings import Tracking

if TYPE_CHECKING:
    from mlflow.entities import Metric, Run
    from mlflow.tracking import MlflowClient

_Dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # not every build of PyYAML has the quick one
_LARGEST_BATCH, _MOST_PARAMETERS = 1000, 100  # of one call, MLflow's own limits
_LONGEST_PARAMETER, _LONGEST_TAG = 6000, 5000
_OPENING = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0", "MLFLOW_HTTP_REQUEST_TIMEOUT": "20", "PGCONNECT_TIMEOUT": "20"}
"""How long to wait for a store that may not be there; for one that was there, MLflow's own minutes are right."""


@dataclass(frozen=True)
class LoggedRun:
    """A run that was logged: its id, and the folder of its artifacts where that is on this machine."""

    id: str
    folder: Path | None

    def where(self, file: str) -> str:
        """Say where an artifact is."""
        return str(self.folder / file) if self.folder else f"{file} among the artifacts of run {self.id}"


class Tracker:
    """An open store of runs; raises `ConfigError` where it cannot be opened.

    Between `start_sweep` and `finish_sweep` what is logged becomes part of the sweep.
    """

    def __init__(self, tracking: Tracking) -> None:
        self.tracking = tracking
        self.uri = tracking.absolute_uri()
        self._sweep: Run | None = None
        self._client, self.experiment = _open(tracking, self.uri)

    def log_result(self, result: Result, parameters: Mapping[str, str], reports: Mapping[str, str]) -> LoggedRun:
        """Log a finished evaluation as one run."""
        started = now() - int(result.timings.wall_s * 1000)
        run = self._create(result.name, started, tags_of(result))
        self._client.log_inputs(run.info.run_id, [dataset_of(result)])
        self._log(run, metrics_of(result), parameters)
        with self._artifacts(run) as folder:
            save(result, folder)
            config = yaml.dump(dict(result.config), Dumper=_Dumper, sort_keys=False, allow_unicode=True)
            _write(folder, {"config.yaml": config, **reports})
            if not self._sweep or self.tracking.trec:
                write_trec(result, folder / "rankings.trec.gz")
        return self._end(run, "FINISHED")

    def log_failure(self, name: str, parameters: Mapping[str, str], error: str, trace: str) -> LoggedRun:
        """Log an evaluation that raised as a FAILED run, with its traceback."""
        run = self._create(name, now(), {"kind": "evaluation", "error": error[:_LONGEST_TAG]})
        self._log(run, [], parameters)
        with self._artifacts(run) as folder:
            _write(folder, {"traceback.txt": trace})
        return self._end(run, "FAILED")

    def start_sweep(self, name: str, axes: Mapping[str, str], combinations: int) -> None:
        """Open the parent run of a sweep; its parameters are the axes with their values."""
        self._sweep = self._create(name, now(), {"kind": "sweep", "combinations": str(combinations)})
        self._log(self._sweep, [], axes_of(axes))

    def finish_sweep(self, best: Result | None, reports: Mapping[str, str], status: str) -> LoggedRun:
        """Close the sweep with its reports; its measures are those of its best combination."""
        if self._sweep is None:
            raise RuntimeError("no sweep was started")
        run, self._sweep = self._sweep, None
        if best is not None:
            self._log(run, metrics_of(best), {})
            self._client.log_inputs(run.info.run_id, [dataset_of(best)])
            self._client.set_tag(run.info.run_id, "best", best.name)
        with self._artifacts(run) as folder:
            _write(folder, reports)
        return self._end(run, status)

    def _create(self, name: str, started: int, tags: Mapping[str, str]) -> Run:
        from mlflow.utils.mlflow_tags import MLFLOW_PARENT_RUN_ID, MLFLOW_SOURCE_NAME, MLFLOW_USER

        # No MLFLOW_SOURCE_TYPE: the UI then shows the name alone.
        own = {MLFLOW_USER: _user(), MLFLOW_SOURCE_NAME: "retrieval-runner"}
        if self._sweep is not None:
            own |= {MLFLOW_PARENT_RUN_ID: self._sweep.info.run_id, "sweep": self._sweep.info.run_id}
        return self._client.create_run(self.experiment, start_time=started, tags={**own, **tags}, run_name=name)

    def _log(self, run: Run, metrics: Sequence[Metric], parameters: Mapping[str, str]) -> None:
        from mlflow.entities import Param

        run_id = run.info.run_id
        params = [Param(allowed(key), value[:_LONGEST_PARAMETER]) for key, value in parameters.items() if value != ""]
        first, rest = metrics[: _LARGEST_BATCH - len(params)], metrics[_LARGEST_BATCH - len(params) :]
        self._client.log_batch(run_id, first, params[:_MOST_PARAMETERS])
        for begin in range(_MOST_PARAMETERS, len(params), _MOST_PARAMETERS):
            self._client.log_batch(run_id, params=params[begin : begin + _MOST_PARAMETERS])
        for begin in range(0, len(rest), _LARGEST_BATCH):
            self._client.log_batch(run_id, rest[begin : begin + _LARGEST_BATCH])

    @contextmanager
    def _artifacts(self, run: Run) -> Iterator[Path]:
        """Give a folder whose files become a run's artifacts: the run's own where that is on this machine."""
        folder = _local_path(run.info.artifact_uri)
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            yield folder
            return
        with tempfile.TemporaryDirectory() as temporary:
            yield Path(temporary)
            self._client.log_artifacts(run.info.run_id, temporary)

    def _end(self, run: Run, status: str) -> LoggedRun:
        self._client.set_terminated(run.info.run_id, status)
        return LoggedRun(str(run.info.run_id), _local_path(run.info.artifact_uri))


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        return "unknown"


def _open(tracking: Tracking, uri: str) -> tuple[MlflowClient, str]:
    for name in ("MLFLOW_DISABLE_TELEMETRY", "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT"):
        os.environ.setdefault(name, "true")
    logging.getLogger("mlflow").setLevel(logging.WARNING)
    logging.getLogger("alembic").setLevel(logging.WARNING)
    with told(tracking, "cannot be opened"):
        if uri.startswith("sqlite:///"):
            _write_ahead()
            database = Path(uri.removeprefix("sqlite:///"))
            database.parent.mkdir(parents=True, exist_ok=True)
            # Several processes that migrate a new database at once collide.
            with FileLock(database.with_suffix(".lock")):
                return _client(tracking, uri)
        with _quickly():
            if not tracking.is_server():
                _connect(uri)
            return _client(tracking, uri)


def _client(tracking: Tracking, uri: str) -> tuple[MlflowClient, str]:
    from mlflow.tracking import MlflowClient

    client, name = MlflowClient(uri), tracking.experiment
    experiment = client.get_experiment_by_name(name)
    if experiment is None:
        # The kind opens MLflow's UI on the table of runs, not on traces of an application.
        tags = {"mlflow.experimentKind": "custom_model_development"}
        return client, client.create_experiment(name, artifact_location=tracking.artifact_location(), tags=tags)
    if experiment.lifecycle_stage == "deleted":
        raise ConfigError(f"tracking.experiment={name}: was deleted; restore it in MLflow, or choose another name")
    return client, experiment.experiment_id


def _connect(uri: str) -> None:
    """Connect to a database once; MLflow would try ten times, with a warning each."""
    from mlflow.store.db.utils import create_sqlalchemy_engine
    from sqlalchemy.exc import ArgumentError

    try:
        engine = create_sqlalchemy_engine(uri)  # type: ignore[no-untyped-call]
    except ValueError as error:
        raise ArgumentError(f"not an address: {error}") from error
    try:
        engine.connect().close()
    finally:
        engine.dispose()


@contextmanager
def _quickly() -> Iterator[None]:
    """Wait for seconds where MLflow waits for minutes, unless the user said how long."""
    ours = {name: value for name, value in _OPENING.items() if name not in os.environ}
    os.environ.update(ours)
    try:
        yield
    finally:
        for name in ours:
            del os.environ[name]


@contextmanager
def told(tracking: Tracking, what: str) -> Iterator[None]:
    """Raise what goes wrong with a store as a `ConfigError`: one line without the password of its address."""
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (MlflowException, SQLAlchemyError, ImportError, OSError) as error:
        said = f"tracking.uri={tracking.uri}: {what} ({_reason(error)})"
        raise ConfigError(public({"said": said})["said"]) from error


def _reason(error: BaseException) -> str:
    """Return why, briefly: of the errors that libraries wrap one another's in, the network's or the disk's own."""
    reason, inner = error, error.__cause__ or error.__context__
    while inner is not None:
        reason = inner if isinstance(inner, OSError) else reason
        inner = inner.__cause__ or inner.__context__
    way_out = "; install the driver of this database" if isinstance(error, ModuleNotFoundError) else ""
    return " ".join(str(reason).partition("(Background on")[0].split())[:300] + way_out


@cache
def _write_ahead() -> None:
    """Have SQLite write ahead: commits cost half, readers do not wait, and a crash still leaves a sound database."""
    from sqlalchemy import event
    from sqlalchemy.engine import Engine

    def set_up(connection: object, _record: object) -> None:
        if isinstance(connection, sqlite3.Connection):
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")

    event.listen(Engine, "connect", set_up)


def _local_path(uri: str) -> Path | None:
    parts = urlsplit(uri)
    if parts.scheme in ("", "file"):
        return Path(unquote(parts.path))
    return None


def _write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (folder / name).write_text(text)
