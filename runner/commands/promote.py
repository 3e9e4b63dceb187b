"""Make a run a named baseline: a copy of its record to be kept in the repository, with who made it one, and when."""

from __future__ import annotations

import getpass
import re
import shutil
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omegaconf import DictConfig, OmegaConf
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

if TYPE_CHECKING:
    from runner.lookup import Named
    from runner.result import Result

NAME = re.compile(r"\w[\w.-]*")


@settings(frozen=True, config={"extra": "forbid"})
class PromoteSettings:
    """How a baseline is kept: who promotes it (None: whoever git or the machine says), how deep its rankings are."""

    by: str | None = None
    depth: int = Field(default=10, ge=0)
    replace: bool = False


def main(cfg: DictConfig) -> int:
    """Keep a run's record as a baseline, and say so; raises `ConfigError` where one has the name already."""
    from hydra.core.hydra_config import HydraConfig

    from runner.config.objects import ConfigError, build
    from runner.lookup import as_typed, results_called
    from runner.reports import console

    config: Any = OmegaConf.to_container(cfg, resolve=True)
    wanted: PromoteSettings = build({**config["promote"], "_target_": f"{__name__}.PromoteSettings"}, "promote")
    overrides, baselines = HydraConfig.get().overrides.task, Path(config["baselines"])
    words, names = (as_typed(config[key], key, overrides) for key in ("run", "name"))
    name = ",".join(names)
    if not NAME.fullmatch(name):
        raise ConfigError(f"name={name}: should be one word of letters, digits, dots and dashes")
    tracking = build(config["tracking"], "tracking")
    found = results_called(",".join(words), tracking, baselines)
    if len(found) > 1:
        raise ConfigError(f"run={words[0]}: is several results; choose one: {', '.join(f.source for f in found)}")
    before = _promotion(baselines / name)
    if before is not None and not wanted.replace:
        whose = f", from {before.get('source')}, promoted by {before.get('by')} on {before.get('at')}" if before else ""
        raise ConfigError(f"name={name}: is a baseline already{whose}; promote.replace=true puts this one in its place")
    _keep(found[0], baselines / name, wanted)
    result = found[0].result
    console.line(f"{baselines / name}: {result.name}, {result.primary} {result.means[result.primary]:.4f}")
    to_compare = [f"baseline=baseline:{name}", "candidate=RUN", *tracking.overrides()]
    console.line(f"compare with it: python -m runner compare {' '.join(to_compare)}")
    return 0


def _promotion(folder: Path) -> Mapping[str, Any] | None:
    """Return who promoted what is in a folder, empty where it does not say, None where there is nothing."""
    import orjson

    file = folder / "promotion.json"
    if not file.is_file():
        return {} if (folder / "result.json").is_file() else None
    try:
        content = orjson.loads(file.read_bytes())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _keep(named: Named, folder: Path, wanted: PromoteSettings) -> None:
    """Write a record and who promoted it beside where it is to be, then move it there."""
    import orjson

    from runner.config.objects import ConfigError
    from runner.records import save_record

    result = named.result
    promotion = {
        "name": folder.name,
        "by": wanted.by or _who(),
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "source": named.source,
        "run": result.name,
        "config_hash": result.config_hash,
        "dataset_fingerprint": result.dataset.fingerprint,
        "git_commit": result.environment.get("git_commit", ""),
        "primary": result.primary,
        "mean": result.means[result.primary],
    }
    made, old = folder.with_name(f".{folder.name}.new"), folder.with_name(f".{folder.name}.old")
    try:
        for left in (made, old):  # by one that was interrupted
            shutil.rmtree(left, ignore_errors=True)
        save_record(_shallow(result, wanted.depth), made)
        (made / "promotion.json").write_bytes(orjson.dumps(promotion, option=orjson.OPT_INDENT_2) + b"\n")
        if folder.exists():
            folder.rename(old)
        made.rename(folder)
        shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        raise ConfigError(f"baselines={folder.parent}: cannot be written ({error.strerror})") from None


def _shallow(result: Result, depth: int) -> Result:
    """Return a result whose rankings are no deeper than those who read a comparison look."""
    from dataclasses import replace

    if result.hits is None:
        return result
    found = result.hits
    cut = replace(found, rankings=found.rankings.cut(depth), grades=found.grades[:, :depth])
    return replace(result, hits=cut)


def _who() -> str:
    """Return who is at work: by git, else by the machine."""
    command = ["git", "config", "user.name"]
    try:
        named = subprocess.run(command, capture_output=True, text=True, check=False, timeout=5).stdout.strip()  # noqa: S603 (fixed)
        return named or getpass.getuser()
    except (OSError, KeyError, subprocess.TimeoutExpired):  # no git, or a container's user without a name
        return "unknown"
