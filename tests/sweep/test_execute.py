"""A sweep's report: what is said while it is made."""

from __future__ import annotations

import io
import json
import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest

from runner.__main__ import main
from runner.pages import progress
from runner.tracking.settings import Tracking

STAGES = {
    "parent.SweepParent.load_logged_runs": "logging the remaining results, comparing all results",
    "closing.build_boards": "logging the remaining results, comparing all results",
    "closing.build_reports": "report",
    "run.SweepRun.finish": "logging the report",
}
WAIT_S = 60


def test_after_its_last_combination_a_sweep_is_said_to_go_on(
    tracking: Tracking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream, heard = io.StringIO(), dict[str, bool]()

    def waiting(stage: str, whole: Callable[..., Any]) -> Callable[..., Any]:
        def waits(*given: object, **named: object) -> object:
            end, before = time.monotonic() + WAIT_S, len(stream.getvalue())
            while not (is_said := f"{STAGES[stage]}, " in stream.getvalue()[before:]) and time.monotonic() < end:
                time.sleep(0.01)
            heard[stage] = is_said
            return whole(*given, **named)

        return waits

    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stderr", stream)
    for name in ("FIRST_S", "EVERY_S", "SILENT_S"):
        monkeypatch.setattr(progress, name, 0.01)
    for stage in STAGES:
        monkeypatch.setattr(f"runner.sweep.{stage}", waiting(stage, resolve_name(f"runner.sweep.{stage}")))
    assert main(["-m", "retriever=bm25", "retriever.k1=0.6,0.9", "tracking.background=false"]) == 0
    assert heard == dict.fromkeys(STAGES, True)


def _write_dataset(folder: Path, gold: dict[str, str]) -> None:
    """Write a dataset of two queries for a lighthouse and a ferry, whose gold is given."""
    (folder / "qrels").mkdir(parents=True)
    texts = {"d1": "lighthouse lighthouse pier", "d2": "ferry lighthouse island", "d3": "ferry market"}
    for name, lines in (("corpus", texts), ("queries", {"q1": "lighthouse", "q2": "ferry"})):
        rows = (json.dumps({"_id": i, "text": text}) for i, text in lines.items())
        (folder / f"{name}.jsonl").write_text("\n".join(rows))
    qrels = (f"{query}\t{document}\t1\n" for query, document in gold.items())
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(qrels))


@pytest.mark.parametrize("datasets", [1, 2])
def test_scores_on_different_datasets_are_never_compared(
    datasets: int,
    tracking: Tracking,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("FIRST_S", "EVERY_S", "SILENT_S"):
        monkeypatch.setattr(progress, name, 0)  # say how far it is after each combination,
    monkeypatch.setattr(progress._Screen, "_tick", lambda self: None)  # and not between them
    _write_dataset(tmp_path / "easy", {"q1": "d1", "q2": "d3"})
    _write_dataset(tmp_path / "hard", {"q1": "d3", "q2": "d1"})
    paths = ",".join(("easy", "hard")[:datasets])
    command = ["-m", "retriever=bm25", "retriever.b=0,1", "dataset=beir", f"dataset.path={paths}"]
    assert main([*command, "sweep.output=out", "tracking.background=false"]) == 0
    said = capsys.readouterr()
    assert ("best: " in said.err) == (datasets == 1), "in progress lines or in the closing line"
    assert "best: " not in said.out
    reports = sorted(path.name for path in (tmp_path / "out").glob("leaderboard*.csv"))
    if datasets == 1:
        assert reports == ["leaderboard.csv"]
        assert "Systems by dataset" not in said.out
        return
    assert [name.split("-")[1] for name in reports] == ["easy", "hard"]
    assert all(f"{name} (test), 3 documents, 2 queries: 2 combinations" in said.out for name in ("easy", "hard"))
    table = said.out.partition("Systems by dataset")[2]
    assert all(title in table for title in ("system", "mean rank", "easy", "hard", "b=0", "b=1"))
    with closing(sqlite3.connect("mlruns/mlflow.db")) as database:
        parent = "select run_uuid from tags where key = 'kind' and value = 'sweep'"
        tags = dict(database.execute(f"select key, value from tags where run_uuid = ({parent})"))
        metrics = database.execute(f"select * from metrics where run_uuid = ({parent})").fetchall()
    assert "best" not in tags
    assert not metrics
