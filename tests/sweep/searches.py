"""A dataset with a train split, and what a search on it leaves in the store of runs."""

from __future__ import annotations

import csv
import random
import sqlite3
import weakref
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import optuna
import orjson

import hydra_plugins.retrieval_runner  # noqa: F401 (registers its nodes)
from runner.evaluation.records import load_record
from runner.evaluation.result import Result

INLINE = "tracking.background=false"
SEARCH = ("-m", "hydra/sweeper=optuna", INLINE)
PLANE = ("retriever.k1=interval(0.1,3)", "retriever.b=range(0,1.1,0.1)")
DATA = ("dataset=beir", "dataset.path=data")
TEST = "sweep.select_on=test"

WORDS = ["pier", "lamp", "ship", "gull", "rope", "tide", "buoy", "crane", "net", "salt", "fog", "bell", "quay", "oar"]


def write_dataset(folder: Path) -> None:
    """Write a dataset with a train and a test split into a folder."""
    rng = random.Random(0)
    texts = [" ".join(rng.choices(WORDS, range(1, len(WORDS) + 1), k=rng.randrange(4, 40))) for _ in range(40)]
    queries = {f"q{i}": rng.sample(WORDS, 3) for i in range(24)}
    (folder / "qrels").mkdir(parents=True)
    lines = [orjson.dumps({"_id": f"d{i}", "text": text}) + b"\n" for i, text in enumerate(texts)]
    (folder / "corpus.jsonl").write_bytes(b"".join(lines))
    asked = [orjson.dumps({"_id": i, "text": " ".join(words)}) + b"\n" for i, words in queries.items()]
    (folder / "queries.jsonl").write_bytes(b"".join(asked))
    rows = {split: "query-id\tcorpus-id\tscore\n" for split in ("train", "test")}
    for i, query in enumerate(queries):
        for document in rng.sample(range(40), 3):
            rows["train" if i < 14 else "test"] += f"{query}\td{document}\t1\n"
    for split, text in rows.items():
        (folder / "qrels" / f"{split}.tsv").write_text(text)


def rows(folder: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(folder / "mlruns" / "mlflow.db")) as database:
        return database.execute(query).fetchall()


def finished(folder: Path) -> Counter[str]:
    """Return how many finished runs each combination has."""
    query = "select value from tags join runs using (run_uuid) where key = 'combination' and status = 'FINISHED'"
    return Counter(value for (value,) in rows(folder, query))


def parent(folder: Path) -> tuple[dict[str, str], Path]:
    """Return the tags of the latest sweep's run, and the folder of its artifacts."""
    query = "select run_uuid from tags join runs using (run_uuid) where key = 'kind' and value = 'sweep'"
    *_, (run,) = rows(folder, f"{query} order by start_time")
    return dict(rows(folder, f"select key, value from tags where run_uuid = '{run}'")), artifacts(folder, run)


def primary(folder: Path) -> float:
    """Return what the sweep's run has as its primary measure."""
    run = parent(folder)[1].parent.name
    query = f"select value from latest_metrics where key = 'ndcg_at_10' and run_uuid = '{run}'"
    ((value,),) = rows(folder, query)
    return float(value)


def artifacts(folder: Path, run: str) -> Path:
    return folder / "mlruns" / "artifacts" / run / "artifacts"


def results(folder: Path, split: str) -> list[Result]:
    """Return the records of the runs on a split."""
    found = rows(folder, f"select run_uuid from tags where key = 'dataset' and value like '%/{split}'")
    return [load_record(artifacts(folder, run)) for (run,) in found]


def trials(folder: Path) -> list[dict[str, str]]:
    with (parent(folder)[1] / "trials.csv").open() as file:
        return list(csv.DictReader(file))


def open_storage(address: str) -> optuna.storages.RDBStorage:
    """Open a storage whose connections are closed with it."""
    storage = optuna.storages.RDBStorage(address)
    weakref.finalize(storage, storage.engine.dispose)
    return storage


def studies(folder: Path) -> list[optuna.Study]:
    storage = open_storage(f"sqlite:///{folder}/mlruns/optuna.db")
    return [optuna.load_study(study_name=name, storage=storage) for name in optuna.get_all_study_names(storage)]


def completed(folder: Path) -> int:
    """Return how many trials are complete, without a hand in the database that another process is making."""
    file = folder / "mlruns" / "optuna.db"
    if not file.exists():
        return 0
    with closing(sqlite3.connect(file)) as database:
        try:
            ((count,),) = database.execute("select count(*) from trials where state = 'COMPLETE'").fetchall()
        except sqlite3.OperationalError:  # no tables yet
            return 0
    return int(count)


def points(folder: Path) -> list[tuple[str, str]]:
    return [(trial["retriever.k1"], trial["retriever.b"]) for trial in trials(folder)]
