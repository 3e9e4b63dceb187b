"""The final grades of the desk read back as they were given."""

from __future__ import annotations

import csv
import io
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from runner.datasets.qrels import read_qrels
from runner.features.judge.desk.export import write_grades
from runner.features.judge.desk.journal import AssessorJournal, load_journals
from runner.pages.cells import restore_text
from tests.strategies.ids import COLUMN_IDS


@given(st.dictionaries(st.tuples(COLUMN_IDS, COLUMN_IDS), st.integers(0, 3), max_size=3))
def test_grades_in_the_journal_read_back_from_the_judgments_and_the_tables(grades: dict[tuple[str, str], int]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with AssessorJournal(folder, "anna", 3) as journal:
            for pair, grade in grades.items():
                journal.append("grade", pair, grade)
        write_grades(folder / "out", load_journals(folder, 3), {})
        judged = read_qrels(folder / "out" / "judgments.tsv")
        tables = {
            name: read_table(folder / "out" / name, *columns)
            for name, columns in {
                "judgments.csv": ("query_id", "document_id", "grade"),
                "book.csv": ("query", "docid", "anna"),
            }.items()
        }
    assert {(query, document): grade for query, document, grade in judged} == grades
    assert tables == {"judgments.csv": grades, "book.csv": grades}


def read_table(file: Path, query: str, document: str, grade: str) -> dict[tuple[str, str], int]:
    """Return the grades of a table whose cells a spreadsheet program does not take for formulas."""
    rows = csv.DictReader(io.StringIO(file.read_bytes().decode(), newline=""))
    return {(restore_text(row[query]), restore_text(row[document])): int(row[grade]) for row in rows}
