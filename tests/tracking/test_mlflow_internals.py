from __future__ import annotations

import re
from pathlib import Path

from runner.tracking import mlflow_internals, tables
from runner.tracking.revisions import TESTED
from runner.tracking.sqlite import _version

ROOT = Path(__file__).parents[2]
PRIVATE = re.compile(r"^\s*(?:from|import) mlflow\.(?:store|utils)\b|\._tracking_client\b", re.MULTILINE)
SQL = re.compile(r"^from runs\b", re.MULTILINE)
TYPES = re.compile(r"^if TYPE_CHECKING:\n(?:    .*\n)+", re.MULTILINE)


def test_the_tables_of_the_locked_version_were_tested() -> None:
    locked = re.search(r"^mlflow-skinny==(.+)$", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    assert locked is not None
    assert TESTED[_version()] == locked[1]


def test_only_one_module_uses_private_classes_and_one_the_tables() -> None:
    files = [file for folder in ("runner", "retrievers", "hydra_plugins") for file in (ROOT / folder).rglob("*.py")]
    texts = {file: TYPES.sub("", file.read_text(encoding="utf-8")) for file in files}
    assert {file for file, text in texts.items() if PRIVATE.search(text)} == {Path(mlflow_internals.__file__)}
    assert {file for file, text in texts.items() if SQL.search(text)} == {Path(tables.__file__)}
