"""Loads config files for Hydra, checking presets and files from outside this program."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import yaml
from hydra.core.object_type import ObjectType
from hydra.plugins.config_source import ConfigResult
from omegaconf import OmegaConf

from runner.config import CONF, hydra_internals
from runner.config.features import list_conf_folders
from runner.config.objects import ConfigError, suggestion
from runner.config.origins import check_search_path, is_own
from runner.config.yaml_files import YamlError, describe, parse_yaml


class FileConfigSource(hydra_internals.FileConfigSource):
    """Hydra's source of files, with checks; the registry requires this class name.

    A preset may contain the settings of `verb`, and settings to which it or one of the `overrides` refers. It may also
    be a file anywhere, with its extension: `experiment=FILE.yaml`.
    """

    verb = "evaluate"
    overrides: Sequence[str] = ()

    def load_config(self, config_path: str) -> ConfigResult:
        """Load a file; raises `ConfigError` with the place of invalid YAML or of an unknown setting."""
        file = hydra_internals.find_preset(config_path) or Path(self.path, self._normalize_file_name(config_path))
        if not file.is_file():
            return super().load_config(config_path)  # raises
        place = os.path.relpath(file)
        try:
            if CONF not in file.parents:
                parse_yaml(file.read_bytes(), place)
            text = file.read_text(encoding="utf-8")
            content = hydra_internals.load_yaml(text)
        except YamlError as error:
            raise ConfigError(str(error)) from None
        except (yaml.YAMLError, UnicodeError) as error:  # duplicate keys, which only Hydra's loader rejects
            raise ConfigError(describe(error, place)) from None
        if not is_own(file):
            check_search_path(content, place)
        header = self._get_header_dict(text[:512])
        if header.get("package") == "_global_" and isinstance(content, Mapping):
            self._check_preset(content, text, place)
        config = OmegaConf.create({} if content is None else content)
        return ConfigResult(config=config, path=f"file://{self.path}", provider=self.provider, header=header)

    def is_config(self, config_path: str) -> bool:
        """Return whether there is a file."""
        return hydra_internals.find_preset(config_path) is not None or super().is_config(config_path)

    def list(self, config_path: str, results_filter: ObjectType | None) -> list[str]:
        """Return the choices of a group, without files that start with `_`, which are only bases of other files."""
        return [name for name in super().list(config_path, results_filter) if not name.startswith("_")]

    def _check_preset(self, content: Mapping[Any, Any], text: str, place: str) -> None:
        """Raise `ConfigError` for a top-level setting of a preset that is not used."""
        known = _top_keys(self.verb) | {"defaults", *_keys_of(content.get("defaults"))}
        for key in (str(key) for key in content if key not in known):
            if not any(f"${{{key}" in words for words in (text, *self.overrides)):
                raise ConfigError(f"{place}: {key}: no such setting; {suggestion(key, known - {'defaults', 'hydra'})}")


class ImportlibResourcesConfigSource(hydra_internals.ImportlibResourcesConfigSource):
    """Hydra's source of its own files, read by the faster parser; the registry requires this class name."""

    def _read_config(self, res: Traversable) -> ConfigResult:
        text = res.read_text(encoding="utf-8")
        config = OmegaConf.create(hydra_internals.load_yaml(text) or {})
        return ConfigResult(self.provider, f"{self.scheme()}://{self.path}", config, self._get_header_dict(text[:512]))


@contextmanager
def check_files(verb: str, overrides: Sequence[str]) -> Iterator[None]:
    """Make Hydra load files with the checks of this module inside the block."""
    types = hydra_internals.SourcesRegistry.instance().types
    own = {"verb": verb, "overrides": tuple(overrides)}
    replaced = {
        FileConfigSource.scheme(): type(FileConfigSource.__name__, (FileConfigSource,), own),
        ImportlibResourcesConfigSource.scheme(): ImportlibResourcesConfigSource,
    }
    before = {scheme: types[scheme] for scheme in replaced if scheme in types}
    types.update(replaced)
    try:
        yield
    finally:
        types.update(before)


@cache
def _top_keys(verb: str) -> frozenset[str]:
    """Return the top-level keys of the config of a verb."""
    file = next(file for folder in list_conf_folders() if (file := folder / f"{verb}.yaml").is_file())
    content = hydra_internals.load_yaml(file.read_text(encoding="utf-8"))
    return frozenset({"hydra", *map(str, content), *_keys_of(content["defaults"])} - {"defaults"})


def _keys_of(defaults: Any) -> Iterator[str]:  # noqa: ANN401 (any content)
    """Yield the top-level keys that a list of defaults sets: those of files, and the packages of groups."""
    for default in defaults if isinstance(defaults, list) else ():
        if isinstance(default, str) and default != "_self_" and (CONF / f"{default}.yaml").is_file():
            yield from _top_keys(default)
        for group in default if isinstance(default, Mapping) else ():
            name, _, package = str(group).rpartition(" ")[2].lstrip("/").partition("@")
            yield (package or name.partition("/")[0]).partition(".")[0]
