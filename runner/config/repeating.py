"""The overrides that repeat an evaluation: its recorded settings, so that later changes of YAML files do not count."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from runner.config import SHARED_GROUPS
from runner.config.arguments import format_override
from runner.config.values import VOLATILE

_KEY = re.compile(r"[\w-]+(\.[\w-]+)*", re.ASCII)


def list_overrides(config: Mapping[str, Any]) -> dict[str, str]:
    """Return a recorded config as overrides by key: the choices of groups, then each value.

    Secrets were not recorded: their overrides have `***`. Where work is done and logged is left out, and so are values
    under keys that an override cannot name, such as `{field}` in the request of a search engine.
    """
    overrides = {str(group): f"{group}={choice}" for group, choice in config.get("choices", {}).items()}
    for key, value in config.items():
        if key not in (*VOLATILE, "choices"):
            overrides |= {path: format_override(path, leaf) for path, leaf in _iter_leaves(value, key, config)}
    for key in ("plugins", "public_environment"):
        if config.get(key):
            overrides[key] = format_override(key, config[key])
    return overrides


def _iter_leaves(node: Any, path: str, config: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 (any value)
    """Yield each value with its path, except references to shared groups, such as `${analyzer}` in a retriever."""
    *parents, last = path.split(".")
    if last == "_target_" or (parents and last in SHARED_GROUPS and node == config.get(last)):
        return
    if isinstance(node, Mapping) and node:
        for key, value in node.items():
            yield from _iter_leaves(value, f"{path}.{key}", config)
    elif not isinstance(node, Mapping) and _KEY.fullmatch(path):
        yield path, node
