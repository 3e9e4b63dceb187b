"""The files of `conf/` as plain values, each with the files of its group that it is built on."""

from __future__ import annotations

import re
import shlex
from itertools import dropwhile, takewhile
from pathlib import Path
from typing import Any

import yaml

from runner.config import CONF

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The parser of LibYAML, which takes a tenth of the time, where PyYAML has it."""

SETTING = re.compile(r"'?\+?[\w.]+=")
"""The start of a line that continues the command above it."""


def load_settings(file: Path) -> dict[str, Any]:
    """Return the settings of a file."""
    own = yaml.load(file.read_text(encoding="utf-8"), Loader=LOADER)
    settings: dict[str, Any] = {}
    for default in own.pop("defaults", []):
        place = str(default).removesuffix("@_here_")
        root = CONF if place.startswith("/") else file.parent
        if isinstance(default, str) and (base := root / f"{place.lstrip('/')}.yaml").is_file():
            settings |= load_settings(base)
    return settings | own


def list_names(group: str) -> list[str]:
    """Return the choices of a group in the order of messages, without those in its folders."""
    return sorted(file.stem for file in (CONF / group).glob("[!_]*.yaml"))


def find_settings(group: str, choice: str) -> list[str]:
    """Return the settings of a choice, and of a language model, in the first command at the top of its file.

    Settings that the command sweeps are left out.
    """
    lines = (CONF / group / f"{choice}.yaml").read_text(encoding="utf-8").splitlines()
    texts = dropwhile(lambda line: "python -m runner" not in line, (line.lstrip("# ") for line in lines))
    command, *more = next(texts).partition("python -m runner ")[2], *takewhile(SETTING.match, texts)
    words = [word for word in shlex.split(" ".join([command, *more])) if word != f"{group}={choice}"]
    own = [w for w in words if re.match(rf"\+?({group}\.|llm\b)", w) and not re.search(r"=[^{]*,|=\w+\(", w)]
    modules = (re.search(r"=(\w+):\w+$", word) for word in own)  # the command line may name the code that it runs
    return [*own, *(f"plugins=[{module[1]}]" for module in modules if module)]


def list_places(file: Path) -> set[str]:
    """Return the settings that a file's choices of other groups fill in: `/retriever@base: bm25` fills `base`."""
    defaults = yaml.safe_load(file.read_text(encoding="utf-8")).get("defaults", [])
    choices = [group for default in defaults if isinstance(default, dict) for group in default]
    return {group.partition("@")[2].partition(".")[0] for group in choices}
