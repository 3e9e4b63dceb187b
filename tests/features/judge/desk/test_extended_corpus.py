"""Documents that are added to a dataset change no measure."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from retrievers.base import Corpus, Rankings
from runner.datasets.base import Judgments, Queries
from runner.datasets.dataset import Dataset
from runner.features.judge.desk.results import extend_corpus
from runner.metrics.measures import parse
from runner.metrics.scores import Grader


def score(dataset: Dataset, names: list[str]) -> list[float]:
    """Return the nDCG@3 of each query if each of them has these hits."""
    outside = tuple(name for name in names if name not in dataset.corpus.positions)
    at = dataset.corpus.positions | {name: len(dataset.corpus) + i for i, name in enumerate(outside)}
    row = np.array([[at[name] for name in names]] * 2, dtype=np.int32)
    rankings = Rankings(row, np.ones(row.shape, dtype=np.float32), unknown_ids=outside)
    grader = Grader(dataset.judgments, 2, len(dataset.corpus), judged_ids=dataset.judged_ids)
    return list(grader.score(rankings, [parse("nDCG@3")]).values[0].tolist())


@pytest.mark.parametrize("added", [["w"], ["y", "w"], ["z", "y", "x", "w"]])
def test_judgments_stay_with_their_documents(added: list[str]) -> None:
    queries = Queries(["q", "r"], ["?", "!"], ["", ""])
    grades = Judgments.of([(0, 0, 1), (0, 2, 2), (0, 3, 1), (1, 1, 3), (1, 3, 0)])
    grades = replace(grades, unknown_documents=["x", "y", "z"], by_search_type={"other": grades})
    dataset = Dataset("d", "test", Corpus(["a"], ["text"]), queries, grades)
    larger = extend_corpus(dataset, Corpus(["a", *added], ["text"] * (len(added) + 1)))
    assert set(larger.judgments.unknown_documents) == {"x", "y", "z"} - set(added)
    assert larger.judgments.select("other").documents.tolist() == larger.judgments.documents.tolist()
    for names in (["a", "y", "z"], ["w", "x", "y"], ["z", "a", "x"]):
        assert score(larger, names) == score(dataset, names)
