"""A small dataset in files, in a working directory with a store of runs, and the same dataset as values."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import runner
from runner.__main__ import main
from runner.evaluation.result import Result
from runner.tracking.fetching import Runs
from runner.tracking.logged import Run
from runner.tracking.settings import Tracking

DOCUMENTS = {
    "d1": {"title": "Lighthouse", "text": "The lighthouse shines for ships at night."},
    "d2": {"title": "Ferry", "text": "Ferries leave for the islands every hour."},
    "d3": {"title": "", "text": "A museum of ships and ferries, and of ships."},
    "d4": {"title": "Market", "text": "Fish and bread are sold on the market square near the ships."},
}
QUERIES = {"q1": "ships at night", "q2": "islands ferry", "q3": "museum of bread"}
QRELS = {"q1": {"d1": 2, "d3": 1}, "q2": {"d2": 1}, "q3": {"d3": 1, "d4": 0}}
CHOSEN = ("dataset=beir", "dataset.path=DIR", "dataset.split=test")


@pytest.fixture
def here(tracking: Tracking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working directory, which has the dataset in BEIR's layout in DIR."""
    assert tracking.sqlite_file() == tmp_path / "mlruns" / "mlflow.db"  # the default of the working directory
    monkeypatch.chdir(tmp_path)
    (tmp_path / "DIR" / "qrels").mkdir(parents=True)
    documents = [json.dumps({"_id": name, **document}) for name, document in DOCUMENTS.items()]
    queries = [json.dumps({"_id": name, "text": text}) for name, text in QUERIES.items()]
    qrels = [f"{query}\t{name}\t{grade}" for query, grades in QRELS.items() for name, grade in grades.items()]
    Path("DIR/corpus.jsonl").write_text("\n".join(documents))
    Path("DIR/queries.jsonl").write_text("\n".join(queries))
    Path("DIR/qrels/test.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *qrels]))
    return tmp_path


@pytest.fixture
def data(here: Path) -> runner.Dataset:
    """Return the dataset, loaded from its files."""
    assert here.samefile(os.curdir)
    return runner.load_dataset("beir", path="DIR", split="test")


@pytest.fixture
def given(here: Path) -> runner.Dataset:
    """Return the dataset, made of values."""
    assert here.samefile(os.curdir)
    return runner.Dataset.of(DOCUMENTS, QUERIES, QRELS, name="DIR")


def run_command(*words: str) -> None:
    """Run a command in this process, with the dataset in its files."""
    assert main([*words, *CHOSEN]) == 0


def list_runs(kind: str) -> list[Run]:
    """Return the finished runs of a kind in the working directory: evaluation, sweep or combination."""
    return [run for run in Runs(Tracking()).like("") if run.kind == kind]


def load_result(run: Run) -> Result:
    """Return the result of a run."""
    return Runs(Tracking()).record(run)
