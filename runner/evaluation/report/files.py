"""The report of one evaluation as files."""

from __future__ import annotations

from retrievers.base import Corpus
from runner.comparison.insights import Insights
from runner.config.report import Texts
from runner.evaluation.report.page import result_page
from runner.evaluation.report.sections import result_markdown
from runner.evaluation.result import Result
from runner.pages.explorer.place import FILE, PagePlace


def evaluation_files(
    result: Result, insight: Insights, corpus: Corpus | None = None, place: PagePlace = FILE, texts: Texts = "snippets"
) -> dict[str, str]:
    """Return the report in Markdown and HTML, by file name; `corpus` has the texts of the documents."""
    page = result_page(result, insight, corpus, place, texts)
    return {"report.md": result_markdown(result, insight), "report.html": page}
