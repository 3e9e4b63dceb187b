"""Run the tests on every supported version of Python that this machine has: `python -m release.matrix [PYTEST ARGS]`.

Missing versions are listed, and do not fail the run. Interpreters are found on PATH, and where pyenv and uv install
them. Each version has an environment of its own, such as `.venv-3.12`, with the packages of requirements.lock.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]

VERSIONS = ("3.11", "3.12", "3.13", "3.14")

Run = Callable[[Sequence[str]], int]


def main() -> int:
    """Return 1 if the tests fail on a version that this machine has."""
    failed = try_versions(VERSIONS, sys.argv[1:] or ["-m", "not slow", "-n", "auto"], _run)
    return 1 if failed else 0


def try_versions(versions: Sequence[str], arguments: Sequence[str], run: Run) -> list[str]:
    """Test on each installed version, print the outcome of each, and return the versions that failed."""
    outcomes = {version: try_version(version, arguments, run) for version in versions}
    for version, outcome in outcomes.items():
        print(f"Python {version}: {outcome}")
    return [version for version, outcome in outcomes.items() if outcome.startswith("failed")]


def try_version(version: str, arguments: Sequence[str], run: Run) -> str:
    """Return the outcome of the tests on a version: passed, failed, or not installed."""
    interpreter = find_interpreter(version, run)
    if interpreter is None:
        return "not installed on this machine"
    environment = ROOT / f".venv-{version}"
    python = str(environment / "bin" / "python")
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    steps = (
        ("environment", [interpreter, "-m", "venv", str(environment)]),
        ("installation", [*install, "--requirement", str(ROOT / "requirements.lock")]),
        ("installation", [*install, "--no-deps", "--no-build-isolation", "--editable", str(ROOT)]),
        ("tests", [python, "-m", "pytest", *arguments]),
    )
    for name, command in steps:
        if run(command):
            return f"failed ({name})"
    return "passed"


def find_interpreter(version: str, run: Run) -> str | None:
    """Return a working interpreter of a version, None without one; some commands that pyenv puts on PATH only fail."""
    places = {"PYENV_ROOT": ("~/.pyenv", "versions"), "UV_PYTHON_INSTALL_DIR": ("~/.local/share/uv/python", ".")}
    folders = [Path(os.environ.get(name, usual)).expanduser() / below for name, (usual, below) in places.items()]
    installed = [str(file) for folder in folders for file in sorted(folder.glob(f"*{version}.*/bin/python{version}"))]
    on_path = shutil.which(f"python{version}")
    return next((file for file in [on_path, *installed] if file is not None and not run([file, "-c", ""])), None)


def _run(command: Sequence[str]) -> int:
    print("$", *command, flush=True)
    return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
