"""Runs calls as jobs of a SLURM cluster, through submitit.

A job runs one or more calls and ends. Its state and its result are files in a folder that all nodes share.
"""

from __future__ import annotations

import getpass
import logging
import os
import stat
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any

from runner.config.objects import ConfigError

LOOK_EVERY_S = 0.2
"""Seconds between two rounds of sending new calls and collecting finished jobs."""

CHECK_EVERY_S = 30.0
"""Seconds between two requests to SLURM for the states of jobs, needed because a killed job leaves no file."""

_SHARED = {"name", "timeout_min", "mem_gb", "nodes", "cpus_per_task", "gpus_per_node", "tasks_per_node"}
"""The parameters that submitit has for every kind of cluster; all others belong to SLURM."""


class JobCrew:
    """Runs calls in jobs of `per_job` calls each; at most `jobs` jobs run at a time."""

    def __init__(
        self,
        executor: Any,  # noqa: ANN401 (submitit's)
        jobs: int,
        per_job: int,
        run: Callable[[Sequence[Any]], Sequence[Any]],
        list_queued: Callable[[], set[str] | None] = lambda: None,
    ) -> None:
        self.size = jobs * per_job
        self._executor, self._per_job, self._run, self._list_queued = executor, per_job, run, list_queued
        self._absent: set[Any] = set()
        self._waiting: deque[tuple[Future[Any], Any]] = deque()
        self._running: dict[Any, list[Future[Any]]] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="jobs", daemon=True)
        self._thread.start()

    def submit(self, *call: object) -> Future[Any]:
        """Add a call to the next job."""
        future: Future[Any] = Future()
        self._waiting.append((future, call))
        return future

    def end(self) -> None:
        """Stop sending calls and cancel the running jobs."""
        self._ended.set()
        self._thread.join()
        for job in self._running:
            with suppress(Exception):  # the job may have ended, or the cluster may be unreachable
                job.cancel(check=False)

    def _serve(self) -> None:
        checked = time.monotonic()
        while not self._ended.wait(LOOK_EVERY_S):
            while self._waiting:
                lot = [self._waiting.popleft() for _ in range(min(self._per_job, len(self._waiting)))]
                self._send([future for future, _ in lot], [call for _, call in lot])
            due = time.monotonic() - checked >= CHECK_EVERY_S
            checked = time.monotonic() if due else checked
            for position, job in enumerate(list(self._running)):
                if job.done(force_check=due and not position):  # one request returns the states of all jobs
                    self._collect(job, self._running.pop(job))
            if due:
                self._drop_absent()

    def _drop_absent(self) -> None:
        """Fail jobs that were neither queued nor finished in two checks: SLURM without accounting reports no state."""
        queued = self._list_queued()
        absent = {job for job in self._running if queued is not None and job.job_id not in queued}
        for job in absent & self._absent:
            self._fail(job, self._running.pop(job), "has left the queue without a result")
        self._absent = absent - self._absent

    def _send(self, futures: list[Future[Any]], calls: list[Any]) -> None:
        try:
            self._running[self._executor.submit(self._run, calls)] = futures
        except Exception as error:  # the cluster rejected the job
            for future in futures:
                future.set_exception(error)

    def _collect(self, job: Any, futures: list[Future[Any]]) -> None:  # noqa: ANN401 (submitit's)
        try:
            answers = job.result()
        except Exception as error:  # the job was killed, or its result cannot be read
            self._fail(job, futures, " ".join(str(error).split()))
            return
        for future, answer in zip(futures, answers, strict=True):
            future.set_result(answer)
        paths = job.paths
        for file in (paths.submission_file, paths.submitted_pickle, paths.result_pickle, paths.stdout, paths.stderr):
            Path(file).unlink(missing_ok=True)

    def _fail(self, job: Any, futures: list[Future[Any]], reason: str) -> None:  # noqa: ANN401 (submitit's)
        lost = RuntimeError(f"SLURM job {job.job_id}: {reason}; see {job.paths.stderr}")
        for future in futures:
            future.set_exception(lost)


def list_queued() -> set[str] | None:
    """Return the ids of the user's waiting and running jobs; None if SLURM does not list them."""
    try:
        listed = subprocess.run(
            ["squeue", "--me", "--noheader", "--format=%i"], capture_output=True, text=True, timeout=60, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return set(listed.stdout.split())


def make_private(folder: Path) -> Path:
    """Make a folder of this user in `folder`, closed to others, because the files of jobs are pickles; return it.

    Raises `ConfigError` if the folder belongs to another user or others may write to it.
    """
    own = folder / getpass.getuser()
    own.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = own.stat()
    if os.name == "posix" and (status.st_uid != os.getuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)):
        raise ConfigError(
            f"{own}: other users may write to the folder, and files of jobs can run code; remove it, or set store.path "
            "to a folder of your own"
        )
    return own


def open_executor(cluster: str | None, folder: Path, parameters: Mapping[str, Any]) -> Any:  # noqa: ANN401 (submitit's)
    """Return submitit's executor for SLURM, or for a simulation on this machine; raises `ConfigError`."""
    import submitit

    logging.getLogger("submitit").setLevel(logging.ERROR)  # it warns at each check if the cluster has no accounting
    try:
        executor = submitit.AutoExecutor(make_private(folder).absolute(), cluster or "slurm")
    except RuntimeError as error:
        raise ConfigError(
            "sweep.backend=slurm: sbatch was not found; run the command on a machine that submits jobs, or set "
            "sweep.address=local to try it on this machine"
        ) from error
    named = {
        name if name in _SHARED or name.startswith("slurm_") else f"slurm_{name}": parameters[name]
        for name in parameters
    }
    try:
        executor.update_parameters(**{"name": "sweep", "timeout_min": 60, **named})
    except (AssertionError, NameError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())[:300]
        raise ConfigError(f"sweep.slurm: {reason}") from error
    return executor
