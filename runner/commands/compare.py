"""Compare results with a baseline: differences, their significance, and the verdict of a gate."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.base import RetrieverError
from retrievers.runs.run_file import RunFile
from retrievers.runs.run_formats import find_format
from runner.comparison.compare import Comparison, TableStatistics, is_same_evaluation
from runner.comparison.data_effect import DataEffect
from runner.comparison.gate import Check, Gate, check_gate, find_exit_code
from runner.comparison.locked import ask_locked_split
from runner.comparison.report import bounds, data, gate_rules, steps, tables
from runner.comparison.report.ci import comparison_junit, cut_summary, is_github, iter_annotations
from runner.comparison.report.json import comparison_json
from runner.comparison.report.locked import WHY, answers_json, answers_markdown, answers_page
from runner.comparison.report.page import comparison_page
from runner.comparison.report.sections import comparison_markdown
from runner.comparison.unjudged import SERVED
from runner.config.addresses import LocalPath
from runner.config.consent import Consent
from runner.config.objects import ConfigError, build, build_settings
from runner.config.report import ReportSettings
from runner.config.values import resolve_config
from runner.datasets.base import DatasetError
from runner.datasets.chunking import Chunking
from runner.datasets.settings import build_dataset
from runner.datasets.source import DatasetSource
from runner.datasets.traffic.served import Served
from runner.datasets.traffic.telemetry import Telemetry
from runner.evaluation.bench import Bench
from runner.evaluation.experiment import Experiment
from runner.evaluation.result import Result, ResultError
from runner.metrics.errors import MeasureError
from runner.metrics.measures import parse_primary
from runner.pages import console
from runner.pages.junit import write_junit
from runner.pages.output import write_texts, writing_to
from runner.pages.progress import Status
from runner.results.golden_reports import is_report, report_content
from runner.results.lookup import LATEST, Named, as_typed, choose_only, find_run_id, results_called, results_of_run
from runner.results.re_evaluation import ReEvaluation, compare_on_same_data, load_documents
from runner.statistics.settings import Statistics
from runner.store.opening import open_store
from runner.store.settings import store_settings
from runner.tracking.pages import create_place


@settings(frozen=True, config={"extra": "forbid", "coerce_numbers_to_str": True})
class ShownSettings:
    """What is compared and shown: the primary measure (None: that of the results), and the number of queries.

    `among` is the sweep among whose combinations the results were chosen by their scores, None if they were not.
    `re_evaluate` decides whether the baseline is evaluated again if the candidate has other data, and `github` whether
    to write a step summary and annotations.
    """

    primary: str | None = None
    among: str | None = None
    re_evaluate: ReEvaluation = "auto"
    github: Literal["auto", "always", "never"] = "auto"
    queries: int = Field(default=5, ge=0)


@settings(frozen=True, config={"extra": "forbid", "coerce_numbers_to_str": True})
class CompareSettings:
    """Where baselines are, where reports go, and what is shown: see `conf/compare.yaml`."""

    baselines: LocalPath
    compare: ShownSettings
    output: LocalPath | None = None
    junit: LocalPath | None = None
    report: ReportSettings = ReportSettings()
    statistics: TableStatistics = TableStatistics()


_MOST_RULES = 20
"""The largest number of rules of a gate to show in the terminal, violated ones first; the report lists all."""


_MOST_DETAILED = 10
"""The largest number of candidates that the terminal shows in detail; with more, it shows one table with all."""


def main(cfg: DictConfig) -> int:
    """Compare results, show them and write reports; return the exit code of the gate's verdict."""
    config = resolve_config(cfg)
    own = build_settings(CompareSettings, config)
    consent = Consent.of(config)
    statistics = own.statistics
    gate: Gate = build(config["gate"], "gate")
    baselines, tracking = Path(own.baselines), build(config["tracking"], "tracking")
    overrides = HydraConfig.get().overrides.task
    words = {key: as_typed(config[key], key, overrides) for key in ("baseline", "candidate")}
    bench = cache(lambda: Bench(open_store(store_settings(config))))
    runs = [word for key in words for word in words[key] if is_run(Path(word))]
    scorer = RunScorer(config, bench, runs, statistics)

    def find_results(word: str) -> list[Named]:
        if word == SERVED and not Path(word).exists():
            return [Named(scorer.score_served(), SERVED)]
        return [Named(scorer.score(word), word)] if word in runs else results_called(word, tracking, baselines)

    results = _load_results(words["baseline"], words["candidate"], find_results)
    rivals: Sequence[Result] = ()
    if own.compare.among is not None and gate.locked is not None:
        raise ConfigError("compare.among: a locked split corrects for all looks at it; remove compare.among")
    if own.compare.among is not None:
        (sweep,) = as_typed(config["compare"]["among"], "compare.among", overrides)
        _, rivals = results_of_run(sweep, tracking)
    with Status("comparing"):
        comparison, effect = compare_on_same_data(
            results, statistics, _parse_primary(own.compare), own.compare.re_evaluate, bench, consent,
            rules=gate.measures, rivals=rivals,
        )  # fmt: skip
    if gate.locked is not None:
        checks = ask_locked_split(gate, comparison, open_store(store_settings(config)).run_files)
        return _answer_locked(own, gate, comparison, checks)
    checks = check_gate(gate, comparison)
    if own.output is not None:
        with Status("documents"):
            documents = load_documents(comparison.results[-1], bench(), consent)
        place = create_place(tracking, [find_run_id(source) for source in comparison.sources])
        files = {
            "comparison.md": comparison_markdown(comparison, checks, own.compare.queries, effect),
            "comparison.json": comparison_json(comparison, checks, effect),
            "comparison.html": comparison_page(comparison, checks, effect, documents, place, own.report.texts),
        }
        _write(own.output, files)
    if own.junit is not None:
        write_junit(comparison_junit(comparison, checks, gate), Path(own.junit))
    console.document(lambda: comparison_json(comparison, checks, effect))
    _show(comparison, checks, own.compare, effect)
    if is_github(own.compare.github):
        _write_for_github(comparison, checks, own.compare, effect, gate)
    if warning := gate_rules.warn_undecided(checks, gate):
        console.note(warning)
    return find_exit_code(gate, checks)


def _answer_locked(own: CompareSettings, gate: Gate, comparison: Comparison, checks: Sequence[Check]) -> int:
    """Show and write only the answers of a locked split; return the exit code."""
    if own.output is not None:
        files = {
            "comparison.md": answers_markdown(comparison, checks),
            "comparison.json": answers_json(comparison, checks),
            "comparison.html": answers_page(comparison, checks),
        }
        _write(own.output, files)
    if own.junit is not None:
        write_junit(comparison_junit(comparison, checks, gate), Path(own.junit))
    console.document(lambda: answers_json(comparison, checks))
    _show_reasons(checks)
    console.paragraph(WHY)
    if is_github(own.compare.github):
        for command in iter_annotations(comparison, checks, 0, gate):
            console.note(command)
        _write_summary(answers_markdown(comparison, checks))
    if warning := gate_rules.warn_undecided(checks, gate):
        console.note(warning)
    return find_exit_code(gate, checks)


def _parse_primary(shown: ShownSettings) -> str | None:
    try:
        return None if shown.primary is None else str(parse_primary(shown.primary))
    except MeasureError as error:
        raise ConfigError(f"compare.primary={shown.primary}: {error}") from None


def is_run(path: Path) -> bool:
    """Return whether a path is a file of rankings; JSON and CSV files may also be records or reports."""
    kind = find_format(path)
    if kind not in ("json", "csv") or not path.is_file():
        return kind is not None and path.is_file()
    if path.name.endswith((".json", ".csv")):
        try:
            content = report_content(path)
        except (OSError, ValueError):
            return False
        return not is_report(content) and not (isinstance(content, Mapping) and "measures" in content)
    return True


class RunScorer:
    """Scores files of rankings with the dataset and the measures of the config, which are loaded when needed.

    While one of the `paths` is scored, the next is read.
    """

    def __init__(
        self, config: Mapping[str, Any], open_bench: Callable[[], Bench], paths: Sequence[str], statistics: Statistics
    ) -> None:
        self._config, self._open_bench, self._statistics = config, open_bench, statistics
        self._files = {path: RunFile(path) for path in paths}
        self._following = dict(pairwise(self._files))

    def score(self, path: str) -> Result:
        """Return the result of one of the files; raises `ConfigError` without a dataset."""
        source, chunking = self._build_dataset(path, "dataset=judged dataset.queries=FILE dataset.qrels=FILE")
        if (following := self._following.pop(path, None)) is not None:
            self._files[following].start_reading()
        return self._evaluate(Path(path).name, self._files[path], path, source, chunking)

    def score_served(self) -> Result:
        """Return the result of what production served for the queries of the dataset; raises `ConfigError`."""
        source, chunking = self._build_dataset(SERVED, "dataset=telemetry dataset.path=TRACES dataset.qrels=FILE")
        if isinstance(source, Telemetry):
            return self._evaluate(SERVED, source.served, source.path, source, chunking)
        file = Path(source.origin) / "served.jsonl"
        if not file.is_file():
            raise ConfigError(
                f"{SERVED}: the dataset has no rankings that were served ({file}); choose dataset=telemetry, or a "
                "golden set of mine source=telemetry"
            )
        return self._evaluate(SERVED, RunFile(str(file)), str(file), source, chunking)

    def _build_dataset(self, word: str, example: str) -> tuple[DatasetSource, Chunking]:
        config = self._config
        if not config.get("dataset"):
            raise ConfigError(
                f"{word}: a run can only be scored with judgments; choose a dataset, for example {example}"
            )
        return build_dataset(config["dataset"], config["plugins"])

    def _evaluate(
        self, name: str, retriever: RunFile | Served, path: str, source: DatasetSource, chunking: Chunking
    ) -> Result:
        kind = "run" if isinstance(retriever, RunFile) else "served"
        metrics = build(self._config["runs"], "runs")
        shown = {"choices": {"retriever": kind}, "retriever": {"path": path}}
        experiment = Experiment(
            name, kind, retriever, source, metrics, shown, {}, chunking=chunking, statistics=self._statistics
        )
        return self._open_bench().evaluate(experiment)


def _load_results(
    baseline_words: Sequence[str], candidate_words: Sequence[str], find_results: Callable[[str], list[Named]]
) -> list[Named]:
    """Return the results to compare: the baseline, then the candidates, from which the baseline is left out."""
    first = [named for word in baseline_words for named in _load("baseline", word, find_results)]
    candidates = [named for word in candidate_words for named in _load("candidate", word, find_results)]
    baseline = choose_only("baseline", baseline_words, first)
    for key, named in [("baseline", baseline), *(("candidate", named) for named in candidates)]:
        if named.remark:
            console.note(f"{key}={named.remark}")
    for named in candidates:
        if named.remark and is_same_evaluation(baseline.result, named.result):
            raise ConfigError(
                f"candidate={LATEST}: this run is the baseline itself ({named.source}); evaluate a candidate first"
            )
    several = len(candidates) > len(candidate_words)  # a report; one of its search types may be the baseline
    return [baseline, *(named for named in candidates if not (several and named.source == baseline.source))]


def _load(key: str, word: str, find_results: Callable[[str], list[Named]]) -> list[Named]:
    """Return the results that a word names; all errors are reported in one line, as mistakes of the user."""
    try:
        return find_results(word)
    except RetrieverError as error:
        raise ConfigError(f"{key}={word}: {error}") from None
    except (ConfigError, DatasetError, ResultError):
        raise
    except Exception as error:
        problem = " ".join(str(error).split())[:200]
        raise ConfigError(f"{key}={word}: cannot be read ({type(error).__name__}: {problem})") from error


def _show(comparison: Comparison, checks: Sequence[Check], shown: ShownSettings, effect: DataEffect | None) -> None:
    few, baseline = comparison.headline, comparison.labels[0]
    detailed = range(1, len(comparison.labels)) if len(comparison.labels) <= _MOST_DETAILED + 1 else ()
    if detailed:
        for verdict in tables.verdicts(comparison):
            console.paragraph(verdict)
        _show_effect(effect)
        console.show_table(tables.measures_table(comparison, few), "Measures")
    else:
        _show_effect(effect)
        console.show_table(tables.means_table(comparison), "Measures")
        console.show_table(tables.primary_table(comparison), f"{comparison.primary} minus that of {baseline}")
    for i in detailed:
        console.show_table(tables.differences_table(comparison, i, few), f"{comparison.labels[i]} minus {baseline}")
        console.show_table(steps.steps_table(comparison, i), f"Gold lost by step: {comparison.labels[i]}")
        console.show_table(bounds.bounds_table(comparison, i), f"{bounds.TITLE}: {comparison.labels[i]}")
    console.show_table(tables.no_result_table(comparison), "Queries without gold")
    console.show_table(tables.types_table(comparison, [comparison.primary]), "By query type")
    console.show_table(tables.agreement_table(comparison), "Agreement")
    console.show_table(tables.times_table(comparison), "Time")
    for i in detailed:
        for what, changes in (("gains", tables.gains(comparison, i)), ("losses", tables.losses(comparison, i))):
            title = f"Largest {what} of {comparison.labels[i]}"
            console.show_table(tables.changes_table(changes[: shown.queries], comparison.primary), title)
    console.line("")
    for text in tables.about(comparison):
        console.paragraph(text)
    if not detailed:
        console.paragraph(
            f"The terminal shows gains, losses and all measures for up to {_MOST_DETAILED} candidates; output=FOLDER "
            "writes a report with those of all candidates."
        )
    _show_checks(checks)


def _show_checks(checks: Sequence[Check]) -> None:
    if checks:
        console.show_table(gate_rules.gate_table(checks, _MOST_RULES), "Rules of the gate")
        console.line("")
        _show_reasons(checks)


def _show_reasons(checks: Sequence[Check]) -> None:
    console.line(gate_rules.gate_verdict(checks))
    for check in gate_rules.list_reasons(checks):
        console.paragraph(gate_rules.describe_check(check), indent=2)


def _show_effect(effect: DataEffect | None) -> None:
    if effect is not None:
        for text in data.describe(effect):
            console.paragraph(text)
        console.show_table(data.effect_table(effect), data.TITLE)


def _write_for_github(
    comparison: Comparison, checks: Sequence[Check], shown: ShownSettings, effect: DataEffect | None, gate: Gate
) -> None:
    """Write annotations for open rules and the worst queries, and add the report to the step summary, if any."""
    for command in iter_annotations(comparison, checks, shown.queries, gate):
        console.note(command)
    _write_summary(comparison_markdown(comparison, checks, shown.queries, effect))


def _write_summary(markdown: str) -> None:
    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        text = cut_summary(markdown)
        try:
            with Path(summary).open("a", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            console.note(f"GITHUB_STEP_SUMMARY={summary}: cannot be written ({error.strerror})")


def _write(output: str, files: Mapping[str, str]) -> None:
    with writing_to(output) as folder:
        console.note(write_texts(folder, files))
