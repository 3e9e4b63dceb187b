"""The versions of Python that a machine has are tested, and the others named."""

from __future__ import annotations

import shutil
from collections.abc import Sequence

import pytest

from release.matrix import try_versions


def test_missing_versions_are_named_and_failures_are_returned(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "python3.12" else f"/usr/bin/{name}")

    def run(command: Sequence[str]) -> int:
        return int("pytest" in command and "3.13" in command[0])

    assert try_versions(["3.11", "3.12", "3.13"], ["-x"], run) == ["3.13"]
    assert capsys.readouterr().out.splitlines() == [
        "Python 3.11: passed",
        "Python 3.12: not installed on this machine",
        "Python 3.13: failed (tests)",
    ]
