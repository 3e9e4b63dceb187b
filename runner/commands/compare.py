"""Compare results with one of them, tell how they differ, and say by a gate's rules whether that is good enough."""

from __future__ import annotations

import math
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omegaconf import DictConfig, OmegaConf
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

if TYPE_CHECKING:
    from runner.lookup import Named
    from runner.reports.comparison.compare import Comparison
    from runner.reports.comparison.gate import Check
    from runner.tracking.settings import Tracking

VIOLATED, CRASHED = 1, 3
"""The exit codes when a rule of the gate is violated, and when this program fails: the two must not be mixed up."""


@settings(frozen=True, config={"extra": "forbid"})
class CompareSettings:
    """What is told: the measure that counts (None: the results' own), how many queries, and whether as JSON."""

    primary: str | None = None
    queries: int = Field(default=5, ge=0)
    json: bool = False


def main(cfg: DictConfig) -> int:
    """Compare, show, write the reports; return 1 when a rule of the gate is violated, 3 when this program fails."""
    from runner.config.objects import ConfigError
    from runner.config.values import without_secrets
    from runner.metrics.errors import MeasureError
    from runner.result import ResultError

    try:
        return _compared(cfg)
    except (ConfigError, MeasureError, ResultError, BrokenPipeError):  # are told as mistakes are
        raise
    except Exception:
        sys.stderr.write(without_secrets(traceback.format_exc()))
        return CRASHED


def _compared(cfg: DictConfig) -> int:
    from hydra.core.hydra_config import HydraConfig

    from runner.config.objects import build
    from runner.reports import console
    from runner.reports.comparison.compare import compare
    from runner.reports.comparison.gate import checked
    from runner.reports.comparison.json import comparison_json

    config: Any = OmegaConf.to_container(cfg, resolve=True)
    wanted: CompareSettings = build({**config["compare"], "_target_": f"{__name__}.CompareSettings"}, "compare")
    statistics, gate = build(config["statistics"], "statistics"), build(config["gate"], "gate")
    named = _results(config, HydraConfig.get().overrides.task)
    comparison = compare(
        [each.result for each in named],
        statistics,
        _primary(wanted),
        [each.source for each in named],
    )
    checks = checked(gate, comparison)
    if config["output"] is not None:
        _write(Path(config["output"]), comparison, checks, wanted)
    if wanted.json:
        console.line(comparison_json(comparison, checks))
    else:
        _show(comparison, checks, wanted)
    return VIOLATED if any(check.violated for check in checks) else 0


def _primary(wanted: CompareSettings) -> str | None:
    from runner.config.objects import ConfigError
    from runner.metrics.errors import MeasureError
    from runner.metrics.measures import parse

    try:
        return None if wanted.primary is None else str(parse(wanted.primary))
    except MeasureError as error:
        raise ConfigError(f"compare.primary={wanted.primary}: {error}") from None


def _results(config: Mapping[str, Any], overrides: Sequence[str]) -> list[Named]:
    """Return what is compared: the baseline, then the candidates, without the baseline among them."""
    from runner.config.objects import ConfigError, build
    from runner.lookup import as_typed

    tracking, baselines = build(config["tracking"], "tracking"), Path(config["baselines"])
    asked = {key: as_typed(config[key], key, overrides) for key in ("baseline", "candidate")}
    found = {
        key: [named for word in words for named in _found(f"{key}={word}", word, tracking, baselines)]
        for key, words in asked.items()
    }
    if len(found["baseline"]) > 1:
        choices = ", ".join(f"baseline={named.source}" for named in found["baseline"])
        raise ConfigError(f"baseline={','.join(asked['baseline'])}: is several results; choose one: {choices}")
    (baseline,) = found["baseline"]
    several = len(found["candidate"]) > len(asked["candidate"])  # a report's search types, of which it may be one
    return [baseline, *(named for named in found["candidate"] if not (several and named.source == baseline.source))]


def _found(asked: str, word: str, tracking: Tracking, baselines: Path) -> list[Named]:
    """Return the results that a word names; whatever is wrong with them is a mistake in one line."""
    from runner.config.objects import ConfigError
    from runner.lookup import results_called
    from runner.result import ResultError

    try:
        return results_called(word, tracking, baselines)
    except (ConfigError, ResultError):
        raise
    except Exception as error:
        said = " ".join(str(error).split())[:200]
        raise ConfigError(f"{asked}: cannot be read ({type(error).__name__}: {said})") from error


def _show(comparison: Comparison, checks: Sequence[Check], wanted: CompareSettings) -> None:
    from runner.reports import console
    from runner.reports.comparison import tables

    few = tables.headline(comparison)
    for verdict in tables.verdicts(comparison):
        console.paragraph(verdict)
    console.show_table(tables.measures_table(comparison, few), "Measures")
    for i, label in enumerate(comparison.labels[1:], 1):
        console.show_table(tables.differences_table(comparison, i, few), f"{label} less {comparison.labels[0]}")
    console.show_table(tables.no_result_table(comparison), "Queries without gold")
    console.show_table(tables.types_table(comparison, [comparison.primary]), "By query type")
    console.show_table(tables.agreement_table(comparison), "Agreement")
    console.show_table(tables.times_table(comparison), "Time")
    for i, label in enumerate(comparison.labels[1:], 1):
        for what, changes in (("gains", tables.gains(comparison, i)), ("losses", tables.losses(comparison, i))):
            console.show_table(
                tables.changes_table(changes[: wanted.queries], comparison.primary), f"The largest {what} of {label}"
            )
    for told in ("", *tables.about(comparison)):
        console.paragraph(told)
    if checks:
        console.show_table(tables.gate_table([check for check in checks if check.violated]), "Violations")
        console.line(f"\n{tables.gate_verdict(checks)}")
        for check in checks:
            if check.violated or not math.isnan(check.p):  # a drop that was tested is a larger one than is allowed
                console.paragraph(check.told(), indent=2)


def _write(folder: Path, comparison: Comparison, checks: Sequence[Check], wanted: CompareSettings) -> None:
    from runner.config.objects import ConfigError
    from runner.reports import console
    from runner.reports.comparison.json import comparison_json
    from runner.reports.comparison.markdown import comparison_markdown
    from runner.reports.comparison.page import comparison_page

    files = {
        "comparison.md": comparison_markdown(comparison, checks, wanted.queries),
        "comparison.json": comparison_json(comparison, checks),
        "comparison.html": comparison_page(comparison, checks),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
    except FileExistsError:
        raise ConfigError(f"output={folder}: is a file; name a folder") from None
    except OSError as error:
        raise ConfigError(f"output={folder}: cannot be written ({error.strerror})") from None
    console.note(f"written: {', '.join(str(folder / name) for name in files)}")
