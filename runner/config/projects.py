"""Finds the user's additions to the program: the config folder of a project, and installed plug-ins.

The `pyproject.toml` of a project names its folder: `conf = "conf"` in `[tool.retrieval-runner]`. An installed package
is a plug-in if it has an entry point in the group `retrieval_runner.plugins` whose value is its module.
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

GROUP = "retrieval_runner.plugins"


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


@cache
def list_plugins() -> dict[str, str]:
    """Return the module of each installed plug-in by its name."""
    if not any(map(_may_have_plugins, sys.path)):
        return {}
    from importlib.metadata import entry_points  # takes a quarter of the time of --help

    return {point.name: point.module for point in sorted(entry_points(group=GROUP))}


def _may_have_plugins(place: str) -> bool:
    """Return whether a package in an entry of `sys.path` may have plug-ins; an archive, which is not read, may."""
    folder = Path(place or ".")
    if folder.is_file():
        return True
    return any(GROUP.encode() in file.read_bytes() for file in folder.glob("*-info/entry_points.txt"))
