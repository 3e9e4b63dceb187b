"""Servers in processes of their own, as tests need them."""

from __future__ import annotations

import atexit
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import httpx

ROOT = Path(__file__).parents[3]
PATIENCE_S = 300
"""How long a process may take to begin or to end, on a machine that has much else to do."""


@dataclass(frozen=True)
class Running:
    """A server that answers: its address, a client of it, its process, and what it says to standard error."""

    url: str
    client: httpx.Client
    process: subprocess.Popen[str]
    said: Path


@contextmanager
def serving(arguments: Sequence[str], folder: Path) -> Iterator[Running]:
    """Run `runner serve` on a free port, with its store in a folder, until the block ends."""
    said = folder / "said.txt"
    command = [sys.executable, "-m", "runner", "serve", *arguments, "port=0"]
    with (
        said.open("w") as out,
        subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=out, text=True) as p,
    ):
        late = threading.Timer(PATIENCE_S, p.kill)
        late.start()
        try:
            assert p.stdout is not None
            found = re.search(r"http://\S+", p.stdout.readline())
            late.cancel()
            assert found, said.read_text()
            with httpx.Client(base_url=found[0]) as client:
                yield Running(found[0], client, p, said)
        finally:
            late.cancel()
            p.kill()


@cache
def shelf() -> str:
    """Return the address of a process that serves any corpus it is given, which ends with this one."""
    command = [sys.executable, "-m", "tests.features.serve.shelf"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)

    def end() -> None:
        process.kill()
        process.communicate()

    atexit.register(end)
    assert process.stdout is not None
    return process.stdout.readline().strip()
