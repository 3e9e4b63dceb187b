"""How a verb is started: Hydra composes `conf/<verb>.yaml` with the overrides and calls the verb's function."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Callable, Sequence

import hydra
from hydra.core.override_parser.types import Quote, QuotedString
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from runner.config import CONF
from runner.config.mistakes import SWEEPING, check_added, check_plugins, explain
from runner.config.objects import ConfigError
from runner.config.source import check_files
from runner.config.values import check_local

MULTIRUN = frozenset({"-m", "--multirun", "hydra.mode=MULTIRUN"})
"""The words that have Hydra run a verb more than once."""


def launch(verb: str, task: Callable[[DictConfig], int], overrides: Sequence[str]) -> int:
    """Run a verb under Hydra and return its exit code; raises `ConfigError` for a mistake in the overrides."""
    _check_once(verb, overrides)
    code, home = 0, os.getpid()
    raised: list[Exception] = []

    def job(cfg: DictConfig) -> None:
        nonlocal code
        try:
            check_local(OmegaConf.select(cfg, "output", throw_on_resolution_failure=False), "output")
            code = max(code, task(cfg))
        except Exception as error:
            if os.getpid() != home:  # a launcher took the job elsewhere: it brings the error back
                raise
            raised.append(error)  # raised below: Hydra would say more than is asked

    # Hydra then raises what goes wrong instead of printing it, so that it can be said in one line.
    os.environ["HYDRA_FULL_ERROR"] = "1"
    told = _with_plugins_last([_quoted(word) for word in overrides if _is_override(word)])
    sys.argv = ["runner", *(word for word in overrides if not _is_override(word)), *told]  # Hydra wants flags first
    check_files()
    check_added(verb, told)
    check_plugins(told[-1])
    try:
        hydra.main(version_base="1.3", config_path=str(CONF), config_name=verb)(job)()
    except (HydraException, OmegaConfBaseException) as error:
        raise ConfigError(explain(error, verb, told)) from error
    except ValueError as error:
        if not _is_hydras_own(error):
            raise
        raise ConfigError(explain(error, verb, told)) from error
    except OSError as error:
        raise _said(error) from error
    except SystemExit as ended:  # --help and --cfg end so, and a sweep that failed
        code = ended.code if isinstance(ended.code, int) else 0
    if raised:
        raise raised[0]
    return code


def _check_once(verb: str, words: Sequence[str]) -> None:
    """Refuse a sweep of a verb that has one output."""
    if verb not in SWEEPING and not MULTIRUN.isdisjoint(words):
        raise ConfigError(f"-m: {verb} does not sweep, and its runs would overwrite each other: say it once for each")


def _quoted(word: str) -> str:
    """Return an override with its value quoted where that is an expression, whose signs Hydra takes for its own."""
    key, _, value = word.partition("=")
    if (
        key.lstrip("+") not in ("sweep.exclude", "sweep.include")
        or value[:1] in ("'", '"', "[", "{", "")
        or value == "null"
    ):
        return word
    return f"{key}={QuotedString(value, Quote.single).with_quotes()}"


def _with_plugins_last(told: Sequence[str]) -> list[str]:
    """Return the overrides with a last word on `plugins`, so that what a YAML file says of them never counts."""
    named = [word.partition("=") for word in told if word.lstrip("+").startswith("plugins=")]
    others = [word for word in told if not word.lstrip("+").startswith("plugins=")]
    return [*others, f"++plugins={named[-1][2] if named else '[]'}"]


def _said(error: OSError) -> Exception:
    """Return what to raise for a folder that Hydra cannot make; what is not about that stays as it is."""
    if error.errno not in (errno.EROFS, errno.EACCES, errno.ENOTDIR, errno.EEXIST):
        return error
    return ConfigError(f"{error.filename}: cannot be written ({error.strerror}); run in a folder of your own")


def _is_hydras_own(error: ValueError) -> bool:
    """Tell what Hydra says of its arguments in a bare ValueError from what went wrong in this program."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    return str(frame.f_globals.get("__name__")).partition(".")[0] == "hydra"


def _is_override(word: str) -> bool:
    return word.startswith("~") or ("=" in word and not word.startswith("-"))
