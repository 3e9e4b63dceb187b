"""Compose the config of a verb for callers in Python, with the files and messages of the command line.

Hydra's global state stays unchanged, so that threads and a caller's own Hydra application are not affected.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hydra.core.config_loader import ConfigLoader
from hydra.core.config_search_path import SearchPathQuery
from hydra.core.utils import JobRuntime
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig, open_dict
from omegaconf.errors import OmegaConfBaseException

from runner.config import CONF
from runner.config.environment import note_references
from runner.config.hydra_internals import ConfigLoaderImpl, create_config_search_path, reuse_compositions
from runner.config.launch import order_overrides
from runner.config.mistakes import COMMAND, check_added, check_plugins, explain
from runner.config.objects import ConfigError
from runner.config.origins import check_origins
from runner.config.projects import find_project_config, ignore_hydra_plugins_here
from runner.config.source import check_files

_composing = threading.RLock()
"""Protects Hydra's registries and `sys.argv`, which messages are made from: one thread at a time may use them."""


@contextmanager
def open_loader(verb: str, overrides: Sequence[str]) -> Iterator[tuple[ConfigLoader, list[str]]]:
    """Yield Hydra's loader of config files and the overrides in its format; raises `ConfigError` in one line.

    As on the command line, the config folder of the project in the working directory is searched. Compose inside the
    block.
    """
    words = order_overrides(overrides)
    with _composing:
        ignore_hydra_plugins_here()
        search_path = create_config_search_path(str(CONF))  # loads Hydra's plug-ins before `check_files`
        folder = _find_project()
        if folder is not None:
            search_path.prepend("command-line", f"file://{folder}", anchor=SearchPathQuery(provider="schema"))
        JobRuntime.instance().set("name", COMMAND)
        note_references(words)
        typed = sys.argv
        sys.argv = [COMMAND, *(["--config-dir", str(folder)] if folder else []), *words]
        try:
            with check_files(verb, words), explain_errors(verb, words), reuse_compositions(), check_origins(words):
                check_added(verb, words)
                check_plugins(words[-1])
                yield ConfigLoaderImpl(search_path), words
        finally:
            sys.argv = typed


@contextmanager
def explain_errors(verb: str, overrides: Sequence[str]) -> Iterator[None]:
    """Raise the errors of a composition as `ConfigError` in one line."""
    try:
        yield
    except (HydraException, OmegaConfBaseException) as error:
        raise ConfigError(explain(error, verb, overrides)) from error


def compose_config(verb: str, overrides: Sequence[str]) -> tuple[DictConfig, dict[str, Any]]:
    """Return the config of a single run, and the choice of each group; raises `ConfigError`."""
    with open_loader(verb, overrides) as (loader, words):
        return take_choices(loader.load_configuration(verb, words, run_mode=RunMode.RUN))


def take_choices(config: DictConfig) -> tuple[DictConfig, dict[str, Any]]:
    """Return a composed config without Hydra's own node, which has the choices of groups, and these choices."""
    choices = dict(config.hydra.runtime.choices)
    with open_dict(config):
        del config["hydra"]
    return config, choices


def _find_project() -> Path | None:
    try:
        folder = find_project_config(Path.cwd())
    except ValueError as error:
        raise ConfigError(str(error)) from error
    return folder and folder.resolve()
