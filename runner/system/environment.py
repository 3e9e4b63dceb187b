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
from retrievers.code import code_of
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
    """Return what identifies the code behind a search with settings, as a hash for each top-level package."""
    packages: dict[str, list[str]] = {}
    for module, identity in code_of("retrievers.search", settings, *_list_imported(settings)).items():
        packages.setdefault(module.partition(".")[0], []).append(identity)
    return {package: fingerprint(*sorted(identities))[:16] for package, identities in packages.items()}


def _list_imported(settings: object) -> set[str]:
    """Return the modules that settings name as `module:name`."""
    access = find_access(type(settings)) or Access()
    modules = {str(getattr(settings, name)).partition(":")[0] for name in access.code}
    return modules.union(*map(_list_imported, iter_parts(settings)))


def _run_git(*arguments: str) -> str:
    """Return what git prints about the checkout of this program; "" if it does not run from one."""
    command = ["git", "-C", str(Path(__file__).parent), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=5)  # noqa: S603 (fixed)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
