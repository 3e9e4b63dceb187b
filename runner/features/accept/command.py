"""Search a configuration block by block against a stored baseline, and stop when the gate is decided."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig
from pydantic.dataclasses import dataclass as settings

from runner.comparison.gate import Gate, find_exit_code
from runner.comparison.report.gate_rules import gate_verdict, warn_undecided
from runner.config.addresses import LocalPath
from runner.config.objects import ConfigError, build, build_settings
from runner.config.values import check_read, settle
from runner.evaluation.bench import Bench
from runner.evaluation.experiment import build_experiment
from runner.features.accept.acceptance import Acceptance, Blocks, accept
from runner.features.accept.report import acceptance_junit, convert_acceptance, decisions_table, describe_acceptance
from runner.llm.spending import describe_spending
from runner.pages import console
from runner.pages.junit import write_junit
from runner.results.lookup import as_typed, choose_only, results_called
from runner.store.opening import open_store
from runner.store.settings import store_settings


@settings(frozen=True, config={"extra": "forbid", "coerce_numbers_to_str": True})
class AcceptSettings:
    """Where baselines are, how the queries are divided, and a JUnit file: see `conf/accept.yaml`."""

    baselines: LocalPath
    accept: Blocks
    junit: LocalPath | None = None


def main(cfg: DictConfig) -> int:
    """Search until the gate is decided, and show the decision; return its exit code."""
    hydra = HydraConfig.get()
    if hydra.mode == RunMode.MULTIRUN:
        raise ConfigError("accept decides on one configuration; remove -m and experiment=, or use sweep.race=true")
    settled = settle(cfg, hydra.runtime.choices)
    check_read(hydra.overrides.task, [settled.config])
    config: Mapping[str, Any] = settled.config
    own, gate = build_settings(AcceptSettings, config), build(config["gate"], "gate")
    experiment, tracking = build_experiment(settled), build(config["tracking"], "tracking")
    words = as_typed(config["baseline"], "baseline", hydra.overrides.task)
    baseline = choose_only(
        "baseline", words, [named for word in words for named in results_called(word, tracking, Path(own.baselines))]
    )
    if baseline.remark:
        console.note(f"baseline={baseline.remark}")
    try:
        bench = Bench(open_store(store_settings(config)))
        acceptance = accept(experiment, baseline.result, gate, bench, own.accept)
    finally:  # the cost is shown even after an error
        if spent := describe_spending([experiment.retriever]):
            console.note(spent)
    _show(acceptance, gate, own.accept)
    if own.junit is not None:
        write_junit(acceptance_junit(acceptance, gate), Path(own.junit))
    console.document(lambda: convert_acceptance(acceptance, gate, own.accept))
    if warning := warn_undecided(acceptance.checks, gate):
        console.note(warning)
    return find_exit_code(gate, acceptance.checks)


def _show(acceptance: Acceptance, gate: Gate, blocks: Blocks) -> None:
    console.show_table(decisions_table(acceptance, gate), f"{acceptance.candidate} against {acceptance.baseline}")
    console.line(f"\n{gate_verdict(acceptance.checks)}")
    for text in describe_acceptance(acceptance, gate, blocks):
        console.paragraph(text)
