"""The settings in which two recorded configurations differ, and configurations with some settings of each.

Only settings that can change a result count: those of the retriever, the chunking and the depth of the search.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runner.comparison.labels import format_setting
from runner.config import SHARED_GROUPS
from runner.evaluation.result import Result

CHUNKING = ("dataset", "chunking")
TARGET = "_target_"
WHOLE_GROUPS = tuple(group for group in SHARED_GROUPS if group != "chunking")
"""Groups that count as one setting in all parts that share them; the settings of chunking are compared one by one."""

Path = tuple[str, ...]
_ABSENT = object()


@dataclass(frozen=True)
class SettingChange:
    """A setting with another value in two configurations, at one or several places."""

    name: str
    before: str
    after: str
    places: tuple[Path, ...]

    def __str__(self) -> str:
        return f"{self.name} {self.before} to {self.after}"


def list_settings_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[SettingChange]:
    """Return the settings that differ between two recorded configurations, in the order of their places.

    A component of another class counts as one setting, and so does an analyzer or encoder that all components share.
    """
    places: dict[str, list[Path]] = {}
    for root in (("retriever",), CHUNKING):
        for name, path in _iter_changes(_find(before, root), _find(after, root), root, before, after):
            places.setdefault(name, []).append(path)
    if _find(before, ("metrics", "depth")) != _find(after, ("metrics", "depth")):
        places["metrics.depth"] = [("metrics",)]
    return [
        SettingChange(name, _describe(before, name, paths[0]), _describe(after, name, paths[0]), tuple(paths))
        for name, paths in places.items()
    ]


def mix_settings(baseline: Result, candidate: Result, wanted: Collection[str]) -> Mapping[str, Any]:
    """Return the baseline's configuration with the candidate's values of the `wanted` settings."""
    changes = list_settings_changes(baseline.config, candidate.config)
    if len(wanted) == len(changes):
        return candidate.config
    config = baseline.config
    for change in changes:
        if change.name in wanted:
            for path in change.places:
                config = _replace(config, path, _find(candidate.config, path))
    return {**config, "choices": candidate.config["choices"]} if "retriever" in wanted else config


def _iter_changes(
    old: Any,  # noqa: ANN401 (any recorded value)
    new: Any,  # noqa: ANN401 (any value)
    path: Path,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
) -> Iterator[tuple[str, Path]]:
    """Yield the name and the place of each setting that differs."""
    if old == new:
        return
    for group in WHOLE_GROUPS:
        if isinstance(old, Mapping) and old == before.get(group) and new == after.get(group):
            yield group, path
            return
    if not (isinstance(old, Mapping) and isinstance(new, Mapping) and old.get(TARGET) == new.get(TARGET)):
        yield "chunking" if path == CHUNKING else ".".join(path), path
        return
    for key in dict.fromkeys((*old, *new)):
        yield from _iter_changes(old.get(key, _ABSENT), new.get(key, _ABSENT), (*path, str(key)), before, after)


def _find(config: Any, path: Sequence[str]) -> Any:  # noqa: ANN401 (any recorded value)
    for key in path:
        config = config.get(key, _ABSENT) if isinstance(config, Mapping) else _ABSENT
    return config


def _replace(config: Mapping[str, Any], path: Sequence[str], value: Any) -> dict[str, Any]:  # noqa: ANN401 (any value)
    key, *rest = path
    if rest:
        return {**config, key: _replace(config.get(key, {}), rest, value)}
    others = {other: own for other, own in config.items() if other != key}
    return others if value is _ABSENT else {**config, key: value}


def _describe(config: Mapping[str, Any], name: str, path: Path) -> str:
    """Return the value of a setting: the choice of its group, the name of a class, or the value itself."""
    choice = (config.get("choices") or {}).get(name)
    if choice is not None:
        return str(choice)
    value = _find(config, ("metrics", "depth") if name == "metrics.depth" else path)
    if value is _ABSENT:
        return "unset"
    if isinstance(value, Mapping):
        return str(value.get(TARGET, "other settings")).rpartition(".")[2]
    return format_setting(value)
