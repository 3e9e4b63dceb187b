"""What the artifacts of runs show together: summaries, associations, and the tasks to look at first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from runner.features.traces.measures.association import Associations, correlate_outcomes
from runner.features.traces.measures.figures import FigureNames
from runner.features.traces.measures.records import Artifact
from runner.features.traces.measures.summary import RunSummary, summarise_runs
from runner.statistics.settings import Statistics


@dataclass(frozen=True)
class TraceFindings:
    """The findings. `tasks` are artifacts by name, the most interesting first, each read when it is requested.

    `failures` gives, by name, the error of each run without an artifact, and `names` are those of the figures.
    """

    summary: RunSummary
    associations: Associations
    tasks: Mapping[str, Artifact]
    failures: Mapping[str, str]
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


def compute_findings(
    artifacts: Mapping[str, Artifact],
    failures: Mapping[str, str],
    names: FigureNames,
    statistics: Statistics,
) -> TraceFindings:
    """Compute the findings from artifacts by name, which may be more than fit in memory.

    `names` are those of the figures, and `statistics` decide how sure an association has to be; raises `ValueError` for
    Tukey's correction.
    """
    return TraceFindings(
        summary=summarise_runs(artifacts.values(), names),
        associations=correlate_outcomes(artifacts.values(), names, statistics),
        tasks=_OrderedArtifacts(sort_by_interest(artifacts), artifacts),
        failures=dict(sorted(failures.items())),
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


def _measure_interest(recalls: Iterable[float | None]) -> tuple[bool, float, float]:
    known = [recall for recall in recalls if recall is not None]
    return (False, min(known) - max(known), sum(known) / len(known)) if known else (True, 0.0, 0.0)
