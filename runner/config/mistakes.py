"""Hydra's errors about a user's mistake, in one line that says what would be right."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from runner.config import CONF
from runner.config.objects import suggestion


def explain(error: Exception, verb: str, overrides: Sequence[str]) -> str:
    """Return one line about a failed composition: the key, its value, and what would be right."""
    text = str(error)
    if isinstance(error, MissingConfigException) and error.missing_cfg_file and error.options is not None:
        group, _, choice = error.missing_cfg_file.rpartition("/")
        return f"{group}={choice}: no such choice; {suggestion(choice, error.options)}"
    if match := re.search(r"Could not override '([^']+)'", text):
        return _unknown_key(match[1], verb, overrides)
    if match := re.search(r"Error merging override (.+)", text):
        reason = str(error.__cause__ or error.__context__ or "").partition("\n")[0]
        return f"{match[1]}: {reason or 'is not a value that this setting takes'}"
    if isinstance(error, OverrideParseException):
        return f"{error.override}: not understood ({text.partition(chr(10))[0]}); quote it for the shell, or see --help"
    return " ".join(text.split())


def _unknown_key(key: str, verb: str, overrides: Sequence[str]) -> str:
    parent, _, name = key.rpartition(".")
    siblings = _keys(parent, verb, overrides)
    if siblings is None:
        return f"{key}: no such setting; see --help for the groups and --cfg job for every key"
    if name in siblings:
        return f"{key}: has no such entry; a new one is added by +{key}.NAME=VALUE"
    return f"{key}: no such setting; {suggestion(name, siblings)}"


def _keys(path: str, verb: str, overrides: Sequence[str]) -> list[str] | None:
    """Return the keys at a place of the config that the group choices alone give, or None if there is no such place."""
    from hydra import compose, initialize_config_dir
    from hydra.core.global_hydra import GlobalHydra

    try:
        parsed = OverridesParser.create().parse_overrides(list(overrides))
        choices = [
            o.input_line for o in parsed if "." not in o.key_or_group.split("@")[0] and not o.is_sweep_override()
        ]
        GlobalHydra.instance().clear()
        with initialize_config_dir(str(CONF), version_base="1.3"):
            cfg = compose(verb, overrides=[c for c in choices if c])
            node = OmegaConf.select(cfg, path) if path else cfg
    except (HydraException, OmegaConfBaseException):
        return None
    return [str(key) for key in node] if isinstance(node, DictConfig) else None
