"""Measure figures: whole processes, both sides in turn, medians of several runs."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

_SLOW_KERNELS = (
    "OPENBLAS_CORETYPE",
    "OPENBLAS_L2_SIZE",
)  # set where older OpenBLAS builds fail; a current one need not


@dataclass(frozen=True)
class Spent:
    """The cost of a process: wall-clock seconds, peak MiB (of the largest single process of its tree), CPU seconds.

    CPU seconds include those of its finished children.
    """

    seconds: float
    mebibytes: float
    cpu_seconds: float


@dataclass(frozen=True)
class Figure:
    """One line of the table: our value and the peer's in `unit`, and the bar of their ratio."""

    name: str
    unit: str
    ours: float
    peer: float
    bar: float

    @property
    def ratio(self) -> float:
        """Return our value divided by the peer's; smaller is better."""
        return self.ours / self.peer

    @property
    def met(self) -> bool:
        """Return whether the bar is met."""
        return self.ratio <= self.bar

    def to_dict(self) -> dict[str, object]:
        """Return the figure for JSON."""
        return asdict(self) | {"ratio": self.ratio, "met": self.met}


def spend(command: Sequence[str], folder: Path, **environment: str) -> Spent:
    """Run a command to its end in a folder; raises `RuntimeError` with its output if it fails."""
    env = {name: value for name, value in os.environ.items() if name not in _SLOW_KERNELS} | environment
    said = folder / "said.txt"
    start = time.perf_counter()
    with said.open("wb") as out:
        process = subprocess.Popen(list(command), cwd=folder, env=env, stdout=out, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - start
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{said.read_text()[-2000:]}")
    peak = usage.ru_maxrss / (1024**2 if sys.platform == "darwin" else 1024)
    return Spent(seconds, peak, usage.ru_utime + usage.ru_stime)


def measure_memory(command: Sequence[str], folder: Path) -> float:
    """Run a command to its end and return the peak memory of all its processes together, in MiB.

    Memory that processes share is counted once (the sum of their proportional set sizes, sampled every 20 ms; Linux).
    """
    env = {name: value for name, value in os.environ.items() if name not in _SLOW_KERNELS}
    process = psutil.Popen(list(command), cwd=folder, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    peak = 0
    while process.poll() is None:
        size = 0
        for member in [process, *process.children(recursive=True)]:
            with suppress(psutil.Error):  # the process has ended
                size += member.memory_full_info().pss
        peak = max(peak, size)
        time.sleep(0.02)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} failed with exit code {process.returncode}")
    return peak / 2**20


def medians(sides: dict[str, Callable[[], float]], runs: int) -> dict[str, float]:
    """Run the sides in turn, `runs` times each, and return the median of each."""
    taken: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(runs):
        for name, side in sides.items():
            taken[name].append(side())
    return {name: statistics.median(values) for name, values in taken.items()}
