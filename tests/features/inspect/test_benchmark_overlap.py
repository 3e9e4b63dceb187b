"""A dataset is compared with a benchmark by hashes of words."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.datasets.base import DatasetError
from runner.datasets.beir import Beir
from runner.datasets.dataset import Dataset
from runner.features.inspect.benchmark_overlap import (
    BenchmarkHashes,
    find_overlaps,
    hash_dataset,
    hash_words,
    load_hashes,
)
from tests.documentation import write

CORPUS = (
    '{"_id": "d1", "title": "Harbour", "text": "Ships leave at night."}\n{"_id": "d2", "text": "No gold is here."}\n'
)
QUERIES = '{"_id": "q1", "text": "When do the ships leave?"}\n{"_id": "q2", "text": "night ships"}\n'
QRELS = "query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td1\t1\n"


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    write(tmp_path, {"a/corpus.jsonl": CORPUS, "a/queries.jsonl": QUERIES, "a/qrels/test.tsv": QRELS})
    return Beir(path=str(tmp_path / "a")).load()


def test_case_and_punctuation_do_not_matter_and_short_texts_have_no_hash() -> None:
    assert hash_words("When do the ships leave?") == hash_words("when DO the ships, leave")
    assert hash_words("when do the ships leave") != hash_words("when do the ferries leave")
    assert hash_words("three short words") == hash_words("") == ""


def test_queries_and_gold_documents_in_a_benchmark_are_a_finding(dataset: Dataset) -> None:
    known = BenchmarkHashes("sea", frozenset({hash_words("when do the ships leave")}), frozenset())
    (finding,) = find_overlaps(dataset, [known, BenchmarkHashes("sky", frozenset(), frozenset())], examples=5)
    assert (finding.name, finding.count, finding.of) == ("overlap with sea", 1, 2)
    assert "1 of 2 queries and 0 of 1 gold documents" in finding.text
    assert [example["query"] for example in finding.examples] == ["q1"]
    documents = BenchmarkHashes("sea", frozenset(), frozenset({hash_words("Harbour: ships leave at night")}))
    (finding,) = find_overlaps(dataset, [documents], examples=5)
    assert (finding.count, finding.of) == (1, 1)


def test_the_file_has_no_text_and_gives_the_same_hashes(dataset: Dataset, tmp_path: Path) -> None:
    hashes = hash_dataset(dataset)
    assert (len(hashes.queries), len(hashes.documents)) == (1, 1)
    (tmp_path / "hashes.json").write_bytes(hashes.to_json())
    assert load_hashes(tmp_path / "hashes.json") == hashes
    assert b"ships" not in (tmp_path / "hashes.json").read_bytes()


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "cannot be read"), ("[]", "expected the hashes"), ('{"version": 9}', "has version 9, but this program")],
)
def test_another_file_is_refused(tmp_path: Path, content: str | None, message: str) -> None:
    if content is not None:
        (tmp_path / "x").write_text(content)
    with pytest.raises(DatasetError, match=message):
        load_hashes(tmp_path / "x")
