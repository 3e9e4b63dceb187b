"""The checks for authors of retrievers and formats: ours pass, and each fault is named."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from retrievers.base import Corpus, Rankings, Retriever
from retrievers.capabilities import Capabilities
from retrievers.lexical.bm25 import BM25
from retrievers.store import NoStore, Store
from runner.datasets.beir import Beir
from runner.testing.datasets import check_source
from runner.testing.retrievers import check_retriever
from tests.retrievers.test_contract import ALL, each
from tests.test_docs import DIR, write

Change = Callable[[Rankings], Rankings]


@dataclass(frozen=True)
class Changed:
    """BM25 whose rankings are changed."""

    change: Change

    def index(self, corpus: Corpus, store: Store) -> ChangedSearcher:
        return ChangedSearcher(self.change, BM25().index(corpus, store))


@dataclass(frozen=True)
class WithFilters(Changed):
    """Declares that it filters, but does not."""

    capabilities: ClassVar[Capabilities] = Capabilities(filters=True)


@dataclass(frozen=True)
class ChangedSearcher:
    change: Change
    base: object

    def search(self, queries: Sequence[str], k: int, store: Store = NoStore()) -> Rankings:  # noqa: B008 (no state)
        return self.change(self.base.search([*map(str, queries)], k))  # type: ignore[attr-defined]


def repeat_the_first(rankings: Rankings) -> Rankings:
    documents = rankings.documents.copy()
    documents[:, 1:] = np.where(documents[:, 1:] >= 0, documents[:, :1], -1)
    return replace(rankings, documents=documents)


def sort_upwards(rankings: Rankings) -> Rankings:
    return replace(rankings, scores=-rankings.scores)


def name_no_document(rankings: Rankings) -> Rankings:
    return replace(rankings, documents=np.where(rankings.documents >= 0, rankings.documents + 100, -1))


def lose_a_query(rankings: Rankings) -> Rankings:
    return replace(rankings, documents=rankings.documents[1:], scores=rankings.scores[1:])


def change_nothing(rankings: Rankings) -> Rankings:
    return rankings


@each(ALL)
def test_retrievers_of_the_program_pass(retriever: Retriever) -> None:
    check_retriever(retriever)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (repeat_the_first, "a document twice"),
        (sort_upwards, "should not increase|should be finite"),
        (name_no_document, "a position that no document has"),
        (lose_a_query, "5 queries, but 4 rankings"),
    ],
)
def test_a_fault_of_a_retriever_is_named(change: Change, fault: str) -> None:
    with pytest.raises(AssertionError, match=fault):
        check_retriever(Changed(change))


def test_filters_that_are_declared_but_not_applied_are_a_fault() -> None:
    with pytest.raises(AssertionError, match="returned documents that do not pass"):
        check_retriever(WithFilters(change_nothing))


def test_a_retriever_whose_settings_are_not_fields_is_refused() -> None:
    class Plain:
        index = BM25().index

    with pytest.raises(AssertionError, match="should be a dataclass"):
        check_retriever(Plain())


def test_a_format_of_the_program_passes(tmp_path: Path) -> None:
    write(tmp_path, DIR)
    dataset = check_source(Beir(path=str(tmp_path / "DIR")))
    assert (len(dataset.corpus), len(dataset.queries), len(dataset.judgments)) == (3, 2, 3)


def test_a_format_that_loads_other_queries_each_time_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, DIR)
    source = Beir(path=str(tmp_path / "DIR"))
    first = source.load()
    loaded = iter([first, replace(first, queries=replace(first.queries, texts=["other", "texts"]))])
    monkeypatch.setattr(Beir, "load", lambda self: next(loaded))
    with pytest.raises(AssertionError, match="another dataset when it is loaded again"):
        check_source(source)
