"""Where plug-ins may come from."""

from __future__ import annotations

import os
import site
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.config.projects import GROUP, list_entry_points, list_plugins

TOUCH = 'open("TOUCHED", "a").write(__name__)\n'
ROOT = Path(__file__).parents[2]


@pytest.fixture
def forgotten() -> Iterator[None]:
    """Read the installed plug-ins again, before and after a test."""
    list_entry_points.cache_clear()
    yield
    list_entry_points.cache_clear()


def write_package(folder: Path) -> None:
    """Write what pip writes for a package with a plug-in."""
    (folder / "x-1.dist-info").mkdir(parents=True)
    (folder / "x-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: x\nVersion: 1\n")
    (folder / "x-1.dist-info" / "entry_points.txt").write_text(f"[{GROUP}]\nmine = stranger\n")


@pytest.mark.usefixtures("forgotten")
@pytest.mark.parametrize(("installed", "plugins"), [(True, {"mine": "stranger"}), (False, {})])
def test_plugins_are_listed_only_where_packages_are_installed(
    installed: bool, plugins: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_package(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    if installed:
        monkeypatch.setattr(site, "getsitepackages", lambda: [str(tmp_path)])
    assert list_plugins() == plugins


def test_a_command_runs_no_code_of_the_folder_that_it_is_started_in(tmp_path: Path) -> None:
    write_package(tmp_path)
    (tmp_path / "hydra_plugins").mkdir()
    (tmp_path / "conf" / "experiment").mkdir(parents=True)
    for name in ("stranger.py", "hydra_plugins/stranger.py", "yaml.py", "hydra.py", "numpy.py", "retrievers.py"):
        (tmp_path / name).write_text(TOUCH)
    (tmp_path / "conf" / "experiment" / "first.yaml").write_text(
        "# @package _global_\ndefaults: [override /retriever: object]\nretriever: {factory: 'stranger:build'}\n"
    )
    ended = subprocess.run(
        [sys.executable, "-m", "runner", "--config-dir=conf", "experiment=first"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert not (tmp_path / "TOUCHED").exists(), (tmp_path / "TOUCHED").read_text()
    assert ended.returncode == 2
    assert "retriever.factory=stranger:build: a config can only create classes of this program" in ended.stderr
