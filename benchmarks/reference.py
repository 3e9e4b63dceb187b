"""Figures with the commit that they were measured at, and their change against those of a reference commit.

`results.json` has the figures measured last. `reference.json` is such a file of an earlier commit, in version control:
`cp benchmarks/results.json benchmarks/reference.json` makes the current figures the reference.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks.measure import Figure
from runner.system.environment import describe_environment

RESULTS, REFERENCE = (Path(__file__).with_name(name) for name in ("results.json", "reference.json"))

WORSE = 1.05
"""The change of a ratio above which a case counts as worse."""


def read_figures(file: Path) -> dict[str, dict[str, Any]]:
    """Return the figures of a file by their names, none if it does not exist."""
    return {figure["name"]: figure for figure in json.loads(file.read_text())} if file.is_file() else {}


def keep_figures(figures: Sequence[Figure], file: Path) -> None:
    """Write figures with the current commit and date to a file; others stay in it."""
    checkout = describe_environment()
    commit = checkout["git_commit"][:8] + "-dirty" * checkout["git_dirty"]
    source = {"commit": commit or "unknown", "on": date.today().isoformat()}
    kept = read_figures(file) | {figure.name: {**figure.to_dict(), **source} for figure in figures}
    file.write_text(json.dumps(list(kept.values()), indent=2) + "\n")


def find_changes(figures: Sequence[Figure], reference: dict[str, dict[str, Any]]) -> dict[str, float]:
    """Return the ratio of each figure divided by its ratio in the reference, for those that it has."""
    return {
        figure.name: figure.ratio / reference[figure.name]["ratio"] for figure in figures if figure.name in reference
    }


def describe_changes(changes: dict[str, float], reference: dict[str, dict[str, Any]]) -> str:
    """Return a sentence that names the commits of the reference, and the figures worse by more than `WORSE`."""
    if not changes:
        return "None of these figures has a reference."
    commits = ", ".join(sorted({reference[name]["commit"] for name in changes}))
    worse = "; ".join(name for name, change in changes.items() if change > WORSE) or "none"
    return (
        f"{len(changes)} ratios compared with those of commit {commits}. Worse by more than {WORSE - 1:.0%}: {worse}."
    )
