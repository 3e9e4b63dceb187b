"""Jobs of a SLURM cluster, which commands of the names of SLURM's run on this machine."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from runner.__main__ import main
from runner.config.objects import ConfigError
from runner.sweep import jobs
from runner.sweep.jobs import JobCrew, make_private, open_executor
from runner.tracking.settings import Tracking

pytest.importorskip("submitit", reason="submitit is not installed: pip install '.[slurm]'")

SBATCH = """#!{python}
import os, re, subprocess, sys
from pathlib import Path
here, script = Path(os.environ["FAKE_SLURM"]), Path(sys.argv[1])
number = str(100 + len(list(here.glob("*.sbatch"))))
(here / f"{{number}}.sbatch").write_text(script.read_text())
environment = os.environ | {{"SLURM_JOB_ID": number, "SLURM_NTASKS": "1", "SLURM_JOB_NUM_NODES": "1",
    "SLURM_NODEID": "0", "SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_JOB_NODELIST": "node"}}
state = here / f"{{number}}.state"
state.write_text("RUNNING")
command = f"bash {{script}} && echo COMPLETED > {{state}} || echo FAILED > {{state}}"
if number == os.environ.get("FAKE_SLURM_KILLS"):
    command = f"echo NODE_FAIL > {{state}}"
subprocess.Popen(["bash", "-c", command], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    start_new_session=True)
print(f"Submitted batch job {{number}}")
"""
SRUN = """#!{python}
import os, sys
words = sys.argv[1:]
while words[0].startswith("--"):
    words = words[1 if words[0] == "--unbuffered" else 2:]
os.execvp(words[0], words)
"""
SACCT = """#!{python}
import os
from pathlib import Path
print("JobID|State|NodeList")
for file in Path(os.environ["FAKE_SLURM"]).glob("*.state"):
    print(f"{{file.stem}}|{{file.read_text().strip()}}|node")
"""
SCANCEL = "#!/bin/sh\n"


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Put commands of SLURM's names on the path; return the folder where they keep what they were given."""
    commands, here = tmp_path / "bin", tmp_path / "slurm"
    commands.mkdir()
    here.mkdir()
    for name, text in {"sbatch": SBATCH, "srun": SRUN, "sacct": SACCT, "scancel": SCANCEL}.items():
        (commands / name).write_text(text.format(python=sys.executable))
        (commands / name).chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{commands}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("FAKE_SLURM", str(here))
    monkeypatch.setattr(jobs, "CHECK_EVERY_S", 0.2)
    return here


def test_a_sweep_on_slurm_has_a_parent_run_and_survives_a_lost_node(
    cluster: Path,
    tracking: Tracking,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert tracking
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FAKE_SLURM_KILLS", "100")  # the first job
    sweep = ["-m", "retriever=bm25", "retriever.k1=0.6,0.9,1.2", "tracking.background=false", "sweep.name=on slurm",
             "sweep.backend=slurm", "sweep.per_job=3", "sweep.slurm={partition:cpu,timeout_min:5}"]  # fmt: skip
    assert main(sweep) == 0
    assert "k1=0.9" in capsys.readouterr().out
    scripts = [file.read_text() for file in sorted(cluster.glob("*.sbatch"))]
    assert len(scripts) == 2  # one was lost, and its three combinations went to the other
    assert all("#SBATCH --partition=cpu" in script and "#SBATCH --time=5" in script for script in scripts)
    assert main([*sweep, "sweep.output=again"]) == 0
    assert "all 3 combinations are already finished" in capsys.readouterr().err
    assert len(list(cluster.glob("*.sbatch"))) == 2


class Job:
    """A job of a cluster in this process, which has ended as soon as it is asked for."""

    def __init__(self, number: int, run: Any, calls: Sequence[Any], dead: bool) -> None:
        self.job_id, self._run, self._calls, self._dead = str(number), run, calls, dead
        self.cancelled = False
        files = ("submission_file", "submitted_pickle", "result_pickle", "stdout", "stderr")
        self.paths = type("Paths", (), dict.fromkeys(files, "log"))

    def done(self, force_check: bool = False) -> bool:
        return True

    def result(self) -> Any:
        if self._dead:
            raise RuntimeError("the node\nfailed")
        return self._run(self._calls)

    def cancel(self, check: bool = True) -> None:
        self.cancelled = True


class Executor:
    def __init__(self, dead: Sequence[int] = (), endless: bool = False) -> None:
        self.jobs: list[Job] = []
        self._dead, self._endless = dead, endless

    def submit(self, run: Any, calls: Sequence[Any]) -> Job:
        job = Job(len(self.jobs), run, calls, len(self.jobs) in self._dead)
        if self._endless:
            job.done = lambda force_check=False: False  # type: ignore[method-assign]  # never done
        self.jobs.append(job)
        return job


def answers_of(crew: JobCrew, numbers: Sequence[int]) -> list[Future[Any]]:
    return [crew.submit("combination", number) for number in numbers]


def double(calls: Sequence[tuple[str, int]]) -> list[int]:
    return [2 * number for _, number in calls]


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(jobs, "LOOK_EVERY_S", 0.01)


def test_a_job_runs_several_calls() -> None:
    executor = Executor()
    crew = JobCrew(executor, 4, 3, double)
    assert crew.size == 12
    assert [future.result(60) for future in answers_of(crew, range(7))] == [0, 2, 4, 6, 8, 10, 12]
    assert max(len(job._calls) for job in executor.jobs) <= 3
    crew.end()


def test_a_lost_job_loses_only_its_own_calls() -> None:
    crew = JobCrew(Executor(dead=[0]), 2, 1, double)
    (lost,) = answers_of(crew, [1])
    error = lost.exception(60)
    assert str(error) == "SLURM job 0: the node failed; see log"
    assert answers_of(crew, [2])[0].result(60) == 4
    crew.end()


def test_a_job_that_left_the_queue_without_a_result_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "CHECK_EVERY_S", 0.0)
    answered = iter([{"0"}, None, set(), {"0"}, set(), set()])  # running, unknown, absent once, running, absent twice
    crew = JobCrew(Executor(endless=True), 1, 1, double, lambda: next(answered, set()))
    (lost,) = answers_of(crew, [1])
    assert str(lost.exception(60)) == "SLURM job 0: has left the queue without a result; see log"
    crew.end()


def test_jobs_that_still_run_are_cancelled_at_the_end() -> None:
    executor = Executor(endless=True)
    crew = JobCrew(executor, 2, 1, double)
    answers_of(crew, [1])
    while not executor.jobs:
        pass
    crew.end()
    assert executor.jobs[0].cancelled


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("parameters", [{"partitoin": "x"}, {"timeout_min": "x"}])
def test_a_wrong_parameter_is_one_line(tmp_path: Path, parameters: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=rf"^sweep\.slurm: .*{next(iter(parameters))}"):
        open_executor(None, tmp_path, parameters)


def test_without_slurm_the_way_out_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match=r"^sweep\.backend=slurm: sbatch was not found; .*sweep\.address=local"):
        open_executor(None, tmp_path, {})


def test_the_files_of_jobs_are_closed_to_other_users(tmp_path: Path) -> None:
    """They are pickles, so whoever writes them could run code."""
    folder = make_private(tmp_path / "jobs")
    assert stat.S_IMODE(folder.stat().st_mode) == stat.S_IRWXU
    assert make_private(tmp_path / "jobs") == folder
    folder.chmod(0o777)
    with pytest.raises(
        ConfigError, match=r"^\S+: other users may write to the folder, .*; remove it, or set store\.path"
    ):
        make_private(tmp_path / "jobs")
