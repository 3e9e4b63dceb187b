"""A journal keeps every confirmed keystroke, whatever happens to the process, and belongs to one process."""

from __future__ import annotations

import os
from pathlib import Path

import orjson
import pytest

from runner.config.objects import ConfigError
from runner.features.judge.desk.journal import AssessorJournal, fold_entries, load_journals, normalise_assessor

PAIRS = [("q1", "d1"), ("q1", "d2"), ("q2", "d\u00a03")]


def write_some(folder: Path) -> Path:
    with AssessorJournal(folder, "anna", 3) as journal:
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
        with AssessorJournal(folder, "anna", 3) as journal:
            journal.append("grade", ("q9", "d9"), 3)
        kept = (folder / "anna.jsonl").read_bytes().splitlines(keepends=True)
        assert kept[:-1] == whole.splitlines(keepends=True)[:lines]
        assert load_journals(folder, 3)["anna"].grades["q9", "d9"] == 3


def test_undo_takes_back_the_last_decision_but_no_note(tmp_path: Path) -> None:
    write_some(tmp_path)
    state = load_journals(tmp_path, 3)["anna"]
    assert state.grades == {PAIRS[0]: 2}
    assert state.notes == {PAIRS[0]: "é <b>"}
    assert [(entry.action, entry.pair) for entry in state.order] == [("grade", PAIRS[0]), ("unsure", PAIRS[2])]
    assert fold_entries([]).grades == {}


def test_an_entry_is_on_disk_before_append_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    with AssessorJournal(tmp_path, "anna", 3) as journal:
        write, flush = os.write, os.fsync
        monkeypatch.setattr(os, "write", lambda *of: steps.append("write") or write(*of))
        monkeypatch.setattr(os, "fsync", lambda of: steps.append("fsync") or flush(of))
        journal.append("skip", PAIRS[0])
        monkeypatch.undo()
    assert steps == ["write", "fsync"]


def test_a_full_disk_leaves_no_part_of_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with AssessorJournal(tmp_path, "anna", 3) as journal:
        journal.append("grade", PAIRS[0], 1)
        before, write = journal.file.read_bytes(), os.write
        monkeypatch.setattr(os, "write", lambda descriptor, line: write(descriptor, line[:7]))
        with pytest.raises(OSError, match="the disk is full"):
            journal.append("grade", PAIRS[1], 2)
        monkeypatch.undo()
        assert journal.file.read_bytes() == before
        assert journal.assessment.grades == {PAIRS[0]: 1}


def test_a_journal_is_open_in_one_place_and_each_assessor_has_one(tmp_path: Path) -> None:
    with AssessorJournal(tmp_path, "Anna", 3) as first, AssessorJournal(tmp_path, "ben", 3) as other:
        with pytest.raises(ConfigError, match="assessor=anna: this assessor already judges in another process"):
            AssessorJournal(tmp_path, "anna", 3).open()
        first.append("grade", PAIRS[0], 3)
        other.append("grade", PAIRS[0], 0)
    assert {name: own.grades for name, own in load_journals(tmp_path, 3).items()} == {
        "anna": {PAIRS[0]: 3}, "ben": {PAIRS[0]: 0},
    }  # fmt: skip
    AssessorJournal(tmp_path, "anna", 3).open().close()


@pytest.mark.parametrize("name", ["", "../anna", ".hidden", "a/b", "x" * 65, "a\nb"])
def test_an_invalid_assessor_name_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="not a name; use 1 to 64 letters"):
        normalise_assessor(name)


GOOD = {"at": "2026-01-02T03:04:05.678+00:00", "action": "grade", "query_id": "q1", "document_id": "d9", "grade": 2}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"grade": 4}, "the grade 4 is outside the scale from 0 to 3"),
        ({"grade": -1}, "the grade -1 is outside the scale"),
        ({"grade": True}, "the grade True is outside the scale"),
        ({"grade": 2.0}, "the grade 2.0 is outside the scale"),
        ({"grade": "2"}, "the grade 2 is outside the scale"),
        ({"grade": None}, "the grade None is outside the scale"),
        ({"action": "skip"}, "skip has no grade"),
        ({"action": "dance"}, "the action does not exist"),
        ({"action": ["grade"]}, "the action does not exist"),
        ({"query_id": 1}, "an id is not a text without tabs and line breaks"),
        ({"query_id": ""}, "an id is not a text without tabs and line breaks"),
        ({"document_id": ["d9"]}, "an id is not a text without tabs and line breaks"),
        ({"document_id": "d1\t0\nq1\td9"}, "an id is not a text without tabs and line breaks"),
        ({"document_id": "d\0"}, "an id is not a text without tabs and line breaks"),
        ({"note": 7}, "the time or the note is not a text"),
        ({"at": 7}, "the time or the note is not a text"),
        ({"at": "yesterday"}, "Invalid isoformat string"),
        ({"seconds": "3"}, "the seconds are not a positive number"),
        ({"seconds": -3}, "the seconds are not a positive number"),
    ],
)
def test_a_line_that_the_desk_would_not_write_is_named_and_skipped(
    tmp_path: Path, change: dict[str, object], message: str
) -> None:
    lines = [GOOD | {"document_id": "d1"}, GOOD | change, GOOD | {"document_id": "d3", "grade": 0}]
    (tmp_path / "anna.jsonl").write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    own = load_journals(tmp_path, 3)["anna"]
    assert own.grades == {("q1", "d1"): 2, ("q1", "d3"): 0}
    (damaged,) = own.damaged
    assert damaged.startswith(f"{tmp_path / 'anna.jsonl'}:2: not a line that the desk writes ({message}"), damaged


@pytest.mark.parametrize(
    "line", [b"{", b"[]", b"7", b'{"at": "\xff"}', b"[" * 5000, b'{"grade": ' + b"9" * 5000 + b"}"]
)
def test_a_line_that_is_not_a_record_is_named_and_skipped(tmp_path: Path, line: bytes) -> None:
    file = tmp_path / "anna.jsonl"
    file.write_bytes(orjson.dumps(GOOD) + b"\n" + line + b"\n")
    with AssessorJournal(tmp_path, "anna", 3) as journal:
        journal.append("grade", PAIRS[0], 3)
        assert journal.assessment.grades == {("q1", "d9"): 2, PAIRS[0]: 3}
        assert len(journal.assessment.damaged) == 1 and "anna.jsonl:2: " in journal.assessment.damaged[0]
    assert file.read_bytes().splitlines()[1] == line, "a journal is never rewritten"


def test_an_undo_of_a_damaged_line_takes_back_no_other_decision(tmp_path: Path) -> None:
    undone = GOOD | {"document_id": "d2"}
    lines = [GOOD, undone | {"grade": 99}, {**undone, "action": "undo", "grade": None}]
    (tmp_path / "anna.jsonl").write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    assert load_journals(tmp_path, 3)["anna"].grades == {("q1", "d9"): 2}


def test_reading_a_journal_makes_no_file_or_lock_and_follows_its_writer(tmp_path: Path) -> None:
    reader = AssessorJournal(tmp_path / "journals", "anna", 3)
    assert reader.assessment.grades == {} and not list(tmp_path.iterdir())
    with AssessorJournal(tmp_path / "journals", "anna", 3) as writer:
        writer.append("grade", PAIRS[0], 2)
        assert reader.assessment.grades == {PAIRS[0]: 2}
        with pytest.raises(ConfigError, match="assessor=anna: this assessor already judges in another process"):
            reader.append("grade", PAIRS[1], 1)
    reader.append("grade", PAIRS[1], 1)
    reader.close()
    assert load_journals(tmp_path / "journals", 3)["anna"].grades == {PAIRS[0]: 2, PAIRS[1]: 1}
