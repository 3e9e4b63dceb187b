"""A journal keeps every confirmed keystroke, whatever happens to the process, and belongs to one process."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from runner.config.objects import ConfigError
from runner.datasets.base import DatasetError
from runner.desk.journal import AssessorJournal, fold_entries, load_journals, normalise_assessor

PAIRS = [("q1", "d1"), ("q1", "d2"), ("q2", "d\n3")]


def write_some(folder: Path) -> Path:
    with AssessorJournal(folder, "anna") as journal:
        journal.append("grade", PAIRS[0], 2, seconds=3.5)
        journal.append("note", PAIRS[0], note="é <b>")
        journal.append("grade", PAIRS[1], 0)
        journal.append("undo", PAIRS[1])
        journal.append("unsure", PAIRS[2])
        return journal.file


def test_a_journal_that_is_cut_anywhere_keeps_its_finished_lines_and_goes_on(tmp_path: Path) -> None:
    whole = write_some(tmp_path).read_bytes()
    ends = {end + shift for end in range(len(whole)) if whole[end : end + 1] == b"\n" for shift in (-7, 0, 1, 9)}
    for end in sorted({0, *ends} & set(range(len(whole) + 1))):
        folder = tmp_path / str(end)
        folder.mkdir()
        (folder / "anna.jsonl").write_bytes(whole[:end])
        lines = whole[:end].count(b"\n")
        with AssessorJournal(folder, "anna") as journal:
            journal.append("grade", ("q9", "d9"), 3)
        kept = (folder / "anna.jsonl").read_bytes().splitlines(keepends=True)
        assert kept[:-1] == whole.splitlines(keepends=True)[:lines]
        assert load_journals(folder)["anna"].grades["q9", "d9"] == 3


def test_undo_takes_back_the_last_decision_but_no_note(tmp_path: Path) -> None:
    write_some(tmp_path)
    state = load_journals(tmp_path)["anna"]
    assert state.grades == {PAIRS[0]: 2}
    assert state.notes == {PAIRS[0]: "é <b>"}
    assert [(entry.action, entry.pair) for entry in state.order] == [("grade", PAIRS[0]), ("unsure", PAIRS[2])]
    assert fold_entries([]).grades == {}


def test_an_entry_is_on_disk_before_append_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    with AssessorJournal(tmp_path, "anna") as journal:
        write, flush = os.write, os.fsync
        monkeypatch.setattr(os, "write", lambda *of: steps.append("write") or write(*of))
        monkeypatch.setattr(os, "fsync", lambda of: steps.append("fsync") or flush(of))
        journal.append("skip", PAIRS[0])
        monkeypatch.undo()
    assert steps == ["write", "fsync"]


def test_a_full_disk_leaves_no_part_of_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with AssessorJournal(tmp_path, "anna") as journal:
        journal.append("grade", PAIRS[0], 1)
        before, write = journal.file.read_bytes(), os.write
        monkeypatch.setattr(os, "write", lambda descriptor, line: write(descriptor, line[:7]))
        with pytest.raises(OSError, match="the disk is full"):
            journal.append("grade", PAIRS[1], 2)
        monkeypatch.undo()
        assert journal.file.read_bytes() == before
        assert journal.assessment.grades == {PAIRS[0]: 1}


def test_a_journal_is_open_in_one_place_and_each_assessor_has_one(tmp_path: Path) -> None:
    with AssessorJournal(tmp_path, "Anna") as first, AssessorJournal(tmp_path, "ben") as other:
        with pytest.raises(ConfigError, match="assessor=anna: this assessor already judges in another process"):
            AssessorJournal(tmp_path, "anna")
        first.append("grade", PAIRS[0], 3)
        other.append("grade", PAIRS[0], 0)
    assert {name: own.grades for name, own in load_journals(tmp_path).items()} == {
        "anna": {PAIRS[0]: 3}, "ben": {PAIRS[0]: 0},
    }  # fmt: skip
    AssessorJournal(tmp_path, "anna").close()


@pytest.mark.parametrize("name", ["", "../anna", ".hidden", "a/b", "x" * 65, "a\nb"])
def test_a_name_that_is_no_file_name_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="not a name; use 1 to 64 letters"):
        normalise_assessor(name)


@pytest.mark.parametrize(
    "line",
    ["{", "[]", '{"action": "grade", "query_id": "q", "document_id": "d", "at": ""}', '{"action": "dance"}'],
)
def test_a_damaged_line_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "anna.jsonl").write_text(f"{line}\n")
    with pytest.raises(DatasetError, match=r"anna.jsonl:1: not an entry of a journal"):
        AssessorJournal(tmp_path, "anna")
    (tmp_path / "anna.jsonl").unlink()
    AssessorJournal(tmp_path, "anna").close()  # the error released the lock
