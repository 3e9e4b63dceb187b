"""How a verb is started: Hydra composes `conf/<verb>.yaml` with the overrides and calls the verb's function."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import hydra
from hydra.errors import HydraException
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from runner.config.mistakes import explain
from runner.config.objects import ConfigError

CONF = next(
    folder
    for folder in (Path(__file__).parents[1] / "conf", Path(__file__).parents[2] / "conf")
    if (folder / "evaluate.yaml").is_file()
)
"""The folder of configs: inside an installed package, or beside it in a checkout."""


def launch(verb: str, task: Callable[[DictConfig], int], overrides: Sequence[str]) -> int:
    """Run a verb under Hydra and return its exit code; raises `ConfigError` for a mistake in the overrides."""
    code = 0

    def job(cfg: DictConfig) -> int:
        nonlocal code
        code = max(code, task(cfg))
        return code

    # Hydra then raises what goes wrong instead of printing it, so that it can be said in one line.
    os.environ["HYDRA_FULL_ERROR"] = "1"
    sys.argv = ["runner", *overrides]
    try:
        hydra.main(version_base="1.3", config_path=str(CONF), config_name=verb)(job)()
    except (HydraException, OmegaConfBaseException) as error:
        raise ConfigError(explain(error, verb, [o for o in overrides if not o.startswith("-")])) from error
    return code
