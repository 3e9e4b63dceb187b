"""Finds settings that refer to a secret of other settings, or that stand beside one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from runner.config.environment import RESOLVER
from runner.config.values import list_secrets

_MARK = "__a_secret__"
"""Stands for a secret while references are resolved."""

_HOLDERS = ("dsn", "secret_headers")
"""Settings that are secrets as a whole."""


class SecretReferences:
    """The secrets of a composed config, of which `own` is the part of the user, with the settings that were typed."""

    def __init__(self, config: Mapping[str, Any], own: Mapping[str, Any], typed: Mapping[str, Any]) -> None:
        self._config, self._own, self._typed = config, own, typed

    def are_read(self, path: Sequence[str]) -> bool:
        """Return whether the value at a path has a secret of another setting once its references are resolved.

        An object as a whole may be referred to: its secrets go to its own address.
        """
        marked = self._marked.copy()
        text: Any = self._config
        for part in path:
            text = text[part]
        try:
            _set(marked, path, text)
            value = OmegaConf.select(marked, _join(path))
            plain = OmegaConf.to_container(value, resolve=True) if OmegaConf.is_config(value) else value
        except OmegaConfBaseException:  # reported when the config is resolved
            return False
        return not (isinstance(plain, Mapping) and "_target_" in plain) and _MARK in json.dumps(plain, default=str)

    def are_beside(self, path: Sequence[str]) -> bool:
        """Return whether the user set a secret in the group that has this path."""
        node: Any = self._own
        for part in path[:-1]:
            node = node.get(part) if isinstance(node, Mapping) else None
        group = ".".join(path[:-1]) + "."
        typed = [(key.rpartition(".")[2], value) for key, value in self._typed.items() if key.startswith(group)]
        return any(_MARK in json.dumps(_mark(value, key), default=str) for key, value in (("", node), *typed))

    @cached_property
    def _marked(self) -> DictConfig:
        """The config with marks in place of secrets."""
        marked = OmegaConf.create(_mark(self._config, ""))
        assert isinstance(marked, DictConfig)  # noqa: S101 (the root of a config is a mapping)
        for key, value in self._typed.items():
            if "@" not in key and not OmegaConf.is_config(OmegaConf.select(marked, key, throw_on_missing=False)):
                _set(marked, key.split("."), _mark(value, key.rpartition(".")[2]))
        return marked


def _set(config: DictConfig, path: Sequence[str], value: Any) -> None:  # noqa: ANN401 (any value)
    OmegaConf.update(config, _join(path), value, merge=False, force_add=True)


def _join(path: Sequence[str]) -> str:
    """Return a path in the syntax of OmegaConf, whose parts may contain dots."""
    return "".join(f"[{part}]" for part in path)


def _mark(value: Any, key: str) -> Any:  # noqa: ANN401 (any value)
    """Return a value with a mark in place of each text that has a secret, or refers to the environment."""
    if isinstance(value, Mapping):
        return {k: _mark(v, key if key in _HOLDERS else str(k)) for k, v in value.items()}
    if isinstance(value, list):
        return [_mark(v, key) for v in value]
    is_secret = isinstance(value, str) and (
        RESOLVER in value or list_secrets(value, key) or (value and key in _HOLDERS)
    )
    return _MARK if is_secret else value
