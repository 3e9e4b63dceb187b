"""Documents that changed are counted from a hash of each."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrievers.base import Corpus
from runner.datasets.document_hashes import (
    MOST_DOCUMENTS,
    DocumentChanges,
    check_document_hashes,
    count_changes,
    hash_documents,
)


def hash_texts(texts: dict[str, str]) -> np.ndarray:
    hashes = hash_documents(Corpus([*texts], [*texts.values()]))
    assert hashes is not None
    return hashes


@given(
    before=st.dictionaries(st.sampled_from("abcdefgh"), st.sampled_from(["", "one", "two", "two one"]), min_size=1),
    now=st.dictionaries(st.sampled_from("abcdefgh"), st.sampled_from(["", "one", "two", "two one"]), min_size=1),
)
def test_changes_are_those_of_the_texts_by_id(before: dict[str, str], now: dict[str, str]) -> None:
    changed = sum(before[i] != now[i] for i in before.keys() & now.keys())
    expected = DocumentChanges(changed, len(now.keys() - before.keys()), len(before.keys() - now.keys()))
    assert count_changes(hash_texts(before), hash_texts(now)) == expected


def test_the_title_and_the_searched_fields_are_texts() -> None:
    corpus = Corpus(["a", "b", "c"], ["x", "y", "z"], ["one", "two", "three"], [{"tag": i} for i in "uvw"])
    hashes = hash_documents(corpus)
    assert hashes is not None
    retitled = hash_documents(replace(corpus, titles=["one", "2", "3"]))
    assert retitled is not None
    assert count_changes(hashes, retitled) == DocumentChanges(2, 0, 0)
    searched = replace(corpus, search_fields=["tag"])
    tagged = replace(searched, metadata=[{"tag": i} for i in "u2w"])
    pair = hash_documents(searched), hash_documents(tagged)
    assert pair[0] is not None and pair[1] is not None
    assert count_changes(*pair) == DocumentChanges(1, 0, 0)


def test_no_hashes_are_recorded_of_no_documents_and_of_too_many() -> None:
    assert hash_documents(Corpus([], [])) is None
    ids = [str(i) for i in range(MOST_DOCUMENTS + 1)]
    assert hash_documents(Corpus(ids, ids)) is None
    hashes = hash_documents(Corpus(ids[1:], ids[1:]))
    assert hashes is not None and len(hashes) == 100_000


@pytest.mark.parametrize(
    "hashes",
    [
        np.array([1, 2], np.uint64),
        np.array([1, 3, 2], np.uint64),
        np.array([1, 2, 3], np.int64),
        np.array([[1, 2, 3]], np.uint64),
    ],
)
def test_hashes_that_cannot_be_those_of_the_documents_are_refused(hashes: np.ndarray) -> None:
    with pytest.raises(ValueError, match="expected the hashes of 3 documents in order"):
        check_document_hashes(hashes, 3)
