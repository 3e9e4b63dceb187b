"""The report of one evaluation, as files: what it found, how well, why queries fail and what may help.

Written from the result, and from the words of its documents where these are at hand.
"""

from __future__ import annotations

from runner.analysis.failures import Lexicon
from runner.reports.evaluation.insights import insights
from runner.reports.evaluation.markdown import result_markdown
from runner.reports.evaluation.page import result_page
from runner.result import Result


def evaluation_files(result: Result, lexicon: Lexicon | None = None) -> dict[str, str]:
    """Return the report in Markdown and HTML, by file name."""
    insight = insights(result, lexicon)
    return {"report.md": result_markdown(result, insight), "report.html": result_page(result, insight)}
