"""The config files that Hydra loads: those from outside this program are checked first."""

from __future__ import annotations

import os
from pathlib import Path

import yaml
from hydra._internal.core_plugins import file_config_source
from hydra._internal.sources_registry import SourcesRegistry
from hydra.plugins.config_source import ConfigResult

from runner.config import CONF
from runner.config.objects import ConfigError
from runner.config.yaml_files import YamlError, describe, parse_yaml


class FileConfigSource(file_config_source.FileConfigSource):
    """Hydra's source of files under its own name, without which the registry would refuse it."""

    def load_config(self, config_path: str) -> ConfigResult:
        """Load a file. Raises `ConfigError` with file, line and column if it is not valid YAML."""
        file = Path(self.path, self._normalize_file_name(config_path))
        if not file.is_file() or CONF in file.parents:
            return super().load_config(config_path)
        place = os.path.relpath(file)
        try:
            parse_yaml(file.read_bytes(), place)
            return super().load_config(config_path)
        except YamlError as error:
            raise ConfigError(str(error)) from None
        except (yaml.YAMLError, UnicodeError) as error:  # duplicate keys, which only Hydra refuses
            raise ConfigError(describe(error, place)) from None


def check_files() -> None:
    """Have Hydra load files through this module."""
    SourcesRegistry.instance().types[FileConfigSource.scheme()] = FileConfigSource
