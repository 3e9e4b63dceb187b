"""The content of a report about agents' runs: the findings with the timelines of tasks, and the findings as JSON.

Knows nothing of how a report looks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import orjson

from runner.features.traces.events.records import EventDocument
from runner.features.traces.long_json import iter_indented
from runner.features.traces.measures.figures import list_figures
from runner.features.traces.measures.findings import TraceFindings
from runner.features.traces.measures.records import Artifact
from runner.features.traces.measures.stages import round_numbers
from runner.features.traces.report.timeline import Timeline, build_timeline, list_events


@dataclass(frozen=True)
class TraceReport(TraceFindings):
    """The findings, the `timelines` of the first tasks, and their tool calls for the page, `events` by name."""

    timelines: Sequence[Timeline]
    events: Mapping[str, Sequence[Mapping[str, object]]]


def build_report(
    findings: TraceFindings,
    load_events: Callable[[str], EventDocument],
    timelines: int,
    hide: Callable[[str], str] = str,
) -> TraceReport:
    """Build the report of findings.

    `load_events` is called for as many tasks as there should be `timelines`; `hide` replaces the secrets in the
    arguments of their tool calls.
    """
    with_events = (name for name, artifact in findings.tasks.items() if artifact["event_summary"].get("total_events"))
    drawn, events = [], {}
    for name in islice(with_events, timelines):
        document = load_events(name)
        drawn.append(build_timeline(name, document))
        events[name] = list_events(document, hide)
    return TraceReport(**vars(findings), timelines=drawn, events=events)


def summary_json(report: TraceReport) -> bytes:
    """Return the summary of all runs as JSON."""
    return _dump(_summary_content(report))


def configuration_json(report: TraceReport, name: str) -> bytes:
    """Return the summary of a configuration as JSON."""
    return _dump(report.summary.by_configuration[name].to_json())


def report_json(report: TraceReport) -> Iterator[bytes]:
    """Yield the whole report as JSON, with null for unknown values; timelines are in the events of each task."""
    content = {
        "summary": round_numbers(_summary_content(report)),
        "associations": round_numbers(report.associations),
        "tasks": [],
        "failures": report.failures,
    }
    tasks = (round_numbers(_task_content(name, artifact)) for name, artifact in report.tasks.items())
    return iter_indented(content, "tasks", tasks)


def _summary_content(report: TraceReport) -> dict[str, object]:
    return {**report.summary.to_json(), "failed": report.failures}


def _dump(content: Mapping[str, object]) -> bytes:
    return orjson.dumps(round_numbers(content), option=orjson.OPT_INDENT_2)


def _task_content(name: str, artifact: Artifact) -> dict[str, object]:
    return {
        "artifact": name,
        "provenance": artifact["provenance"],
        "coverage": artifact["coverage"],
        "outcome": artifact["outcome"],
        "reason": artifact["file_level_metrics"]["reason"],
        "slices": artifact["error_taxonomy"]["slices"],
        "figures": list_figures(artifact),
    }
