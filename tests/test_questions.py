"""The questions of the tutorial name pages of this documentation, and most have an answer in the first hits."""

from __future__ import annotations

import runner
from retrievers import BM25
from tests.documentation import ROOT


def test_the_questions_of_the_tutorial_are_about_pages_of_the_documentation() -> None:
    docs = ROOT / "docs"
    data = runner.load_dataset("folder", path=str(docs), questions=str(docs / "tutorials" / "questions.csv"))
    assert len(data.queries.ids) == 30
    assert runner.evaluate(BM25(), data).means["Success@10"] > 0.5
