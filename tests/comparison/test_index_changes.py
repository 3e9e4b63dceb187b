"""What an index reported about itself is recorded, shown and compared."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from runner.comparison.compare import TableStatistics, compare_results
from runner.evaluation.records import load_record, save_record
from runner.evaluation.report.printing import show_result
from runner.evaluation.result import Result
from runner.tracking.record import tags_of
from tests.pages.factory import result

SERVICE = {"": "http://localhost:9200"}
FACTS = {"version": "2.11.0", "documents": "5"}


def with_index(facts: dict[str, str], addresses: dict[str, str] = SERVICE, seed: int = 0) -> Result:
    return replace(result(f"r{seed}", seed=seed), index=facts, addresses=addresses)


def test_facts_are_recorded_and_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_record(with_index(FACTS), tmp_path)
    loaded = load_record(tmp_path)
    assert loaded.index == FACTS
    assert tags_of(loaded)["index"] == '{"documents": "5", "version": "2.11.0"}'
    assert "index" not in tags_of(result())
    show_result(loaded)
    assert "index: documents 5, version 2.11.0" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("other", "changes"),
    [
        (with_index(FACTS, seed=1), ""),
        (with_index(FACTS | {"documents": "6"}, seed=1), "documents 5 and 6"),
        (with_index({"version": "2.11.0"}, seed=1), ""),
        (with_index(FACTS | {"documents": "6"}, {"": "http://localhost:9201"}, seed=1), ""),
    ],
    ids=["the same", "changed", "not reported", "another service"],
)
def test_a_comparison_points_out_an_index_that_changed(other: Result, changes: str) -> None:
    notes = compare_results([with_index(FACTS), other], TableStatistics(permutations=100)).notes
    assert [note for note in notes if "index" in note] == (
        [f"the index changed between r0 and r1 ({changes}), which may have changed their measures"] if changes else []
    )
