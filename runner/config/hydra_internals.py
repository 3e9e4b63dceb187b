"""The private parts of Hydra and OmegaConf that this program uses. No other module imports or touches them.

They may change in any release, so `TESTED_WITH` names the versions that they were tested with, and a test compares them
with the installed versions. After an upgrade, run `tests/config` and `tests/sweep`, then update the versions.
"""

from __future__ import annotations

import argparse
import copy
import os
import pickle
import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml
from hydra._internal import config_loader_impl
from hydra._internal import utils as hydra_utils
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.core_plugins.file_config_source import FileConfigSource
from hydra._internal.core_plugins.importlib_resources_config_source import ImportlibResourcesConfigSource
from hydra._internal.hydra import Hydra
from hydra._internal.sources_registry import SourcesRegistry
from hydra._internal.utils import create_config_search_path
from hydra.core.config_loader import ConfigLoader
from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.types import RunMode
from omegaconf import AnyNode, Container, DictConfig, ListConfig, Node, OmegaConf
from omegaconf._utils import get_yaml_loader

from runner.config.features import list_conf_folders

TESTED_WITH = {"hydra-core": "1.3.8", "omegaconf": "2.3.1"}

__all__ = [
    "TESTED_WITH",
    "Composition",
    "ConfigLoaderImpl",
    "FileConfigSource",
    "ImportlibResourcesConfigSource",
    "SourcesRegistry",
    "accept_lazy_help",
    "apply_overrides",
    "check_compositions",
    "compose_once",
    "convert_shown_config",
    "create_config_search_path",
    "create_repository",
    "find_preset",
    "format_element",
    "get_args_parser",
    "get_parsed_value",
    "is_untyped_value",
    "iter_children",
    "load_yaml",
    "raw_value",
    "reuse_compositions",
    "to_plain",
]

_slow_loader: Any = get_yaml_loader()
_parsers = (yaml.CSafeLoader,) if hasattr(yaml, "CSafeLoader") else ()  # faster; not in every build of PyYAML
_loader: Any = type("Loader", (*_parsers, _slow_loader), {})

_compositions: dict[Hashable, bytes] = {}
"""A cache of what Hydra composed from the files of this program; pickled, because callers change the objects."""

_MOST_COMPOSITIONS = 256

_MODES = frozenset(f"hydra.mode={mode.name}" for mode in RunMode)


@lru_cache(maxsize=256)  # Hydra loads a file for each composition
def load_yaml(text: str) -> Any:  # noqa: ANN401 (any content)
    """Return the content of YAML as OmegaConf reads it; raises `yaml.YAMLError`. Do not modify it, as it is cached."""
    return yaml.load(text, Loader=_loader)  # noqa: S506 (a safe loader)


def find_preset(config_path: str) -> Path | None:
    """Return the file that `experiment=FILE.yaml` names from the working folder, given the path of its config.

    None for any other config, and if there is no such file.
    """
    name = config_path.removeprefix("experiment/")
    with suppress(OSError):  # a name that is too long
        if name != config_path and name.endswith(".yaml") and Path(name).is_file():
            return Path(name)
    return None


@contextmanager
def convert_shown_config(convert: Callable[[Any], Any]) -> Iterator[None]:
    """Let `--cfg` print what a function returns for the plain, unresolved config."""
    select = Hydra.get_sanitized_cfg

    def select_converted(self: Hydra, cfg: DictConfig, cfg_type: str) -> DictConfig:
        plain = OmegaConf.to_container(select(self, cfg, cfg_type), resolve=False)
        shown: DictConfig = OmegaConf.create(convert(plain))
        return shown

    Hydra.get_sanitized_cfg = select_converted  # type: ignore[method-assign]
    try:
        yield
    finally:
        Hydra.get_sanitized_cfg = select  # type: ignore[method-assign]


@contextmanager
def accept_lazy_help() -> Iterator[None]:
    """Let Hydra describe a flag by an object that is not text yet, which argparse refuses from Python 3.14 on."""
    parser: Any = argparse.ArgumentParser
    check = getattr(parser, "_check_help", None)
    if check is not None:
        parser._check_help = lambda self, action: None
    try:
        yield
    finally:
        if check is not None:
            parser._check_help = check


def get_args_parser() -> argparse.ArgumentParser:
    """Return the parser of Hydra's flags."""
    with accept_lazy_help():
        parser: argparse.ArgumentParser = hydra_utils.get_args_parser()
    return parser


@contextmanager
def compose_once() -> Iterator[None]:
    """Make Hydra run the config that it has composed to find its mode, instead of composing the same config again."""
    load = ConfigLoaderImpl.load_configuration
    composed: dict[tuple[str | None, ...], DictConfig | Exception] = {}

    def load_once(
        self: ConfigLoaderImpl, config_name: str | None, overrides: list[str], run_mode: RunMode,
        from_shell: bool = True, validate_sweep_overrides: bool = True,
    ) -> DictConfig:  # fmt: skip
        if not validate_sweep_overrides:  # Hydra composes the config only to find its mode
            try:
                config = load(self, config_name, overrides, run_mode, from_shell, validate_sweep_overrides)
            except Exception as error:
                composed[config_name, *overrides] = error
                raise
            if "???" not in config.hydra.runtime.choices.values():  # allowed only in a multirun
                composed[config_name, *overrides] = config
            return config
        added = [word for word in overrides[-1:] if word in _MODES and (config_name, *overrides) not in composed]
        known = composed.pop((config_name, *overrides[: len(overrides) - len(added)]), None)
        if known is None:
            return load(self, config_name, overrides, run_mode, from_shell, validate_sweep_overrides)
        parsed = OverridesParser.create().parse_overrides(overrides)
        self.validate_sweep_overrides_legal(parsed, run_mode, from_shell)
        if isinstance(known, Exception):
            raise known
        self._apply_overrides_to_config(parsed[len(parsed) - len(added) :], known)
        known.hydra.overrides.hydra.extend(added)
        return known

    ConfigLoaderImpl.load_configuration = load_once  # type: ignore[method-assign]  # replaced on purpose
    try:
        yield
    finally:
        ConfigLoaderImpl.load_configuration = load  # type: ignore[method-assign]  # replaced on purpose


_module: Any = config_loader_impl
_class: Any = ConfigLoaderImpl
_ORIGINALS = _module.create_defaults_list, _class._compose_config_from_defaults_list


@contextmanager
def reuse_compositions() -> Iterator[None]:
    """Make Hydra compose each choice of groups once in this process, and set values on copies.

    Only the files of this program are assumed not to change: a config that may include others is composed again.
    """
    before = _module.create_defaults_list, _class._compose_config_from_defaults_list
    create, merge = _ORIGINALS

    def create_once(repo: Any, config_name: str | None, overrides_list: list[Override], **named: Any) -> Any:  # noqa: ANN401 (Hydra's)
        files = _identify_files(repo)
        lines = [str(override.input_line) for override in overrides_list]
        if files is None or any("${" in line or re.match(r"experiment=.*\.yaml", line) for line in lines):
            return create(repo, config_name, overrides_list, **named)
        given = [override for override in overrides_list if not override.is_sweep_override()]
        values = [o for o in given if isinstance(o.value(), dict) or not repo.group_exists(o.key_or_group)]
        choices = [override for override in given if override not in values]
        key = ("defaults", config_name, *(o.input_line for o in choices), *named.values(), files)
        defaults = _make_once(key, lambda: create(repo, config_name, choices, **named))
        defaults.config_overrides = defaults.overrides.config_overrides = values
        return defaults

    def merge_once(self: ConfigLoaderImpl, defaults: Sequence[Any], repo: Any) -> DictConfig:  # noqa: ANN401 (Hydra's)
        config: DictConfig
        if (files := _identify_files(repo)) is None or any(find_preset(own.config_path or "") for own in defaults):
            config = merge(self, defaults, repo)
        else:
            config = _make_once(("config", *map(astuple, defaults), files), lambda: merge(self, defaults, repo))
            OmegaConf.clear_cache(config)  # interpolations such as the time must be evaluated again
        return config

    _module.create_defaults_list, _class._compose_config_from_defaults_list = create_once, merge_once
    try:
        yield
    finally:
        _module.create_defaults_list, _class._compose_config_from_defaults_list = before


@dataclass(frozen=True)
class Composition:
    """A config composed from files of which some are not the user's own, before values are set in it.

    `own` is composed from the other files alone. `foreign` are those files with their content, where it was placed; a
    file of this program that such a file puts into another place counts as part of it. `choices` has the file and the
    choice of each group that such a file overrides.
    """

    config: DictConfig
    own: DictConfig
    foreign: Sequence[tuple[str, Container]]
    choices: Mapping[str, tuple[str, Any]]


@contextmanager
def check_compositions(is_own: Callable[[Path], bool], check: Callable[[Composition], None]) -> Iterator[None]:
    """Make Hydra pass each config with files that are not the user's own to `check`, before it uses the config.

    Enter it after `reuse_compositions`, which replaces the same functions.
    """
    create, merge = _module.create_defaults_list, _class._compose_config_from_defaults_list

    def create_noted(repo: Any, config_name: str | None, overrides_list: list[Override], **named: Any) -> Any:  # noqa: ANN401 (Hydra's)
        defaults = create(repo, config_name, overrides_list, **named)
        repo.overrides = defaults.overrides
        return defaults

    def merge_checked(self: ConfigLoaderImpl, defaults: Sequence[Any], repo: Any) -> Any:  # noqa: ANN401 (Hydra's)
        folders = [Path(source.path) for source in repo.get_sources() if source.scheme() == "file"]
        paths = [str(default.config_path) for default in defaults]
        if all(map(is_own, folders)) and not any(".." in path or find_preset(path) for path in paths):
            return merge(self, defaults, repo)
        config = merge(self, defaults, copy.deepcopy(repo))  # a merge changes the files that a repository has read
        origins = _find_origins(defaults, repo, is_own)
        own = [default for default in defaults if origins[default.config_path] is None]
        foreign = [
            (file, copy.deepcopy(self._load_single_config(default, repo).config))
            for default in defaults
            if (file := origins[default.config_path]) is not None
        ]
        given = repo.overrides
        choices = {
            group: (file, given.override_choices[group])
            for group, override in given.override_metadata.items()
            if (file := _find_foreign(override.containing_config_path, repo, is_own)) is not None
        }
        check(Composition(config, merge(self, own, repo), foreign, choices))
        return config

    _module.create_defaults_list, _class._compose_config_from_defaults_list = create_noted, merge_checked
    try:
        yield
    finally:
        _module.create_defaults_list, _class._compose_config_from_defaults_list = create, merge


def _find_origins(defaults: Sequence[Any], repo: Any, is_own: Callable[[Path], bool]) -> dict[str, str | None]:  # noqa: ANN401 (Hydra's)
    """Return, for each config, the file that counts as its origin if that is not the user's own."""
    origins = {default.config_path: _find_foreign(default.config_path, repo, is_own) for default in defaults}
    for _ in defaults:  # a file that is placed by a file, and so on
        for default in defaults:
            if origins[default.config_path] is None and not _is_at_home(default, repo):
                origins[default.config_path] = origins.get(default.parent)
    return origins


def _find_foreign(config_path: str | None, repo: Any, is_own: Callable[[Path], bool]) -> str | None:  # noqa: ANN401 (Hydra's)
    """Return the file of a config, relative to the working folder; None if it is the user's own, or no file."""
    if config_path is None or not repo.config_exists(config_path):
        return None
    loaded = repo.load_config(config_path)
    if not str(loaded.path).startswith("file://"):
        return None
    place = Path(loaded.path.removeprefix("file://"), FileConfigSource._normalize_file_name(config_path))
    file = (find_preset(config_path) or place).resolve()
    return None if is_own(file) else os.path.relpath(file)


def _is_at_home(default: Any, repo: Any) -> bool:  # noqa: ANN401 (Hydra's)
    """Return whether a file that another file added is placed where it always is, and does not configure Hydra."""
    group = default.config_path.rpartition("/")[0]
    header = repo.load_config(default.config_path).header["package"]
    home = group.replace("/", ".") if header in (None, "_group_") else "" if header == "_global_" else header
    return (default.package or "") in ("", home) and not default.config_path.startswith("hydra/")


def _make_once(key: Hashable, make: Callable[[], Any]) -> Any:  # noqa: ANN401 (Hydra's)
    if key in _compositions:
        return pickle.loads(_compositions[key])  # noqa: S301 (pickled below)
    if len(_compositions) >= _MOST_COMPOSITIONS:
        _compositions.clear()
    made = make()
    _compositions[key] = pickle.dumps(made)
    return made


def _identify_files(repo: Any) -> Hashable | None:  # noqa: ANN401 (Hydra's)
    """Return the sources of a repository; None unless all of them belong to Hydra or this program."""
    sources = [(source.scheme(), str(source.path), getattr(source, "verb", "")) for source in repo.get_sources()]
    folders = list_conf_folders()
    own = all(scheme == "structured" or path == "hydra.conf" or Path(path) in folders for scheme, path, _ in sources)
    return (*sources, *_list_names(ConfigStore.instance().repo)) if own else None


def _list_names(stored: dict[str, Any]) -> Iterator[str]:
    """Yield the names of structured configs, which plug-ins add."""
    for name, node in stored.items():
        yield name
        if isinstance(node, dict):
            yield from _list_names(node)


def create_repository(loader: ConfigLoader, config_name: str, overrides: Sequence[str]) -> Any:  # noqa: ANN401 (Hydra's)
    """Return a repository of config files, which can list groups and their options."""
    assert isinstance(loader, ConfigLoaderImpl)  # noqa: S101 (Hydra has no other)
    _, repository = loader._parse_overrides_and_create_caching_repo(config_name, list(overrides))
    return repository


def apply_overrides(overrides: list[Override], config: DictConfig) -> None:
    """Set values in a composed config, as Hydra does."""
    ConfigLoaderImpl._apply_overrides_to_config(overrides, config)


def get_parsed_value(override: Override) -> Any:  # noqa: ANN401 (a sweep or an element)
    """Return the value of an override as Hydra parsed it."""
    return override._value


def format_element(element: Any) -> str:  # noqa: ANN401 (any parsed element)
    """Return a parsed element as text of an override."""
    return Override._get_value_element_as_str(element)


def to_plain(element: Any) -> Any:  # noqa: ANN401 (any parsed element)
    """Return a parsed element as a plain value."""
    return Override._convert_value(element)


def iter_children(node: Node) -> Iterator[tuple[str, Any]]:
    """Yield the keys and unresolved nodes of a mapping, except those that an override cannot reach by path."""
    if isinstance(node, DictConfig) and not (node._is_none() or node._is_missing() or node._is_interpolation()):
        yield from ((key, node._get_node(key)) for key in node if isinstance(key, str) and "." not in key)


def is_untyped_value(node: Node) -> bool:
    """Return whether a value or list accepts any type, as in YAML and unlike in a structured config."""
    untyped = node._metadata.ref_type is Any and not node._get_flag("readonly")
    return untyped and (type(node) is AnyNode or (isinstance(node, ListConfig) and node._metadata.element_type is Any))


def raw_value(node: Any) -> Any:  # noqa: ANN401 (any node)
    """Return the unresolved value of a leaf."""
    return OmegaConf.to_container(node, resolve=False) if isinstance(node, ListConfig) else node._value()
