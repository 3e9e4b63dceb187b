"""A composed config as plain values: resolved, flattened to parameters, without secrets, hashed.

Groups that the chosen retriever does not refer to (an encoder beside BM25) are left out: they decide nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from omegaconf import DictConfig, MissingMandatoryValue, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from retrievers.base import fingerprint
from runner.config.objects import ConfigError

SHARED_GROUPS = ("analyzer", "encoder")
"""Groups that are chosen once and reach every part that has none of its own."""

VOLATILE = ("tracking", "store", "sweep", "plugins")
"""What says where and how work is done, not what comes out."""

_SECRET_KEY = re.compile(r"(^|_)(api_?key|key|token|secret|password|passwd|credentials?)$", re.IGNORECASE)
_URI_PASSWORD = re.compile(r"(?<=://)([^/@:]*):[^/@]*(?=@)")


@dataclass(frozen=True)
class Settled:
    """A composed config with nothing left open.

    `config` is plain and resolved, without the groups that decide nothing, and has under `choices` what was chosen of
    each group. `parameters` are the same flattened, without secrets: choices first, each value once.
    """

    config: Mapping[str, Any]
    parameters: Mapping[str, str]


def settle(cfg: DictConfig, choices: Mapping[Any, Any]) -> Settled:
    """Resolve a composed config; `choices` are Hydra's. Raises `ConfigError` for what is missing or unresolvable."""
    raw = OmegaConf.to_container(cfg, resolve=False)
    if "experiment" in cfg:
        raise ConfigError(
            f"experiment={choices.get('experiment')}: the first line of its file must be # @package _global_"
        )
    try:
        config = OmegaConf.to_container(cfg, resolve=True, throw_on_missing=True)
    except MissingMandatoryValue as error:
        key = error.full_key or str(error)
        raise ConfigError(f"{key}: is required; set it with {key}=...") from None
    except OmegaConfBaseException as error:
        raise ConfigError(str(error).partition("\n")[0]) from None
    assert isinstance(raw, dict)  # noqa: S101 (the root of a config is a mapping)
    assert isinstance(config, dict)  # noqa: S101
    kept = raw.keys() - {"hydra"} - (set(SHARED_GROUPS) - _used(raw))
    settled: dict[str, Any] = {str(key): value for key, value in config.items() if key in kept}
    chosen = {str(group): choice for group, choice in choices.items() if choice is not None and group not in VOLATILE}
    settled["choices"] = {g: choice for g, choice in chosen.items() if g.partition("@")[0].partition("/")[0] in settled}
    return Settled(settled, _parameters(settled, raw))


def _parameters(config: Mapping[str, Any], raw: Mapping[Any, Any]) -> dict[str, str]:
    """Flatten a config; what only refers to another group (a retriever's `${analyzer}`) is not repeated."""
    references = {f"${{{group}}}" for group in SHARED_GROUPS}
    found = {group: str(choice) for group, choice in config["choices"].items()}

    def walk(node: Any, unresolved: Any, path: str) -> None:  # noqa: ANN401 (any value)
        if isinstance(unresolved, str) and unresolved in references:
            return
        if isinstance(node, Mapping):
            within = unresolved if isinstance(unresolved, Mapping) else {}
            for key, value in node.items():
                if key != "_target_":
                    walk(value, within.get(key), f"{path}.{key}")
        elif path not in found:
            found[path] = node if isinstance(node, str) else json.dumps(node, default=str)

    for key, value in public(config).items():
        if key not in (*VOLATILE, "choices"):
            walk(value, raw.get(key), key)
    return found


def public(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a config without its secrets: keys that name one, and passwords within addresses."""

    def hide(value: Any, key: str) -> Any:  # noqa: ANN401 (any value)
        if isinstance(value, Mapping):
            return {k: hide(v, str(k)) for k, v in value.items()}
        if isinstance(value, list):
            return [hide(v, key) for v in value]
        if value not in (None, "") and _SECRET_KEY.search(key):
            return "***"
        return _URI_PASSWORD.sub(r"\1:***", value) if isinstance(value, str) else value

    return {key: hide(value, key) for key, value in config.items()}


def config_hash(config: Mapping[str, Any]) -> str:
    """Return a hash of what of a config decides the result."""
    deciding = {key: value for key, value in public(config).items() if key not in VOLATILE}
    return fingerprint(json.dumps(deciding, sort_keys=True, default=str))


def _used(raw: Mapping[Any, Any]) -> set[str]:
    """Return the shared groups that the rest of a config refers to, directly or through one another."""
    used: set[str] = set()
    todo = [value for key, value in raw.items() if key not in (*SHARED_GROUPS, "hydra")]
    while todo:
        text = json.dumps(todo.pop(), default=str)
        for group in SHARED_GROUPS:
            if f"${{{group}" in text and group not in used:
                used.add(group)
                todo.append(raw.get(group))
    return used
