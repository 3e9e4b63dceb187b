"""Create a project: configuration, a dataset, a plug-in with its test, a CI workflow, a README."""

from __future__ import annotations

import re
from pathlib import Path
from string import Template

from omegaconf import DictConfig
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from runner.config.addresses import LocalPath
from runner.config.objects import ConfigError, build_settings
from runner.config.values import resolve_config
from runner.reports import console

TEMPLATES = Path(__file__).parents[1] / "templates" / "project"
"""The files of a new project; each ends in `.in` and may contain $name and $module."""

_PLACES = {"plugin.py": "$module.py", "workflows/ci.yml": ".github/workflows/ci.yml"}


@settings(frozen=True, config={"extra": "forbid"})
class ProjectSettings:
    """Where the project is created: see `conf/new.yaml`."""

    folder: LocalPath = Field(min_length=1)


def main(cfg: DictConfig) -> int:
    """Create a project; raises `ConfigError` if the folder has files or no name that a module can have."""
    folder = Path(build_settings(ProjectSettings, resolve_config(cfg)).folder)
    name = folder.resolve().name
    module = re.sub(r"\W", "_", name).lower()
    if not re.fullmatch(r"[a-z]\w*", module, re.ASCII):
        raise ConfigError(f"folder={folder}: its name should begin with a letter and have letters and digits of ASCII")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"folder={folder}: exists and is not empty; choose a new folder")
    files = []
    for file in sorted(TEMPLATES.rglob("*.in")):
        path = file.relative_to(TEMPLATES).as_posix().removesuffix(".in")
        target = folder / Template(_PLACES.get(path, path)).substitute(module=module)
        target.parent.mkdir(parents=True, exist_ok=True)
        text = file.read_text(encoding="utf-8")
        target.write_text(Template(text).substitute(name=name, module=module), encoding="utf-8")
        files.append(str(target))
    console.document(lambda: {"folder": str(folder), "files": files})
    console.line(f"created {folder}; next:")
    console.line(f"  cd {folder} && python -m pip install --editable . && python -m runner experiment=first")
    return 0
