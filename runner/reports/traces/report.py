"""The content of a report about agents' runs: summaries, comparisons, associations, tasks, timelines and failures.

It computes no figure of a task. Knows nothing of how a report looks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice

import orjson

from runner.agents.events.records import EventDocument
from runner.agents.long_json import iter_indented
from runner.agents.measures.association import Associations, correlate_outcomes
from runner.agents.measures.differences import TraceComparison, compare_configurations
from runner.agents.measures.figures import FigureNames, list_figures
from runner.agents.measures.records import Artifact
from runner.agents.measures.stages import round_numbers
from runner.agents.measures.summary import RunSummary, summarise_runs
from runner.metrics.statistics import Statistics
from runner.reports.traces.timeline import Timeline, build_timeline, list_events


@dataclass(frozen=True)
class TraceReport:
    """A report. `tasks` are artifacts by name, the most interesting first, each read when it is requested.

    `comparisons` compare each other configuration with the baseline. `failures` gives, by name, the error of each run
    without an artifact. `timelines` are those of the first tasks, `events` their tool calls by name for the page, and
    `names` those of the figures.
    """

    summary: RunSummary
    comparisons: Sequence[TraceComparison]
    associations: Associations
    tasks: Mapping[str, Artifact]
    failures: Mapping[str, str]
    timelines: Sequence[Timeline]
    events: Mapping[str, Sequence[Mapping[str, object]]]
    names: FigureNames


class _OrderedArtifacts(Mapping[str, Artifact]):
    """A selection of artifacts in a given order."""

    def __init__(self, names: Sequence[str], artifacts: Mapping[str, Artifact]) -> None:
        self._names, self._artifacts = names, artifacts

    def __getitem__(self, name: str) -> Artifact:
        return self._artifacts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def build_report(
    artifacts: Mapping[str, Artifact],
    failures: Mapping[str, str],
    baseline: str,
    load_events: Callable[[str], EventDocument],
    timelines: int,
    names: FigureNames,
    statistics: Statistics,
    hide: Callable[[str], str] = str,
) -> TraceReport:
    """Build the report of artifacts by name, which may be more than fit in memory.

    The other configurations are compared with `baseline`. `load_events` is called for as many tasks as there should be
    `timelines`; `hide` replaces the secrets in the arguments of their tool calls. `names` are those of the
    figures, and `statistics` decide how sure a difference has to be; raises `ValueError` for Tukey's correction.
    """
    by_config: dict[str, list[str]] = {}
    for name, artifact in artifacts.items():
        by_config.setdefault(artifact["provenance"]["config_name"], []).append(name)
    configs = {name: _OrderedArtifacts(names, artifacts) for name, names in by_config.items()}
    others = [configs[name].values() for name in sorted(configs.keys() - {baseline})]
    tasks = _OrderedArtifacts(sort_by_interest(artifacts), artifacts)
    with_events = (name for name, artifact in tasks.items() if artifact["event_summary"].get("total_events"))
    drawn, events = [], {}
    for name in islice(with_events, timelines):
        document = load_events(name)
        drawn.append(build_timeline(name, document))
        events[name] = list_events(document, hide)
    return TraceReport(
        summary=summarise_runs(artifacts.values(), names),
        comparisons=compare_configurations(configs[baseline].values(), others, names, statistics)
        if baseline in configs
        else [],
        associations=correlate_outcomes(artifacts.values(), names, statistics),
        tasks=tasks,
        failures=dict(sorted(failures.items())),
        timelines=drawn,
        events=events,
        names=names,
    )


def sort_by_interest(artifacts: Mapping[str, Artifact]) -> list[str]:
    """Return the names of artifacts: first the tasks on which recall differs most, then those with the lowest.

    The artifacts of a task stay together; those that could not be measured come last.
    """
    tasks: dict[str, dict[str, float | None]] = {}
    for name, artifact in artifacts.items():
        recall = artifact["file_level_metrics"].get("file_recall")
        tasks.setdefault(artifact["provenance"]["task_name"], {})[name] = recall
    order = sorted(tasks, key=lambda task: (*_measure_interest(tasks[task].values()), task))
    return [name for task in order for name in sorted(tasks[task])]


def select_baseline(configurations: Iterable[str]) -> str:
    """Return the default baseline: the first configuration whose name contains "baseline", else the first."""
    return min(configurations, key=lambda name: ("baseline" not in name.lower(), name), default="")


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
        "comparisons": round_numbers([{**of, "statistics": asdict(of["statistics"])} for of in report.comparisons]),
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


def _measure_interest(recalls: Iterable[float | None]) -> tuple[bool, float, float]:
    known = [recall for recall in recalls if recall is not None]
    return (False, min(known) - max(known), sum(known) / len(known)) if known else (True, 0.0, 0.0)
