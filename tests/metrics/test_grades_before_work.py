"""A sweep that one of its datasets or measures rules out is refused before anything is searched."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.__main__ import USER_MISTAKE, main
from runner.evaluation.bench import Bench
from runner.tracking.settings import Tracking


def write_dataset(folder: Path, grade: int) -> None:
    """Write two documents and a query, in BEIR's layout, with a gold document of a grade."""
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text('{"_id": "d1", "text": "ships"}\n{"_id": "d2", "text": "tides"}\n')
    (folder / "queries.jsonl").write_text('{"_id": "q1", "text": "ships"}\n')
    (folder / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\nq1\td1\t{grade}\n")


@pytest.mark.parametrize(
    ("axes", "measure"),
    [
        (("dataset.path=fine,graded", "metrics.measures=[nDCG,ERR@10]"), "ERR@10"),
        (("dataset.path=graded", "metrics.measures=[nDCG],[nDCG,ERR@10]"), "ERR@10"),
        (("dataset.path=fine,graded", 'metrics.measures=[nDCG,"INST(max_rel=4)"]'), "INST(max_rel=4)"),
    ],
)
def test_a_sweep_with_grades_that_a_measure_does_not_take_is_refused(
    tracking: Tracking,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    axes: tuple[str, ...],
    measure: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Bench, "measure", lambda *_: pytest.fail("a combination was run"))
    write_dataset(tmp_path / "fine", grade=4)
    write_dataset(tmp_path / "graded", grade=5)
    assert main(["-m", "retriever=bm25", "dataset=beir", *axes, "tracking.background=false"]) == USER_MISTAKE
    error = capsys.readouterr().err
    assert f"metrics: {measure} supports grades up to 4, but the judgments go up to 5" in error
    assert len(error.strip().splitlines()) == 1
