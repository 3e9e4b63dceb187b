"""Splits of any format: `{split}` in a path stands for the name of one."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from runner.datasets.base import DatasetError
from runner.datasets.beir import Beir
from runner.datasets.splits import list_splits
from runner.datasets.tabular import Tabular
from runner.datasets.trec import Trec

TABLES = {
    "documents.jsonl": '{"id": "d1", "text": "light"}\n{"id": "d2", "text": "ferry"}\n',
    "queries.test.jsonl": '{"id": "q1", "text": "ships", "gold": "d1"}\n',
    "queries.train.jsonl": '{"id": "t1", "text": "boats", "gold": "d2"}\n',
    "topics.txt": "q1\tships\nt1\tboats\n",
    "qrels/test/all.txt": "q1 0 d1 1\n",
    "qrels/dev/all.txt": "t1 0 d2 1\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return written(tmp_path, TABLES)


def written(folder: Path, contents: Mapping[str, str]) -> Path:
    for name, text in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def tables(folder: Path, split: str) -> Tabular:
    return Tabular(
        documents=str(folder / "documents.jsonl"), queries=str(folder / "queries.{split}.jsonl"), split=split
    )


def topics(folder: Path, split: str) -> Trec:
    return Trec(
        documents=str(folder / "documents.jsonl"),
        topics=str(folder / "topics.txt"),
        topics_format="tsv",
        qrels=str(folder / "qrels/{split}/all.txt"),
        split=split,
    )


def test_each_split_has_the_queries_of_its_own_file(folder: Path) -> None:
    assert tables(folder, "test").splits() == ["test", "train"]
    for split, query in (("test", "q1"), ("train", "t1")):
        dataset = tables(folder, split).load()
        assert (dataset.split, list(dataset.queries.ids)) == (split, [query])


def test_each_split_has_the_judgments_of_its_own_folder(folder: Path) -> None:
    assert topics(folder, "test").splits() == ["dev", "test"]
    assert list(topics(folder, "dev").load().queries.ids) == ["t1"]


def test_a_split_without_files_is_refused_and_the_others_are_named(folder: Path) -> None:
    with pytest.raises(DatasetError, match=r"dataset.split=x: .*jsonl has no such split; choose test or train"):
        tables(folder, "x").load()
    with pytest.raises(DatasetError, match=r"dataset.split=test: .*nowhere.* has no such split; none is available"):
        Tabular(documents="d", queries=str(folder / "nowhere/{split}.jsonl")).load()


def test_a_split_has_all_files_that_paths_with_its_name_say(folder: Path) -> None:
    source = Tabular(
        documents=str(folder / "documents.jsonl"),
        queries=str(folder / "queries.{split}.jsonl"),
        qrels=str(folder / "qrels/{split}/all.txt"),
    )
    assert source.splits() == ["test"]


def test_a_file_that_another_setting_names_is_not_a_split(folder: Path) -> None:
    written(folder, {"test.jsonl": TABLES["queries.test.jsonl"]})
    source = Tabular(documents=str(folder / "documents.jsonl"), queries=str(folder / "{split}.jsonl"))
    assert source.splits() == ["test"]


def test_without_the_word_split_is_but_a_name(folder: Path) -> None:
    source = Tabular(
        documents=str(folder / "documents.jsonl"), queries=str(folder / "queries.test.jsonl"), split="mine"
    )
    assert source.splits() == ()
    assert source.load().split == "mine"


def test_the_splits_of_a_folder_are_its_qrels_even_with_files_of_queries(tmp_path: Path) -> None:
    rows = {split: json.dumps({"_id": query, "text": query}) for split, query in (("test", "q1"), ("train", "t1"))}
    written(tmp_path, {"corpus.jsonl": '{"_id": "d1", "text": "light"}\n'})
    written(tmp_path, {f"queries.{split}.jsonl": row for split, row in rows.items()})
    written(tmp_path, {"qrels/test.tsv": "q1\td1\t1\n", "qrels/train.tsv": "t1\td1\t1\n"})
    source = Beir(path=str(tmp_path), queries="queries.{split}.jsonl", split="train")
    assert source.splits() == ["test", "train"]
    assert list(source.load().queries.ids) == ["t1"]


def test_a_name_stands_for_itself_has_no_dot_and_is_the_same_wherever_a_path_has_it(tmp_path: Path) -> None:
    there = ("a[1]/dev/q.dev.tsv", "a[1]/dev/q.train.tsv", "a[1]/test/q.test.tsv.corpus.tsv", "a1/x/q.x.tsv")
    written(tmp_path, dict.fromkeys(there, ""))
    (tmp_path / "a[1]/train").mkdir()
    (tmp_path / "a[1]/train/q.train.tsv.gz").write_bytes(gzip.compress(b""))
    assert list_splits(f"{tmp_path}/a[1]/{{split}}/q.{{split}}.tsv") == {"dev", "train"}
    assert list_splits(f"{tmp_path}/a[1]/{{split}}") == {"dev", "test", "train"}


def test_paths_may_begin_at_the_working_directory(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder / "qrels")
    assert list_splits("./{split}/all.txt") == {"dev", "test"}
    assert list_splits("../queries.{split}.jsonl") == {"test", "train"}


def test_a_path_may_end_with_the_name_of_a_split(folder: Path, tmp_path: Path) -> None:
    written(tmp_path, {"qrels.dev": "t1 0 d2 1\n", "qrels.test.gz": "", "qrels.test.old": ""})
    assert list_splits(f"{tmp_path}/qrels.{{split}}") == {"dev", "test"}
    assert list_splits(f"{tmp_path}/q{{split}}{{split}}") == set()
