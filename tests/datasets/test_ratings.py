"""Judgments in the formats of other programs are read as these write them."""

from __future__ import annotations

import ast
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings

from retrievers.filters import parse_filter
from runner.__main__ import main
from runner.datasets.base import DatasetError
from runner.datasets.dataset import Dataset
from runner.datasets.export_formats import Format
from runner.datasets.exporting import export
from runner.datasets.judged import JudgedFiles
from tests.datasets.test_exporting import again, small
from tests.strategies.datasets import datasets
from tests.strategies.ids import COLUMN_IDS
from tests.strategies.settings import at_most
from tests.strategies.texts import ONE_LINE_TEXTS

GRADES = {("red dress", "B1"): 3, ("red dress", "B2"): 0, ("blue jeans", "B1"): 1}
RATINGS = {"red dress": {"B1": 3, "B2": 0}, "blue jeans": {"B1": 1}}
FORMATS: list[Format] = ["ratings", "quepid", "rank_eval", "opensearch"]

CSV = "query,docid,rating\nred dress,B1,3\nred dress,B2,0\n blue jeans,B1,1\nunrated,,"
"""As Quepid exports a case: a query without a rating has empty columns, and the last line no end."""
BOOK_CSV = "query,docid,Ann,Unknown\nred dress,B1,3,\nred dress,B2,0,0\nblue jeans,B1,1,0\nblue jeans,B9,,\n"


def quepid_case() -> dict[str, Any]:
    return {"queries": [{"query": text, "ratings": ratings} for text, ratings in RATINGS.items()]}


def quepid_full_case() -> dict[str, Any]:
    queries = [{"query_text": text, "notes": None, "ratings": ratings} for text, ratings in RATINGS.items()]
    return {"case_name": "shop", "queries": queries}


def quepid_import() -> dict[str, Any]:
    return {"ratings": [{"query_text": q, "doc_id": d, "rating": str(r)} for (q, d), r in GRADES.items()]}


def quepid_book() -> dict[str, Any]:
    unrated = {"rating": None, "unrateable": True, "judge_later": False}
    pairs = [
        {"query_text": q, "doc_id": d, "position": 1, "judgements": [{"rating": float(r)}, unrated]}
        for (q, d), r in GRADES.items()
    ]
    return {"name": "shop", "query_doc_pairs": [*pairs, {"query_text": "red dress", "doc_id": "B7", "judgements": []}]}


def rank_eval() -> dict[str, Any]:
    requests = [
        {
            "id": text.replace(" ", "_"),
            "request": {"query": {"match": {"title": {"query": text, "operator": "and"}}}},
            "ratings": [{"_index": "shop", "_id": d, "rating": r} for d, r in ratings.items()],
        }
        for text, ratings in RATINGS.items()
    ]
    return {"requests": requests, "metric": {"precision": {"k": 20, "relevant_rating_threshold": 1}}}


def rank_eval_with_templates() -> dict[str, Any]:
    body = rank_eval()
    for request in body["requests"]:
        text = request.pop("request")["query"]["match"]["title"]["query"]
        request |= {"template_id": "t", "params": {"query_string": text, "field": "title"}}
    return {**body, "templates": [{"id": "t", "template": {"source": {}}}]}


def opensearch() -> dict[str, Any]:
    rows = [
        {"query": text, "ratings": [{"docId": d, "rating": f"{r:.3f}"} for d, r in ratings.items()]}
        for text, ratings in RATINGS.items()
    ]
    return {"name": "Imported", "description": "", "type": "IMPORT_JUDGMENT", "judgmentRatings": rows}


def opensearch_response() -> dict[str, Any]:
    return {"took": 1, "hits": {"total": {"value": 1}, "hits": [{"_id": "x", "_source": opensearch()}]}}


def read_file(folder: Path, content: object, name: str = "qrels.json", **more: Any) -> Dataset:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return JudgedFiles(qrels=str(path), **more).load()


def grades_of(dataset: Dataset) -> dict[tuple[str, str], int]:
    names, judged = [*dataset.corpus.ids, *dataset.judgments.unknown_documents], dataset.judgments
    return {(dataset.queries.texts[q], names[d]): grade for q, d, grade in judged.list_rows()}


@pytest.mark.parametrize(
    "content",
    [
        quepid_case(), quepid_full_case(), quepid_import(), quepid_book(), rank_eval(), rank_eval_with_templates(),
        opensearch(), opensearch_response(),
    ],
)  # fmt: skip
def test_json_of_other_programs_is_recognised_and_read(tmp_path: Path, content: object) -> None:
    assert grades_of(read_file(tmp_path, content)) == GRADES


def test_a_list_of_ratings_is_read_and_a_query_without_ratings_left_out(tmp_path: Path) -> None:
    assert grades_of(read_file(tmp_path, CSV, "ratings.csv")) == GRADES
    assert grades_of(read_file(tmp_path, CSV.replace(",", "\t"), "ratings.tsv")) == GRADES


def test_several_judges_of_a_book_count_by_their_mean_rounded_half_up(tmp_path: Path) -> None:
    assert grades_of(read_file(tmp_path, BOOK_CSV, "book.csv")) == {**GRADES, ("blue jeans", "B1"): 1}
    assert grades_of(read_file(tmp_path, "query,docid,A,B,C\nq,d,3,2,2\nq,e,0,0,1\n", "book.csv")) == {
        ("q", "d"): 2,
        ("q", "e"): 0,
    }


@pytest.mark.parametrize("rating", ["grade", "relevance", "rel", "label", "score"])
def test_a_column_of_grades_is_not_averaged_with_others(tmp_path: Path, rating: str) -> None:
    content = f"qid,docid,{rating},query,year\n1,r1,0,pasta,2021\n1,r2,2,pasta,2020\n7,r3,3,soup,2021\n"
    assert grades_of(read_file(tmp_path, content, "judgments.csv")) == {
        ("pasta", "r1"): 0, ("pasta", "r2"): 2, ("soup", "r3"): 3,
    }  # fmt: skip


def test_ids_years_and_versions_are_no_judges(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    content = "qid,query,docid,Anna,year,version,Ben,query_id\n9,pasta,r1,0,2021,7,1,8\n9,pasta,r2,3,2021,7,2,8\n"
    with caplog.at_level("WARNING", "runner.datasets"):
        assert grades_of(read_file(tmp_path, content, "book.csv")) == {("pasta", "r1"): 1, ("pasta", "r2"): 3}
    (message,) = caplog.messages
    assert "book.csv: the grade is the mean of the columns 'Anna', 'Ben', one for each judge" in message


@pytest.mark.parametrize("names", ["one,two", "judge 1,judge 2", "ann@example.org,Ben Li", "Ünal,山田"])
def test_judges_are_shown_by_their_names_or_by_a_common_scale(tmp_path: Path, names: str) -> None:
    content = f"query,docid,{names},confidence\npasta,r1,0,1,0.9\npasta,r2,3,,0.5\nsoup,r1,2,2,0.1\n"
    grades = {("pasta", "r1"): 1, ("pasta", "r2"): 3, ("soup", "r1"): 2}
    assert grades_of(read_file(tmp_path, content, "book.csv")) == grades
    assert grades_of(read_file(tmp_path, content.replace(",", ";"), "book.csv")) == grades


def test_a_setting_names_the_column_of_ratings_or_that_there_is_none(tmp_path: Path) -> None:
    content = "Query,Doc ID,gain,sales\npasta,r1,2,7\npasta,r2,0,900\n"
    by_gain = grades_of(read_file(tmp_path, content, "r.csv", qrel_grade="gain"))
    assert by_gain == {("pasta", "r1"): 2, ("pasta", "r2"): 0}
    assert set(grades_of(read_file(tmp_path, content, "r.csv", qrel_grade=None)).values()) == {1}
    with pytest.raises(DatasetError, match=r"r.csv:2: the column 'win' is missing; the columns are Query, Doc"):
        read_file(tmp_path, content, "r.csv", qrel_grade="win")


@pytest.mark.parametrize("names", ["query-id,corpus-id,score", "qid,docno,label", "queryId,docId,relevance"])
def test_the_columns_of_a_table_of_judgments_are_recognised_by_their_names(tmp_path: Path, names: str) -> None:
    dataset = read_file(tmp_path, f"{names}\nq1,d1,2\nq2,d2,0\n", "qrels.csv")
    assert list(dataset.queries.ids) == ["q1", "q2"]
    assert dataset.judgments.grades.tolist() == [2, 0]


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("q.txt", "q1 0 d1 1\nq2 0 d2 1\nTotal 0 2 2\n", 3),
        ("q.tsv", "q1\td1\t1\nall\t2\t2\n", 2),
        ("q.csv", "query,docid,rating\npasta,r1,1\nTotal,1,1\n", 3),
        ("q.csv", "qid,docid,grade\nq1,r1,1\nsum,1,1\n", 3),
    ],
)
def test_a_total_at_the_end_is_not_a_query(tmp_path: Path, name: str, content: str, line: int) -> None:
    with pytest.raises(DatasetError, match=rf"{name}:{line}: the last row seems to be a total"):
        read_file(tmp_path, content, name)
    query = content.splitlines()[-1].replace(",", " ").split()[0]
    queries = tmp_path / "queries.tsv"
    queries.write_text(f"q1\tpasta\nq2\tsoup\nx\t{query}\n" if "query" in content else f"q1\ta\nq2\tb\n{query}\tc\n")
    assert query in {*(read := read_file(tmp_path, content, name, queries=str(queries)).queries).ids, *read.texts}


def test_qrels_and_tables_are_converted_by_thresholds_too(tmp_path: Path) -> None:
    rows = [
        ("q1", "tower", "0.6666666666666666"),
        ("q1", "museum", "1.67"),
        ("q2", "ferry", "2.7"),
        ("q2", "tower", "0.0"),
    ]
    qrels = "".join(f"{query} 0 {document} {grade}\n" for query, document, grade in rows)
    table = "query_id,document_id,grade\n" + "".join(f"{','.join(row)}\n" for row in rows)
    queries = tmp_path / "topics.tsv"
    queries.write_text("q1\tq1\nq2\tq2\n")
    for name, content in (("qrels.txt", qrels), ("table.csv", table)):
        graded = read_file(tmp_path, content, name, queries=str(queries), grade_thresholds=(0.5, 1.5, 2.5))
        assert grades_of(graded) == {(q, d): g for (q, d, _), g in zip(rows, (1, 2, 3, 0), strict=True)}
        with pytest.raises(DatasetError, match=r"is not a whole number up to \d+; .*dataset.grade_thresholds="):
            read_file(tmp_path, content, name)


def test_the_recipe_for_lists_in_a_table_works_as_it_is_shown(tmp_path: Path) -> None:
    content = "query_id,document_id,grade\nq1,\"['a', 'b']\",2\nq2,['c'],1\n"
    with pytest.raises(DatasetError, match=r"qrels.csv:2: .*a list; write a row for each document with pandas: ") as it:
        read_file(tmp_path, content, "qrels.csv")
    names = {"df": pd.read_csv(tmp_path / "qrels.csv"), "ast": ast}
    exec(str(it.value).rpartition("with pandas: ")[2], names)
    dataset = read_file(tmp_path, names["df"].to_csv(index=False), "qrels.csv")
    assert dataset.judgments.unknown_documents == ("a", "b", "c")
    assert dataset.judgments.grades.tolist() == [2, 2, 1]


def test_the_ids_of_rank_eval_requests_are_those_of_queries(tmp_path: Path) -> None:
    assert list(read_file(tmp_path, rank_eval()).queries.ids) == ["red_dress", "blue_jeans"]


def test_ratings_are_matched_with_a_file_of_queries_by_text_or_id(tmp_path: Path) -> None:
    queries = tmp_path / "queries.tsv"
    queries.write_text("red_dress\tred  dress\nq2\tblue jeans\nred dress\tanother\n")
    by_text = read_file(tmp_path, opensearch(), queries=str(queries))
    assert list(by_text.queries.ids) == ["red_dress", "q2"]
    by_id = read_file(tmp_path, rank_eval(), queries=str(queries))
    assert list(by_id.queries.ids) == ["red_dress", "q2"]
    assert len(by_id.judgments) == len(by_text.judgments) == len(GRADES)


def test_ratings_that_are_not_whole_numbers_need_thresholds(tmp_path: Path) -> None:
    rows = [{"query": "q", "ratings": [{"docId": d, "rating": r} for d, r in [("a", "0.9"), ("b", "0.5"), ("c", "0")]]}]
    with pytest.raises(DatasetError, match=r"judgmentRatings 1: the grade '0.9' is not a whole number up to .*set for"):
        read_file(tmp_path, {"judgmentRatings": rows})
    graded = read_file(tmp_path, {"judgmentRatings": rows}, grade_thresholds=(0.25, 0.5, 0.75))
    assert list(grades_of(graded).values()) == [3, 2, 0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"rows": []}, "unknown format of judgments; set dataset.qrels_format=quepid"),
        ({"requests": [{"id": "q", "ratings": [{"_id": "d"}]}]}, "request 1: a rating needs _id and rating; found"),
        ({"requests": [{"id": "q"}]}, "request 1: expected a JSON object with the list 'ratings'"),
        ({"ratings": [{"query_text": " ", "doc_id": "d", "rating": 1}]}, "rating 1: the text of the query is empty"),
        ({"judgmentRatings": [{"query": "q", "ratings": [{"docId": "d"}]}]}, "'rating' is missing"),
        ("query,docid\nq,d\n", "the column 'rating' is missing; the columns are query, docid"),
        ("query,docid,A,B\nq,d,x,1\n", "csv:2: the ratings x, 1 are not numbers"),
        (
            "query,docid,Ann,sales\nq,d,2,340\n",
            r"csv:2: the column 'sales' \(340\) is not clearly that of a judge; set dataset.qrel_grade to the column",
        ),
        ("query,docid,gain\nq,d,2\n", r"csv:2: the column 'gain' \(2\) is not clearly .*dataset.qrel_grade=gain, or"),
        ("query,docid,one,two\nq,d,2,1\nq,e,2,0.5\n", r"csv:3: the column 'two' \(0.5\) is not clearly that of a"),
        ("query,docid,Ann\nq,d,2021\n", r"csv:2: the column 'Ann' \(2021\) is not clearly that of a judge"),
        ("Query,DocID,Sales\nq,d,3\n", r"csv:2: the column 'Sales' \(3\) is not clearly that of a judge"),
        (
            "query_id,document_id,gain\nq,d,2\n",
            "csv:1: the column 'grade' is missing; the columns are query_id, document_id, gain; set dataset.qrel_grade",
        ),
        (
            "query_id,document_id,grade\nq,\"['a', 'b']\",1\n",
            r"csv:2: 'document_id' is \"\['a', 'b'\]\", a list",
        ),
    ],
)
def test_what_is_wrong_is_named_with_its_place(tmp_path: Path, content: object, message: str) -> None:
    with pytest.raises(DatasetError, match=message):
        read_file(tmp_path, content, "r.csv" if isinstance(content, str) else "r.json")


def test_the_queries_of_qrels_are_those_that_they_name_without_texts(tmp_path: Path) -> None:
    queries = read_file(tmp_path, "q2\td1\t1\nq1\td1\t1\nq2\td2\t0\n", "q.tsv").queries
    assert (list(queries.ids), list(queries.texts)) == (["q2", "q1"], ["", ""])


@settings(max_examples=at_most(30))
@given(dataset=datasets(COLUMN_IDS, ONE_LINE_TEXTS.filter(bool), typed=True))
@pytest.mark.parametrize("format", FORMATS)
def test_what_is_exported_as_ratings_reads_back_as_the_same_dataset(format: Format, dataset: Dataset) -> None:
    if len(set(dataset.queries.texts)) < len(dataset.queries):
        with pytest.raises(DatasetError, match=f"format={format}: the queries .* have the same text"):
            again(dataset, format)
    else:
        assert again(dataset, format).fingerprint == dataset.fingerprint


def test_ratings_keep_the_filters_of_queries() -> None:
    plain = small()
    corpus = replace(plain.corpus, metadata=[{"language": "en"}, {"language": "de"}])
    queries = replace(plain.queries, filters=[parse_filter({"language": "en"}), None])
    assert list(again(replace(plain, corpus=corpus, queries=queries), "ratings").queries.filters) == queries.filters


def test_an_export_without_documents_has_the_bodies_that_other_programs_import(tmp_path: Path) -> None:
    done = export(small(), "rank_eval", tmp_path / "e")
    body = json.loads((tmp_path / "e" / "rank_eval.json").read_bytes())
    assert body["requests"][0] == {
        "id": "q1",
        "request": {"query": {"multi_match": {"query": "one?"}}},
        "ratings": [{"_index": "x", "_id": "d1", "rating": 2}, {"_index": "x", "_id": "d2", "rating": 0}],
    }
    assert done.settings["dataset"] == "judged"
    export(small(), "ratings", tmp_path / "r")
    assert (tmp_path / "r" / "ratings.csv").read_text().splitlines()[:2] == ["query,docid,rating", "one?,d1,2"]
    export(small(), "opensearch", tmp_path / "o")
    body = json.loads((tmp_path / "o" / "opensearch_judgments.json").read_bytes())
    assert body["type"] == "IMPORT_JUDGMENT"
    assert body["judgmentRatings"][1] == {"query": "two?", "ratings": [{"docId": "d2", "rating": "1.000"}]}


def test_judgments_change_their_format_without_documents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("ratings.csv").write_text(CSV)
    assert main(["export", "dataset=judged", "dataset.qrels=ratings.csv", "format=opensearch", "output=out"]) == 0
    assert "dataset.qrels=out/opensearch_judgments.json" in capsys.readouterr().out
    assert grades_of(JudgedFiles(qrels="out/opensearch_judgments.json").load()) == GRADES
