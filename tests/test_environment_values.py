from __future__ import annotations

import shutil
from pathlib import Path

import orjson
import pytest

from runner.__main__ import main
from runner.tracking.settings import Tracking

SECRET = "hushfolder"
DATA = ("dataset=beir", "dataset.path=${oc.env:HUSH}", "tracking.background=false")


@pytest.fixture
def here(tracking: Tracking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder for runs; the variable HUSH has a dataset elsewhere, in a folder with a secret name."""
    folder, runs = tmp_path / SECRET, tmp_path / "runs"
    (folder / "qrels").mkdir(parents=True)
    documents = [{"_id": "d1", "title": "", "text": "ships"}, {"_id": "d2", "title": "", "text": "ferries"}]
    (folder / "corpus.jsonl").write_bytes(b"".join(orjson.dumps(d) + b"\n" for d in documents))
    (folder / "queries.jsonl").write_bytes(orjson.dumps({"_id": "q1", "text": "ships"}) + b"\n")
    (folder / "qrels" / "test.tsv").write_text("q1\td1\t1\n")
    shutil.copytree(tmp_path / "mlruns", runs / "mlruns")
    monkeypatch.chdir(runs)
    monkeypatch.setenv("HUSH", str(folder))
    return runs


def files_with(secret: str, folder: Path) -> list[str]:
    """Return the files below a folder, gzipped ones aside, that hold a text or are named by it."""
    files = [file for file in folder.rglob("*") if file.is_file()]
    return [str(file) for file in files if secret in str(file) or secret.encode() in file.read_bytes()]


@pytest.mark.parametrize("sweep", [[], ["-m", "retriever.k1=0.6,0.9", "sweep.output=reports"]])
def test_values_from_the_environment_reach_no_artifact(
    here: Path, sweep: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*sweep, *DATA]) == 0
    assert files_with(SECRET, here) == []
    assert files_with("${oc.env:HUSH}", here / "mlruns" / "artifacts") != []
    captured = capsys.readouterr()
    assert SECRET not in captured.out + captured.err


def test_public_variables_reach_the_artifacts(here: Path) -> None:
    assert main(["public_environment=[HUSH]", *DATA]) == 0
    assert any(file.endswith("config.yaml") for file in files_with(SECRET, here / "mlruns" / "artifacts"))
