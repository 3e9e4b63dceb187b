"""What a user adds to the program: the config folder of a project, and installed plug-ins.

The `pyproject.toml` of a project names its folder: `conf = "conf"` in `[tool.retrieval-runner]`. An installed package
is a plug-in if it has an entry point in the group `retrieval_runner.plugins` whose value is its module.
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

GROUP = "retrieval_runner.plugins"


def find_project_config(folder: Path) -> Path | None:
    """Return the config folder that the project in a folder names, None without one; raises `ValueError`."""
    file = folder / "pyproject.toml"
    if not file.is_file():
        return None
    import tomllib  # --help needs it in projects only

    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        if "[tool.retrieval-runner]" not in file.read_text(encoding="utf-8", errors="replace"):
            return None  # another program's, to whom it matters
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
    """Return whether a package in a folder of `sys.path` names the group of plug-ins; an archive is not searched."""
    folder = Path(place or ".")
    if folder.is_file():
        return True
    return any(GROUP.encode() in file.read_bytes() for file in folder.glob("*-info/entry_points.txt"))
