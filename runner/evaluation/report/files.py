"""The report of one evaluation as files; with the texts of the documents, failures are explained in more detail."""

from __future__ import annotations

from runner.comparison.insights import find_insights
from runner.config.report import Texts
from runner.evaluation.failures import Lexicon
from runner.evaluation.report.page import result_page
from runner.evaluation.report.sections import result_markdown
from runner.evaluation.result import Result
from runner.pages.explorer.place import FILE, PagePlace


def evaluation_files(
    result: Result, lexicon: Lexicon | None = None, place: PagePlace = FILE, texts: Texts = "snippets"
) -> dict[str, str]:
    """Return the report in Markdown and HTML, by file name."""
    insight = find_insights(result, lexicon)
    page = result_page(result, insight, None if lexicon is None else lexicon.corpus, place, texts)
    return {"report.md": result_markdown(result, insight), "report.html": page}
