"""Check a release: `python -m release.check [FOLDER]` builds the packages, and tries the wheel as a user would.

It builds sdist and wheel into FOLDER (`dist/`), checks them with twine, installs the wheel with the dependencies of the
core into a bare environment, and takes the tour there from an empty folder. It fails if the environment is larger than
`MOST_MEGABYTES`; compiled bytecode does not count, as uv and pip with --no-compile do not write it. The seconds depend
on the machine and the network, so they are only reported.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]

MOST_SECONDS, MOST_MEGABYTES = 60, 800


def main() -> int:
    """Return 1 if the environment is too large; raises `CalledProcessError` if a step fails."""
    target = Path(sys.argv[1] if sys.argv[1:] else ROOT / "dist").resolve()
    packages = build(target)
    with tempfile.TemporaryDirectory() as folder:
        check_metadata(packages, Path(folder) / "tools")
        seconds, megabytes = take_tour(packages[-1], Path(folder))
    print(f"from a bare Python to the leaderboard: {seconds:.0f} s and {megabytes:.0f} MB")
    print(f"wanted: at most {MOST_SECONDS} s on an idle machine, and at most {MOST_MEGABYTES} MB")
    return 0 if megabytes <= MOST_MEGABYTES else 1


def build(target: Path) -> list[Path]:
    """Build the sdist and the wheel of the checkout, and return their paths."""
    for old in target.glob("retrieval_runner-*"):
        old.unlink()
    _run([sys.executable, "-m", "hatchling", "build", "--directory", str(target)], ROOT)
    sdist, wheel = *target.glob("retrieval_runner-*.tar.gz"), *target.glob("retrieval_runner-*.whl")
    return [sdist, wheel]


def check_metadata(packages: Sequence[Path], environment: Path) -> None:
    """Check the metadata, and the README as PyPI renders it, with twine in an environment of its own."""
    python = create_environment(environment)
    _run([*_pip(python), "twine"], environment)
    _run([python, "-m", "twine", "check", "--strict", *map(str, packages)], environment)


def take_tour(wheel: Path, folder: Path) -> tuple[float, float]:
    """Return the seconds from a bare Python to the first leaderboard, and the megabytes of the environment."""
    began, empty = time.monotonic(), folder / "empty"
    python = create_environment(folder / "bare")
    _run([*_pip(python), str(wheel)], folder)
    empty.mkdir()
    _run([python, "-m", "runner", "experiment=tour"], empty)
    seconds = time.monotonic() - began
    return seconds, count_megabytes(folder / "bare")


def create_environment(folder: Path) -> str:
    """Create a virtual environment and return its interpreter."""
    is_windows = sys.platform == "win32"
    venv.create(folder, with_pip=True, symlinks=not is_windows)
    return str(folder / ("Scripts/python.exe" if is_windows else "bin/python"))


def count_megabytes(folder: Path) -> float:
    """Return the disk usage of the files in a folder as `du -m` counts it (2**20 bytes); on Windows, their sizes."""
    stats = [path.lstat() for path in folder.rglob("*")]
    return sum(stat.st_size if sys.platform == "win32" else stat.st_blocks * 512 for stat in stats) / 2**20


def _pip(python: str) -> list[str]:
    return [python, "-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check"]


def _run(command: Sequence[str], folder: Path) -> None:
    print("$", *command, flush=True)
    subprocess.run(command, cwd=folder, check=True)


if __name__ == "__main__":
    sys.exit(main())
