"""Writes the files of a report about agents' runs."""

from __future__ import annotations

from pathlib import Path

from retrievers.files import replace_file, replace_texts
from runner.features.traces.artifact_store import check_output
from runner.features.traces.measures import summary
from runner.features.traces.report.page import render_page
from runner.features.traces.report.report import TraceReport, report_json, summary_json
from runner.features.traces.report.sections import render_markdown

PAGE = "report.html"


def write_report(output: Path, report: TraceReport) -> dict[str, str]:
    """Write a report, each file atomically, and return the texts that are logged with each configuration by name.

    Raises `ConfigError` if the folder cannot be written to.
    """
    texts = {"report.md": render_markdown(report), PAGE: render_page(report)}
    with check_output(output):
        with replace_file(output / summary.FILE) as new:
            new.write_bytes(summary_json(report))
        with replace_file(output / "report.json") as new, new.open("wb") as file:
            file.writelines(report_json(report))
        replace_texts(output, texts)
    return texts
