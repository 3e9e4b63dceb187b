"""Variants of a query: the field that they share, in each format, and what it changes in a dataset."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runner.config import CONF
from runner.datasets.base import DatasetError
from runner.datasets.beir import Beir
from runner.datasets.golden_json import GoldenJson
from runner.datasets.judged import JudgedFiles
from runner.datasets.mined import Mined
from runner.datasets.needle import Needle
from runner.datasets.question_folder import QuestionFolder
from runner.datasets.source import DatasetSource
from runner.datasets.synthetic import Synthetic
from runner.datasets.tabular import Tabular
from runner.datasets.trec import Trec
from runner.testing.datasets import check_source
from tests.config.files import list_names, load_settings
from tests.datasets.test_base import Ready, raw
from tests.datasets.test_tabular import write

TOPICS = [{"topic": "tide"}, {"topic": "tide"}, {}]
EXPECTED = ["tide", "tide", ""]


def lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def beir(folder: Path, field: str, inside: bool) -> DatasetSource:
    lines(folder / "corpus.jsonl", [{"_id": "d", "title": "", "text": "sea"}])
    about = [{"metadata": topic} if inside else topic for topic in TOPICS]
    lines(folder / "queries.jsonl", [{"_id": f"q{i}", "text": "sea", **row} for i, row in enumerate(about)])
    (folder / "qrels").mkdir()
    rows = "".join(f"q{i}\td\t1\n" for i in range(3))
    (folder / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{rows}")
    return Beir(path=str(folder), cluster_field=field)


def trec(folder: Path, field: str) -> DatasetSource:
    documents = lines(folder / "documents.jsonl", [{"_id": "d", "text": "sea"}])
    topics = lines(folder / "t.jsonl", [{"_id": f"q{i}", "text": "sea", **row} for i, row in enumerate(TOPICS)])
    (folder / "qrels").write_text("".join(f"q{i} 0 d 1\n" for i in range(3)))
    return Trec(documents=str(documents), topics=str(topics), qrels=str(folder / "qrels"), cluster_field=field)


def table(folder: Path, field: str, ending: str) -> DatasetSource:
    documents, queries = folder / f"d.{ending}", folder / f"q.{ending}"
    write(documents, [{"id": "d", "text": "sea"}])
    every = [{"id": f"q{i}", "text": "sea", "gold": "d", "topic": topic} for i, topic in enumerate(EXPECTED)]
    write(queries, every)
    return Tabular(documents=str(documents), queries=str(queries), cluster_field=field)


def golden(folder: Path, field: str) -> DatasetSource:
    items = folder / "items.json"
    items.write_text(json.dumps([{"item_id": "d", "headline": "sea"}]))
    rows = [
        {"query_id": f"q{i}", "query_text": "sea", "expected_items": [{"item_id": "d", "relevance": "high"}], **row}
        for i, row in enumerate(TOPICS)
    ]
    path = folder / "golden.json"
    path.write_text(json.dumps({"queries": rows}))
    return GoldenJson(path=str(path), items=str(items), text_fields=("headline",), cluster_field=field)


def mined(folder: Path, field: str) -> DatasetSource:
    context = {"fqn": "d", "text": "sea"}
    path = lines(
        folder / "m.jsonl",
        [{"id": f"q{i}", "query": "sea", "positive_ctxs": [context], "metadata": row} for i, row in enumerate(TOPICS)],
    )
    return Mined(path=str(path), corpus="contexts", cluster_field=field)


def synthetic(folder: Path, field: str) -> DatasetSource:
    (folder / "docs").mkdir()
    (folder / "docs" / "d.md").write_text("sea")
    rows = [{"query": "sea", "expected_doc_ids": ["d"], "validation": row} for row in TOPICS]
    return Synthetic(path=str(lines(folder / "s.jsonl", rows)), corpus=str(folder / "docs"), cluster_field=field)


def judged(folder: Path, field: str) -> DatasetSource:
    queries = lines(folder / "q.jsonl", [{"_id": f"q{i}", "text": "sea", **row} for i, row in enumerate(TOPICS)])
    (folder / "qrels").write_text("".join(f"q{i} 0 d 1\n" for i in range(3)))
    return JudgedFiles(queries=str(queries), qrels=str(folder / "qrels"), cluster_field=field)


def question_folder(folder: Path, field: str) -> DatasetSource:
    (folder / "docs").mkdir()
    (folder / "docs" / "d.md").write_text("sea\n")
    every = [{"id": f"q{i}", "text": "sea", "gold": "d.md", "topic": topic} for i, topic in enumerate(EXPECTED)]
    write(folder / "q.jsonl", every)
    return QuestionFolder(path=str(folder / "docs"), questions=str(folder / "q.jsonl"), cluster_field=field)


SOURCES = {
    "folder": question_folder,
    "beir": lambda folder, field: beir(folder, field, inside=True),
    "beir, beside the metadata": lambda folder, field: beir(folder, field, inside=False),
    "trec": trec,
    **{e: lambda folder, field, ending=e: table(folder, field, ending) for e in ("jsonl", "csv", "tsv", "parquet")},
    "golden_json": golden,
    "mined": mined,
    "synthetic": synthetic,
    "judged": judged,
}


@pytest.mark.parametrize("name", SOURCES)
def test_a_format_keeps_the_contract_and_variants_share_the_value_of_a_field(tmp_path: Path, name: str) -> None:
    dataset = check_source(SOURCES[name](tmp_path, "topic"))
    assert list(dataset.queries.clusters) == EXPECTED


def test_every_other_format_keeps_the_contract_in_its_own_tests(tmp_path: Path) -> None:
    samples = {name: tmp_path / str(place) for place, name in enumerate(SOURCES)}
    for folder in samples.values():
        folder.mkdir()
    tested = {SOURCES[name](folder, "topic").__module__ for name, folder in samples.items()}
    targets = [load_settings(CONF / "dataset" / f"{name}.yaml")["_target_"] for name in list_names("dataset")]
    others = {target.split(".")[-2] for target in targets} - {module.rpartition(".")[2] for module in tested}
    files = {name: Path(__file__).with_name(f"test_{name}.py") for name in others}
    texts = {name: file.read_text(encoding="utf-8") if file.is_file() else "" for name, file in files.items()}
    assert [name for name, text in texts.items() if "check_source(" not in text] == []


@pytest.mark.parametrize("name", SOURCES)
def test_a_field_that_no_query_has_is_refused_with_those_there_are(tmp_path: Path, name: str) -> None:
    with pytest.raises(DatasetError, match=r"dataset\.cluster_field=theme: no query has this field; .*topic") as caught:
        SOURCES[name](tmp_path, "theme").load()
    assert "\n" not in str(caught.value)


def test_the_ways_of_asking_a_needle_question_share_its_id(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "d.md").write_text("sea")
    questions = [{"id": "a", "question": "sea?", "realistic_q1": "which sea?"}, {"id": "b", "question": "tide?"}]
    path = tmp_path / "needle.json"
    path.write_text(json.dumps({"needle_doc_id": "d", "questions": questions}))
    source = Needle(questions=str(path), documents=str(tmp_path / "docs"), cluster_field="question_id")
    assert list(source.load().queries.clusters) == ["a", "a", ""]


def test_only_datasets_with_clusters_have_another_fingerprint() -> None:
    plain = raw()
    known = replace(plain, queries=replace(plain.queries, metadata=[{"n": 1}, {"n": 1.0}, {"n": None}]))
    clustered = Ready(cluster_field="n").assemble(known)
    assert list(clustered.queries.clusters) == ["1", "1"]
    assert clustered.fingerprint != Ready().assemble(plain).fingerprint
    assert Ready().assemble(known).fingerprint == Ready().assemble(plain).fingerprint


def test_a_value_that_is_neither_text_nor_a_number_is_refused() -> None:
    plain = raw()
    known = replace(plain, queries=replace(plain.queries, metadata=[{"n": ["a"]}, {}, {}]))
    with pytest.raises(DatasetError, match=r"cluster_field=n: the value of query 'q1' is neither text nor a number"):
        Ready(cluster_field="n").assemble(known)
