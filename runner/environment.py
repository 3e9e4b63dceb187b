"""What decides a result besides settings and data: versions of Python and packages, and the commit of this program."""

from __future__ import annotations

import platform
import subprocess
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

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
    """Return the versions of what decides a result, and the git commit of this program if it runs from a checkout."""
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


def _run_git(*arguments: str) -> str:
    """Return what git prints about this program's own checkout; "" where it has none."""
    command = ["git", "-C", str(Path(__file__).parent), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=5)  # noqa: S603 (fixed)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
