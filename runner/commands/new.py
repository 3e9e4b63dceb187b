"""Create a project, or a CI job with a gate, from the templates of this program."""

from __future__ import annotations

import re
from pathlib import Path
from string import Template
from typing import Literal

from omegaconf import DictConfig
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.extras import locate_source
from retrievers.files import replace_texts
from runner.comparison.report.significance import describe_untestable
from runner.config.addresses import LocalPath
from runner.config.objects import ConfigError, build_settings
from runner.config.values import resolve_config
from runner.evaluation.records import load_record
from runner.pages import console

TEMPLATES = Path(__file__).parents[1] / "templates"
"""The folder of templates, each a subfolder; files that end in `.in` may contain $name and $module."""

BASELINE = Path("baselines", "main")
"""The record of the baseline that the jobs compare with by default."""

_PLACES = {"plugin.py": "$module.py", "workflows/ci.yml": ".github/workflows/ci.yml"}


@settings(frozen=True, config={"extra": "forbid"})
class ProjectSettings:
    """What is created, and where: see `conf/new.yaml`."""

    folder: LocalPath = Field(min_length=1)
    template: Literal["project", "github_action", "gitlab"] = "project"


def main(cfg: DictConfig) -> int:
    """Create the files; raises `ConfigError` if the folder is not empty or its name cannot be that of a module.

    A gate that can never fail a drop, because its baseline has too few queries, is announced.
    """
    own = build_settings(ProjectSettings, resolve_config(cfg))
    folder, is_project = Path(own.folder), own.template == "project"
    name = folder.resolve().name
    module = re.sub(r"\W", "_", name).lower()
    if is_project and not re.fullmatch(r"[a-z]\w*", module, re.ASCII):
        raise ConfigError(f"folder={folder}: the name should start with a letter and contain only ASCII characters")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"folder={folder}: already exists and is not an empty folder; choose another name")
    warning = "" if is_project or not BASELINE.is_dir() else describe_untestable(load_record(BASELINE, rankings=False))
    source = locate_source()
    is_local = Path(source).is_absolute() or " @ file:" in source
    texts = {"name": name, "module": module, "source": "" if is_local else source}
    files = []
    for file in sorted(path for path in (TEMPLATES / own.template).rglob("*") if path.is_file()):
        path = file.relative_to(TEMPLATES / own.template).as_posix().removesuffix(".in")
        target = folder / Template(_PLACES.get(path, path)).substitute(module=module)
        target.parent.mkdir(parents=True, exist_ok=True)
        text = file.read_text(encoding="utf-8")
        if file.suffix == ".in":
            text = Template(text).substitute(texts)
        replace_texts(target.parent, {target.name: text})
        files.append(str(target))
    console.document(lambda: {"folder": str(folder), "files": files})
    if is_project:
        console.line(f"created {folder}; next:")
        console.line(f"  cd {folder} && python -m pip install --editable . && python -m runner experiment=first")
    else:
        console.line(f"created {', '.join(files)}; see its first lines for how to use it in a workflow")
    if is_project and is_local:
        console.note(
            f"set RETRIEVAL_INSTALL in {folder / '.github'}: this copy was installed from a place on this machine"
        )
    if warning:
        console.note(f"{BASELINE}: {warning}")
    return 0
