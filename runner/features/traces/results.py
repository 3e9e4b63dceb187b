"""Builds the result of an agent's configuration in the same form as the result of a retriever.

Tasks are the queries, and the files that the agent saw, in the order in which it first saw them, are the rankings.
Reads only artifacts; traces and tracking are handled elsewhere.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import orjson

from retrievers.store import fingerprint
from runner.evaluation.measuring import RankedDocuments, measure
from runner.evaluation.result import DatasetSummary, JudgedQueries, Result, ResultError, Timings
from runner.features.traces.measures.figures import OUTCOMES, FigureNames, Floats, group_columns
from runner.features.traces.measures.rankings import rank_files
from runner.features.traces.measures.records import Artifact
from runner.features.traces.measures.stages import NO_GROUND_TRUTH
from runner.features.traces.measures.summary import summarise_values
from runner.features.traces.measures.task_figures import PRIMARY, TaskFigure, find_figure, list_task_figures
from runner.features.traces.measures.trials import LOW, TaskTrial, build_trial, select_latest
from runner.metrics.settings import MetricSettings
from runner.statistics.settings import Statistics
from runner.system.environment import describe_environment

DIAGNOSTICS = tuple(figure for figure in list_task_figures() if figure.is_logged)
"""The figures whose means a result contains in addition to its measures."""

COMPARED = (
    *(PRIMARY, "context_efficiency", "ttfr_seconds", "ttfr_tokens"),
    *("util_read_overlap_with_relevant_files", "util_write_overlap_with_expected_edit_files"),
    *OUTCOMES,
)
"""The figures that a result contains for each task, so that `compare` tests their differences."""

_SETTING = ("model", "agent", "agent_version")


@dataclass(frozen=True, slots=True, eq=False)
class _AgentTask:
    """The part of an artifact that enters a result. `error` is the reason why there are no rankings, or ""."""

    trial: TaskTrial
    suite: str
    has_gold: bool
    gold: Sequence[str]
    files: Sequence[str]
    error: str


def result_of(
    name: str,
    artifacts: Iterable[Artifact],
    settings: MetricSettings,
    statistics: Statistics = Statistics(),
    dataset: str = "traces",
) -> Result:
    """Return the result of a configuration from the artifacts of its tasks; the latest artifact of each task counts.

    Tasks without ground truth are left out. A task with ground truth whose trace could not be read is a failed query.
    Results of the same tasks with the same gold belong to the same dataset. Files beyond `settings.depth` are not
    measured, as with any retriever. The time of a query is that of the whole task. Its fields are the model, the agent
    and its version, and its outcomes the figures in `COMPARED`. The means of other figures (utilisation, errors,
    reward, cost) and the number of artifacts left out are diagnostics. Raises `ResultError` if no
    task has ground truth.
    """
    names = FigureNames(settings.k_values)
    trials = [_build_task(artifact, names) for artifact in artifacts]
    by_task = {name: trials[place] for name, place in select_latest([task.trial for task in trials]).items()}
    ids = [task for task in sorted(by_task) if by_task[task].has_gold]
    if not ids:
        raise ResultError(
            f"{name}: none of the {len(by_task)} tasks has ground truth, which is needed to score rankings"
        )
    tasks = [by_task[task] for task in ids]
    gold = [task.gold for task in tasks]
    errors = {place: task.error for place, task in enumerate(tasks) if task.error}
    ranked = rank_files([task.files for task in tasks], gold, settings.depth, errors)
    figures = group_columns((task.trial.figures for task in tasks), names)
    confident = group_columns((task.trial.figures for task in tasks if task.trial.confidence != LOW), names)
    config = _build_config(name, tasks, settings, dataset)
    types = [task.suite for task in tasks]
    rows = [orjson.dumps(row).decode() for row in zip(ids, types, gold, strict=True)]
    diagnostics: dict[str, float] = {
        **_compute_means(figures),
        "agent/superseded": len(trials) - len(by_task),
        "agent/no_ground_truth": len(by_task) - len(ids),
    }
    if low := sum(task.trial.confidence == LOW for task in tasks):
        diagnostics["agent/low_confidence"] = low
        means = _compute_means(confident, (find_figure(PRIMARY),))
        diagnostics |= {f"{key}_without_low_confidence": mean for key, mean in means.items()}
    measurements = measure(
        replace(ranked.rankings, diagnostics=diagnostics),
        ranked.grader,
        settings,
        statistics,
        JudgedQueries(ids, ids, types, gold, [[1] * len(files) for files in gold], fields=_list_settings(tasks)),
        RankedDocuments(ranked.files),
    )
    outcomes = {find_figure(name).mlflow: figures[name] for name in COMPARED if not np.isnan(figures[name]).all()}
    return Result(
        **vars(replace(measurements, outcomes=outcomes)),
        name=name,
        retriever=name,
        config=config,
        config_hash=fingerprint(orjson.dumps(config, option=orjson.OPT_SORT_KEYS).decode()),
        dataset=DatasetSummary(
            name=dataset,
            split="test",
            fingerprint=fingerprint("tasks", *rows),
            corpus_fingerprint="",  # traces do not record the whole corpus
            documents=0,
            queries=len(ids),
            judgments=len(ranked.grader.judgments),
        ),
        timings=_compute_timings(figures["seconds"]),
        environment=describe_environment(),
    )


def _build_task(artifact: Artifact, names: FigureNames) -> _AgentTask:
    """Return the part of an artifact that enters a result; equal file names share memory."""
    metrics, coverage = artifact["file_level_metrics"], artifact["coverage"]
    why = f"{metrics['reason']}: {coverage['degraded_reason'] or 'no trace'}"
    return _AgentTask(
        trial=build_trial(artifact, names),
        suite=artifact["provenance"]["benchmark"],
        has_gold=metrics["reason"] != NO_GROUND_TRUTH,
        gold=[*map(sys.intern, sorted(artifact["ground_truth_files"]))],
        files=[*map(sys.intern, artifact["retrieved_files"])],
        error="" if metrics["computable"] else why,
    )


def _build_config(name: str, tasks: Sequence[_AgentTask], settings: MetricSettings, dataset: str) -> dict[str, object]:
    columns = zip(*(task.trial.setting for task in tasks), strict=True)
    values = dict(zip(_SETTING, columns, strict=True))
    return {
        "choices": {"retriever": name},
        "agent": {key: ", ".join(sorted({*filter(None, column)})) for key, column in values.items() if any(column)},
        "dataset": {"name": dataset},
        "metrics": {"k_values": list(settings.k_values), "depth": settings.depth},
    }


def _list_settings(tasks: Sequence[_AgentTask]) -> list[dict[str, str]]:
    """Return the known settings of the agent in each task by name; [] if none is known."""
    settings = [
        {name: value for name, value in zip(_SETTING, task.trial.setting, strict=True) if value is not None}
        for task in tasks
    ]
    return settings if any(settings) else []


def _compute_means(columns: Mapping[str, Floats], figures: Sequence[TaskFigure] = DIAGNOSTICS) -> dict[str, float]:
    """Return the mean of each figure over the tasks that have it, by its name in MLflow."""
    values = {figure.mlflow: columns[figure.name] for figure in figures}
    means = {name: summarise_values(column[~np.isnan(column)])["mean"] for name, column in values.items()}
    return {name: mean for name, mean in means.items() if mean is not None}


def _compute_timings(seconds: Floats) -> Timings:
    known = seconds[~np.isnan(seconds)]
    has_times = bool(len(known))
    return Timings(
        index_s=0.0,
        search_s=sum(known.tolist()),
        score_s=0.0,
        wall_s=0.0,
        mean_ms=float(np.mean(known)) * 1000 if has_times else None,
        p95_ms=float(np.percentile(known, 95)) * 1000 if has_times else None,
        each_ms=[None if math.isnan(time) else time * 1000 for time in seconds.tolist()] if has_times else (),
    )
