"""Processes that start in milliseconds: they are forked from a server that has already loaded and run the program.

A new interpreter takes seconds to import MLflow and numba. Tests of what depends on a new interpreter start one.
"""

from __future__ import annotations

import fcntl
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from typing import Any

import psutil
import pytest

from runner.system.processes import LOOK_FOR_PARENT_S

LOADED = (
    "pytest", "hypothesis", "runner.__main__", "runner.config.launch", "runner.commands.evaluate",
    "runner.tracking.tracker", "tests.rehearsal",
)  # fmt: skip


class WarmProcess(ForkServerProcess):
    """A process with the environment variables of the process that makes it, rather than those of the server.

    It handles signals as a new interpreter does, whatever was blocked or ignored where the server was started.
    """

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._variables = dict(os.environ)

    def start(self) -> None:
        """Start the process, and before the first one the server, which finds `tests` in any working directory."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PYTHONPATH", str(Path(__file__).parents[1]), prepend=os.pathsep)
            super().start()

    def run(self) -> None:
        """Set variables and signals, then call the target."""
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.environ.clear()
        os.environ.update(self._variables)
        super().run()


class WarmContext(ForkServerContext):
    """Start processes from the server."""

    Process = WarmProcess


WARM = WarmContext()
WARM.set_forkserver_preload(list(LOADED))


def belong_to(parent: int) -> None:
    """Do what a worker does first: ignore the terminal's signals, and end when the process that it works for is gone.

    The parent process of a warm worker is the server.
    """
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)

    def end_with_parent() -> None:
        while psutil.pid_exists(parent):
            time.sleep(LOOK_FOR_PARENT_S)
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()


@dataclass(frozen=True)
class CommandResult:
    """What a command left: its exit code, minus a signal's number if that ended it, and what it wrote."""

    returncode: int
    stdout: str
    stderr: str


def start_command(arguments: Sequence[str], folder: Path, code: str = "") -> WarmProcess:
    """Start a command in a folder, where it writes to `stdout.txt` and `stderr.txt`, after some code."""
    process = WARM.Process(target=_command, args=(list(arguments), folder, code), name="MainProcess")
    process.start()
    return process


def run_command(arguments: Sequence[str], folder: Path, code: str = "") -> CommandResult:
    """Run a command in a folder, after some code. Its processes have ended when this returns."""
    process = start_command(arguments, folder, code)
    process.join()
    assert process.exitcode is not None
    return CommandResult(process.exitcode, _read_all(folder / "stdout.txt"), _read_all(folder / "stderr.txt"))


def _read_all(path: Path) -> str:
    """Return what the processes of a command wrote to a file, once none of them has it open."""
    with path.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        return file.read()


def _command(arguments: list[str], folder: Path, code: str) -> None:
    os.chdir(folder)
    for descriptor, name in ((1, "stdout"), (2, "stderr")):
        file = os.open(f"{name}.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        fcntl.flock(file, fcntl.LOCK_SH)  # until the last process that inherits the descriptor has ended
        os.dup2(file, descriptor)
        os.close(file)
    exec(code, {})
    from runner.__main__ import main  # which the code may have replaced

    sys.exit(main(arguments))
