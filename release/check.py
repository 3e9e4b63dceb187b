"""Check a release: `python -m release.check [FOLDER] [--dense]` builds the packages, and tries them as a user would.

It builds sdist and wheel into FOLDER (`dist/`), checks them with twine, installs the wheel with the dependencies of the
core into a bare environment, and takes the tour there from an empty folder. It fails if the environment is then larger
than `MOST_MEGABYTES`. pip compiles no bytecode, but what Python and numba compile during the tour counts. The seconds
depend on the machine and the network, so they are only reported. With `--dense`, the extra `dense` is then added to the
environment, and the tour with embeddings is taken there; no limit applies to it.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
import venv
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]

MOST_SECONDS, MOST_MEGABYTES = 60, 800

MOST_LISTED = 6
"""How many of the largest packages are listed."""


def main() -> int:
    """Return 1 if the environment is too large; raises `CalledProcessError` if a step fails."""
    parser = argparse.ArgumentParser(prog="python -m release.check")
    parser.add_argument("folder", nargs="?", default=ROOT / "dist", type=Path, help="where the packages are built")
    parser.add_argument("--dense", action="store_true", help="also try the extra dense")
    arguments = parser.parse_args()
    packages = build(arguments.folder.resolve())
    with tempfile.TemporaryDirectory() as folder:
        check_metadata(packages, Path(folder) / "tools")
        megabytes = take_tour(str(packages[-1]), "tour", Path(folder))
        print(f"wanted: at most {MOST_SECONDS} s on an idle machine, and at most {MOST_MEGABYTES} MB")
        if arguments.dense:
            take_tour(f"{packages[-1]}[dense]", "tour_dense", Path(folder))
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


def take_tour(package: str, experiment: str, folder: Path) -> float:
    """Install a package, take a tour from an empty folder, print time and size, and return the size in megabytes.

    The environment in `folder` is created unless an earlier tour did so.
    """
    environment, empty = folder / "bare", folder / experiment
    empty.mkdir()
    start = time.monotonic()
    python = create_environment(environment)
    _run([*_pip(python), package], folder)
    installed = time.monotonic()
    _run([python, "-m", "runner", f"experiment={experiment}"], empty)
    end, (megabytes, largest) = time.monotonic(), measure(environment)
    took = f"{installed - start:.0f} s to install, {end - installed:.0f} s to the leaderboard"
    print(f"{experiment}: {end - start:.0f} s ({took}), {megabytes:.0f} MB, of which {largest}")
    return megabytes


def create_environment(folder: Path) -> str:
    """Create a virtual environment and return its interpreter."""
    is_windows = sys.platform == "win32"
    venv.create(folder, with_pip=True, symlinks=not is_windows)
    return str(folder / ("Scripts/python.exe" if is_windows else "bin/python"))


def measure(environment: Path) -> tuple[float, str]:
    """Return the megabytes of an environment, and a line with its largest packages.

    They are counted as `du -m` does: disk usage in units of 2**20 bytes; on Windows, the sizes of files.
    """
    sizes = Counter[str]()
    for path in environment.rglob("*"):
        stat, parts = path.lstat(), path.relative_to(environment).parts
        below = parts[parts.index("site-packages") + 1 :] if "site-packages" in parts else ()
        name = below[0].removesuffix(".libs") if below else ""
        sizes[name] += stat.st_size if sys.platform == "win32" else stat.st_blocks * 512
    megabytes = {name: size / 2**20 for name, size in sizes.most_common()}
    largest = [f"{name} {megabytes[name]:.0f}" for name in megabytes if name][:MOST_LISTED]
    return sum(megabytes.values()), ", ".join(largest)


def _pip(python: str) -> list[str]:
    return [python, "-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check"]


def _run(command: Sequence[str], folder: Path) -> None:
    print("$", *command, flush=True)
    subprocess.run(command, cwd=folder, check=True)


if __name__ == "__main__":
    sys.exit(main())
