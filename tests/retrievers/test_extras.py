"""The command that adds an extra installs this copy of the program again: same place, same tool (PEP 610)."""

from __future__ import annotations

import json
import sys
from importlib.metadata import PackageNotFoundError, PathDistribution
from pathlib import Path
from typing import Any

import pytest

from retrievers import extras
from retrievers.extras import NAME, write_install_command

COMMIT = "0123456789abcdef0123456789abcdef01234567"
GIT: dict[str, Any] = {"url": "https://example.org/r.git", "vcs_info": {"vcs": "git", "commit_id": COMMIT}}


def install(folder: Path, record: dict[str, Any] | None, installer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend that the program is installed as a record says."""
    (folder / "INSTALLER").write_text(f"{installer}\n")
    if record is not None:
        (folder / "direct_url.json").write_text(json.dumps(record))
    monkeypatch.setattr(extras, "distribution", lambda name: PathDistribution(folder))
    monkeypatch.setattr(sys, "prefix", str(folder))


@pytest.mark.parametrize(
    ("record", "command"),
    [
        (None, "pip install 'retrieval-runner[dense]'"),
        ({"url": "file:///a/my%20copy", "dir_info": {}}, "pip install '/a/my copy[dense]'"),
        ({"url": "file:///a/b", "dir_info": {"editable": True}}, "pip install --editable '/a/b[dense]'"),
        ({"url": "file:///a/r.whl", "archive_info": {}}, "pip install 'retrieval-runner[dense] @ file:///a/r.whl'"),
        (GIT, f"pip install 'retrieval-runner[dense] @ git+https://example.org/r.git@{COMMIT}'"),
        (
            GIT | {"subdirectory": "search"},
            f"pip install 'retrieval-runner[dense] @ git+https://example.org/r.git@{COMMIT}#subdirectory=search'",
        ),
    ],
)
def test_an_extra_comes_from_where_this_copy_came_from(
    record: dict[str, Any] | None, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, record, "pip", monkeypatch)
    assert write_install_command("dense") == command


@pytest.mark.parametrize(
    ("file", "tool"),
    [
        ("INSTALLER", "uv pip install"),
        ("uv-receipt.toml", "uv tool install"),
        ("pipx_metadata.json", "pipx install --force"),
    ],
)
def test_an_extra_is_installed_by_the_tool_that_installed_this_copy(
    file: str, tool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / file).touch()
    install(tmp_path, GIT, "uv", monkeypatch)
    assert write_install_command() == f"{tool} 'retrieval-runner @ git+https://example.org/r.git@{COMMIT}'"


def test_a_copy_that_is_not_installed_is_installed_from_its_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(extras, "distribution", refuse)
    folder = Path(extras.__file__).parents[1]
    assert write_install_command("ui") == f"pip install --editable '{folder}[ui]'"
    assert NAME in (folder / "pyproject.toml").read_text(encoding="utf-8")
