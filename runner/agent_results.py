"""What a configuration of an agent did on its tasks, as a result: whatever reads a retriever's reads an agent's.

Tasks are queries, the files that the agent saw are its rankings, in order of first sight. It reads artifacts alone;
knows nothing of traces, nor of where a result is logged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import orjson

from retrievers.store import fingerprint
from runner.agents.measures.figures import OUTCOMES, PROBES, figures
from runner.agents.measures.matched import latest
from runner.agents.measures.rankings import ranked
from runner.agents.measures.stages import NO_GROUND_TRUTH, Artifact
from runner.agents.measures.summary import described
from runner.agents.measures.taxonomy import LABELS
from runner.analysis.significance import bootstrap_interval
from runner.evaluation import environment
from runner.metrics.abstention import abstention, statuses
from runner.metrics.settings import MetricSettings
from runner.result import DatasetSummary, Found, QueryTable, Result, ResultError, Timings

DIAGNOSTICS = (
    *("file_recall", "context_efficiency", "ttfr_seconds", "ttfr_tokens", "n_retrieved", "chunk_recall"),
    *(*PROBES, *LABELS, *OUTCOMES),
)
"""The figures that a result has beside its measures."""


def result_of(name: str, artifacts: Sequence[Artifact], settings: MetricSettings, dataset: str = "traces") -> Result:
    """Return the result of a configuration: its name, and the artifacts of its tasks, the latest of each.

    Tasks without ground truth are not judged, and left out; one with ground truth whose trace could not be read is a
    query that failed. Two results are of the same dataset where they are of the same tasks with the same gold. Files
    beyond `settings.depth` are not measured, as with any retriever. A query's time is the whole time of its task;
    other figures (utilisation, errors, reward, cost) are diagnostics, in the mean, and so is how many artifacts were
    left out. Raises `ResultError` where no task has ground truth.
    """
    by_task = latest(artifacts)
    tasks = {
        task: by_task[task]
        for task in sorted(by_task)
        if by_task[task]["file_level_metrics"]["reason"] != NO_GROUND_TRUTH
    }
    if not tasks:
        raise ResultError(f"{name}: none of its {len(by_task)} tasks has ground truth to rank against")
    kept = list(tasks.values())
    gold = [sorted(each["ground_truth_files"]) for each in kept]
    errors = {
        place: f"{each['file_level_metrics']['reason']}: {each['coverage'].get('degraded_reason') or 'no trace'}"
        for place, each in enumerate(kept)
        if not each["file_level_metrics"]["computable"]
    }
    files = ranked([each["retrieved_files"] for each in kept], gold, settings.depth, errors)
    scores, types = files.scores(settings.expanded), [each["provenance"]["benchmark"] for each in kept]
    names, deepest = [str(measure) for measure in scores.measures], max(settings.k_values, default=settings.depth)
    counted = scores.values[:, scores.counted]
    intervals = bootstrap_interval(counted, settings.confidence, settings.resamples, settings.seed).tolist()
    config = _config(name, kept, settings, dataset)
    rows = [orjson.dumps(row).decode() for row in zip(tasks, types, gold, strict=True)]
    return Result(
        name=name,
        retriever=name,
        config=config,
        config_hash=fingerprint(orjson.dumps(config, option=orjson.OPT_SORT_KEYS).decode()),
        swept={},
        dataset=DatasetSummary(
            name=dataset,
            split="test",
            fingerprint=fingerprint("tasks", *rows),
            corpus_fingerprint="",  # what else there was to find, no trace says
            documents=0,
            queries=len(tasks),
            judgments=len(files.grader.judgments),
        ),
        primary=str(settings.primary_measure),
        queries=QueryTable(
            ids=list(tasks),
            texts=list(tasks),
            types=types,
            expected=gold,
            statuses=statuses(files.grader, files.rankings),
            errors=[errors.get(place, "") for place in range(len(tasks))],
            notes=[""] * len(tasks),
            expected_grades=[[1] * len(each) for each in gold],
        ),
        measures=names,
        scores=scores.values,
        means=scores.means(),
        intervals={measure: (low, high) for measure, (low, high) in zip(names, intervals, strict=True)},
        by_type=scores.by_type(types),
        abstention=abstention(files.grader, files.rankings, (), deepest).to_dict(),
        timings=_timings(kept),
        found=Found(files.rankings, files.files, files.grader.grades(files.rankings)),
        diagnostics={
            **_diagnostics(kept),
            "agent/superseded": len(artifacts) - len(by_task),
            "agent/no_ground_truth": len(by_task) - len(tasks),
        },
        environment=environment(),
    )


def _config(name: str, kept: Sequence[Artifact], settings: MetricSettings, dataset: str) -> dict[str, Any]:
    outcomes: list[Mapping[str, Any]] = [{**each["provenance"], **(each.get("outcome") or {})} for each in kept]
    named = ("model", "agent", "agent_version")
    said = {key: sorted({str(each[key]) for each in outcomes if each.get(key)}) for key in named}
    return {
        "choices": {"retriever": name},
        "agent": {key: ", ".join(values) for key, values in said.items() if values},
        "dataset": {"name": dataset},
        "metrics": {"k_values": list(settings.k_values), "depth": settings.depth},
    }


def _diagnostics(kept: Sequence[Artifact]) -> dict[str, float]:
    """Return the mean of each figure over the tasks that have it."""
    known = [figures(each) for each in kept]
    means = {name: described(each[name] for each in known if name in each)["mean"] for name in DIAGNOSTICS}
    return {f"agent/{name}": mean for name, mean in means.items() if mean is not None}


def _timings(kept: Sequence[Artifact]) -> Timings:
    each = [figures(artifact).get("seconds") for artifact in kept]
    timed = [seconds for seconds in each if seconds is not None]
    return Timings(
        index_s=0.0,
        search_s=sum(timed),
        score_s=0.0,
        wall_s=0.0,
        mean_ms=float(np.mean(timed)) * 1000 if timed else None,
        p95_ms=float(np.percentile(timed, 95)) * 1000 if timed else None,
        each_ms=[None if seconds is None else seconds * 1000 for seconds in each] if timed else (),
    )
