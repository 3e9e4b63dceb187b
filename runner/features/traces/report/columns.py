"""The tasks of a report about agents' runs as columns of data."""

from __future__ import annotations

from collections.abc import Mapping

from runner.features.traces.measures.figures import list_figures
from runner.features.traces.measures.records import Artifact
from runner.features.traces.measures.task_figures import PRIMARY, Unit, find_figure
from runner.features.traces.measures.taxonomy import CATEGORY, SLICES
from runner.features.traces.report.report import TraceReport
from runner.pages.explorer.data import DataColumn, Format

_FORMATS: Mapping[Unit, Format] = {
    "share": "score",
    "files": "integer",
    "tokens": "integer",
    "seconds": "seconds",
    "dollars": "number",
    "reward": "number",
}
_SHOWN = ("mrr", "reward", "cost", "seconds")


def build_columns(report: TraceReport) -> list[DataColumn]:
    """Return what is known of each task in each configuration: its groups, then its figures."""
    primary = find_figure(PRIMARY)
    known: dict[str, list[str]] = {}
    figures: dict[str, list[float | None]] = {name: [] for name in report.names.all}
    for name, artifact in report.tasks.items():
        for key, value in _describe_groups(name, artifact).items():
            known.setdefault(key, []).append(value)
        own = list_figures(artifact)
        for figure, values in figures.items():
            values.append(own.get(figure))
    return [
        DataColumn("text", "task", "task", known.get("task", [])),
        *(
            DataColumn(
                f"g{i}", key.replace(" ", "_"), key, values, kind="setting",
                shown=key == "configuration" and len(set(values)) > 1,
            )
            for i, (key, values) in enumerate(known.items())
            if key != "task" and any(values)
        ),
        DataColumn("value", primary.title, primary.title, figures.pop(PRIMARY), _FORMATS[primary.unit], "measure",
                   definition=primary.definition),
        *(
            DataColumn(
                f"m{i}", name, figure.title, values, _FORMATS[figure.unit], "cost" if figure.is_cost else "measure",
                shown=name in (*_SHOWN, *report.names.headline),
            )
            for i, (name, values) in enumerate(figures.items())
            for figure in [find_figure(name)]
            if any(value is not None for value in values)
        ),
    ]  # fmt: skip


def _describe_groups(name: str, artifact: Artifact) -> Mapping[str, str]:
    """Return the name of a task and the groups that it belongs to, each of which is a slice."""
    provenance, metrics, slices = artifact["provenance"], artifact["file_level_metrics"], artifact["error_taxonomy"]
    outcome = artifact["outcome"] or {}
    confidence = artifact["coverage"].get("ground_truth_confidence") if metrics["computable"] else None
    return {
        "task": name.partition("/")[2],
        "configuration": provenance["config_name"],
        "suite": provenance["benchmark"],
        "model": outcome.get("model") or provenance.get("model") or "",
        "gold confidence": confidence or "",
        **{slice_name.replace("_", " "): slices["slices"].get(slice_name) or "" for slice_name in (*SLICES, CATEGORY)},
        "not measured": (metrics["reason"] or "").replace("_", " "),
    }
