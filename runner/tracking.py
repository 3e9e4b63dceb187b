"""The only door to MLflow: what a run is called there, what is logged of a result, and where it is kept.

A single evaluation is one run. A sweep is a parent run with its leaderboard and report, and a child run for each
combination. It makes no figure itself.
"""

from __future__ import annotations

import getpass
import json
import logging
import math
import re
import tempfile
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import yaml
from filelock import FileLock
from pydantic.dataclasses import dataclass as settings

from runner.config.objects import ConfigError
from runner.result import Result, save, write_trec

if TYPE_CHECKING:
    from mlflow.entities import DatasetInput, Metric, Run
    from mlflow.tracking import MlflowClient

_NAMES = {"RR": "mrr", "AP": "map"}
_LARGEST_BATCH = 1000  # metrics in one call, MLflow's own limit
_LONGEST_PARAMETER = 6000


@settings(frozen=True, config={"extra": "forbid"})
class Tracking:
    """Where runs are logged. `artifacts` is the folder of a local store; a server decides for itself.

    `trec` adds the rankings as a TREC run to every combination of a sweep, not to single runs only.
    """

    uri: str = "sqlite:///mlruns/mlflow.db"
    experiment: str = "retrieval"
    artifacts: str = "mlruns/artifacts"
    trec: bool = False

    def absolute_uri(self) -> str:
        """Return the address with a SQLite file's path made absolute, so that it holds in any working directory."""
        if not self.uri.startswith("sqlite:///") or self.uri.startswith("sqlite:////"):
            return self.uri
        return f"sqlite:///{Path(self.uri.removeprefix('sqlite:///')).resolve()}"


class Tracker:
    """An open store of runs; raises `ConfigError` where it cannot be opened."""

    def __init__(self, tracking: Tracking) -> None:
        self.tracking = tracking
        self.uri = tracking.absolute_uri()
        self._client, self._experiment = _open(tracking, self.uri)

    def log_result(
        self, result: Result, parameters: Mapping[str, str], reports: Mapping[str, str], sweep: str = ""
    ) -> str:
        """Log a finished evaluation as one run and return its id; in a sweep, `sweep` is the parent's id."""
        started = _now() - int(result.timings.wall_s * 1000)
        run = self._create(result.name, started, _result_tags(result) | _child_tags(sweep))
        run_id = str(run.info.run_id)
        self._client.log_inputs(run_id, [_dataset_input(result)])
        self._log(run_id, metrics_of(result), parameters)
        with self._artifacts(run) as folder:
            save(result, folder)
            (folder / "config.yaml").write_text(
                yaml.safe_dump(dict(result.config), sort_keys=False, allow_unicode=True)
            )
            if not sweep or self.tracking.trec:
                write_trec(result, folder / "rankings.trec.gz")
            for name, text in reports.items():
                (folder / name).write_text(text)
        self._client.set_terminated(run_id, "FINISHED")
        return run_id

    def log_failure(self, name: str, parameters: Mapping[str, str], error: BaseException, sweep: str = "") -> str:
        """Log an evaluation that raised as a FAILED run, with its traceback, and return its id."""
        run = self._create(name, _now(), {"error": f"{type(error).__name__}: {error}"[:5000]} | _child_tags(sweep))
        self._log(run.info.run_id, [], parameters)
        with self._artifacts(run) as folder:
            (folder / "traceback.txt").write_text("".join(traceback.format_exception(error)))
        self._client.set_terminated(run.info.run_id, "FAILED")
        return str(run.info.run_id)

    def start_sweep(self, name: str, axes: Mapping[str, str], combinations: int) -> str:
        """Open the parent run of a sweep and return its id; its parameters are the axes with their values."""
        run = self._create(name, _now(), {"kind": "sweep", "combinations": str(combinations)})
        self._log(run.info.run_id, [], axes)
        return str(run.info.run_id)

    def finish_sweep(self, run_id: str, best: Result | None, reports: Mapping[str, str], status: str) -> None:
        """Close a sweep with its reports; its measures are those of its best combination."""
        if best is not None:
            self._log(run_id, metrics_of(best), {})
            self._client.log_inputs(run_id, [_dataset_input(best)])
            self._client.set_tag(run_id, "best", best.name)
        with self._artifacts(self._client.get_run(run_id)) as folder:
            for name, text in reports.items():
                (folder / name).write_text(text)
        self._client.set_terminated(run_id, status)

    def artifacts_of(self, run_id: str) -> Path | None:
        """Return the folder of a run's artifacts where that is on this machine."""
        return _local_path(self._client.get_run(run_id).info.artifact_uri)

    def _create(self, name: str, started: int, tags: Mapping[str, str]) -> Run:
        from mlflow.utils.mlflow_tags import MLFLOW_SOURCE_NAME, MLFLOW_USER

        # No MLFLOW_SOURCE_TYPE: the UI then shows the name alone.
        own = {MLFLOW_USER: getpass.getuser(), MLFLOW_SOURCE_NAME: "retrieval-runner"}
        return self._client.create_run(self._experiment, start_time=started, tags={**own, **tags}, run_name=name)

    def _log(self, run_id: str, metrics: Sequence[Metric], parameters: Mapping[str, str]) -> None:
        from mlflow.entities import Param

        params = [Param(_key(key), value[:_LONGEST_PARAMETER]) for key, value in parameters.items() if value != ""]
        first, rest = metrics[: _LARGEST_BATCH - len(params)], metrics[_LARGEST_BATCH - len(params) :]
        self._client.log_batch(run_id, first, params[:100])
        for begin in range(100, len(params), 100):
            self._client.log_batch(run_id, params=params[begin : begin + 100])
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


def metric_name(measure: str) -> str:
    """Return MLflow's name of a measure, which may not hold "@": nDCG@10 is ndcg_at_10, RR is mrr."""
    names = {"P": "precision", "R": "recall"} | _NAMES
    name, _, cutoff = measure.partition("@")
    name = names.get(name, _slug(name))
    return f"{name}_at_{cutoff}" if cutoff else name


def metrics_of(result: Result) -> list[Metric]:
    """Return all that MLflow gets of a result, without what is not a number.

    Means by name, the same by query type, curves over K as steps, figures on no-result queries, times, diagnostics.
    """
    from mlflow.entities import Metric

    now = _now()
    found = [(metric_name(measure), mean, 0) for measure, mean in result.means.items()]
    for kind, means in result.by_type.items():
        found += [(f"by_type/{_slug(kind)}/{metric_name(measure)}", mean, 0) for measure, mean in means.items()]
    for measure, mean in result.means.items():
        name, _, cutoff = measure.partition("@")
        if cutoff.isdecimal():
            found.append((f"curve/{metric_name(name)}", mean, int(cutoff)))
    found += _abstention_metrics(result.abstention)
    t = result.timings
    found += [("time/index_s", t.index_s, 0), ("time/search_s", t.search_s, 0), ("time/score_s", t.score_s, 0)]
    found += [("time/wall_s", t.wall_s, 0), ("queries/failed", float(len(result.failures)), 0)]
    if t.mean_ms is not None and t.p95_ms is not None:
        found += [("latency/mean_ms", t.mean_ms, 0), ("latency/p95_ms", t.p95_ms, 0)]
    found += [(_key(name), value, 0) for name, value in result.diagnostics.items()]
    return [Metric(name, value, now, step) for name, value, step in found if math.isfinite(value)]


def _abstention_metrics(abstention: Mapping[str, Any]) -> list[tuple[str, float, int]]:
    """Return the figures on no-result queries: those of what was returned, then each threshold's."""
    if not abstention["no_result"]:
        return []
    everything, *thresholds = abstention["thresholds"]
    found = [("auroc", abstention["auroc"]), *((name, everything[name]) for name in ("tn_rate", "fp_rate"))]
    for at in thresholds:
        place = f"threshold_{at['threshold']:g}"
        found += [(f"{place}/{name}", at[name]) for name in ("tn_rate", "fp_rate", "recall", "recall_lost")]
    return [(name, value, 0) for name, value in found if value is not None]


def _result_tags(result: Result) -> dict[str, str]:
    env = result.environment
    tags = {
        "kind": "evaluation",
        "dataset": f"{result.dataset.name}/{result.dataset.split}",
        "dataset_fingerprint": result.dataset.fingerprint,
        "corpus_fingerprint": result.dataset.corpus_fingerprint,
        "config_hash": result.config_hash,
        "retriever": result.retriever,
        "mlflow.source.git.commit": str(env.get("git_commit", "")),
        "git_dirty": str(env.get("git_dirty", "")).lower(),
        "versions": json.dumps({"python": env.get("python"), **env.get("packages", {})}),
    }
    return {key: value for key, value in tags.items() if value}


def _child_tags(sweep: str) -> dict[str, str]:
    return {"mlflow.parentRunId": sweep, "sweep": sweep} if sweep else {}


def _dataset_input(result: Result) -> DatasetInput:
    from mlflow.entities import Dataset, DatasetInput, InputTag

    d = result.dataset
    profile = {"num_documents": d.documents, "num_queries": d.queries, "num_judgments": d.judgments}
    source = json.dumps(
        {key: str(value) for key, value in result.config.get("dataset", {}).items() if value is not None}
    )
    dataset = Dataset(
        name=d.name, digest=d.fingerprint[:32], source_type="local", source=source[:60000], schema=None,
        profile=json.dumps(profile),
    )  # fmt: skip
    return DatasetInput(dataset, [InputTag("mlflow.data.context", d.split)])


def _open(tracking: Tracking, uri: str) -> tuple[MlflowClient, str]:
    from mlflow.exceptions import MlflowException

    logging.getLogger("mlflow").setLevel(logging.WARNING)
    logging.getLogger("alembic").setLevel(logging.WARNING)
    try:
        if not uri.startswith("sqlite:///"):
            return _client(uri, tracking.experiment, None)
        database = Path(uri.removeprefix("sqlite:///"))
        database.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(database.with_suffix(".lock")):  # several processes that migrate a new database at once collide
            return _client(uri, tracking.experiment, Path(tracking.artifacts).resolve().as_uri())
    except (MlflowException, OSError) as error:
        reason = " ".join(str(error).split())[:300]
        raise ConfigError(f"tracking.uri={tracking.uri}: cannot be opened ({reason})") from error


def _client(uri: str, name: str, artifacts: str | None) -> tuple[MlflowClient, str]:
    from mlflow.tracking import MlflowClient

    client = MlflowClient(uri)
    experiment = client.get_experiment_by_name(name)
    if experiment is None:
        return client, client.create_experiment(name, artifact_location=artifacts)
    if experiment.lifecycle_stage == "deleted":
        raise ConfigError(f"tracking.experiment={name}: was deleted; restore it in MLflow, or choose another name")
    return client, experiment.experiment_id


def _local_path(uri: str) -> Path | None:
    parts = urlsplit(uri)
    if parts.scheme in ("", "file"):
        return Path(unquote(parts.path))
    return None


def _key(name: str) -> str:
    """Return a name with only those characters that MLflow's keys may have."""
    return re.sub(r"[^\w\-. :/]", "_", name)


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_") or "none"


def _now() -> int:
    return int(time.time() * 1000)
