"""The environment of a result: the versions of Python and packages, and the code and commit of this program."""

from __future__ import annotations

import platform
import subprocess
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from retrievers.access import Access, find_access
from retrievers.base import iter_parts
from retrievers.code import code_of, hash_code, modules_behind
from retrievers.store import fingerprint

DECIDING_PACKAGES = (
    "retrieval-runner",
    "numpy",
    "scipy",
    "scikit-learn",
    "numba",
    "regex",
    "PyStemmer",
    "stop-words",
    "rank-bm25",
    "faiss-cpu",
    "sentence-transformers",
    "transformers",
    "torch",
    "ir-measures",
)
"""The packages whose versions are part of a result's environment."""


@cache
def describe_environment() -> dict[str, Any]:
    """Return the versions that a result depends on, and the git commit of this program if it runs from a checkout."""
    versions = {}
    for package in DECIDING_PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "packages": versions,
        "git_commit": _run_git("rev-parse", "HEAD"),
        "git_dirty": bool(_run_git("status", "--porcelain", "--untracked-files=no")),
    }


def describe_code(settings: object) -> dict[str, str]:
    """Return a hash of the code behind a search with settings, for each top-level package."""
    modules = {*code_of("retrievers.search", settings), *_list_imported(settings)}
    packages: dict[str, list[str]] = {}
    for module in sorted(modules):
        packages.setdefault(module.partition(".")[0], []).append(hash_code(module))
    return {package: fingerprint(*hashes)[:16] for package, hashes in packages.items()}


def _list_imported(settings: object) -> set[str]:
    """Return the modules that settings name as `module:name`, and the modules that those import."""
    modules: set[str] = set()
    access = find_access(type(settings)) or Access()
    for name in access.code:
        modules |= modules_behind(str(getattr(settings, name)).partition(":")[0])
    return modules.union(*map(_list_imported, iter_parts(settings)))


def _run_git(*arguments: str) -> str:
    """Return what git prints about the checkout of this program; "" if it does not run from one."""
    command = ["git", "-C", str(Path(__file__).parent), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=5)  # noqa: S603 (fixed)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
