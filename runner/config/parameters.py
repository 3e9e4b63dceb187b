"""Selects the settings that affect the output of a command, for use as parameters of its run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any


def deciding(config: Mapping[str, Any], made: object) -> dict[str, Any]:
    """Return a config without settings that cannot affect the output: those not in the repr of the object `made`."""
    idle = {field.name for field in fields(made) if not field.repr} if is_dataclass(made) else set()
    kept = {key: value for key, value in config.items() if key not in idle}
    return {
        key: deciding(value, getattr(made, key, None)) if isinstance(value, Mapping) else value
        for key, value in kept.items()
    }


def flatten(config: Mapping[str, Any], path: str = "") -> dict[str, str]:
    """Return settings by their full keys, without `_target_`; values other than text are JSON."""
    parameters: dict[str, str] = {}
    for key, value in config.items():
        if isinstance(value, Mapping):
            parameters |= flatten(value, f"{path}{key}.")
        elif key != "_target_":
            parameters[f"{path}{key}"] = value if isinstance(value, str) else json.dumps(value)
    return parameters
