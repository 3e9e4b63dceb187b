"""Limits what config files from elsewhere may set, before Hydra acts on what they say.

The user's own files are those of this program and of the project in the working folder. Other files may not configure
Hydra, which creates the objects that its config names, nor name places outside the working folder or secrets. What the
command line sets is not limited; `trust` allows places and secrets in files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from retrievers.access import find_access
from runner.config.addresses import is_address
from runner.config.features import list_conf_folders
from runner.config.hydra_internals import Composition, check_compositions
from runner.config.objects import ConfigError, locate_class
from runner.config.objects import is_own as is_own_module
from runner.config.projects import find_project_config
from runner.config.secret_references import SecretReferences

HYDRA_KEYS = tuple(
    f"hydra.{key}"
    for key in ("mode", *(f"sweeper.{name}" for name in ("params", "n_trials", "sampler", "seed", "objectives")))
)
"""The settings of Hydra that any file may set: they say what is swept."""

SWEEPERS = ("grid", "optuna")
"""The choices of `hydra/sweeper` that any file may make."""

COMMAND_LINE = ("hydra", "sweep.address", "sweep.slurm", "host")
"""Settings that run code, or connect the program with others: only for the command line and the user's own files."""

WHOLE = ("hydra", "store", "sweep", "tracking")
"""Groups that a file may not replace by a reference to settings under another name."""

PLACES = re.compile(
    r"store\.(path|copies)|tracking\.(uri|artifacts)|(sweep\.)?output|junit|baselines|folder|sheet|ledger"
)
"""Settings that name what is written; `ledger` in any group."""

SECRETS = frozenset({"api_key_env", "secret_headers", "dsn", "public_environment"})
"""Settings, in any group, that name environment variables, or that the library behind them completes from these."""

AXES = ("sweep.union", "hydra.sweeper.params")
"""Settings whose keys are those of other settings."""

_LOOPBACK = re.compile(r"https?://(localhost|127\.0\.0\.1|\[::1\])(:\d+)?(/[\w./-]*)?")
"""An address of this machine."""

_REFERENCE = re.compile(r"\$\{(?:(?:oc\.select|oc\.dict\.keys|oc\.dict\.values|now):)?[^${}:]*\}")
"""An interpolation that reads nothing outside the config."""

_SQLITE = "sqlite:///"

_ABSENT = object()


def check_origins(overrides: Sequence[str]) -> AbstractContextManager[None]:
    """Return a context in which Hydra uses no config with what files from elsewhere may not set (`ConfigError`).

    `overrides` are those of the command line, which replace what files set, and of which `trust` is one.
    """
    return check_compositions(is_own, lambda composition: _check(composition, dict(_iter_typed(overrides))))


def _iter_typed(overrides: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """Yield each setting on the command line with its value; an axis has none."""
    parser = OverridesParser.create()
    for word in overrides:
        with suppress(HydraException):  # reported when the config is composed
            (override,) = parser.parse_overrides([word])
            value = None if override.is_sweep_override() else override.value()
            changes = _iter_changes({}, value, (override.key_or_group,))
            yield from ((".".join(path), leaf) for path, leaf in changes)


def is_own(file: Path) -> bool:
    """Return whether a config file, or a folder of them, belongs to this program or to the user's project."""
    place = file.resolve()
    if any(place.is_relative_to(folder.resolve()) for folder in list_conf_folders()):
        return True
    try:
        project = find_project_config(Path.cwd())
    except ValueError:  # reported when the command starts
        return False
    return project is not None and place.is_relative_to(project.resolve())


def check_search_path(content: Any, place: str) -> None:  # noqa: ANN401 (any content)
    """Raise `ConfigError` for a file from elsewhere that names folders of config files, which Hydra reads at once."""
    node = content.get("hydra") if isinstance(content, Mapping) else None
    if node is not None and not isinstance(node, Mapping):
        raise ConfigError(_refuse(place, "hydra"))
    if node is not None and "searchpath" in node:
        raise ConfigError(_refuse(place, "hydra.searchpath"))


def _check(composition: Composition, typed: Mapping[str, Any]) -> None:
    """Raise `ConfigError` for the first setting that a file from elsewhere may not set."""
    for group, (file, choice) in composition.choices.items():
        if _is_within(group.replace("/", "."), "hydra") and (group, choice) not in {
            ("hydra/sweeper", s) for s in SWEEPERS
        }:
            raise ConfigError(_refuse(file, f"{group}={choice}"))
    trust = typed.get("trust") or ()
    config: Any = OmegaConf.to_container(composition.config, resolve=False)
    own: Any = OmegaConf.to_container(composition.own, resolve=False)
    foreign = [(file, OmegaConf.to_container(content, resolve=False)) for file, content in composition.foreign]
    secrets = SecretReferences(config, own, typed)
    for path, value in _iter_changes(own, config, ()):
        key = ".".join(path)
        if key in typed and key not in WHOLE:
            continue
        file = max(foreign, key=lambda part: _count_shared(part[1], path))[0]
        for name, setting in ((key, value), *_iter_axes(key, value)):
            if _is_for_command_line(name) or (name in WHOLE and isinstance(setting, str)):
                raise ConfigError(_refuse(file, name))
            for reason, allowing in _iter_objections(name, setting, config, path, secrets):
                if not set(allowing) & set(trust):
                    raise ConfigError(_describe(file, name, setting, reason, allowing[0]))
    launcher = str(composition.config.hydra.launcher._target_)
    if not launcher.startswith("hydra._internal."):
        raise ConfigError(
            f"hydra/launcher: {launcher} reads config files in other processes, where those from elsewhere are not "
            "limited; use sweep.backend instead, or make the folder of --config-dir that of your own project"
        )


def _iter_objections(
    key: str,
    value: Any,  # noqa: ANN401 (any value)
    config: Mapping[str, Any],
    path: tuple[str, ...],
    secrets: SecretReferences,
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield what is wrong with a setting in a file from elsewhere, with the words of `trust` of which one allows it."""
    if not _is_inside(key, value):
        yield "is not in the working folder", ("files",)
    if reason := _find_secret(key, value, config, path, secrets):
        yield reason, ("secrets",)
    if reason := _find_address(key, value, config, path):
        yield reason, ("services", "secrets")


def _refuse(file: str, key: str) -> str:
    return (
        f"{file}: {key}: only the command line and the config of your own project can set it; set it on the command "
        "line, or remove it"
    )


def _describe(file: str, key: str, value: object, reason: str, trust: str) -> str:
    return (
        f"{file}: {key}={value}: a config file from elsewhere set it, and it {reason}; set it on the command line, or "
        f"allow it with 'trust=[{trust}]'"
    )


def _is_within(key: str, other: str) -> bool:
    """Return whether a key is another key or below it."""
    return f"{key}.".startswith(f"{other}.")


def _is_for_command_line(key: str) -> bool:
    return any(_is_within(key, word) for word in COMMAND_LINE) and not any(_is_within(key, word) for word in HYDRA_KEYS)


def _iter_changes(before: Any, after: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:  # noqa: ANN401 (any nodes)
    """Yield the path and value of each leaf that is not the same in another node."""
    if isinstance(after, Mapping) and after:
        known = before if isinstance(before, Mapping) else {}
        for key, value in after.items():
            yield from _iter_changes(known.get(key, _ABSENT), value, (*path, str(key)))
    elif before is _ABSENT or before != after:
        yield path, after


def _count_shared(node: Any, path: tuple[str, ...]) -> int:  # noqa: ANN401 (any node)
    """Return how many parts of a path a node has."""
    for depth, key in enumerate(path):
        if not isinstance(node, Mapping) or key not in node:
            return depth
        node = node[key]
    return len(path)


def _iter_axes(key: str, value: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 (any value)
    """Yield the settings, with their values, that a part of a sweep's axes may set."""
    for place in AXES:
        if _is_within(key, place) and key != place:
            name = key.removeprefix(f"{place}.")
            yield from _split_packages(name, value)
            yield from _split_packages(name.partition(".")[2], value)  # below the name of a product
    products = value if isinstance(value, list) and any(_is_within(key, place) for place in AXES) else ()
    for product in products:
        for name, values in product.items() if isinstance(product, Mapping) else ():
            yield from _split_packages(str(name), values)


def _split_packages(name: str, value: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 (any value)
    """Yield the group and the package of an override's key, without its sign."""
    for part in re.split("[@:]", name):
        yield part.strip().lstrip("+~").strip().replace("/", "."), value


def _is_inside(key: str, value: Any) -> bool:  # noqa: ANN401 (any value)
    """Return whether a setting names no place outside the working folder."""
    if value is None or not (PLACES.fullmatch(key) or key.rpartition(".")[2] == "ledger"):
        return True
    texts = [*_iter_texts(value)]
    if key == "tracking.uri" and value != "none":
        if not str(value).startswith(_SQLITE):
            return False
        texts = [str(value).removeprefix(_SQLITE)]
    inside = (Path(text).resolve().is_relative_to(Path.cwd().resolve()) for text in texts)
    return all(inside) and not any(is_address(text) or text.startswith("~") or "${" in text for text in texts)


def _find_secret(
    key: str,
    value: Any,  # noqa: ANN401 (any value)
    config: Mapping[str, Any],
    path: tuple[str, ...],
    secrets: SecretReferences,
) -> str:
    """Return how a setting may read what is secret, or send it somewhere; "" if it does not."""
    texts = [*_iter_texts(value)]
    is_axis = any(_is_within(".".join(path), place) for place in AXES)  # its values are parsed once more
    if any("${" in (text if is_axis else _remove_references(text)) for text in texts):
        return "may read environment variables"
    if not is_axis and any("${" in text for text in texts) and secrets.are_read(path):
        return "refers to a secret"
    if value and not SECRETS.isdisjoint(key.split(".")):
        return "names a secret"
    if not _is_service(key, texts):
        return ""
    node = _find_group(config, path)
    usual = "unknown" if is_axis or _target(node).startswith("runner.llm.") else None  # some have a usual variable
    sends = node.get("api_key_env", usual) or node.get("secret_headers")
    return "is an address that a secret would be sent to" if sends or secrets.are_beside(path) else ""


def _find_address(key: str, value: Any, config: Mapping[str, Any], path: tuple[str, ...]) -> str:  # noqa: ANN401 (any value)
    """Return what an address on another machine would be used for; "" for a setting that has none."""
    texts = [*_iter_texts(_resolve(value, config, path))]
    if PLACES.fullmatch(key) or not _is_service(key, texts) or all(_LOOPBACK.fullmatch(text) for text in texts):
        return ""
    if key.endswith("base_url"):
        return "is an address that texts would be sent to"
    node, name = _find_owner(config, path)
    target = _target(node)
    access = find_access(locate_class(target, key)) if target and is_own_module(target.rpartition(".")[0]) else None
    if access is not None and name in access.paths:
        return "is an address that data would be read from with your credentials"
    return "is an address that texts would be sent to" if access is not None and access.needs == "services" else ""


def _resolve(value: Any, config: Mapping[str, Any], path: tuple[str, ...]) -> Any:  # noqa: ANN401 (any value)
    """Return a value with what its references stand for; those that cannot be resolved end the command later."""
    if not any("${" in text for text in _iter_texts(value)):
        return value
    node: Any = OmegaConf.create(dict(config))
    try:
        for part in path:
            node = node[part]
        return OmegaConf.to_container(node, resolve=True) if OmegaConf.is_config(node) else node
    except (OmegaConfBaseException, LookupError, TypeError):
        return value


def _is_service(key: str, texts: Sequence[str]) -> bool:
    """Return whether a setting may be the address of a service."""
    return key.endswith("base_url") or any("://" in text for text in texts)


def _find_group(config: Mapping[str, Any], path: tuple[str, ...]) -> Mapping[str, Any]:
    """Return the group of a setting; an empty one for an element of a list."""
    node: Any = config
    for part in path[:-1]:
        node = node[part]
    return node if isinstance(node, Mapping) else {}


def _find_owner(config: Mapping[str, Any], path: tuple[str, ...]) -> tuple[Mapping[str, Any], str]:
    """Return the innermost node with a class that a setting belongs to, and its key there; ({}, "") without one."""
    node, owner = config, (dict[str, Any](), "")
    for part in path:
        if not isinstance(node, Mapping):
            break
        if "_target_" in node:
            owner = (dict(node), part)
        node = node[part]
    return owner


def _target(node: Mapping[str, Any]) -> str:
    return str(node.get("_target_", ""))


def _iter_texts(value: Any) -> Iterator[str]:  # noqa: ANN401 (any value)
    if isinstance(value, str):
        yield value
    for element in value if isinstance(value, (list, Mapping)) else ():
        yield from _iter_texts(element)
        if isinstance(value, Mapping):
            yield from _iter_texts(value[element])


def _remove_references(text: str) -> str:
    """Return a text without the interpolations that read nothing outside the config."""
    while text != (shorter := _REFERENCE.sub("", text)):
        text = shorter
    return text
