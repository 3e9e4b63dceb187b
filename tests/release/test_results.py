"""Code can move without changing a key, and cannot change without a word on its results."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import yaml

from release import results
from release.results import LOCK, ROOT, list_changes, list_versions

KEYS = """
import sys
from retrievers.base import Corpus
from retrievers.lexical.bm25 import BM25
from retrievers.search import build_rankings_key
from runner.datasets.dataset import Dataset
from runner.datasets.given import GivenDataset
from runner.evaluation.experiment import Experiment
from runner.metrics.settings import MetricSettings
from runner.sweep.identity import combination_id
data = Dataset.of({"a": "red boat"}, {"q": "red"}, {"q": {"a": 1}})
one = Experiment("x", "bm25", BM25(), GivenDataset(name="x", content="c"), MetricSettings(), {}, {})
print(build_rankings_key(BM25(), data.corpus, ["red"], 3).digest, combination_id(one, data))
"""


def print_keys(folder: Path, bm25: str = "retrievers.lexical.bm25") -> set[str]:
    """Return the keys of rankings and of a combination by the program in a folder, where a module has BM25."""
    command = [sys.executable, "-c", KEYS.replace("retrievers.lexical.bm25", bm25)]
    # Bytecode of a module that changes twice within a second, but not in size, would be taken for current.
    env = {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    assert not done.returncode, done.stderr
    return set(done.stdout.split())


def move(folder: Path, old: str, new: str) -> None:
    """Move a module in a copy of the program, and rewrite whoever imports it."""
    source, target = (folder / f"{name.replace('.', '/')}.py" for name in (old, new))
    target.parent.mkdir(exist_ok=True)
    source.rename(target)
    for file in folder.rglob("*.py*"):
        if file.suffix in (".py", ".pyi"):
            text = file.read_text()
            if old in text:
                file.write_text(re.sub(rf"\b{re.escape(old)}\b", new, text))


def test_a_moved_module_and_another_import_change_no_key_and_a_new_version_does(tmp_path: Path) -> None:
    for room in ("retrievers", "runner", "conf"):
        shutil.copytree(ROOT / room, tmp_path / room, ignore=shutil.ignore_patterns("__pycache__"))
    before = print_keys(tmp_path)
    for old, new in (("postings", "counts"), ("bm25", "words.bm25"), ("block_search", "words.blocks")):
        move(tmp_path, f"retrievers.lexical.{old}", f"retrievers.{new}")
    moved = tmp_path / "retrievers" / "words" / "bm25.py"
    moved.write_text(moved.read_text().replace("\nimport ", "\nimport retrievers.encoders.svd\nimport ", 1))
    assert print_keys(tmp_path, "retrievers.words.bm25") == before
    moved.write_text(moved.read_text().replace('"bm25 1', '"bm25 2'))
    assert not print_keys(tmp_path, "retrievers.words.bm25") & before


def test_changed_code_is_said_to_give_the_same_results_or_has_a_new_version() -> None:
    """Raise `RESULTS_VERSION` of the modules named if results differ; then run `python -m release.results`."""
    assert list_changes(LOCK.read_text()) == []


def test_a_change_names_the_versions_whose_results_it_may_change(monkeypatch: pytest.MonkeyPatch) -> None:
    hash_code = results.hash_code
    monkeypatch.setattr(
        results, "hash_code", lambda name: "changed" if name == "retrievers.lexical.block_search" else hash_code(name)
    )
    (change,) = list_changes(LOCK.read_text())
    assert change == "retrievers.lexical.block_search changed, which is behind bm25 1, sparse 1"


def test_each_version_has_a_name_of_its_own() -> None:
    names = list(list_versions().values())
    assert len(set(names)) == len(names) > 30


def test_each_choice_of_settings_has_a_version_or_is_code_of_the_user() -> None:
    for group in ("retriever", "encoder", "reranker", "analyzer", "generator"):
        files = [yaml.safe_load(file.read_text()) or {} for file in (ROOT / "conf" / group).rglob("*.yaml")]
        targets = {file["_target_"] for file in files if "_target_" in file}
        assert targets, group
        for target in targets:
            module, _, name = target.rpartition(".")
            assert getattr(import_module(module), name).__module__ in list_versions(), target
