"""Reports of made-up runs of agents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from runner.config.values import without_secrets
from runner.features.traces.measures.figures import FigureNames
from runner.features.traces.measures.findings import compute_findings
from runner.features.traces.measures.records import Artifact
from runner.features.traces.measures.stages import build_artifact
from runner.features.traces.report.report import TraceReport, build_report
from runner.features.traces.runs.outcomes import RunOutcome
from runner.statistics.settings import Statistics
from tests.features.traces.documents import document, done, read


def report(documents: Mapping[str, Mapping[str, Any]], timelines: int = 40, **failures: str) -> TraceReport:
    """Return the report of documents by the names of their artifacts."""
    said = {name: {"summary": {"total_events": len(each["events"])}, **each} for name, each in documents.items()}
    artifacts = {name: build_artifact(each, RunOutcome(reward=0.5)) for name, each in said.items()}
    findings = compute_findings(artifacts, failures, FigureNames(), Statistics())
    return build_report(findings, lambda name: dict(said[name]), timelines, without_secrets)


def several(n: int = 4) -> dict[str, dict[str, Any]]:
    """Return documents of two configurations on the same tasks, of which one finds more."""
    found: dict[str, dict[str, Any]] = {}
    for task in (f"t{number}" for number in range(n)):
        for config, seen in (("baseline", ["x.py", "a.py"]), ("mcp", ["a.py", "b.py"])):
            whose = {"task_name": task, "config_name": config}
            found[f"{config}/{task}"] = document([read(*seen)], ["a.py", "b.py"], **whose)
    return found


def finding(config: str, recalls: Sequence[float], **said: Any) -> dict[str, Artifact]:
    """Return the artifacts of tasks by name, of whose ten gold files such a share was found."""
    gold = [f"{number}.py" for number in range(10)]
    return {
        f"{config}/t{task}": done(
            f"t{task}",
            *gold[: round(10 * recall)],
            gold=gold,
            config_name=config,
            **{"reward": 0.5, "model": "m"} | said,
        )
        for task, recall in enumerate(recalls)
    }


def told_of(*configurations: Mapping[str, Artifact], **settings: Any) -> TraceReport:
    artifacts = {name: each for some in configurations for name, each in some.items()}
    findings = compute_findings(artifacts, {}, FigureNames(), Statistics(**settings))
    return build_report(findings, lambda name: {}, 0)
