"""What a dataset format owes the program, to be checked by its own tests."""

from __future__ import annotations

from runner.datasets.dataset import Dataset
from runner.datasets.source import DatasetSource
from runner.testing.requirements import require


def check_source(source: DatasetSource) -> Dataset:
    """Load a dataset twice, raise `AssertionError` with what its format owes the program, and return it."""
    name, dataset = type(source).__name__, source.load()
    require(len(dataset.queries), f"{name}: no queries")
    require(len(set(dataset.queries.ids)) == len(dataset.queries), f"{name}: two queries with one id")
    for kind, ids in (("query", dataset.queries.ids), ("document", dataset.corpus.ids)):
        require(all(isinstance(i, str) and i for i in ids), f"{name}: the id of a {kind} should be a text, not empty")
    require(all(isinstance(text, str) for text in dataset.queries.texts), f"{name}: a query whose text is no text")
    judgments = dataset.judgments
    known = len(dataset.documents) + len(dataset.judgments.unknown_documents)
    require(len(judgments), f"{name}: no judgments")
    require(judgments.golds(len(dataset.queries)).any(), f"{name}: no query has gold")
    require(judgments.queries.max() < len(dataset.queries), f"{name}: a judgment of a query that does not exist")
    require(judgments.documents.max() < known, f"{name}: a judgment of a document that does not exist")
    require(source.load().fingerprint == dataset.fingerprint, f"{name}: another dataset when it is loaded again")
    return dataset
