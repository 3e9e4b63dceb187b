"""What is told of agents' runs: means by configuration, comparisons, associations, tasks, timelines, what failed.

It computes no figure of a task, and knows nothing of how a report looks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import orjson

from runner.agents.events.document import Document
from runner.agents.long_json import indented
from runner.agents.measures.association import associations
from runner.agents.measures.differences import comparisons
from runner.agents.measures.figures import FigureNames, figures
from runner.agents.measures.stages import Artifact, rounded
from runner.agents.measures.summary import summary
from runner.metrics.settings import MetricSettings
from runner.reports.traces.timeline import Timeline, timeline


@dataclass(frozen=True)
class TraceReport:
    """All that is told. `tasks` are artifacts by name, those worth a look first; each is fetched when it is asked for.

    `comparisons` are of each other configuration with the baseline; `failures` says by name what went wrong with a run
    of which there is no artifact. `timelines` are of the first tasks. `names` are those of the figures.
    """

    summary: Mapping[str, Any]
    comparisons: Sequence[Mapping[str, Any]]
    associations: Mapping[str, Any]
    tasks: Mapping[str, Artifact]
    failures: Mapping[str, str]
    timelines: Sequence[Timeline]
    names: FigureNames


class _Named(Mapping[str, Artifact]):
    """Some artifacts, in an order of their own."""

    def __init__(self, names: Sequence[str], artifacts: Mapping[str, Artifact]) -> None:
        self._names, self._artifacts = names, artifacts

    def __getitem__(self, name: str) -> Artifact:
        return self._artifacts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def trace_report(
    artifacts: Mapping[str, Artifact],
    failures: Mapping[str, str],
    baseline: str,
    events: Callable[[str], Document],
    timelines: int,
    settings: MetricSettings,
) -> TraceReport:
    """Return what is told of artifacts by their names; they may be more than there is memory for.

    `baseline` is the configuration with which the others are compared; `events` are read of so many tasks as timelines
    are wanted. `settings` say how sure a difference is to be; raises `ValueError` for Tukey's correction.
    """
    by_config: dict[str, list[str]] = {}
    for name, each in artifacts.items():
        by_config.setdefault(each["provenance"]["config_name"], []).append(name)
    configs = {name: _Named(names, artifacts) for name, names in by_config.items()}
    others = [configs[name].values() for name in sorted(configs.keys() - {baseline})]
    tasks = _Named(worth_a_look(artifacts), artifacts)
    drawn = islice((name for name, each in tasks.items() if each["event_summary"].get("total_events")), timelines)
    names = FigureNames(settings.k_values)
    return TraceReport(
        summary={**summary(artifacts.values(), names), "failed": dict(sorted(failures.items()))},
        comparisons=comparisons(configs[baseline].values(), others, settings) if baseline in configs else [],
        associations=associations(artifacts.values(), settings),
        tasks=tasks,
        failures=dict(sorted(failures.items())),
        timelines=[timeline(name, events(name)) for name in drawn],
        names=names,
    )


def worth_a_look(artifacts: Mapping[str, Artifact]) -> list[str]:
    """Return the names of artifacts: tasks on which recall differs most come first, then those with the lowest.

    The artifacts of one task stand together; those that could not be measured come last.
    """
    tasks: dict[str, dict[str, float | None]] = {}
    for name, each in artifacts.items():
        recall = each["file_level_metrics"].get("file_recall")
        tasks.setdefault(each["provenance"]["task_name"], {})[name] = recall
    order = sorted(tasks, key=lambda task: (*_interest(tasks[task].values()), task))
    return [name for task in order for name in sorted(tasks[task])]


def baseline_among(configurations: Iterable[str]) -> str:
    """Return the configuration that others are compared with where none was named: the first called a baseline."""
    return min(configurations, key=lambda name: ("baseline" not in name.lower(), name), default="")


def summary_json(report: TraceReport) -> bytes:
    """Return the summary of all runs as JSON."""
    return _json(report.summary)


def configuration_json(report: TraceReport, name: str) -> bytes:
    """Return what the tasks of a configuration came to together as JSON."""
    return _json(report.summary["by_configuration"][name])


def report_json(report: TraceReport) -> Iterator[bytes]:
    """Yield the whole report as JSON, with null for what is not known; timelines are in the events of each task."""
    content = {
        "summary": report.summary,
        "comparisons": report.comparisons,
        "associations": report.associations,
        "tasks": [],
        "failures": report.failures,
    }
    return indented(rounded(content), "tasks", (rounded(_task(name, each)) for name, each in report.tasks.items()))


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


def _interest(recalls: Iterable[float | None]) -> tuple[bool, float, float]:
    known = [recall for recall in recalls if recall is not None]
    return (False, min(known) - max(known), sum(known) / len(known)) if known else (True, 0.0, 0.0)
