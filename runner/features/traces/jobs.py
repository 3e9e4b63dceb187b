"""Evaluate the runs in a folder in parallel, and store the artifact of each as soon as it is made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from runner.config.objects import ConfigError
from runner.features.traces.artifact_store import ArtifactStore
from runner.features.traces.evaluation import Evaluation, Job, Reading, iter_jobs
from runner.features.traces.runs.layout import find_runs
from runner.features.traces.runs.tasks import Tasks
from runner.features.traces.workers import run_in_workers


def find_jobs(path: Path, output: Path, tasks: Tasks, reading: Reading) -> list[Job]:
    """Return the runs in a folder, without those in the output folder; raises `ConfigError` if there are none."""
    own = output.resolve()
    runs = [*find_runs(path, tasks)]
    jobs = [*iter_jobs((run for run in runs if not run.folder.resolve().is_relative_to(own)), reading)]
    if runs and not jobs:
        raise ConfigError(f"output={output}: contains the runs of path={path}; choose another folder")
    if not jobs:
        raise ConfigError(
            f"path={path}: the folder contains no agent runs; a run is, for example, a folder with "
            "agent/trajectory.json"
        )
    return jobs


def select_unfinished(jobs: Iterable[Job], evaluation: Evaluation, artifacts: ArtifactStore) -> list[Job]:
    """Return the jobs whose artifact or files do not exist, or were made from other inputs."""
    return [job for job in jobs if not _is_finished(job, evaluation, artifacts)]


def evaluate_jobs(
    jobs: Sequence[Job], evaluation: Evaluation, artifacts: ArtifactStore, workers: int
) -> Iterator[tuple[str, str]]:
    """Store the artifact of each run, and yield its name with its error, "" if it has none, in order of completion."""

    def start_jobs() -> Iterator[Job]:
        for job in jobs:
            artifacts.remove(job.run.artifact)  # a killed process may leave new files beside an old artifact
            yield job

    for job, result in run_in_workers(evaluation, start_jobs(), workers):
        name = job.run.artifact
        if isinstance(result, BaseException):
            yield name, f"{type(result).__name__}: {' '.join(str(result).split())}"
        else:
            artifacts.add(name, job.inputs.fingerprint, result)
            yield name, ""


def _is_finished(job: Job, evaluation: Evaluation, artifacts: ArtifactStore) -> bool:
    name = job.run.artifact
    return artifacts.has(name, job.inputs.fingerprint) and all(file.is_file() for file in evaluation.files(name))
