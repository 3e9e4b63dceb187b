"""Build objects from a config: `_target_` names a class, whose signature is the schema.

Unlike Hydra's `instantiate`, it only creates classes of this program that declare what they use
(`retrievers.access`), of installed plug-ins and of modules named on the command line, and only if a parameter accepts
the object. Settings that name code are checked alike. So a YAML file from elsewhere cannot run arbitrary code.
Errors name the setting.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache, partial
from typing import Any, TypeVar, get_type_hints

from pydantic import ValidationError

from retrievers.access import find_access
from runner.config.errors import ConfigError as ConfigError  # most callers need both
from runner.config.projects import list_plugins

OWN_MODULES = ("retrievers", "runner")

T = TypeVar("T")


def build(node: Any, path: str, plugins: Sequence[str] = ()) -> Any:  # noqa: ANN401 (any configured object)
    """Return a node of a plain config with each mapping with `_target_` replaced by an object, innermost first.

    `path` is the key of the node in the config, for messages. Raises `ConfigError`.
    """
    if isinstance(node, Mapping):
        if "_target_" not in node:
            return {key: build(value, _join(path, key), plugins) for key, value in node.items()}
        target = locate_class(str(node["_target_"]), path, plugins)
        return _create(target, {key: value for key, value in node.items() if key != "_target_"}, path, plugins)
    if isinstance(node, (list, tuple)):
        return [build(value, f"{path}.{position}", plugins) for position, value in enumerate(node)]
    return node


def build_settings(
    kind: type[T], node: Any, path: str = "", plugins: Sequence[str] = ()  # noqa: ANN401 (any node)
) -> T:  # fmt: skip
    """Return an instance of a dataclass of settings, built from a node; raises `ConfigError`.

    `path` is the key of the node. Without it, the node is a whole config, and only keys that are fields of the
    dataclass are used. A mapping for a field that is a dataclass becomes an instance of it.
    """
    if node is not None and not isinstance(node, Mapping):
        names = ", ".join(f"{path}.{name}" for name in inspect.signature(kind).parameters)
        raise ConfigError(f"{path}={json.dumps(node, default=str)}: a group of settings, not a value; set {names}")
    given = {str(key): value for key, value in (node or {}).items()}
    if not path:
        given = {field.name: given[field.name] for field in fields(kind) if field.name in given}  # type: ignore[arg-type]  # a dataclass
    types = get_type_hints(kind)
    nested = {name: types[name] for name in given if is_dataclass(types.get(name)) and _is_plain(given[name])}
    built = {name: build_settings(types[name], given[name], _join(path, name), plugins) for name in nested}
    made: T = _create(kind, {**given, **built}, path, plugins)
    return made


def describe_settings(value: Any) -> Any:  # noqa: ANN401 (any configured object)
    """Return the config node from which `build` creates an object; values that YAML cannot express become names."""
    if is_dataclass(value) and not isinstance(value, type):
        kind = type(value)
        given = {field.name: getattr(value, field.name) for field in fields(value) if field.init}
        return {"_target_": f"{kind.__module__}.{kind.__qualname__}"} | describe_settings(given)
    if isinstance(value, Mapping):
        return {str(key): describe_settings(element) for key, element in value.items()}
    if isinstance(value, (list, tuple)):
        return [describe_settings(element) for element in value]
    if value is None or isinstance(value, (str, int, float)):
        return value
    return str(getattr(value, "__qualname__", type(value).__qualname__))


def _is_plain(node: object) -> bool:
    """Return whether a node is a mapping without `_target_`."""
    return isinstance(node, Mapping) and "_target_" not in node


def _join(path: str, key: str) -> str:
    """Return the full key of a setting in the node at `path`, "" for the top of the config."""
    return f"{path}.{key}" if path else str(key)


def _create(target: type, given: Mapping[str, Any], path: str, plugins: Sequence[str]) -> Any:  # noqa: ANN401 (any configured object)
    _check_names(target, given, path)  # before building objects for unknown parameters
    access = find_access(target)
    for name in (name for name in (access.code if access else ()) if given.get(name)):
        _check_code(str(given[name]), _join(path, name), plugins)
    return _call(target, {key: build(value, _join(path, key), plugins) for key, value in given.items()}, path)


def suggestion(word: str, possible: Iterable[str], before: str = "", after: str = "") -> str:
    """Return a correction of an unknown word, as the end of a message.

    `before` and `after` are added to the suggested word, so that it can be pasted.
    """
    known = sorted(set(possible) - {"_target_"})
    nearest = near(word, known)
    listed = ", ".join(known) or "none"
    return f"did you mean {before}{nearest}{after}? ({listed})" if nearest else describe_choices(known)


def describe_choices(names: Iterable[str]) -> str:
    """Return the possible values of a setting, as the end of a message."""
    *others, last = [*names] or ["none"]
    if not others:
        return f"choose {last}" if last != "none" else "none is available"
    return f"choose {', '.join(others)} or {last}"


def near(word: str, possible: Iterable[str]) -> str | None:
    """Return the most similar word, None if none is similar enough."""
    alike = 0.5 if len(word) < 4 else 0.65  # in k2, one letter is half of the word
    return next(iter(difflib.get_close_matches(word, sorted(possible), n=1, cutoff=alike)), None)


def locate_class(target: str, path: str, plugins: Sequence[str] = ()) -> type:
    """Return the class that `_target_` names in the node at `path`; raises `ConfigError` unless it may be created."""
    module, _, name = target.rpartition(".")
    _check_module(module, target, f"{path}._target_", plugins)
    try:
        located = getattr(importlib.import_module(module), name)
    except Exception as error:
        raise ConfigError(f"{path}._target_={target}: cannot be imported ({error})") from error
    if not inspect.isclass(located):
        raise ConfigError(f"{path}._target_={target}: should be a class")
    home = located.__module__  # a module may have imported it from anywhere
    _check_module(home, target, f"{path}._target_", plugins)
    if is_own(home) and find_access(located) is None:
        raise ConfigError(f"{path}._target_={target}: a config cannot create this class; see --help for the choices")
    return located


def _check_code(name: str, path: str, plugins: Sequence[str]) -> None:
    """Raise `ConfigError` for a module, or an object as `module:name`, that the command line does not allow to run.

    An object must be defined in an allowed module, and so must each module on the way to it: a module of the user may
    have imported anything. This program's own packages contain no factory.
    """
    module, colon, words = name.partition(":")
    _check_module(module, name, path, plugins)
    if not colon:
        return
    check_factory(name, path)
    try:
        thing: Any = importlib.import_module(module)
        for word in words.split("."):
            thing = getattr(thing, word)
            if inspect.ismodule(thing):
                _check_module(thing.__name__, name, path, plugins)
    except ConfigError:
        raise
    except Exception:
        return
    for home in _list_homes(thing):
        check_factory(name, path, home)
        _check_module(home, name, path, plugins)


def check_factory(name: str, path: str, home: str = "") -> None:
    """Raise `ConfigError` for a factory of this program, by its name, `module:name`, or the module that defines it."""
    module, colon, _ = name.partition(":")
    if colon and (is_own(module) or is_own(home)):
        raise ConfigError(f"{path}={name}: this program contains no factory; name a function of your own")


def _list_homes(thing: Any) -> list[str]:  # noqa: ANN401 (any object)
    """Return the modules that define an object, and the object or class to which a method is bound."""
    if isinstance(thing, partial):
        return _list_homes(thing.func)
    own = [str(getattr(thing, "__module__", None) or type(thing).__module__)]
    return [*own, *_list_homes(thing.__self__)] if inspect.ismethod(thing) else own


def is_own(module: str) -> bool:
    """Return whether a module belongs to this program."""
    return _is_within(module, OWN_MODULES)


def is_allowed(module: str, plugins: Sequence[str]) -> bool:
    """Return whether a module is, or belongs to, one of the modules that the command line names."""
    return _is_within(module, plugins)


def is_installed(module: str) -> bool:
    """Return whether a module belongs to an installed plug-in."""
    return _is_within(module, list_plugins().values())


def _check_module(module: str, target: str, path: str, plugins: Sequence[str]) -> None:
    if not (is_own(module) or is_allowed(module, plugins) or is_installed(module)):
        raise ConfigError(
            f"{path}={target}: a config can only create classes of this program; to allow another module, name it "
            f"on the command line: 'plugins=[{module.partition('.')[0]}]'"
        )


def _is_within(module: str, packages: Iterable[str]) -> bool:
    return any(f"{module}.".startswith(f"{package}.") for package in packages)


@cache
def _parameters(target: type) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(target).parameters


def _check_names(target: type, values: Mapping[str, Any], path: str) -> None:
    parameters = _parameters(target)
    for name in values:
        if name not in parameters:
            raise ConfigError(f"{_join(path, name)}: no such setting; {suggestion(name, parameters, _join(path, ''))}")
    for name, parameter in parameters.items():
        if parameter.default is parameter.empty and name not in values:
            raise ConfigError(f"{_join(path, name)}: is required; set {_join(path, name)}=VALUE")


def _call(target: type, values: Mapping[str, Any], path: str) -> Any:  # noqa: ANN401 (any configured object)
    try:
        made = target(**values)
    except ValidationError as error:
        raise ConfigError(_one_line(error, path)) from error
    except ValueError as error:
        raise ConfigError(f"{path}: {error}" if path else str(error)) from error
    for name in (name for name, value in values.items() if isinstance(value, bool)):
        if type(getattr(made, name, None)) in (int, float):
            raise ConfigError(f"{_join(path, name)}={str(values[name]).lower()}: should be a number")
    return made


def _one_line(error: ValidationError, path: str) -> str:
    """Return a description of the first error: the setting, its value, and what is expected."""
    first, *others = error.errors(include_url=False)
    if first["type"] != "value_error":  # for a union, take the alternative that was parsed furthest
        first = next((e for e in others if e["type"] == "value_error" and e["loc"][:1] == first["loc"][:1]), first)
    parts = (str(part) for part in first["loc"] if not isinstance(part, str) or part.isidentifier())
    place = ".".join(filter(None, [path, *parts]))
    message = first["msg"].removeprefix("Value error, ").replace("Input should", "should")
    value = first["input"]
    shown = value if isinstance(value, str) else json.dumps(value, default=str)
    if first["type"] in ("tuple_type", "list_type") and value is not None:
        message = f"should be a list, such as '{place}=[{shown}]'"
    if value is None and first["type"] != "value_error":
        message = f"cannot be null; set {place}=VALUE"
    if first["type"] == "string_too_short" and value == "":
        message = "should not be empty"
    if first["type"] == "string_type" and isinstance(value, (int, float)):
        message = f"should be text; write '{place}=\"{shown}\"'"
    given = f"={shown}" if isinstance(value, (str, int, float, list)) or value is None else ""
    return f"{place}{given}: {message}"
