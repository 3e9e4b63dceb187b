"""Commands on records of a stranger start no process, open no connection, and open no file elsewhere."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from tests.strategies.settings import at_most

VERBS = ("look", "judge", "compare", "explain", "reproduce", "table")


def attack(folder: Path, examples: int) -> dict[str, dict[str, int]]:
    """Run the commands on generated records in a process of their own, and return what they did."""
    (folder / "here").mkdir()
    (folder / "elsewhere").mkdir()
    (folder / "elsewhere" / "secret.jsonl").write_text("{}\n")
    root = Path(__file__).parent.parent
    environment = os.environ | {"PYTHONPATH": str(root), "HOME": str(folder), "TMPDIR": str(folder / "here")}
    words = [sys.executable, "-W", "ignore", "-m", "tests.hostile_records", str(examples)]
    done = subprocess.run(words, cwd=folder / "here", env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    outcome: dict[str, dict[str, int]] = orjson.loads(done.stdout.splitlines()[-1])
    return outcome


def check_outcome(outcome: dict[str, dict[str, int]], examples: int) -> None:
    """Check that nothing was done, and that each command was run on each record."""
    assert not outcome["error"]
    assert not outcome["events"]
    assert not [verb for verb, end in outcome["controls"].items() if end not in ("0", "1")], "it refuses any record"
    for verb in VERBS:
        assert sum(count for end, count in outcome["ends"].items() if end.split()[0] == verb) >= examples


def test_commands_on_records_of_a_stranger_only_compute(tmp_path: Path) -> None:
    examples = at_most(10)
    check_outcome(attack(tmp_path, examples), examples)


@pytest.mark.slow(reason="500 records take nine CPU minutes")
def test_commands_on_500_records_of_a_stranger_only_compute(tmp_path: Path) -> None:
    check_outcome(attack(tmp_path, 500), 500)
