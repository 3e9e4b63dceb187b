"""A package outside the tree adds a command, a retriever and sections of reports by one entry point."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.documentation import DIR, write

ROOT = Path(__file__).parents[2]
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a user's base folder with the package in its folder for packages."""
    base = tmp_path_factory.mktemp("base")
    source = base / "source"
    shutil.copytree(Path(__file__).parent / "sample", source, ignore=shutil.ignore_patterns("__pycache__"))
    folder = Path(sysconfig.get_path("purelib", f"{os.name}_user", {"userbase": str(base)}))
    install = ["install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([sys.executable, "-m", "pip", *install, f"--target={folder}", str(source)], check=True)
    return folder


@pytest.fixture
def run(site: Path, tmp_path: Path) -> Run:
    """Return a function that runs a command beside the installed package, in a folder with a dataset."""
    write(tmp_path, DIR)
    base = next(parent for parent in site.parents if (parent / "source").is_dir())
    environment = {**os.environ, "PYTHONUSERBASE": str(base), "PYTHONPATH": f"{ROOT}{os.pathsep}{site}"}

    def start(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, *words]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, encoding="utf-8", check=False
        )

    return start


def test_it_keeps_the_contract_of_features(run: Run) -> None:
    ended = run("-c", "from runner.testing.features import check_feature; check_feature('words')")
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_its_retriever_keeps_the_contract_of_retrievers(run: Run) -> None:
    code = "from runner.testing.retrievers import check_retriever; from retrieval_sample.retriever import Longest"
    ended = run("-c", f"{code}; check_retriever(Longest(3))")
    assert ended.returncode == 0, ended.stderr


def test_its_command_has_settings_an_argument_help_and_exit_codes(run: Run) -> None:
    ended = run("-m", "runner", "words", "three words here", "--json")
    assert (ended.returncode, json.loads(ended.stdout)) == (0, {"words": 3})
    ended = run("-m", "runner", "words", "two words", "least=3")
    assert (ended.returncode, ended.stdout.strip()) == (1, "2 words")
    ended = run("-m", "runner", "words", "two words", "lest=3")
    assert ended.returncode == 2
    assert "lest" in ended.stderr
    assert "least" in ended.stderr
    text = run("-m", "runner", "words", "--help").stdout
    assert text.startswith("python -m runner words TEXT [KEY=VALUE] ... [--json]\n\nCount the words of a text.\n")
    assert "1 there are fewer words than expected" in text
    assert "words       count the words of a text" in run("-m", "runner", "--help").stdout


def test_its_retriever_is_a_choice_and_its_sections_are_in_the_reports(run: Run, tmp_path: Path) -> None:
    words = ("dataset=beir", "dataset.path=DIR", "statistics.permutations=100", "tracking.background=false")
    for sweep, section in (
        ([], "1.50 words on average"),
        (["-m", "retriever.most=5,10"], "2 combinations for 2 queries"),
    ):
        ended = run("-m", "runner", "retriever=longest", *sweep, *words, "--json")
        assert ended.returncode == 0, ended.stdout + ended.stderr
        folder = tmp_path / "mlruns" / "artifacts" / json.loads(ended.stdout)["run"] / "artifacts"
        for name in ("report.md", "report.html"):
            assert section in (folder / name).read_text(encoding="utf-8")
