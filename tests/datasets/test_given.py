"""Datasets made of values in Python: mappings, records, data frames."""

from __future__ import annotations

import pickle
from typing import Any

import pandas as pd
import pytest

from retrievers.base import Corpus
from runner.datasets.base import DatasetError, Queries
from runner.datasets.dataset import Dataset
from runner.datasets.given import GivenDataset

CORPUS: dict[str, Any] = {"a": "a red boat", "b": {"title": "House", "text": "a blue house"}}
QUERIES = {"q": "red", "r": "house"}
QRELS = {"q": {"a": 2, "b": 0}, "r": {"b": 1}}
ROWS = [("q", "a", 2), ("q", "b", 0), ("r", "b", 1)]


@pytest.mark.parametrize(
    ("corpus", "queries", "qrels"),
    [
        (Corpus(["a", "b"], ["a red boat", "a blue house"], ["", "House"]), QUERIES, ROWS),
        (
            [{"id": "a", "text": "a red boat"}, {"_id": "b", "title": "House", "text": "a blue house"}],
            [{"id": "q", "text": "red"}, {"id": "r", "query": "house"}],
            [dict(zip(("query_id", "document_id", "grade"), row, strict=True)) for row in ROWS],
        ),
        (
            pd.DataFrame({"id": ["a", "b"], "title": [None, "House"], "text": ["a red boat", "a blue house"]}),
            pd.DataFrame({"id": ["q", "r"], "text": ["red", "house"]}),
            pd.DataFrame(ROWS, columns=["query-id", "corpus-id", "score"]),
        ),
        (CORPUS, Queries(["q", "r"], ["red", "house"], ["", ""]), iter(ROWS)),
    ],
)
def test_the_same_values_in_another_shape_are_the_same_dataset(corpus: Any, queries: Any, qrels: Any) -> None:
    assert Dataset.of(corpus, queries, qrels).fingerprint == Dataset.of(CORPUS, QUERIES, QRELS).fingerprint


def test_gold_may_be_listed_without_grades() -> None:
    listed = Dataset.of(CORPUS, QUERIES, {"q": ["a"], "r": ["b"]})
    assert listed.fingerprint == Dataset.of(CORPUS, QUERIES, {"q": {"a": 1}, "r": {"b": 1}}).fingerprint


def test_a_dataset_is_described_in_a_line() -> None:
    dataset = Dataset.of(CORPUS, QUERIES, QRELS, name="toy", split="dev")
    assert repr(dataset) == "Dataset(toy, dev: 2 documents, 2 queries, 3 judgments)"


@pytest.mark.parametrize(
    ("corpus", "queries", "qrels", "message"),
    [
        (
            CORPUS,
            QUERIES,
            {"q": {"c": 1}},
            "qrels['q']['c']: 1 judged document is not among the 2 documents of the corpus",
        ),
        (
            CORPUS,
            QUERIES,
            {"x": {"a": 1}},
            "qrels['x']['a']: 1 judged query is not among the 2 queries of the dataset, for example 'x'",
        ),
        (CORPUS, QUERIES, {"q": "a"}, "qrels['q']: should be a mapping of document ids to grades, or a list of ids"),
        (CORPUS, QUERIES, {"q": {"a": 0.5}}, "qrels['q']['a']: the grade 0.5 is not a whole number"),
        (CORPUS, QUERIES, [("q", "a")], "qrels[0]: should be (query id, document id, grade), not ('q', 'a')"),
        (CORPUS, QUERIES, {}, "given: qrels contains no judgments for the 2 queries"),
        (CORPUS, {"q": 3}, QRELS, "queries['q']: should be text, not int"),
        (CORPUS, ["red"], QRELS, "queries[0]: should have named columns, such as id and text, not 'red'"),
        ([{"id": "a"}], QUERIES, QRELS, "corpus[0]: 'text' is missing; the fields are id"),
        ([{"id": "a", "text": "x"}] * 2, QUERIES, QRELS, "corpus[1]: the document id 'a' is already used at corpus[0]"),
        ({"a": {"title": "x"}}, QUERIES, QRELS, "corpus['a']: 'text' is missing; the fields are title, _id"),
        ("corpus.jsonl", QUERIES, QRELS, "a dataset needs mappings, lists or data frames, not str"),
        ({True: "x"}, QUERIES, QRELS, "corpus[True]: '_id' is True; an id must be text or a whole number"),
        (CORPUS, {1.5: "x"}, QRELS, "queries[1.5]: '_id' is 1.5; an id must be text or a whole number"),
        (
            [{"id": True, "text": "x"}],
            QUERIES,
            QRELS,
            "corpus[0]: '_id' is True; an id must be text or a whole number",
        ),
        (CORPUS, QUERIES, [("q", 1.5, 1)], "qrels[0]: 1.5 is not an id; an id must be text or a whole number"),
        (CORPUS, QUERIES, {"q": [True]}, "qrels['q'][True]: True is not an id; an id must be text or a whole number"),
        ({"a": None}, QUERIES, QRELS, "corpus['a']: should be text, not NoneType"),
        ([{"id": "a", "text": ["x"]}], QUERIES, QRELS, "corpus[0]: 'text' is ['x']; it must be text"),
        ([{"id": "a", "text": pd.NA}], QUERIES, QRELS, "corpus[0]: 'text' is missing; the fields are id"),
        (CORPUS, QUERIES, [*ROWS, ("q", "a", 1)], "qrels[0]: query 'q' and document 'a' have two grades, 2"),
        ({}, QUERIES, QRELS, "given: the dataset has no documents"),
    ],
)
def test_values_that_do_not_fit_together_are_refused(corpus: Any, queries: Any, qrels: Any, message: str) -> None:
    with pytest.raises(DatasetError) as caught:
        Dataset.of(corpus, queries, qrels)
    assert message in str(caught.value)


def test_a_worker_gets_the_values_with_the_source() -> None:
    dataset = Dataset.of(CORPUS, QUERIES, QRELS)
    source = GivenDataset(name="given", content=dataset.fingerprint, dataset=dataset)
    assert pickle.loads(pickle.dumps(source)).load().fingerprint == dataset.fingerprint
    assert repr(source) == repr(GivenDataset(name="given", content=dataset.fingerprint))


def test_loading_in_another_process_says_to_save_the_dataset_to_files() -> None:
    with pytest.raises(DatasetError, match="only in the Python process that created it; save it to files"):
        GivenDataset(name="toy", content="0").load()
