"""Queries and judgments are a dataset, in every format."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from retrievers.base import RetrieverError
from retrievers.composed.fusion import Hybrid
from retrievers.composed.reranked import Reranked
from retrievers.lexical.bm25 import BM25
from retrievers.runs.run_file import RunFile
from retrievers.search import search_cached
from retrievers.store import MemoryStore, NoStore
from runner.datasets.base import DatasetError
from runner.datasets.beir import Beir
from runner.datasets.golden_json import GoldenJson
from runner.datasets.judged import JudgedFiles
from runner.datasets.source import DatasetSource
from runner.datasets.tabular import Tabular
from runner.datasets.trec import Trec
from tests.retrievers.scripted import Overlap

QUERIES = [("1", "red boat"), ("2", "blue house")]
QRELS = [("1", "a", 2), ("1", "b", 0), ("2", "pier 3", 1)]
TOPICS = "".join(f"<top>\n<num> Number: {q}\n<title> {text}\n</top>\n" for q, text in QUERIES)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "queries.jsonl").write_text("".join(json.dumps({"_id": q, "text": t}) + "\n" for q, t in QUERIES))
    (tmp_path / "queries.tsv").write_text("".join(f"{q}\t{t}\n" for q, t in QUERIES))
    (tmp_path / "topics.txt").write_text(TOPICS)
    pd.DataFrame(QUERIES, columns=["id", "text"]).to_csv(tmp_path / "queries.csv", index=False)
    pd.DataFrame(QUERIES, columns=["qid", "query"]).to_parquet(tmp_path / "queries.parquet")
    qrels = pd.DataFrame(QRELS, columns=["query_id", "document_id", "grade"])
    qrels.to_csv(tmp_path / "qrels.csv", index=False)
    qrels.to_parquet(tmp_path / "qrels.parquet")
    qrels.to_json(tmp_path / "qrels.jsonl", orient="records", lines=True)
    (tmp_path / "qrels").mkdir()
    for file in (tmp_path / "qrels.tsv", tmp_path / "qrels" / "test.tsv"):
        file.write_text("".join(f"{q}\t{d}\t{grade}\n" for q, d, grade in QRELS))
    expected = [[{"item_id": d, "relevance": "high"} for i, d, grade in QRELS if i == q and grade] for q, _ in QUERIES]
    rows = [{"query_id": q, "query_text": t, "expected_items": e} for (q, t), e in zip(QUERIES, expected, strict=True)]
    (tmp_path / "golden.json").write_text(json.dumps({"queries": rows}))
    return tmp_path


def judged(folder: Path, queries: str = "queries.jsonl", qrels: str = "qrels.tsv", **more: str) -> JudgedFiles:
    return JudgedFiles(queries=str(folder / queries), qrels=str(folder / qrels), **more)  # type: ignore[arg-type]  # its own settings


def contents(source: DatasetSource) -> tuple[list[tuple[str, str]], set[tuple[str, str, int]], int]:
    dataset = source.load()
    names = [*dataset.corpus.ids, *dataset.judgments.unknown_documents]
    columns = (dataset.judgments.queries, dataset.judgments.documents, dataset.judgments.grades)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    graded = {(dataset.queries.ids[q], names[d], grade) for q, d, grade in rows}
    return list(zip(dataset.queries.ids, dataset.queries.texts, strict=True)), graded, len(dataset.corpus)


@pytest.mark.parametrize("qrels", ["qrels.tsv", "qrels.csv", "qrels.jsonl", "qrels.parquet"])
@pytest.mark.parametrize("queries", ["queries.jsonl", "queries.tsv", "topics.txt", "queries.csv"])
def test_queries_and_judgments_are_read_in_any_format(folder: Path, queries: str, qrels: str) -> None:
    assert contents(judged(folder, queries, qrels)) == (QUERIES, set(QRELS), 0)


def test_columns_of_queries_may_be_named(folder: Path) -> None:
    assert contents(judged(folder, "queries.parquet", query_id="qid", query_text="query"))[0] == QUERIES


def test_json_lines_of_queries_may_have_other_names(tmp_path: Path) -> None:
    (tmp_path / "queries.jsonl").write_text('{"qid": "q1", "query": "light"}\n{"qid": "q2", "query": "ferry"}\n')
    (tmp_path / "qrels.tsv").write_text("qid\tdocId\trel\nq1\td1\t2\nq2\td2\t1\n")
    dataset = JudgedFiles(queries=str(tmp_path / "queries.jsonl"), qrels=str(tmp_path / "qrels.tsv")).load()
    assert dict(zip(dataset.queries.ids, dataset.queries.texts, strict=True)) == {"q1": "light", "q2": "ferry"}


def test_documents_are_optional_in_every_format(folder: Path) -> None:
    queries, qrels = str(folder / "queries.csv"), str(folder / "qrels.csv")
    sources: list[DatasetSource] = [
        Beir(path=str(folder), documents=None),
        Trec(topics=str(folder / "topics.txt"), qrels=str(folder / "qrels.tsv")),
        Tabular(queries=queries, qrels=qrels),
    ]
    for source in sources:
        assert contents(source) == (QUERIES, set(QRELS), 0)
    golden = {(q, d, 3) for q, d, grade in QRELS if grade}
    assert contents(GoldenJson(path=str(folder / "golden.json"))) == (QUERIES, golden, 0)


def test_documents_that_are_named_are_read_and_have_to_be_judged_ones(folder: Path) -> None:
    (folder / "documents.tsv").write_text("a\tred boat\npier 3\tpier\n")
    source = judged(folder, documents=str(folder / "documents.tsv"))
    with pytest.raises(
        DatasetError, match="1 judged document is not among the 2 documents of the corpus, for example 'b'"
    ):
        source.load()
    assert contents(replace(source, unknown_judged="keep")) == (QUERIES, set(QRELS), 2)


def test_the_fingerprint_covers_queries_and_judgments(folder: Path) -> None:
    first = judged(folder).load().fingerprint
    assert judged(folder, "topics.txt", "qrels.csv").load().fingerprint == first
    (folder / "other.tsv").write_text("1\ta\t1\n2\tb\t1\n")
    assert judged(folder, qrels="other.tsv").load().fingerprint != first


def test_retrievers_that_search_documents_refuse_a_dataset_without_any(folder: Path) -> None:
    dataset = judged(folder).load()
    for retriever in (BM25(), Hybrid({"one": BM25(), "two": BM25(k1=2)})):
        with pytest.raises(
            RetrieverError, match="searches documents, but the dataset has none; set the dataset's documents"
        ):
            search_cached(retriever, dataset.corpus, dataset.queries.inputs, 10, MemoryStore())
    run = folder / "x.trec"
    run.write_text("1 Q0 a 1 2.0 x\n2 Q0 b 1 1.0 x\n")
    with pytest.raises(
        RetrieverError, match="a reranker reads the texts of documents, but the dataset has no documents"
    ):
        Reranked(RunFile(str(run)), Overlap()).index(dataset.corpus, NoStore()).search(dataset.queries.inputs, 10)


@pytest.mark.parametrize(
    ("place", "content"),
    [
        ("q.tsv:2", "q2\tc\t1\nq1\t['a', 'b']\t1\n"),
        ("q.csv:2", "query,docid,rating\nfoo,\"['a', 'b']\",1\n"),
        ("q.json, rating 1", '{"ratings": [{"query_text": "foo", "doc_id": "[1, 2]", "rating": 1}]}'),
    ],
)
def test_a_list_in_place_of_a_document_is_refused_without_documents(tmp_path: Path, place: str, content: str) -> None:
    name = re.split("[:,]", place)[0]
    (tmp_path / name).write_text(content)
    with pytest.raises(DatasetError, match=rf"{place}: query .* has the document .*\[.*, a list; write a judgment for"):
        JudgedFiles(qrels=str(tmp_path / name)).load()


def test_an_id_in_brackets_is_not_a_list(tmp_path: Path) -> None:
    (tmp_path / "q.tsv").write_text("q1\t[7]\t1\nq1\t(E)-2\t1\n")
    assert JudgedFiles(qrels=str(tmp_path / "q.tsv")).load().judgments.unknown_documents == ("(E)-2", "[7]")


def test_the_settings_of_topics_that_messages_name_work(folder: Path) -> None:
    (folder / "descriptions.txt").write_text(TOPICS.replace("title>", "desc>").replace("</top>", "<narr>x</top>"))
    with pytest.raises(DatasetError, match=r"set dataset.topic_fields=\[NAME\] to one of desc, narr"):
        judged(folder, "descriptions.txt").load()
    source = replace(judged(folder, "descriptions.txt"), topic_fields=("desc",))
    assert contents(source) == (QUERIES, set(QRELS), 0)
    (folder / "queries.tsv").rename(folder / "queries.csv")
    assert contents(judged(folder, "queries.csv", topics_format="tsv"))[0] == QUERIES
