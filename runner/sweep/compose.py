"""Configs of many combinations, quickly: Hydra composes each distinct choice of groups once, values go onto copies."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra.core.config_loader import ConfigLoader
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf, open_dict

from runner.config.mistakes import explain
from runner.config.objects import ConfigError


class Composer:
    """Composes combinations of one sweep on top of Hydra's own config loader."""

    def __init__(self, loader: ConfigLoader, config_name: str, hydra_overrides: Sequence[str]) -> None:
        self._loader = loader
        self.verb = config_name
        self._fixed = [o for o in hydra_overrides if not o.startswith("hydra.sweeper.params")]
        self._parser = OverridesParser.create(config_loader=loader)
        self._parsed: dict[str, Override] = {}
        self._bases: dict[tuple[str, ...], DictConfig] = {}

    def compose(self, overrides: Sequence[str]) -> DictConfig:
        """Return the config that Hydra composes for these overrides. Raises what Hydra does, or `ConfigError`."""
        parsed = [self._parse(override) for override in overrides]
        groups = tuple(o.input_line or "" for o in parsed if self._is_group(o))
        base = self._bases.get(groups)
        if base is None:
            try:
                base = self._loader.load_configuration(self.verb, [*self._fixed, *groups], run_mode=RunMode.RUN)
            except ValueError as error:  # of Hydra, for a group that is null
                raise ConfigError(explain(error, self.verb, groups)) from error
            with open_dict(base):  # all that is wanted of Hydra's own node, which is costly to copy
                base["hydra"] = {"runtime": {"choices": OmegaConf.to_container(base.hydra.runtime.choices)}}
            self._bases[groups] = base
        cfg = copy.deepcopy(base)
        ConfigLoaderImpl._apply_overrides_to_config([o for o in parsed if not self._is_group(o)], cfg)
        return cfg

    def _parse(self, override: str) -> Override:
        if override not in self._parsed:
            self._parsed[override] = self._parser.parse_override(override)
        return self._parsed[override]

    def _is_group(self, override: Override) -> bool:
        """Tell a choice of a group from a value, as Hydra does."""
        exists = self._loader.repository.group_exists(override.key_or_group)  # type: ignore[attr-defined]
        return bool(exists) and not isinstance(override.value(), dict)
