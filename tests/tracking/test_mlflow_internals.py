from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path

import pytest

from runner.tracking import mlflow_internals, tables
from runner.tracking.mlflow_internals import TESTED_WITH

ROOT = Path(__file__).parents[2]
PRIVATE = re.compile(r"^\s*(?:from|import) mlflow\.(?:store|utils)\b|\._tracking_client\b", re.MULTILINE)
SQL = re.compile(r"^from runs\b", re.MULTILINE)
TYPES = re.compile(r"^if TYPE_CHECKING:\n(?:    .*\n)+", re.MULTILINE)


@pytest.mark.parametrize("package", TESTED_WITH)
def test_the_installed_version_was_tested(package: str) -> None:
    assert version(package) == TESTED_WITH[package]


def test_only_one_module_uses_private_classes_and_one_the_tables() -> None:
    files = [file for folder in ("runner", "retrievers", "hydra_plugins") for file in (ROOT / folder).rglob("*.py")]
    texts = {file: TYPES.sub("", file.read_text(encoding="utf-8")) for file in files}
    assert {file for file, text in texts.items() if PRIVATE.search(text)} == {Path(mlflow_internals.__file__)}
    assert {file for file, text in texts.items() if SQL.search(text)} == {Path(tables.__file__)}
