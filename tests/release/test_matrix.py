"""The versions of Python that a machine has are tested, and the others named."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from release.matrix import find_interpreter, try_versions


def test_missing_versions_are_named_and_failures_are_returned(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PYENV_ROOT", "/nowhere")
    monkeypatch.setenv("UV_PYTHON_INSTALL_DIR", "/nowhere")
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "python3.12" else f"/usr/bin/{name}")

    def run(command: Sequence[str]) -> int:
        return int("pytest" in command and "3.13" in command[0])

    assert try_versions(["3.11", "3.12", "3.13"], ["-x"], run) == ["3.13"]
    assert capsys.readouterr().out.splitlines() == [
        "Python 3.11: passed",
        "Python 3.12: not installed on this machine",
        "Python 3.13: failed (tests)",
    ]


def test_an_interpreter_that_pyenv_has_replaces_a_command_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interpreter = tmp_path / "versions" / "3.12.1" / "bin" / "python3.12"
    interpreter.parent.mkdir(parents=True)
    interpreter.touch()
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setenv("UV_PYTHON_INSTALL_DIR", "/nowhere")
    monkeypatch.setattr(shutil, "which", lambda name: f"/shims/{name}")
    assert find_interpreter("3.12", lambda command: int(command[0].startswith("/shims"))) == str(interpreter)
    assert find_interpreter("3.13", lambda command: int(command[0].startswith("/shims"))) is None
