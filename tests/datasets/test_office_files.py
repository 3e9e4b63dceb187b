"""Excel workbooks are tables, and PDF and DOCX files are documents, if the extra `documents` is installed."""

from __future__ import annotations

import sys
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from retrievers.extras import write_install_command
from runner.datasets.base import DatasetError
from runner.datasets.judged import JudgedFiles
from runner.datasets.question_folder import QuestionFolder
from runner.datasets.tabular import Tabular

QUESTIONS = [
    ["Question", "Expected file", "Asked on"],
    ["When does the lighthouse shine?", "tower.pdf, p. 2", date(2024, 5, 1)],
    ["How do I get to the islands?", "ferry.docx", None],
]


def write_workbook(path: Path, **sheets: list[list[Any]]) -> str:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.remove(book.active)
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return str(path)


def write_pdf(path: Path, pages: list[str]) -> None:
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, text in enumerate(pages):
        drawn = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET"
        objects += [
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> "
            f"/Contents {5 + 2 * number} 0 R >>",
            f"<< /Length {len(drawn)} >>\nstream\n{drawn}\nendstream",
        ]
    content, places = "%PDF-1.4\n", []
    for number, item in enumerate(objects, start=1):
        places.append(f"{len(content):010d} 00000 n \n")
        content += f"{number} 0 obj\n{item}\nendobj\n"
    content += (
        f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{''.join(places)}trailer << /Size {len(objects) + 1} /Root "
        f"1 0 R >>\nstartxref\n{len(content)}\n%%EOF\n"
    )
    path.write_text(content)


def write_folder(folder: Path) -> str:
    docx = pytest.importorskip("docx")
    (folder / "docs").mkdir()
    write_pdf(folder / "docs/tower.pdf", ["A tower.", "The lighthouse shines for ships."])
    document = docx.Document()
    document.add_heading("The ferry", 0)
    document.add_paragraph("Ferries leave for the islands.")
    table = document.add_table(1, 3)
    table.cell(0, 0).text = "every"
    table.cell(0, 1).merge(table.cell(0, 2)).text = "hour"
    document.save(str(folder / "docs/ferry.docx"))
    return str(folder / "docs")


def test_pdf_and_docx_are_documents_if_a_setting_says_so(tmp_path: Path) -> None:
    pytest.importorskip("pypdf")
    docs, questions = write_folder(tmp_path), write_workbook(tmp_path / "questions.xlsx", Sheet1=QUESTIONS)
    dataset = QuestionFolder(path=docs, questions=questions, extensions=("pdf", "DOCX")).load()
    assert dataset.corpus.ids == ["ferry", "tower"]
    assert [*dataset.corpus.texts] == [
        "The ferry\n\nFerries leave for the islands.\n\nevery\thour",
        "A tower.\n\nThe lighthouse shines for ships.",
    ]
    assert dataset.corpus.titles[0] == "The ferry"
    assert dataset.judgments.list_rows() == [(0, 1, 1), (1, 0, 1)]
    assert "gold from `Expected file` (places in files; file names)" in dataset.reading
    (tmp_path / "docs/stairs.md").write_text("Stairs.")
    with pytest.raises(DatasetError) as failure:
        QuestionFolder(path=docs, questions=questions).load()
    assert "ferry.docx is a file of the folder that is left out; set 'dataset.extensions=[.docx,.pdf]'" in str(
        failure.value
    )


def test_a_folder_with_only_pdf_and_docx_is_refused_with_the_setting_to_paste(tmp_path: Path) -> None:
    docs = write_folder(tmp_path)
    (tmp_path / "questions.csv").write_text("question,file\nWhen?,tower.pdf\n")
    with pytest.raises(DatasetError, match=r"set dataset=folder 'dataset.extensions=\[.docx,.pdf\]' to read these$"):
        QuestionFolder(path=docs, questions=str(tmp_path / "questions.csv")).load()


@pytest.mark.parametrize(
    ("name", "problem"),
    [("scan.pdf", "has no text; it may be a scan"), ("cut.pdf", "cannot be read as PDF"), ("cut.docx", "as DOCX")],
)
def test_a_document_without_text_is_refused(tmp_path: Path, name: str, problem: str) -> None:
    pytest.importorskip("pypdf")
    docs = write_folder(tmp_path)
    write_pdf(tmp_path / "docs/scan.pdf", [""])
    for whole in ("ferry.docx", "tower.pdf"):
        content = (tmp_path / "docs" / whole).read_bytes()
        (tmp_path / "docs" / f"cut{Path(whole).suffix}").write_bytes(content[: len(content) // 3])
    for other in {"scan.pdf", "cut.pdf", "cut.docx"} - {name}:
        (tmp_path / "docs" / other).unlink()
    questions = write_workbook(tmp_path / "questions.xlsx", Sheet1=QUESTIONS)
    with pytest.raises(DatasetError) as failure:
        QuestionFolder(path=docs, questions=questions, extensions=("pdf", "docx")).load()
    assert name in str(failure.value) and problem in str(failure.value)


@pytest.mark.parametrize(("module", "package"), [("openpyxl", "openpyxl"), ("pypdf", "pypdf"), ("docx", "python-docx")])
def test_a_missing_package_is_named_with_its_extra(
    tmp_path: Path, module: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    docs, questions = write_folder(tmp_path), write_workbook(tmp_path / "questions.xlsx", Sheet1=QUESTIONS)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(DatasetError) as failure:
        QuestionFolder(path=docs, questions=questions, extensions=("pdf", "docx")).load()
    wanted = f"needs {package}, which is not installed; run {write_install_command('documents')}"
    assert str(failure.value).endswith(wanted)


def test_a_workbook_is_a_table_with_the_row_in_messages(tmp_path: Path) -> None:
    (tmp_path / "ferry.md").write_text("Ferries.")
    (tmp_path / "tower.md").write_text("Towers.")
    rows: list[list[Any]] = [[], ["id", "question", "expected_file", None, None], [7.0, "When?", "tower.md", None, "x"]]
    notes: list[list[Any]] = [["who", "what"], ["Ann", 1]]
    path = write_workbook(tmp_path / "questions.xlsx", Notes=notes, Questions=[*rows, [], [8, "How?", "ferry.md"]])
    dataset = QuestionFolder(path=str(tmp_path), questions=path).load()
    assert dataset.queries.ids == ["7", "8"]
    assert dataset.judgments.list_rows() == [(0, 1, 1), (1, 0, 1)]
    assert [*QuestionFolder(path=str(tmp_path), questions=path).iter_places("query")] == [
        (f"{path}, sheet 'Questions', row 3", ("7",)),
        (f"{path}, sheet 'Questions', row 5", ("8",)),
    ]
    with pytest.raises(DatasetError, match=r"no list of rows in the sheet 'None'; there are Notes, Questions$"):
        QuestionFolder(path=str(tmp_path), questions=path, queries_key="None").load()


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([["question", "gold", "gold"], ["When?", "tower", "ferry"]], "row 1: the column 'gold' occurs twice"),
        ([["question", "gold"], ["When?", "=A1"]], "row 2: the cell B2 has a formula without a result"),
        ([["question", "gold"], ["When?", "#N/A"]], "row 2: the cell B2 has the error #N/A"),
    ],
)
def test_a_cell_without_a_value_of_its_own_is_refused(tmp_path: Path, rows: list[list[Any]], problem: str) -> None:
    path = write_workbook(tmp_path / "questions.xlsx", Sheet=rows)
    (tmp_path / "tower.md").write_text("Towers.")
    with pytest.raises(DatasetError) as failure:
        QuestionFolder(path=str(tmp_path), questions=path).load()
    assert problem in str(failure.value)


def test_documents_and_judgments_may_be_in_workbooks(tmp_path: Path) -> None:
    documents = write_workbook(tmp_path / "d.xlsx", A=[["id", "text"], ["tower", "Towers."], ["ferry", "Ferries."]])
    queries = write_workbook(tmp_path / "q.xlsx", A=[["id", "text"], [1, "When?"]])
    qrels = write_workbook(tmp_path / "j.xlsx", A=[["query_id", "document_id", "grade"], [1, "ferry", 2.0]])
    dataset = Tabular(documents=documents, queries=queries, qrels=qrels).load()
    assert dataset.judgments.list_rows() == [(0, 1, 2)]
    assert JudgedFiles(qrels=qrels).load().judgments.list_rows() == [(0, 0, 2)]
