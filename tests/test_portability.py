"""The program uses nothing that Windows lacks, or that means something else there, without a guard."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.system.processes import holder, is_gone
from runner.tracking.logged import local_path
from runner.tracking.under_way import UnderWay

ROOT = Path(__file__).parents[1]

POSIX_MODULES = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "termios"}

POSIX_FUNCTIONS = {
    "fork", "forkpty", "getegid", "geteuid", "getgid", "getloadavg", "getuid", "kill", "killpg", "mkfifo", "nice",
    "posix_spawn", "pread", "pwrite", "sched_getaffinity", "sendfile", "setsid", "uname", "wait", "waitid", "waitpid",
}  # fmt: skip
"""Functions of `os` that Windows lacks; `os.kill` is there, and ends the process or sends Ctrl-C."""

GUARDED = {"runner/system/processes.py: os.sched_getaffinity", "runner/sweep/jobs.py: os.getuid"}
"""Uses behind `hasattr` or `os.name`."""


def iter_uses(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import | ast.ImportFrom):
            origin = (node.module or "") if isinstance(node, ast.ImportFrom) else ""
            yield from POSIX_MODULES & {origin, *(name.name for name in node.names)}
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "os" and node.attr in POSIX_FUNCTIONS:
            yield f"os.{node.attr}"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            encoded = len(node.args) > (node.func.attr == "write_text") or any(
                k.arg == "encoding" for k in node.keywords
            )
            if node.func.attr in ("read_text", "write_text") and not encoded:
                yield f"{node.func.attr} without an encoding"


def test_what_windows_lacks_is_guarded_and_text_has_an_encoding() -> None:
    files = [file for room in ("runner", "retrievers", "hydra_plugins") for file in (ROOT / room).rglob("*.py")]
    assert {f"{file.relative_to(ROOT).as_posix()}: {use}" for file in files for use in iter_uses(file)} == GUARDED


def test_looking_whether_a_process_runs_sends_it_no_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "kill")
    assert not is_gone(holder())


def test_a_shorter_marker_replaces_a_longer_one_without_pwrite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pwrite")
    under_way = UnderWay(tmp_path, "sweep")
    under_way.open()
    under_way.begin("a", "a long name")
    under_way.begin("b", "short")
    assert under_way.marker.read_bytes().split() == [b"b", b"short"]
    under_way.close()


@pytest.mark.parametrize(
    ("address", "path"),
    [
        ("file:///C:/my%20runs/1", "C:/my runs/1"),
        ("C:\\runs\\1", "C:\\runs\\1"),
        ("C:/runs/1", "C:/runs/1"),
        ("file:///home/me/runs", "/home/me/runs"),
        ("runs/1", "runs/1"),
        ("s3://bucket/1", None),
    ],
)
def test_addresses_of_artifacts_are_paths_on_every_system(address: str, path: str | None) -> None:
    assert local_path(address) == (path and Path(path))
