"""Run the tests of tracking beside other versions of MLflow: `python -m release.mlflow_versions VERSION...`.

Without versions, these are the oldest that pyproject.toml accepts and the newest that pip finds. A version is installed
without its dependencies into a temporary folder that PYTHONPATH names, so the environment stays as it is.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]

PACKAGES = ("mlflow", "mlflow-skinny", "mlflow-tracing")
"""The packages that share the module `mlflow`, in the same version."""

NEWEST = "newest"


def main(arguments: Sequence[str]) -> int:
    """Return 1 if the tests fail beside a version."""
    versions = [word for word in arguments if not word.startswith("-")] or [read_oldest(), NEWEST]
    options = [word for word in arguments if word.startswith("-")] or ["-n", "auto", "-m", "not slow"]
    outcomes = {version: try_version(version, options) for version in versions}
    for version, outcome in outcomes.items():
        print(f"MLflow {version}: {outcome}")
    return int(any(outcome != "passed" for outcome in outcomes.values()))


def read_oldest() -> str:
    """Return the oldest version of MLflow that pyproject.toml accepts."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (oldest,) = re.findall(r"^mlflow-skinny>=([\d.]+)$", "\n".join(project["dependencies"]), re.MULTILINE)
    return str(oldest)


def try_version(version: str, options: Sequence[str]) -> str:
    """Return the outcome of the tests beside a version: passed, or what failed."""
    wanted = [name if version == NEWEST else f"{name}=={version}" for name in PACKAGES]
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    with tempfile.TemporaryDirectory() as folder:
        if subprocess.run([*install, "--target", folder, *wanted], check=False).returncode:
            return "failed (installation)"
        environment = os.environ | {"PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}
        tests = [sys.executable, "-m", "pytest", "tests/tracking", *options]
        failed = subprocess.run(tests, cwd=ROOT, env=environment, check=False).returncode
    return "failed (tests)" if failed else "passed"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
