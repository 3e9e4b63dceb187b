"""Fast composition of many combinations.

Hydra composes each distinct choice of groups once, and values are set on copies. A value on which nothing else depends
is set directly on the settled config of the other overrides.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hydra.core.config_loader import ConfigLoader
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, OverrideType
from hydra.types import RunMode
from omegaconf import MISSING, DictConfig, Node, OmegaConf, open_dict

from runner.config.environment import RESOLVER
from runner.config.hydra_internals import apply_overrides, create_repository, is_untyped_value, iter_children, raw_value
from runner.config.mistakes import explain
from runner.config.objects import ConfigError, suggestion
from runner.config.values import NAME_OF_DATASET, Settled, settle, with_value

_REFERENCE = re.compile(r"\$\{([^${}:.\[][^${}:\[]*)[^${}:]*\}")
"""An interpolation of another setting by its full path."""

_FROM_ENVIRONMENT = re.compile(r"\$\{oc\.env:[^${}]*\}")


@dataclass(frozen=True)
class _Base:
    """The config that Hydra composes from choices of groups.

    `alone` has the settings on which nothing else depends, `missing` those of them that have no value.
    """

    config: DictConfig
    alone: frozenset[str]
    missing: frozenset[str]
    values: dict[str, Any] = field(default_factory=dict)
    """A cache of looked-up values, by key."""

    @property
    def choices(self) -> Mapping[str, Any]:
        return self.config.hydra.runtime.choices  # type: ignore[no-any-return]  # Hydra has no types


@dataclass(frozen=True)
class _Parsed:
    """An override, whether it is a choice of a group, and whether its value is plain."""

    line: str
    override: Override
    of_group: bool
    plain: bool


class Composer:
    """Composes the combinations of one sweep with Hydra's config loader."""

    def __init__(self, loader: ConfigLoader, config_name: str, hydra_overrides: Sequence[str]) -> None:
        self._loader = loader
        self.verb = config_name
        self._fixed = [o for o in hydra_overrides if not o.startswith("hydra.sweeper.params")]
        self._repository = create_repository(loader, config_name, self._fixed)
        self._parser = OverridesParser.create(config_loader=loader)
        self._parsed: dict[str, _Parsed] = {}
        self._bases: dict[tuple[str, ...], _Base] = {}
        self._settled: dict[tuple[str, ...], Settled] = {}

    def compose(self, overrides: Sequence[str]) -> DictConfig:
        """Return the config that Hydra composes for these overrides; raises Hydra's errors or `ConfigError`."""
        parsed = [self._parse(line) for line in overrides]
        config = copy.deepcopy(self._base(parsed).config)
        apply_overrides([p.override for p in parsed if not p.of_group], config)
        return config

    def settle(self, overrides: Sequence[str]) -> Settled:
        """Return the settled config of these overrides; raises the errors of `compose` and `settle`."""
        parsed = [self._parse(line) for line in overrides]
        alone = self._base(parsed).alone
        late = [p for p in parsed if p.plain and p.override.key_or_group in alone]
        first = [p for p in parsed if not (p.plain and p.override.key_or_group in alone)]
        if any(_touches(p, late) for p in first if not p.of_group):
            late, first = [], parsed
        missing = self._base(parsed).missing  # a config cannot be settled until these have a value
        needed = {p.line: p.override.key_or_group for p in late if p.override.key_or_group in missing}
        key = *(p.line for p in first), *needed.values()
        if key not in self._settled:
            config = self.compose([*(p.line for p in first), *needed])
            self._settled[key] = settle(config, config.hydra.runtime.choices)
        settled = self._settled[key]
        for p in late:
            settled = with_value(settled, p.override.key_or_group, p.override.value())
        return settled

    def value(self, overrides: Sequence[str], key: str) -> Any:  # noqa: ANN401 (any value)
        """Return the choice of a group, or the value of a setting, given only the choices of groups.

        Axes are ignored. Raises `ConfigError` for an unknown key.
        """
        parsed = [self._parse(line) for line in overrides]
        base = self._base([p for p in parsed if p.of_group and not p.override.is_sweep_override()])
        if key not in base.values:
            base.values[key] = base.choices[key] if key in base.choices else _select(base.config, key)
        return base.values[key]

    def is_group(self, key: str) -> bool:
        """Return whether a key is a group."""
        return bool(self._repository.group_exists(key.partition("@")[0]))

    def _parse(self, line: str) -> _Parsed:
        if line not in self._parsed:
            (override,) = self._parser.parse_overrides([line])
            exists = self._repository.group_exists(override.key_or_group)
            of_group = exists and not isinstance(override.value(), dict)  # the same rule as Hydra's
            plain = override.type is OverrideType.CHANGE and override.package is None and _is_plain(override.value())
            self._parsed[line] = _Parsed(line, override, of_group, plain and not of_group)
        return self._parsed[line]

    def _base(self, parsed: Sequence[_Parsed]) -> _Base:
        groups = tuple(p.line for p in parsed if p.of_group)
        if groups not in self._bases:
            try:
                config = self._loader.load_configuration(self.verb, [*self._fixed, *groups], run_mode=RunMode.RUN)
            except ValueError as error:  # Hydra raises it for a group that is null
                raise ConfigError(explain(error, self.verb, groups)) from error
            choices = {**config.hydra.runtime.choices, **_several(parsed)}
            with open_dict(config):  # Hydra's whole node is slow to copy
                config["hydra"] = {"runtime": {"choices": choices}}
            alone = dict(_alone(config))
            missing = frozenset(path for path, value in alone.items() if value == MISSING)
            self._bases[groups] = _Base(config, frozenset(alone), missing)
        return self._bases[groups]


def _select(node: Any, key: str) -> Any:  # noqa: ANN401 (any node and any value)
    for name in key.split("."):
        known = [str(k) for k in node if k != "hydra"] if isinstance(node, DictConfig) else []
        if name not in known:
            raise ConfigError(f"{key}: no such setting; {suggestion(name, known, key.rpartition(name)[0])}")
        node = None if OmegaConf.is_missing(node, name) else node[name]
    return OmegaConf.to_container(node, resolve=True) if OmegaConf.is_config(node) else node


def _several(parsed: Sequence[_Parsed]) -> dict[str, str]:
    """Return the choices of several files from one group, joined by commas; Hydra does not record these."""
    chosen = {p.override.get_key_element().lstrip("+"): p.override.value() for p in parsed if p.of_group}
    return {group: ",".join(map(str, several)) for group, several in chosen.items() if isinstance(several, list)}


def _touches(parsed: _Parsed, others: Sequence[_Parsed]) -> bool:
    """Return whether an override may affect the settings of others."""
    path = parsed.override.key_or_group
    paths = [other.override.key_or_group for other in others]
    return bool(paths) and ("${" in str(parsed.override.value()) or any(_is_related(path, other) for other in paths))


def _is_related(path: str, other: str) -> bool:
    """Return whether one of two paths contains the other."""
    return f"{path}.".startswith(f"{other}.") or f"{other}.".startswith(f"{path}.")


def _is_plain(value: Any) -> bool:  # noqa: ANN401 (any value)
    """Return whether a value is plain: not a mapping, an interpolation or missing."""
    if isinstance(value, list):
        return all(_is_plain(element) for element in value)
    if isinstance(value, str):
        return "${" not in value and RESOLVER not in value and value != MISSING
    return value is None or isinstance(value, (bool, int, float))


def _alone(config: DictConfig) -> Iterator[tuple[str, Any]]:
    """Yield the path and value of each untyped setting within groups that no other value refers to."""
    text = json.dumps(OmegaConf.to_container(config, resolve=False), default=str, ensure_ascii=False)
    if "${" in _FROM_ENVIRONMENT.sub("", _REFERENCE.sub("", text)):
        return  # an interpolation that may refer to anything
    references = set(_REFERENCE.findall(text))
    if NAME_OF_DATASET.search(text):
        references.add("dataset")  # its other settings may give the name
    for group, node in iter_children(config):
        for path, value in _leaves(node, group) if group not in ("hydra", "choices") else ():
            if not any(_is_related(path, reference) for reference in references):
                yield path, value


def _leaves(node: Node, path: str) -> Iterator[tuple[str, Any]]:
    for key, child in iter_children(node):
        if isinstance(child, DictConfig):
            yield from _leaves(child, f"{path}.{key}")
        elif is_untyped_value(child) and (_is_plain(value := raw_value(child)) or value == MISSING):
            yield f"{path}.{key}", value
