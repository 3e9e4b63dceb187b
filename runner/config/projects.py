"""Finds the user's additions to the program: the config folder of a project, and installed plug-ins.

The `pyproject.toml` of a project names its folder: `conf = "conf"` in `[tool.retrieval-runner]`. An installed package
is a plug-in if it has an entry point in the group `retrieval_runner.plugins`, or `retrieval_runner.features`, whose
value is its module.
"""

from __future__ import annotations

import site
import sys
from functools import cache
from pathlib import Path

GROUP = "retrieval_runner.plugins"

FEATURES = "retrieval_runner.features"
"""The entry-point group in which packages name their features; the name of an entry is that of its command."""


def find_project_config(folder: Path) -> Path | None:
    """Return the config folder of the project in a folder, None if there is none; raises `ValueError`."""
    file = folder / "pyproject.toml"
    if not file.is_file():
        return None
    import tomllib  # imported here because --help needs it only in projects

    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        if "[tool.retrieval-runner]" not in file.read_text(encoding="utf-8", errors="replace"):
            return None  # the file has no settings of this program
        raise ValueError(f"{file}: cannot be read ({error})") from error
    name = content.get("tool", {}).get("retrieval-runner", {}).get("conf")
    if name is None:
        return None
    if not (folder / str(name)).is_dir():
        raise ValueError(f"{file}: tool.retrieval-runner.conf={name}: no such folder")
    return folder / str(name)


def list_plugins() -> dict[str, str]:
    """Return the module of each installed plug-in by its name; a feature is one, too."""
    return list_entry_points(GROUP) | list_entry_points(FEATURES)


@cache
def list_entry_points(group: str) -> dict[str, str]:
    """Return the module of each entry point of a group by its name; a folder of the user's path has none."""
    places = [place for place in sys.path if _is_for_packages(place)]
    if not any(_may_have(group, place) for place in places):
        return {}
    from importlib.metadata import distributions  # takes a quarter of the time of --help

    points = (point for package in distributions(path=places) for point in package.entry_points if point.group == group)
    return {point.name: point.module for point in sorted(points)}


def ignore_hydra_plugins_here() -> None:
    """Keep Hydra from importing a folder `hydra_plugins` of the working folder, unless this program is there."""
    import hydra_plugins

    here, own = Path.cwd().resolve(), Path(__file__).resolve().parents[2]
    parents = {place: Path(place).resolve().parent for place in hydra_plugins.__path__}
    kept = [place for place, parent in parents.items() if parent != here or here == own]
    hydra_plugins.__path__ = kept  # a plain list, as that of a namespace package follows `sys.path`


def _is_for_packages(place: str) -> bool:
    """Return whether an entry of `sys.path` is a folder into which packages are installed."""
    folders = [*site.getsitepackages(), site.getusersitepackages()]
    return Path(place or ".").resolve() in {Path(folder).resolve() for folder in folders}


def _may_have(group: str, place: str) -> bool:
    """Return whether a package in a folder for packages may have entry points of a group."""
    return any(group.encode() in file.read_bytes() for file in Path(place).glob("*-info/entry_points.txt"))
