"""A difference is explained in Python with the effects of the command `explain`."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

import runner
from retrievers import BM25
from runner.comparison.comparability import NotComparable
from tests.api.conftest import DOCUMENTS, QRELS, QUERIES


def test_settings_and_documents_have_separate_effects_that_add_up(given: runner.Dataset, here: Path) -> None:
    gold = {document for grades in QRELS.values() for document in grades}
    texts = {name: text if name not in gold else "nothing of the kind" for name, text in DOCUMENTS.items()}
    other = runner.Dataset.of(texts, QUERIES, QRELS)
    first = runner.evaluate(BM25(k1=0.5), given, tracking_uri="none")
    second = runner.evaluate(BM25(k1=5.0), other, tracking_uri="none")
    explanation = runner.explain(first, second, datasets=[given, other], test="t", store_path=here / "cache")
    frame = explanation.frame.set_index(["measure", "name"]).loc[explanation.primary]
    changed = frame.index[frame.changed]
    assert list(changed) == ["code and settings", "documents", "total"]
    assert frame.effect.drop("total").sum() == pytest.approx(frame.effect["total"], abs=1e-12)
    assert frame.effect["documents"] < 0
    assert "documents" in explanation._repr_html_()
    moved = explanation.moved_frame.set_index("query")
    assert moved.causes.to_dict() == {query: ["documents"] for query in QUERIES}
    assert list(moved.columns[:4]) == ["value_before", "value_after", "rank_before", "rank_after"]
    assert moved.iloc[0, :4].tolist() == [1, 0, 1, math.inf]
    assert repr(explanation).startswith("ResultExplanation(")


def test_what_cannot_be_explained_is_named(given: runner.Dataset) -> None:
    result = runner.evaluate(BM25(), given, tracking_uri="none")
    other = runner.Dataset.of(DOCUMENTS, {**QUERIES, "q1": "other words"}, QRELS)
    with pytest.raises(NotComparable, match=r"^(candidate|baseline)=.*: its data cannot be loaded"):
        runner.explain(result, runner.evaluate(BM25(), other, tracking_uri="none"))
    with pytest.raises(TypeError, match=r"^candidate: should be a result of evaluate or run_sweep, not str$"):
        runner.explain(result, "last")  # type: ignore[arg-type]  # a mistake
