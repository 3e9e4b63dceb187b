"""Cells for spreadsheet programs are never formulas, and are read back as they were."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.features.judge.desk.export import write_grades
from runner.features.judge.desk.journal import Assessment, JournalEntry
from runner.features.judge.sheet import SheetRow, load_sheet, save_sheet
from runner.pages.cells import escape_formula, protect_row, restore_text

STARTS = ["=", "+", "-", "@", "\t=", "\r=", "\n=", " =", "  @", "\uff1d", "\uff0b", "\uff0d", "\uff20"]


@pytest.mark.parametrize("start", STARTS)
def test_a_text_that_begins_like_a_formula_begins_with_another_space(start: str) -> None:
    assert escape_formula(f"{start}cmd|' /C calc'!A0") == f" {start}cmd|' /C calc'!A0"


@given(st.text(st.sampled_from(" =+-@\t\ra1\uff1d")))
def test_a_text_is_restored_from_its_cell(text: str) -> None:
    assert restore_text(escape_formula(text)) == text
    assert text[:1] not in "=+-@\t\r" or not text or escape_formula(text)[0] == " "


def test_numbers_booleans_and_harmless_texts_are_unchanged() -> None:
    cells = [-1, -0.5, True, None, "1-2", "a=b", " plain", ""]
    assert protect_row(cells) == cells


@pytest.mark.parametrize("start", STARTS)
def test_a_sheet_protects_every_cell_and_is_read_back_equal(tmp_path: Path, start: str) -> None:
    row = SheetRow((f"{start}q", f"{start}d"), f"{start}query", f"{start}document", 2, f"{start}note")
    for _ in range(2):  # a sheet is saved again when it is extended
        save_sheet(tmp_path / "sheet.csv", [row])
        (row,) = load_sheet(tmp_path / "sheet.csv")
    assert row == SheetRow((f"{start}q", f"{start}d"), f"{start}query", f"{start}document", 2, f"{start}note")
    with (tmp_path / "sheet.csv").open(encoding="utf-8", newline="") as file:
        cells = [cell for cells in csv.reader(file) for cell in cells]
    assert sum(cell.startswith(f" {start}") for cell in cells) == 5


def test_the_tables_of_the_desk_protect_ids_queries_and_names_and_its_qrels_do_not(tmp_path: Path) -> None:
    entry = JournalEntry("grade", ("=q", "@d"), "2026-01-02", 2)
    own = Assessment({entry.pair: entry}, notes={entry.pair: "n"}, order=[entry])
    write_grades(tmp_path, {"-eve": own}, {"=q": "+query"})
    assert (tmp_path / "judgments.csv").read_text().splitlines()[1] == " =q, @d,2, -eve,2026-01-02,False, -eve: n"
    assert (tmp_path / "book.csv").read_text().splitlines() == ["query,docid, -eve", " +query, @d,2"]
    assert (tmp_path / "judgments.tsv").read_text().splitlines()[1] == "=q\t@d\t2"
