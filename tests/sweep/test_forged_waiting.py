"""Pages in a waiting result that another process wrote are not logged: the command that logs it renders its own."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from runner.__main__ import main
from runner.tracking import packing
from runner.tracking.settings import Tracking
from runner.tracking.tracker import Tracker
from runner.tracking.unlogged import waiting_in

INLINE = "tracking.background=false"
COMMANDS = {
    "an evaluation": ("retriever=bm25", INLINE),
    "a sweep": ("-m", "retriever=bm25", "retriever.k1=0.6,0.9", "sweep.reports=true", INLINE),
}


def _refuse(*_: object, **__: object) -> None:
    raise OSError("the server is away")


def _plant_pages(folder: Path) -> int:
    """Replace the pages of the waiting results, and return their number."""
    files = [waiting.file for place in (folder / "mlruns" / "unlogged").glob("*") for waiting in waiting_in(place)]
    for file in files:
        head, arrays = packing._split(file.read_bytes())
        pages = {"report.html": "<script>planted()</script>", "planted.html": "<script>planted()</script>"}
        head["more"]["reports"] = pages
        del head["arrays"]
        file.write_bytes(packing._join(head, dict(arrays)))
    return len(files)


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_pages_in_a_waiting_result_are_rendered_again(
    command: tuple[str, ...], tracking: Tracking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(Tracker, "log", _refuse)
        assert main([*command]) == 1
    planted = _plant_pages(tmp_path)
    assert planted == (2 if "-m" in command else 1)
    assert main([*command]) == 0
    query = "select artifact_uri from runs join tags using (run_uuid) where key = 'kind' and value = 'evaluation'"
    with closing(sqlite3.connect(tmp_path / "mlruns" / "mlflow.db")) as database:
        folders = [Path(place.removeprefix("file://")) for (place,) in database.execute(query)]
    assert len(folders) == planted
    for folder in folders:
        page = (folder / "report.html").read_text(encoding="utf-8")
        assert "<title>" in page
        assert "planted()" not in page
        assert not (folder / "planted.html").exists()
