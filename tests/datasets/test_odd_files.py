"""Odd files of every format are read as the standard library reads them, or refused with their place."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from runner.datasets.base import DatasetError
from runner.datasets.beir import Beir
from runner.datasets.golden_json import GoldenJson
from runner.datasets.judged import JudgedFiles
from runner.datasets.mined import Mined
from runner.datasets.needle import Needle
from runner.datasets.synthetic import Synthetic
from runner.datasets.tabular import Tabular
from runner.datasets.trec import Trec
from tests.datasets.odd import KEPT, Rows, compare, draw_rows, odd, write
from tests.oracles_of_files import (
    Content,
    content_of,
    field,
    grade_of,
    id_of,
    json_of,
    json_rows,
    kept_text,
    lines_of,
    qrels_of,
    refuse,
    table_rows,
    text_of,
)
from tests.strategies.odd_files import (
    GRADES,
    IDS,
    PLAIN_IDS,
    TEXTS,
    column_files,
    json_files,
    json_line_files,
    table_files,
    type_columns,
)


@odd
@given(data=st.data())
def test_a_folder_of_beir(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("beir")
    documents = draw_rows(data, _id=IDS, title=TEXTS, text=TEXTS)
    queries = draw_rows(data, _id=IDS, text=TEXTS)
    judged = draw_rows(data, query=PLAIN_IDS, document=PLAIN_IDS, score=GRADES)
    corpus = write(folder / "corpus.jsonl", data.draw(json_line_files(documents)))
    asked = write(folder / "queries.jsonl", data.draw(json_line_files(queries)))
    rows = [["query-id", "corpus-id", "score"], *([*row.values()] for row in judged)]
    qrels = write(folder / "qrels" / "test.tsv", data.draw(column_files(rows)))

    def oracle() -> Content:
        return content_of(
            (
                (id_of(field(r, "_id")), kept_text(r.get("title")), kept_text(field(r, "text")))
                for r in json_rows(corpus.read_bytes())
            ),
            ((id_of(field(r, "_id")), kept_text(field(r, "text"))) for r in json_rows(asked.read_bytes())),
            qrels_of(qrels.read_bytes()),
        )

    compare(Beir(path=str(folder), **KEPT), oracle, [corpus, asked, qrels])


@pytest.mark.parametrize("kind", ["jsonl", "csv", "tsv", "parquet"])
@odd
@given(data=st.data())
def test_tables(tmp_path_factory: pytest.TempPathFactory, kind: str, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("tables")

    def save(name: str, rows: Rows) -> tuple[Path, Callable[[], Rows]]:
        path = folder / f"{name}.{kind}"
        if kind == "parquet":
            drawn = type_columns(rows)
            try:
                parquet.write_table(pyarrow.Table.from_pylist(drawn), path)
            except pyarrow.ArrowException:
                drawn = [{name: str(value) for name, value in row.items()} for row in rows]
                parquet.write_table(pyarrow.Table.from_pylist(drawn), path)
            return path, lambda: drawn
        if kind == "jsonl":
            write(path, data.draw(json_line_files(rows)))
            return path, lambda: json_rows(path.read_bytes())
        delimiter = "," if kind == "csv" else "\t"
        write(path, data.draw(table_files(rows, delimiter)))
        return path, lambda: table_rows(path.read_bytes(), delimiter)

    documents, read_documents = save("documents", draw_rows(data, id=IDS, title=TEXTS, text=TEXTS))
    queries, read_queries = save("queries", draw_rows(data, id=IDS, text=TEXTS))
    qrels, read_qrels = save("qrels", draw_rows(data, query_id=PLAIN_IDS, document_id=IDS, grade=GRADES))

    def oracle() -> Content:
        return content_of(
            (
                (id_of(field(r, "id")), *(kept_text(field(r, name)) for name in ("title", "text")))
                for r in read_documents()
            ),
            ((id_of(field(r, "id")), kept_text(field(r, "text"))) for r in read_queries()),
            (
                (id_of(field(r, "query_id")), id_of(field(r, "document_id")), grade_of(field(r, "grade")))
                for r in read_qrels()
            ),
        )

    source = Tabular(documents=str(documents), queries=str(queries), qrels=str(qrels), document_title="title", **KEPT)
    compare(source, oracle, [documents, queries, qrels])


@odd
@given(data=st.data())
def test_trec_files_in_columns(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("trec")
    documents = [[*row.values()] for row in draw_rows(data, id=IDS, title=TEXTS, text=TEXTS)]
    topics = [[*row.values()] for row in draw_rows(data, id=IDS, text=TEXTS)]
    judged = [[*row.values()] for row in draw_rows(data, query=PLAIN_IDS, zero=st.just(0), document=IDS, grade=GRADES)]
    paths = [
        write(folder / name, data.draw(column_files(rows)))
        for name, rows in (("documents.tsv", documents), ("topics.tsv", topics), ("qrels.txt", judged))
    ]

    def columns_of(path: Path, *sizes: int) -> list[list[str]]:
        lines = [line.rstrip("\r\n") for line in lines_of(path.read_bytes())]
        rows = [line.split("\t", 1 if sizes == (2,) else -1) for line in lines]
        return rows if all(len(row) in sizes and row[0] and "\r" not in "".join(row) for row in rows) else refuse()

    def oracle() -> Content:
        return content_of(
            ((row[0], row[1] if len(row) == 3 else "", row[-1]) for row in columns_of(paths[0], 2, 3)),
            ((row[0], row[1]) for row in columns_of(paths[1], 2)),
            qrels_of(paths[2].read_bytes()),
        )

    compare(Trec(documents=str(paths[0]), topics=str(paths[1]), qrels=str(paths[2]), **KEPT), oracle, paths)


@odd
@given(data=st.data())
def test_mined_rows(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    context = st.fixed_dictionaries({"fqn": IDS, "text": st.just("red apple")})
    rows = draw_rows(data, id=IDS, query=TEXTS, positive_ctxs=st.lists(context, min_size=1, max_size=2))
    path = write(tmp_path_factory.mktemp("mined") / "rows.jsonl", data.draw(json_line_files(rows)))

    def oracle() -> Content:
        read = json_rows(path.read_bytes())
        found = [(id_of(field(row, "id")), id_of(c["fqn"]), c["text"]) for row in read for c in row["positive_ctxs"]]
        documents = {document: ("", text) for _, document, text in found}
        return content_of(
            ((document, *both) for document, both in documents.items()),
            ((id_of(field(row, "id")), kept_text(field(row, "query"))) for row in read),
            ((query, document, 2) for query, document, _ in found),
        )

    compare(Mined(path=str(path), corpus="contexts", **KEPT), oracle, [path])


@odd
@given(data=st.data())
def test_synthetic_rows(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("synthetic")
    golds = st.lists(IDS, min_size=1, max_size=2)
    queries = write(
        folder / "q.jsonl", data.draw(json_line_files(draw_rows(data, id=IDS, query=TEXTS, expected_doc_ids=golds)))
    )
    rows = draw_rows(data, doc_id=IDS, chunk_id=st.just(0), chunk=TEXTS)
    chunks = write(folder / "q.jsonl.chunks.jsonl", data.draw(json_line_files(rows)))

    def oracle() -> Content:
        asked, parts = json_rows(queries.read_bytes()), json_rows(chunks.read_bytes())
        documents = [(id_of(field(row, "doc_id")), "", kept_text(field(row, "chunk"))) for row in parts]
        if not all(text.strip() for _, _, text in documents):
            refuse()
        return content_of(
            documents,
            ((id_of(field(row, "id")), kept_text(field(row, "query"))) for row in asked),
            ((id_of(row["id"]), id_of(gold), 1) for row in asked for gold in row["expected_doc_ids"]),
        )

    compare(Synthetic(path=str(queries), level="document", **KEPT), oracle, [queries, chunks])


@odd
@given(data=st.data())
def test_golden_files(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("golden")
    relevance = {"high": 3, "medium": 2, "low": 1}
    item = st.fixed_dictionaries({"item_id": IDS, "relevance": st.sampled_from([*relevance, *relevance, "other"])})
    asked = draw_rows(data, query_id=IDS, query_text=TEXTS, expected_items=st.lists(item, max_size=2))
    queries = write(folder / "queries.json", data.draw(json_files({"queries": asked})))
    items = write(folder / "items.json", data.draw(json_files(draw_rows(data, item_id=IDS, headline=TEXTS))))

    def joined_text(value: object) -> str:
        return "\n".join(map(str, value if isinstance(value, list) else [] if value is None else [value]))

    def oracle() -> Content:
        read, listed = (json_of(text_of(file.read_bytes())) for file in (queries, items))
        if all(row["headline"] is None for row in listed):
            refuse()
        read = read["queries"]
        expected = [(id_of(row["query_id"]), item) for row in read for item in row["expected_items"]]
        return content_of(
            ((id_of(row["item_id"]), "", joined_text(row["headline"])) for row in listed),
            ((id_of(row["query_id"]), kept_text(row["query_text"])) for row in read),
            ((q, id_of(item["item_id"]), relevance.get(item["relevance"]) or refuse()) for q, item in expected),
        )

    source = GoldenJson(path=str(queries), items=str(items), text_fields=("headline",), metadata_fields=(), **KEPT)
    compare(source, oracle, [queries, items])


@odd
@given(data=st.data())
def test_questions_about_needles(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("needle")
    texts = {name: str(data.draw(TEXTS) or "").lstrip("\ufeff") for name in "abc"}
    for name, text in texts.items():
        write(folder / "docs" / f"{name}.txt", text.encode())
    asked = draw_rows(data, id=IDS, question=TEXTS, doc_id=st.one_of(st.sampled_from("abc"), IDS))
    questions = write(folder / "questions.json", data.draw(json_files({"questions": asked})))

    def oracle() -> Content:
        rows = json_of(text_of(questions.read_bytes()))["questions"]
        golds = [row["doc_id"] if isinstance(row["doc_id"], list) else [row["doc_id"]] for row in rows]
        if not all(isinstance(gold, str) and gold for own in golds for gold in own):
            refuse()
        return content_of(
            ((name, "", text) for name, text in texts.items()),
            ((id_of(row["id"]), kept_text(row["question"])) for row in rows),
            ((id_of(row["id"]), gold, 1) for row, own in zip(rows, golds, strict=True) for gold in own),
        )

    compare(Needle(questions=str(questions), documents=str(folder / "docs"), **KEPT), oracle, [questions])


RATINGS: Mapping[str, Callable[[Rows], object]] = {
    "quepid": lambda rows: {
        "ratings": [{"query_text": r["query"], "doc_id": r["docid"], "rating": r["rating"]} for r in rows]
    },
    "rank_eval": lambda rows: {
        "requests": [{"id": r["query"], "ratings": [{"_id": r["docid"], "rating": r["rating"]}]} for r in rows]
    },
    "opensearch": lambda rows: {
        "judgmentRatings": [
            {"query": r["query"], "ratings": [{"docId": r["docid"], "rating": r["rating"]}]} for r in rows
        ]
    },
    "ratings": lambda rows: rows,
}


RATED: Mapping[str, Callable[[Any], Rows]] = {
    "quepid": lambda read: [
        {"query": row["query_text"], "docid": row["doc_id"], "rating": row["rating"]} for row in read["ratings"]
    ],
    "rank_eval": lambda read: [
        {"query": request["id"], "docid": row["_id"], "rating": row["rating"]}
        for request in read["requests"]
        for row in request["ratings"]
    ],
    "opensearch": lambda read: [
        {"query": judged["query"], "docid": row["docId"], "rating": row["rating"]}
        for judged in read["judgmentRatings"]
        for row in judged["ratings"]
    ],
}


@pytest.mark.parametrize("kind", RATINGS)
@odd
@given(data=st.data())
def test_ratings(tmp_path_factory: pytest.TempPathFactory, kind: str, data: st.DataObject) -> None:
    rows = draw_rows(data, query=st.one_of(*[PLAIN_IDS] * 7, TEXTS), docid=IDS, rating=GRADES)
    is_table = kind == "ratings"
    path = tmp_path_factory.mktemp("ratings") / ("x.csv" if is_table else "x.json")
    write(path, data.draw(table_files(rows, ",") if is_table else json_files(RATINGS[kind](rows))))

    def oracle() -> Content:
        if is_table:
            read: Rows = table_rows(path.read_bytes(), ",")
        else:
            read = RATED[kind](json_of(text_of(path.read_bytes())))
        qrels, queries = [], {}
        for row in read:
            query = id_of(row["query"]) if kind == "rank_eval" else " ".join(kept_text(field(row, "query")).split())
            queries[id_of(query)] = query
            if row["rating"] not in (None, "") or kind == "rank_eval":
                document = id_of(row["docid"])
                qrels.append((query, refuse() if document.startswith("[") else document, grade_of(row["rating"])))
        return {}, *content_of([("none", "", "")], queries.items(), qrels)[1:]

    compare(JudgedFiles(qrels=str(path), qrels_format=kind, **KEPT), oracle, [path])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("q1 0 d1 2\nq2 0 d2 1\nq1 0 d1 3\n", "qrels.txt:1: query 'q1' and document 'd1' have two grades, 2 and 3 at "),
        ("q1 0 d1 2\nq7 0 d2 1\n", "qrels.txt:2: 1 judged query is not among the 2 queries of the dataset"),
        ("q1 0 d1 2\nq2 0 d7 1\n", "qrels.txt:2: 1 judged document is not among the 2 documents of the corpus"),
    ],
)
def test_what_is_wrong_with_judgments_is_named_with_its_line(tmp_path: Path, rows: str, message: str) -> None:
    names = {"documents": "d.tsv", "topics": "t.tsv", "qrels": "qrels.txt"}
    for name, content in (("d.tsv", "d1\tred\nd2\tblue\n"), ("t.tsv", "q1\tred\nq2\tblue\n"), ("qrels.txt", rows)):
        (tmp_path / name).write_text(content)
    with pytest.raises(DatasetError, match=re.escape(f"{tmp_path}/{message}")):
        Trec(**{part: str(tmp_path / name) for part, name in names.items()}).load()
