"""How a verb is started: Hydra composes `conf/<verb>.yaml` with the overrides and calls the verb's function."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence

import hydra
from hydra.errors import HydraException
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from runner.config import CONF
from runner.config.mistakes import explain
from runner.config.objects import ConfigError


def launch(verb: str, task: Callable[[DictConfig], int], overrides: Sequence[str]) -> int:
    """Run a verb under Hydra and return its exit code; raises `ConfigError` for a mistake in the overrides."""
    code, home = 0, os.getpid()
    raised: list[Exception] = []

    def job(cfg: DictConfig) -> None:
        nonlocal code
        try:
            code = max(code, task(cfg))
        except Exception as error:
            if os.getpid() != home:  # a launcher took the job elsewhere: it brings the error back
                raise
            raised.append(error)  # raised below: Hydra would say more than is asked

    # Hydra then raises what goes wrong instead of printing it, so that it can be said in one line.
    os.environ["HYDRA_FULL_ERROR"] = "1"
    told = [word for word in overrides if _is_override(word)]
    sys.argv = ["runner", *(word for word in overrides if not _is_override(word)), *told]  # Hydra wants flags first
    try:
        hydra.main(version_base="1.3", config_path=str(CONF), config_name=verb)(job)()
    except (HydraException, OmegaConfBaseException) as error:
        raise ConfigError(explain(error, verb, told)) from error
    except SystemExit as ended:  # --help and --cfg end so, and a sweep that failed
        code = ended.code if isinstance(ended.code, int) else 0
    if raised:
        raise raised[0]
    return code


def _is_override(word: str) -> bool:
    return word.startswith("~") or ("=" in word and not word.startswith("-"))
