"""The files of a golden report: the JSON document, and Markdown that is rendered from it, so that both agree."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime

from runner.config.report import Texts
from runner.evaluation.result import Result, without_metadata
from runner.features.golden.document import golden_report
from runner.features.golden.report.markdown import golden_markdown


def golden_files(
    results: Sequence[Result],
    at: datetime,
    parallel: bool = False,
    rivals: Sequence[Result] = (),
    texts: Texts = "snippets",
) -> dict[str, str]:
    """Return the two files of a report, `eval_YYYYMMDD_HHMMSS_report.json` and `.md`, by their names.

    `at` is when the report is made, with its time zone, and `rivals` are the results that these were chosen from.
    Raises as `golden_report` does.
    """
    shown = [without_metadata(result) for result in results] if texts == "none" else results
    report = golden_report(shown, at, parallel, rivals)
    name = f"{report['run_id']}_report"
    text = json.dumps(report, indent=2, ensure_ascii=False, allow_nan=False)
    return {f"{name}.json": f"{text}\n", f"{name}.md": golden_markdown(report)}
