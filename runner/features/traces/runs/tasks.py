"""Find the definitions of tasks by name, in any spelling that runs use.

A task is named by its folder and by the id in its `task.toml`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from runner.features.traces.runs.records import UnusableFileError, get_text, read_text
from runner.features.traces.runs.walk import walk_folders

_MARKS = {"task.toml", "task.yaml", "instruction.md", "ground_truth.json", "ground_truth_agent.json"}
_MANIFEST = "task.toml"
_IDS = (("task", "id"), ("task", "task_id"), ("metadata", "id"), ("metadata", "task_id"), ("id",), ("task_id",))
_PARTS = ("tests", "solution", "environment")
_MAX_WORDS = 32  # a longer name is not a task's
_SEPARATORS = re.compile(r"[_-]+")

_DECORATED = re.compile(
    r"(?:mcp|bl|baseline|sgonly|sdlc|org|csb|ccb)_(?:[a-z]+_)*"
    r"(?P<name>[A-Za-z0-9.]+(?:-[A-Za-z0-9.]+)+)(?:_[A-Za-z0-9]{6,8})?"
)
_TRIAL_SUFFIX = re.compile(r"__[A-Za-z0-9]{5,12}$")


@dataclass(frozen=True)
class Tasks:
    """The folders of task definitions by name and id; hyphens equal underscores, and case is ignored."""

    folders: Mapping[str, Sequence[Path]] = field(default_factory=dict)

    def find(self, name: str) -> Sequence[Path]:
        """Return the folders of a task, none if it is unknown.

        A run may decorate the name with a configuration, a suite or a random suffix, separated by underscores. The task
        is then the longest part that names one; a shorter part than the whole name must have more than one word.
        """
        words = name.split("_")[:_MAX_WORDS]
        spans = [(start, end) for start in range(len(words)) for end in range(start + 1, len(words) + 1)]
        for start, end in sorted(spans, key=lambda span: span[0] - span[1]):
            key = _key("_".join(words[start:end]))
            if key in self.folders and ("-" in key or end - start == len(words)):
                return self.folders[key]
        return ()


def find_tasks(roots: Iterable[Path]) -> Tasks:
    """Find the definitions of tasks below folders: the folders with a task's files, tests or solution."""
    by_name: dict[str, list[Path]] = {}
    by_id: dict[str, list[Path]] = {}
    for root in roots:
        for place in walk_folders(root, enters=lambda name: name not in _PARTS):
            if place.files & _MARKS or any(part in place.folders for part in _PARTS):
                _add(by_name, place.path.name, place.path)
                for name in _ids(place.path / _MANIFEST) if _MANIFEST in place.files else ():
                    _add(by_id, name, place.path)
    return Tasks({name: tuple(folders) for name, folders in {**by_id, **by_name}.items()})


def _add(names: dict[str, list[Path]], name: str, folder: Path) -> None:
    folders = names.setdefault(_key(name), [])
    folders += [folder] if folder not in folders else []


def _ids(manifest: Path) -> Sequence[str]:
    """Return the ids in a task's manifest, none if it is damaged."""
    try:
        content = tomllib.loads(read_text(manifest) or "")
    except (UnusableFileError, tomllib.TOMLDecodeError, RecursionError):
        return ()
    return tuple(dict.fromkeys(name for place in _IDS if (name := get_text(content, *place))))


def strip_decoration(name: str) -> str:
    """Return the name of a task without a run's additions, for tasks without a definition.

    A run may add `__` and a random suffix; around a name with hyphens, also the prefix of a configuration or suite and
    another random suffix: `mcp_ccx-migration-114_0b2c8f22`, `sdlc_test_envoy-code-review-001_Z8m4il`.
    """
    name = _TRIAL_SUFFIX.sub("", name)
    decorated = _DECORATED.fullmatch(name)
    return decorated["name"] if decorated else name


def _key(name: str) -> str:
    return _SEPARATORS.sub("-", name).casefold()
