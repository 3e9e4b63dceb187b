"""Explain why a measure differs between two results: code and settings, documents, judgments or queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig
from pydantic.dataclasses import dataclass as settings

from runner.comparison.compare import TableStatistics
from runner.comparison.gate import Check, Gate, find_exit_code
from runner.comparison.report.gate_rules import gate_verdict, list_reasons, warn_undecided
from runner.config.addresses import LocalPath
from runner.config.consent import Consent
from runner.config.objects import ConfigError, build, build_settings
from runner.config.values import resolve_config
from runner.evaluation.bench import Bench
from runner.features.explain.explanation import ExplanationSettings, explain_difference
from runner.features.explain.report import tables
from runner.features.explain.report.json import explanation_json
from runner.features.explain.report.page import explanation_page
from runner.features.explain.report.sections import explanation_markdown, iter_sections
from runner.features.explain.term_gate import check_term
from runner.features.explain.terms import Explanation
from runner.metrics.errors import MeasureError
from runner.metrics.measures import parse_primary
from runner.pages import console
from runner.pages.output import write_texts, writing_to
from runner.pages.progress import Status
from runner.results.lookup import Named, as_typed, choose_only, results_called
from runner.store.opening import open_store
from runner.store.settings import store_settings
from runner.tracking.settings import Tracking


@settings(frozen=True, config={"extra": "forbid", "coerce_numbers_to_str": True})
class ExplainSettings:
    """Where baselines are, where reports go, and what is explained: see `conf/explain.yaml`."""

    baselines: LocalPath
    explain: ExplanationSettings
    output: LocalPath | None = None
    statistics: TableStatistics = TableStatistics()


def main(cfg: DictConfig) -> int:
    """Explain a difference and write reports; return the exit code of the gate's verdict."""
    config = resolve_config(cfg)
    own = build_settings(ExplainSettings, config)
    consent = Consent.of(config)
    gate: Gate = build(config["gate"], "gate")
    if gate.locked is not None:
        raise ConfigError(
            f"gate.locked={gate.locked}: explain shows what a locked split hides; use compare, or remove gate.locked"
        )
    tracking = build(config["tracking"], "tracking")
    overrides = HydraConfig.get().overrides.task
    baseline, candidate = (
        _load(key, as_typed(config[key], key, overrides), tracking, Path(own.baselines))
        for key in ("baseline", "candidate")
    )
    bench = cache(lambda: Bench(open_store(store_settings(config))))
    options = replace(own.explain, primary=_parse_primary(own.explain.primary))
    with Status("explaining"):
        explanation = explain_difference(baseline, candidate, own.statistics, options, bench, consent, gate.measures)
        checks = check_term(gate, explanation, options.term)
    if own.output is not None:
        _write(own.output, explanation, checks)
    console.document(lambda: explanation_json(explanation, checks))
    _show(explanation, checks, options.examples)
    if warning := warn_undecided(checks, gate):
        console.note(warning)
    return find_exit_code(gate, checks)


def _load(key: str, words: Sequence[str], tracking: Tracking, baselines: Path) -> Named:
    """Return the only result that a setting names; raises `ConfigError`."""
    named = [one for word in words for one in results_called(word, tracking, baselines)]
    only = choose_only(key, words, named)
    if only.remark:
        console.note(f"{key}={only.remark}")
    return only


def _parse_primary(primary: str | None) -> str | None:
    try:
        return None if primary is None else str(parse_primary(primary))
    except MeasureError as error:
        raise ConfigError(f"explain.primary={primary}: {error}") from None


def _show(explanation: Explanation, checks: Sequence[Check], examples: int) -> None:
    console.paragraph(tables.verdict(explanation))
    console.show_table(tables.terms_table(explanation, explanation.primary), f"Effects on {explanation.primary}")
    console.line("")
    for text in (*tables.describe_changes(explanation), tables.describe_moved(explanation)):
        console.paragraph(text)
    console.show_sections(iter_sections(explanation, examples))
    console.line("")
    for text in tables.about(explanation):
        console.paragraph(text)
    if checks:
        console.show_table(tables.gate_table(checks), "Rules of the gate")
        console.line(f"\n{gate_verdict(checks)}")
        for check in list_reasons(checks):
            console.paragraph(tables.describe_check(check), indent=2)


def _write(output: str, explanation: Explanation, checks: Sequence[Check]) -> None:
    files = {
        "explanation.md": explanation_markdown(explanation, checks),
        "explanation.json": explanation_json(explanation, checks),
        "explanation.html": explanation_page(explanation, checks),
    }
    with writing_to(output) as folder:
        console.note(write_texts(folder, files))
