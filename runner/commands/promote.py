"""Promote a run to a named baseline: a copy of its record for the repository, with the promoter and the time."""

from __future__ import annotations

import getpass
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path

import orjson
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from runner.comparison.notes import judge_command
from runner.comparison.report.significance import describe_untestable
from runner.config.addresses import LocalPath
from runner.config.arguments import arguments
from runner.config.objects import ConfigError, build, build_settings
from runner.config.values import resolve_config
from runner.evaluation.records import save_record
from runner.evaluation.result import Result
from runner.pages import console
from runner.pages.numbers import missing, score4
from runner.results.lookup import Named, as_typed, baseline_names, find_run_id, results_called
from runner.results.promotions import PROMOTION, PromotionRecord, load_promotions
from runner.sweep.report.board_columns import shorten_run

NAME = re.compile(r"\w[\w.-]*")


@settings(frozen=True, config={"extra": "forbid"})
class Promotion:
    """The promoter (None: the user's name in git or on the machine), the depth of rankings, and whether to replace."""

    by: str | None = None
    depth: int = Field(default=10, ge=0)
    replace: bool = False


@settings(frozen=True, config={"extra": "forbid", "coerce_numbers_to_str": True})
class PromoteSettings:
    """Where baselines are, and how a run is promoted: see `conf/promote.yaml`."""

    baselines: LocalPath
    promote: Promotion


def main(cfg: DictConfig) -> int:
    """Save a run's record as a baseline; raises `ConfigError` if the name is taken."""
    config = resolve_config(cfg)
    own = build_settings(PromoteSettings, config)
    overrides, baselines = HydraConfig.get().overrides.task, Path(own.baselines)
    words, names = (as_typed(config[key], key, overrides) for key in ("run", "name"))
    name = ",".join(names)
    if not NAME.fullmatch(name):
        raise ConfigError(
            f"name={name}: should contain only letters, digits, underscores, dots and dashes, and not begin with a "
            "dot or dash"
        )
    tracking = build(config["tracking"], "tracking")
    results = results_called(",".join(words), tracking, baselines)
    if len(results) > 1:
        choices = ", ".join(f"run={named.source}" for named in results)
        raise ConfigError(f"run={words[0]}: matches several results; choose one: {choices}")
    if results[0].remark:
        console.note(f"run={results[0].remark}")
    earlier = load_promotions(baselines / name)
    if name in baseline_names(baselines) and not own.promote.replace:
        origin = "".join(f", from {p.source}, promoted by {p.by} on {p.at.isoformat()}" for p in earlier[-1:])
        raise ConfigError(
            f"name={name}: already a baseline{origin}; choose another name, or set promote.replace=true to replace it"
        )
    promotion = _save(results[0], baselines / name, own.promote, earlier)
    console.document(lambda: {"baseline": str(baselines / name), **asdict(promotion)})
    result = results[0].result
    mean = result.means[result.primary]
    console.line(f"{baselines / name}: {result.name}, {result.primary} {score4(mean)}")
    if missing(mean):
        run = find_run_id(results[0].source)
        judge = f"; judge the hits: {judge_command([shorten_run(run)], tracking.overrides())}" if run else ""
        console.note(f"no query has gold, so nothing can be compared until the dataset has judgments{judge}")
    elif warning := describe_untestable(result):
        console.note(warning)
    words_to_compare = [f"baseline=baseline:{name}", "candidate=RUN", *tracking.overrides()]
    if baselines != Path("baselines"):
        words_to_compare.append(arguments({"baselines": str(baselines)}))
    console.line(f"compare with it: python -m runner compare {' '.join(words_to_compare)}")
    return 0


def _save(named: Named, folder: Path, promote: Promotion, earlier: Sequence[PromotionRecord]) -> PromotionRecord:
    """Save a record and its promotion, and return the promotion; files are written beside the folder, then renamed."""
    result = named.result
    low, high = result.intervals.get(result.primary, (None, None))
    promotion = PromotionRecord(
        name=folder.name,
        by=promote.by or _find_user(),
        at=datetime.now(UTC).replace(microsecond=0),
        source=named.source,
        run=result.name,
        config_hash=result.config_hash,
        dataset_fingerprint=result.dataset.fingerprint,
        git_commit=result.environment.get("git_commit", ""),
        primary=result.primary,
        mean=result.means[result.primary],
        low=low,
        high=high,
        earlier=earlier,
    )
    new, old = folder.with_name(f".{folder.name}.new"), folder.with_name(f".{folder.name}.old")
    try:
        shutil.rmtree(new, ignore_errors=True)  # left by an interrupted command
        save_record(_cut(result, promote.depth), new)
        (new / PROMOTION).write_bytes(orjson.dumps(asdict(promotion), option=orjson.OPT_INDENT_2) + b"\n")
        if folder.exists():
            shutil.rmtree(old, ignore_errors=True)
            folder.rename(old)
        new.rename(folder)
        shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        if old.exists() and not folder.exists():
            old.rename(folder)
        raise ConfigError(f"baselines={folder.parent}: cannot be written ({error.strerror})") from None
    return promotion


def _cut(result: Result, depth: int) -> Result:
    """Return a result with only the first `depth` documents of each ranking."""
    if result.hits is None:
        return result
    rankings, grades = result.hits.rankings.cut(depth), result.hits.grades[:, :depth]
    return replace(result, hits=replace(result.hits, rankings=rankings, grades=grades))


def _find_user() -> str:
    """Return the user's name in git, else on this machine."""
    command = ["git", "config", "user.name"]
    try:
        name = subprocess.run(command, capture_output=True, text=True, check=False, timeout=5).stdout.strip()  # noqa: S603 (fixed)
        return name or getpass.getuser()
    except (OSError, KeyError, subprocess.TimeoutExpired):  # git is missing, or the user of a container has no name
        return "unknown"
