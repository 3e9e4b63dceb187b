"""Hold the code behind cached results to the versions that it declares: `python -m release.results`.

A module whose results are cached declares `RESULTS_VERSION`, which is part of the keys of a store and of the identities
of combinations. Whoever changes the code behind a version either raises the version, so that everything is computed
again, or runs this command unchanged, which says that the results are the same. `results.lock` records both.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

from retrievers.code import find_version, hash_code, modules_behind

ROOT = Path(__file__).parents[1]
LOCK = Path(__file__).with_name("results.lock")

_DECLARATION = re.compile(r"^RESULTS_VERSION = ", re.MULTILINE)

WITHOUT_RESULTS = ("runner.config", "runner.llm", "runner.pages", "runner.store", "runner.tracking")
"""Rooms that fetch, keep and show results. Only what declares a version of its own computes any there."""


def list_versions() -> dict[str, str]:
    """Return the version that each module with results declares, without those of the modules that it names."""
    files = [file for room in ("retrievers", "runner") for file in sorted((ROOT / room).rglob("*.py"))]
    declaring = [_name_module(file) for file in files if _DECLARATION.search(file.read_text(encoding="utf-8"))]
    return {module: str(find_version(module)).partition(",")[0] for module in declaring}


def list_code(versions: Mapping[str, str]) -> dict[str, set[str]]:
    """Return the modules whose code is behind versions, each with these versions."""

    def is_leaf(module: str) -> bool:
        return module in versions or module.startswith(WITHOUT_RESULTS)

    behind: dict[str, set[str]] = {}
    for module, version in versions.items():
        for name in modules_behind(module, is_leaf):
            if name == module or not is_leaf(name):
                behind.setdefault(name, set()).add(version)
    return behind


def describe_results() -> str:
    """Return the content of the lock for today's code: the versions, then a hash of the code of each module."""
    versions = list_versions()
    code = [f"{module} {hash_code(module)}" for module in sorted(list_code(versions))]
    return "\n".join([*sorted(versions.values()), "", *code, ""])


def list_changes(locked: str) -> list[str]:
    """Return what differs from a lock: the versions that were raised, and each changed module with its versions."""
    versions, before = list_versions(), set(locked.splitlines())
    raised = [f"{version} is new" for version in sorted(versions.values()) if version not in before]
    changed = [
        f"{module} changed, which is behind {', '.join(sorted(behind))}"
        for module, behind in sorted(list_code(versions).items())
        if f"{module} {hash_code(module)}" not in before
    ]
    return [*raised, *changed]


def _name_module(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def main() -> int:
    """Print what changed since the lock was written, and write it anew."""
    print(*list_changes(LOCK.read_text(encoding="utf-8") if LOCK.exists() else ""), sep="\n")
    LOCK.write_text(describe_results(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
