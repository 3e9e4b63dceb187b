"""Every look at a locked split is on the disk once, whoever else counts."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from runner.store.looks import Looks, RecordedLook

LOOK = RecordedLook(1, "a1", 0.05, 20, 0.00125, True)


def test_looks_are_read_back_in_order(tmp_path: Path) -> None:
    counted = Looks(tmp_path / "new")
    assert counted.read() == []
    looks = [replace(LOOK, number=number, question=f"q{number}", passed=number == 3) for number in range(1, 13)]
    assert all(counted.add(look) for look in looks)
    assert Looks(tmp_path / "new").read() == looks


def test_a_number_is_given_out_once(tmp_path: Path) -> None:
    def count(question: str) -> int:
        counted = Looks(tmp_path)
        while not counted.add(look := replace(LOOK, number=len(counted.read()) + 1, question=question)):
            pass
        return look.number

    with ThreadPoolExecutor(8) as threads:
        numbers = list(threads.map(count, [f"q{i}" for i in range(40)]))
    assert sorted(numbers) == list(range(1, 41))
    assert {look.question for look in Looks(tmp_path).read()} == {f"q{i}" for i in range(40)}


def test_a_look_whose_process_died_counts_as_one_that_did_not_pass(tmp_path: Path) -> None:
    counted = Looks(tmp_path)
    counted.add(LOOK)
    (tmp_path / "2.json").write_bytes(b"")
    (tmp_path / "3.json").write_text('{"number": 3, "unknown": 1}')
    assert counted.read() == [LOOK, RecordedLook(2), RecordedLook(3)]
    assert not counted.add(replace(LOOK, number=2))
