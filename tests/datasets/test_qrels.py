"""Judgments in columns are read in the order and with the separator that the file shows, or refused with their line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from runner.datasets.base import DatasetError
from runner.datasets.qrels import iter_qrel_places, read_qrels


@pytest.mark.parametrize(
    "content",
    [
        "query-id\tcorpus-id\tscore\nq 1\td/1\t2\nq2\tdé\t-1\n",
        "q 1\td/1\t2\nq2\tdé\t-1\n",
        "\ufeffq 1\t0\td/1\t2\r\nq2\t0\tdé\t-1\r\n",
        "\nq 1\tQ0\td/1\t2\nq2 Q0   dé -1\n",
        "q 1\tQ0\td/1\t2\rq2\tQ0\tdé\t-1\r",
    ],
)
def test_judgments_have_three_or_four_columns_with_or_without_heading(tmp_path: Path, content: str) -> None:
    (tmp_path / "q.tsv").write_text(content, encoding="utf-8")
    assert read_qrels(tmp_path / "q.tsv") == [("q 1", "d/1", 2), ("q2", "dé", -1)]


USUAL = [("q1", "tower", 2), ("q1", "ferry", 0), ("q2", "tower", 1)]


def write(folder: Path, rows: Sequence[Sequence[object]], gap: str) -> Path:
    (folder / "q.txt").write_text("".join(gap.join(map(str, row)) + "\n" for row in rows))
    return folder / "q.txt"


@pytest.mark.parametrize("gap", ["|", ":", " | ", ";", ",", "\t", "  "])
@pytest.mark.parametrize("header", [[], [("qid", "docid", "label")]])
def test_the_separator_of_the_columns_follows_from_the_lines(
    tmp_path: Path, gap: str, header: list[tuple[str, ...]]
) -> None:
    assert read_qrels(write(tmp_path, [*header, *USUAL], gap)) == USUAL


def test_comments_before_judgments_are_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write(
        tmp_path, [("# qid", "iter", "docid", "rel"), ("# 0: no, 1: yes",), *((q, 0, d, g) for q, d, g in USUAL)], "\t"
    )
    assert read_qrels(path) == USUAL
    assert caplog.messages == [f"{path}: the first 2 lines are comments"]
    assert next(iter_qrel_places(path)) == (f"{path}:3", ("q1", "tower"))
    hashed = [(f"#{number}", "tower", 1) for number in range(3)]
    assert read_qrels(write(tmp_path, hashed, "\t")) == hashed


@pytest.mark.parametrize("gap", ["|", "\t", " "])
@pytest.mark.parametrize("header", [[], [("query-id", "corpus-id")]])
def test_two_columns_are_relevant_documents(
    tmp_path: Path, gap: str, header: list[tuple[str, ...]], caplog: pytest.LogCaptureFixture
) -> None:
    assert read_qrels(write(tmp_path, [*header, *(row[:2] for row in USUAL)], gap)) == [(q, d, 1) for q, d, _ in USUAL]
    assert "q.txt: " in caplog.messages[0]
    assert caplog.messages[0].endswith("there are no grades, so every grade is 1")


@pytest.mark.parametrize("zero", ["0", "Q0"])
@pytest.mark.parametrize(
    ("place", "reading"),
    [
        (0, "iteration, query, document, grade"),
        (1, None),
        (2, "query, document, iteration, grade"),
        (3, "query, document, grade, iteration"),
    ],
)
@pytest.mark.parametrize("documents", [["tower", "ferry", "tower"], ["12", "907", "31"]])
def test_the_column_that_is_always_zero_is_the_iteration(
    tmp_path: Path,
    zero: str,
    place: int,
    reading: str | None,
    documents: list[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    rows = [(query, document, grade) for (query, _, grade), document in zip(USUAL, documents, strict=True)]
    path = write(tmp_path, [(*row[:place], zero, *row[place:]) for row in rows], " ")
    assert read_qrels(path) == rows
    assert [place for place, _ in iter_qrel_places(path)] == [f"{path}:{n}" for n in (1, 2, 3)]
    assert [ids for _, ids in iter_qrel_places(path)] == [row[:2] for row in rows]
    assert caplog.messages == ([f"{path}: the columns are read as {reading}"] if reading else [])


def test_a_header_names_the_order(tmp_path: Path) -> None:
    rows = [("rel", "docno", "topic"), *((grade, document, query) for query, document, grade in USUAL)]
    assert read_qrels(write(tmp_path, rows, "\t")) == USUAL


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "q1 0 d1 1\nq 1 0 d1 1\n",
            "q.tsv:2: expected 4 columns (query, iteration, document, grade), as before, found",
        ),
        ("q1 0 d1 1\nq1 0 d\n", "q.tsv:2: expected 4 columns (query, iteration, document, grade), as before, found 3"),
        ("q1\td1\t1\nq1\td2", "q.tsv:2: expected 3 columns (query, document, grade), as before, found 2"),
        ("q1 0 d1 1 x\n", "q.tsv:1: expected 2 columns (query, document), 3 columns (query, document, grade), 4"),
        ("q1\n", "q.tsv:1: expected 2 columns (query, document), 3 columns (query, document, grade), 4"),
        ("q1 1\nq2 0\n", "q.tsv:1: expected the columns query and document, but the second has only grades"),
        ("q1\td1\thigh\n", "q.tsv:1: the grade 'high' is not a whole number"),
        ("q1\td1\t1e2\n", "q.tsv:1: the grade '1e2' is not a whole number"),
        ("q1 0 d1 1\nq\u00a01 0 d1\u3000x y 1\n", "q.tsv:2: expected 4 columns"),
        ("q1\t\t1\n", "q.tsv:1: the id of the document is empty"),
        ("\td1\t1\n", "q.tsv:1: the id of the query is empty"),
        ("q1\td\r1\t1\n", "q.tsv:1: a carriage return within the line"),
        ("query\tdoc\tscore\nq1\td1\tscore\n", "q.tsv:2: the grade 'score' is not a whole number"),
        ("qid\tdocid\nq1\td1\nqid\tdocid\n", "q.tsv:3: repeats the header; remove the line"),
        (
            "q1\td1\t0.5\n",
            "q.tsv:1: the grade '0.5' is not a whole number up to 2147483647; to convert such grades, set "
            "dataset=judged dataset.grade_thresholds",
        ),
        (
            "q1 tower 2 1\nq1 ferry 2 0\n",
            "q.tsv:1: expected the columns query, iteration (0 or Q0), document and grade, but the second is 'tower' "
            "and the third '2'; reorder the columns, or name them in a first line: query_id, iteration, document_id",
        ),
        ("q1 12 0 0\nq1 13 0 0\n", "but the second is '13' and the third '0'; reorder the columns"),
    ],
)
def test_a_broken_judgment_is_named(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "q.tsv").write_text(content, encoding="utf-8")
    with pytest.raises(DatasetError, match=re.escape(message)):
        read_qrels(tmp_path / "q.tsv")


def test_a_header_with_names_is_the_way_out_of_an_unknown_order(tmp_path: Path) -> None:
    (tmp_path / "q.txt").write_text("query_id document_id grade iteration\nq1 tower 2 1\nq1 ferry 2 0\n")
    assert read_qrels(tmp_path / "q.txt") == [("q1", "tower", 2), ("q1", "ferry", 2)]


def test_white_space_beyond_ascii_belongs_to_an_id(tmp_path: Path) -> None:
    (tmp_path / "q.txt").write_text("q\u00a01 0 d\u30001 2\n", encoding="utf-8")
    assert read_qrels(tmp_path / "q.txt") == [("q\u00a01", "d\u30001", 2)]
