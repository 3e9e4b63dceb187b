"""What a configuration of an agent did on its tasks, as a result: whatever reads a retriever's reads an agent's.

Tasks are queries, the files that the agent saw are its rankings, in order of first sight. It reads artifacts alone;
knows nothing of traces, nor of where a result is logged.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import orjson

from retrievers.store import fingerprint
from runner.agents.measures.figures import OUTCOMES, PROBES, FigureNames, Floats, columns
from runner.agents.measures.matched import LOW, Trial, latest, trial
from runner.agents.measures.rankings import ranked
from runner.agents.measures.stages import NO_GROUND_TRUTH, Artifact
from runner.agents.measures.summary import described
from runner.agents.measures.taxonomy import LABELS
from runner.environment import describe_environment
from runner.measuring import JudgedQueries, RankedDocuments, measure
from runner.metrics.settings import MetricSettings
from runner.result import DatasetSummary, Result, ResultError, Timings

DIAGNOSTICS = (
    *("file_recall", "context_efficiency", "ttfr_seconds", "ttfr_tokens", "n_retrieved", "chunk_recall"),
    *(*PROBES, *LABELS, *OUTCOMES),
)
"""The figures that a result has beside its measures."""


@dataclass(frozen=True, slots=True, eq=False)
class _Task:
    """What of an artifact enters a result, the same words once. `error` says why there is nothing to rank, or ""."""

    trial: Trial
    suite: str
    has_gold: bool
    gold: Sequence[str]
    retrieved: Sequence[str]
    error: str


def result_of(name: str, artifacts: Iterable[Artifact], settings: MetricSettings, dataset: str = "traces") -> Result:
    """Return the result of a configuration: its name, and the artifacts of its tasks, of which the latest count.

    Tasks without ground truth are not judged, and left out; one with ground truth whose trace could not be read is a
    query that failed. Two results are of the same dataset where they are of the same tasks with the same gold. Files
    beyond `settings.depth` are not measured, as with any retriever. A query's time is the whole time of its task;
    other figures (utilisation, errors, reward, cost) are diagnostics, in the mean, and so is how many artifacts were
    left out. Raises `ResultError` where no task has ground truth.
    """
    names = FigureNames(settings.k_values)
    trials = [_task(artifact, names) for artifact in artifacts]
    by_task = {task: trials[place] for task, place in latest([task.trial for task in trials]).items()}
    tasks = [task for task in sorted(by_task) if by_task[task].has_gold]
    if not tasks:
        raise ResultError(f"{name}: none of its {len(by_task)} tasks has ground truth to rank against")
    kept = [by_task[task] for task in tasks]
    gold = [task.gold for task in kept]
    errors = {place: task.error for place, task in enumerate(kept) if task.error}
    files = ranked([task.retrieved for task in kept], gold, settings.depth, errors)
    figures = columns((task.trial.figures for task in kept), names)
    sure = columns((task.trial.figures for task in kept if task.trial.confidence != LOW), names)
    config = _config(name, kept, settings, dataset)
    types = [task.suite for task in kept]
    rows = [orjson.dumps(row).decode() for row in zip(tasks, types, gold, strict=True)]
    diagnostics: dict[str, float] = {
        **_means(figures),
        "agent/superseded": len(trials) - len(by_task),
        "agent/no_ground_truth": len(by_task) - len(tasks),
    }
    if low := sum(task.trial.confidence == LOW for task in kept):
        diagnostics["agent/low_confidence"] = low
        diagnostics |= {f"{key}_without_low_confidence": mean for key, mean in _means(sure, ("file_recall",)).items()}
    measurements = measure(
        replace(files.rankings, diagnostics=diagnostics),
        files.grader,
        settings,
        JudgedQueries(tasks, tasks, types, gold, [[1] * len(golds) for golds in gold]),
        RankedDocuments(files.files),
    )
    return Result(
        **vars(measurements),
        name=name,
        retriever=name,
        config=config,
        config_hash=fingerprint(orjson.dumps(config, option=orjson.OPT_SORT_KEYS).decode()),
        dataset=DatasetSummary(
            name=dataset,
            split="test",
            fingerprint=fingerprint("tasks", *rows),
            corpus_fingerprint="",  # traces do not say which other files there were
            documents=0,
            queries=len(tasks),
            judgments=len(files.grader.judgments),
        ),
        timings=_timings(figures["seconds"]),
        environment=describe_environment(),
    )


def _task(artifact: Artifact, names: FigureNames) -> _Task:
    metrics, coverage = artifact["file_level_metrics"], artifact["coverage"]
    why = f"{metrics['reason']}: {coverage.get('degraded_reason') or 'no trace'}"
    return _Task(
        trial=trial(artifact, names),
        suite=artifact["provenance"]["benchmark"],
        has_gold=metrics["reason"] != NO_GROUND_TRUTH,
        gold=[*map(sys.intern, sorted(artifact["ground_truth_files"]))],
        retrieved=[*map(sys.intern, artifact["retrieved_files"])],
        error="" if metrics["computable"] else why,
    )


def _config(name: str, kept: Sequence[_Task], settings: MetricSettings, dataset: str) -> dict[str, Any]:
    settled = zip(*(task.trial.setting for task in kept), strict=True)
    settings_of_agent = zip(("model", "agent", "agent_version"), settled, strict=True)
    return {
        "choices": {"retriever": name},
        "agent": {key: ", ".join(sorted({*filter(None, values)})) for key, values in settings_of_agent if any(values)},
        "dataset": {"name": dataset},
        "metrics": {"k_values": list(settings.k_values), "depth": settings.depth},
    }


def _means(figures: Mapping[str, Floats], names: Sequence[str] = DIAGNOSTICS) -> dict[str, float]:
    """Return the mean of each diagnostic over the tasks that have it."""
    means = {name: described(figures[name][~np.isnan(figures[name])])["mean"] for name in names}
    return {f"agent/{name}": mean for name, mean in means.items() if mean is not None}


def _timings(seconds: Floats) -> Timings:
    timed = seconds[~np.isnan(seconds)]
    known = bool(len(timed))
    return Timings(
        index_s=0.0,
        search_s=sum(timed.tolist()),
        score_s=0.0,
        wall_s=0.0,
        mean_ms=float(np.mean(timed)) * 1000 if known else None,
        p95_ms=float(np.percentile(timed, 95)) * 1000 if known else None,
        each_ms=[None if math.isnan(s) else s * 1000 for s in seconds.tolist()] if known else (),
    )
