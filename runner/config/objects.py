"""How a config becomes objects: `_target_` names a class, and the class's signature is the schema.

Unlike Hydra's `instantiate`, it honours `_target_` only for classes of this project's modules and of the plugins that
the command line names, and only where something takes the object, so that a YAML file from elsewhere cannot have any
class made; and it names the setting that is wrong.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from pydantic import ValidationError

OWN_MODULES = ("retrievers", "runner")


class ConfigError(ValueError):
    """A setting is misspelt, missing, or has a value that is out of range."""


def build(node: Any, path: str, plugins: Sequence[str] = ()) -> Any:  # noqa: ANN401 (any configured object)
    """Return what a node of a plain config describes: objects where it has `_target_`, inside out.

    `path` is the node's place in the config, for messages. Raises `ConfigError`.
    """
    if isinstance(node, Mapping):
        target = _locate(str(node["_target_"]), path, plugins) if "_target_" in node else None
        given = {key: value for key, value in node.items() if key != "_target_"}
        if target:
            _check_names(target, given, path)  # before anything is made that nothing takes
        values = {key: build(value, f"{path}.{key}", plugins) for key, value in given.items()}
        return _call(target, values, path) if target else values
    if isinstance(node, (list, tuple)):
        return [build(value, f"{path}.{position}", plugins) for position, value in enumerate(node)]
    return node


def suggestion(word: str, possible: Iterable[str]) -> str:
    """Return what a misspelt word may have meant, as the end of a message."""
    known = sorted(set(possible) - {"_target_"})
    meant = near(word, known)
    return f"did you mean {meant}? ({', '.join(known)})" if meant else f"there are {', '.join(known) or 'none'}"


def near(word: str, possible: Iterable[str]) -> str | None:
    """Return the nearest of the words that a misspelt one may have meant, None where none is near."""
    alike = 0.5 if len(word) < 4 else 0.65  # of k2 one letter is half
    return next(iter(difflib.get_close_matches(word, sorted(possible), n=1, cutoff=alike)), None)


def _locate(target: str, path: str, plugins: Sequence[str]) -> type:
    module, _, name = target.rpartition(".")
    _check_module(module, target, path, plugins)
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"{path}._target_={target}: cannot be imported ({error})") from error
    if not inspect.isclass(found):
        raise ConfigError(f"{path}._target_={target}: is not a class")
    _check_module(found.__module__, target, path, plugins)  # a module may have imported it from anywhere
    return found


def _check_module(module: str, target: str, path: str, plugins: Sequence[str]) -> None:
    if not any(f"{module}.".startswith(f"{allowed}.") for allowed in (*OWN_MODULES, *plugins)):
        raise ConfigError(
            f"{path}._target_={target}: only this program's own classes are made from a config; to allow another "
            f"module, name it on the command line: 'plugins=[{module.partition('.')[0]}]'"
        )


@cache
def _parameters(target: type) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(target).parameters


def _check_names(target: type, values: Mapping[str, Any], path: str) -> None:
    parameters = _parameters(target)
    for name in values:
        if name not in parameters:
            raise ConfigError(f"{path}.{name}: no such setting; {suggestion(name, parameters)}")
    for name, parameter in parameters.items():
        if parameter.default is parameter.empty and name not in values:
            raise ConfigError(f"{path}.{name}: is required")


def _call(target: type, values: Mapping[str, Any], path: str) -> Any:  # noqa: ANN401 (any configured object)
    try:
        made = target(**values)
    except ValidationError as error:
        raise ConfigError(_one_line(error, path)) from error
    except ValueError as error:
        raise ConfigError(f"{path}: {error}") from error
    for name in (name for name, value in values.items() if isinstance(value, bool)):
        if type(getattr(made, name, None)) in (int, float):
            raise ConfigError(f"{path}.{name}={str(values[name]).lower()}: should be a number")
    return made


def _one_line(error: ValidationError, path: str) -> str:
    """Say the first thing that is wrong: which setting, its value, and what would be right."""
    first = error.errors(include_url=False)[0]
    place = ".".join([path, *(str(part) for part in first["loc"] if not isinstance(part, str) or part.isidentifier())])
    message = first["msg"].removeprefix("Value error, ").replace("Input should", "should")
    value = first["input"]
    shown = value if isinstance(value, str) else json.dumps(value, default=str)
    if first["type"] in ("tuple_type", "list_type") and value is not None:
        message = f"should be a list, such as [{shown}]"
    if first["type"] == "string_too_short" and value == "":
        message = "should not be empty"
    if first["type"] == "string_type" and isinstance(value, (int, float)):
        message = f"should be text, and is in quotes: '\"{shown}\"' on the command line"
    told = f"={shown}" if isinstance(value, (str, int, float, list)) or value is None else ""
    return f"{place}{told}: {message}"
