"""What is told of agents' runs: means by configuration, comparisons, associations, tasks, timelines, what failed.

It computes no figure of a task, and knows nothing of how a report looks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from runner.agents.events.document import Document
from runner.agents.measures.association import associations
from runner.agents.measures.figures import figures
from runner.agents.measures.matched import compared
from runner.agents.measures.stages import Artifact, rounded
from runner.agents.measures.summary import described, summary
from runner.reports.trace_timeline import Timeline, timeline

_LISTS = ("ground_truth_files", "retrieved_files")  # which take most of the room, and enter no mean
_OF_A_RUN = ("file_recall", "mrr", "map_score", "ndcg@10", "context_efficiency", "reward", "cost", "seconds")


@dataclass(frozen=True)
class TraceReport:
    """All that is told. `tasks` are artifacts by name without their lists of files, those worth a look first.

    `comparisons` are of each other configuration with the baseline; `failures` says by name what went wrong with a run
    of which there is no artifact. `timelines` are of the first tasks.
    """

    summary: Mapping[str, Any]
    comparisons: Sequence[Mapping[str, Any]]
    associations: Mapping[str, Any]
    tasks: Mapping[str, Artifact]
    failures: Mapping[str, str]
    timelines: Sequence[Timeline]


def trace_report(
    artifacts: Iterable[tuple[str, Artifact]],
    failures: Mapping[str, str],
    baseline: str,
    events: Callable[[str], Document],
    timelines: int,
) -> TraceReport:
    """Return what is told of artifacts, given with their names one at a time.

    `baseline` is the configuration with which the others are compared; `events` are read of so many tasks as timelines
    are wanted.
    """
    small = {name: {key: value for key, value in each.items() if key not in _LISTS} for name, each in artifacts}
    ordered = [*small.values()]
    by_config: dict[str, list[Artifact]] = {}
    for each in ordered:
        by_config.setdefault(each["provenance"]["config_name"], []).append(each)
    when = max((each["generated_at"] for each in ordered), default="")
    tasks = {name: small[name] for name in worth_a_look(small)}
    drawn = [name for name, each in tasks.items() if each["event_summary"]["total_events"]][:timelines]
    return TraceReport(
        summary={**summary(ordered, when), "by_run": _by_run(ordered), "failed": dict(sorted(failures.items()))},
        comparisons=[
            compared(by_config[baseline], by_config[name])
            for name in sorted(by_config.keys() - {baseline})
            if baseline in by_config
        ],
        associations=associations(ordered),
        tasks=tasks,
        failures=dict(sorted(failures.items())),
        timelines=[timeline(name, events(name)) for name in drawn],
    )


def worth_a_look(artifacts: Mapping[str, Artifact]) -> list[str]:
    """Return the names of artifacts: tasks on which recall differs most come first, then those with the lowest.

    The artifacts of one task stand together; those that could not be measured come last.
    """
    tasks: dict[str, list[str]] = {}
    for name, each in artifacts.items():
        tasks.setdefault(each["provenance"]["task_name"], []).append(name)
    keyed = {task: _interest([artifacts[name] for name in names]) for task, names in tasks.items()}
    return [name for task in sorted(tasks, key=lambda task: (*keyed[task], task)) for name in sorted(tasks[task])]


def baseline_among(configurations: Iterable[str]) -> str:
    """Return the configuration that others are compared with where none was named: the first called a baseline."""
    return min(configurations, key=lambda name: ("baseline" not in name.lower(), name), default="")


def summary_json(report: TraceReport) -> bytes:
    """Return the summary of all runs as JSON."""
    return _json(report.summary)


def configuration_json(report: TraceReport, name: str) -> bytes:
    """Return what the tasks of a configuration came to together as JSON."""
    return _json(report.summary["by_configuration"][name])


def report_json(report: TraceReport) -> bytes:
    """Return the whole report as JSON, with null for what is not known; timelines are in the events of each task."""
    content = {
        "summary": report.summary,
        "comparisons": report.comparisons,
        "associations": report.associations,
        "tasks": [_task(name, each) for name, each in report.tasks.items()],
        "failures": report.failures,
    }
    return _json(content)


def _json(content: Any) -> bytes:  # noqa: ANN401 (any JSON)
    return orjson.dumps(rounded(content), option=orjson.OPT_INDENT_2)


def _task(name: str, artifact: Artifact) -> dict[str, Any]:
    return {
        "artifact": name,
        "provenance": artifact["provenance"],
        "coverage": artifact["coverage"],
        "outcome": artifact["outcome"],
        "reason": artifact["file_level_metrics"]["reason"],
        "slices": artifact["error_taxonomy"]["slices"],
        "figures": figures(artifact),
    }


def _interest(artifacts: Sequence[Artifact]) -> tuple[bool, float, float]:
    recalls = [each["file_level_metrics"].get("file_recall") for each in artifacts]
    known = [recall for recall in recalls if recall is not None]
    return (False, min(known) - max(known), sum(known) / len(known)) if known else (True, 0.0, 0.0)


def _by_run(artifacts: Sequence[Artifact]) -> dict[str, dict[str, Any]]:
    runs: dict[str, list[Artifact]] = {}
    for each in artifacts:
        runs.setdefault(each["provenance"]["run_id"], []).append(each)
    return {run: _run(runs[run]) for run in sorted(runs)}


def _run(artifacts: Sequence[Artifact]) -> dict[str, Any]:
    known = [figures(each) for each in artifacts]
    return {
        "total_event_files": len(artifacts),
        "computable_tasks": sum(each["file_level_metrics"]["computable"] for each in artifacts),
        "degraded_tasks": sum(bool(each["coverage"].get("degraded_reason")) for each in artifacts),
        "means": {name: described(each[name] for each in known if name in each)["mean"] for name in _OF_A_RUN},
    }
