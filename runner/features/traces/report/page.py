"""The report of traces as one self-contained HTML file; the same input gives the same bytes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from runner.features.traces.measures.records import Artifact
from runner.features.traces.report import tables, timeline
from runner.features.traces.report.columns import build_columns
from runner.features.traces.report.report import TraceReport
from runner.features.traces.report.sections import iter_sections
from runner.pages.explorer import specs
from runner.pages.explorer.figures import Plot
from runner.pages.explorer.page import render_explorer

TEMPLATE = Path(__file__).with_name("page.html.jinja")

OPEN = 4
"""The number of timelines that are open at first."""

FILES = 50
"""Most retrieved files, and most missed gold files, of a task on the page."""


def render_page(report: TraceReport) -> str:
    """Return the HTML page of a report."""
    names, columns = list(report.tasks), build_columns(report)
    plots = list(_list_plots(report))
    tasks = next(column for column in columns if column.id == "text").values
    data: dict[str, object] = {
        "kind": "traces",
        "noun": "tasks",
        "primary": "recall",
        "columns": [column.to_dict() for column in columns],
        "order": "value",
        "example": "recall < 0.5",
        "plots": [plot.to_dict() for plot in plots],
        "queries": {"ids": names, "texts": tasks, "types": [""] * len(names), "expected": []},
        "clusters": _number_tasks(report),
        "tasks": [_describe(report, *item) for item in islice(report.tasks.items(), tables.TASKS)],
    }
    return render_explorer(
        TEMPLATE,
        data,
        sections=iter_sections(report, tasks=0),
        report=report,
        tables=tables,
        size=timeline,
        opened=OPEN,
        figures=plots,
    )


def _number_tasks(report: TraceReport) -> list[int]:
    """Return the number of each artifact's task, which several configurations and trials may share."""
    numbers: dict[str, int] = {}
    tasks = (artifact["provenance"]["task_name"] for artifact in report.tasks.values())
    return [numbers.setdefault(task, len(numbers)) for task in tasks]


def _describe(report: TraceReport, name: str, artifact: Artifact) -> dict[str, object]:
    """Return what the page shows of an opened task: its files in order of first sight, missed gold and its events."""
    gold, retrieved = artifact["ground_truth_files"], artifact["retrieved_files"]
    missed = [file for file in gold if file not in set(retrieved)]
    return {
        "note": tables.describe_task(report, artifact),
        "degraded": artifact["coverage"]["degraded_reason"] or "",
        "files": [[file, int(file in set(gold))] for file in retrieved[:FILES]],
        "others": max(len(retrieved) - FILES, 0),
        "missed": missed[:FILES] if artifact["file_level_metrics"]["computable"] else [],
        "events": report.events.get(name),
    }


def _list_plots(report: TraceReport) -> Iterator[Plot]:
    if report.summary.whole.n_measured:
        text = "The distribution of recall over tasks and configurations. Drag to select tasks."
        yield Plot("histogram", "By task", text, specs.build_histogram("value", "recall", "tasks"))
