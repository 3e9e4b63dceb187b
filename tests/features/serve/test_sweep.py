"""Local retrievers and the same behind a server, compared in one sweep."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from runner.__main__ import main
from runner.evaluation.records import load_record
from runner.evaluation.result import Result
from runner.tracking.settings import Tracking
from tests.features.serve.process import serving

TYPES = ("bm25", "dense", "hybrid")
INLINE = "tracking.background=false"


@pytest.fixture
def here(tracking: Tracking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working directory, which has a store of runs."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def results(folder: Path) -> dict[tuple[str, str], Result]:
    """Return what was logged by retriever and search type."""
    found = {}
    for record in folder.rglob("result.json"):
        result = load_record(record.parent)
        found[result.retriever, result.config["retriever"].get("parameters", {}).get("search_type") or ""] = result
    return found


def test_a_server_gives_exactly_what_its_retrievers_give(
    here: Path, real_golden: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    files = {"path": "retrieval_evaluation_dataset.json", "items": "golden_analyses.json"}
    dataset = ["dataset=golden_json", *(f"dataset.{key}={real_golden / name}" for key, name in files.items())]
    others = [f"+retriever@search_types.{name}={name}" for name in TYPES[1:]]
    folder = tmp_path_factory.mktemp("served")
    with serving(["retriever=bm25", *others, "encoder=lsa", *dataset], folder) as running:
        locally, there = f"retriever:[{','.join(TYPES)}]", f"retriever.parameters.search_type:[{','.join(TYPES)}]"
        whole = "metrics.depth=100"  # more than there are items
        union = f"sweep.union=[{{{locally}}},{{retriever:golden_api,{there},retriever.base_url:'{running.url}'}}]"
        assert main(["-m", union, whole, "encoder=lsa", *dataset, INLINE]) == 0
        found = results(here)
        assert len(found) == 6
        for name in TYPES:
            ours, served = found[name, ""], found["golden_api", name]
            assert ours.hits is not None
            assert served.hits is not None
            assert len(ours.hits.rankings) == 50
            assert ours.hits.rankings.depth >= 50
            assert np.array_equal(served.hits.rankings.documents, ours.hits.rankings.documents)
            assert served.hits.rankings.scores.tobytes() == ours.hits.rankings.scores.tobytes()
            assert np.array_equal(served.scores, ours.scores, equal_nan=True)
            assert served.queries.statuses == ours.queries.statuses
            assert set(served.queries.errors) == {""}

        assert main(["-m", union, whole, "encoder=lsa", *dataset, INLINE]) == 0
    assert _finished(here) == {"bm25": 1, "dense": 1, "hybrid": 1, "golden_api": 2}


def _finished(folder: Path) -> dict[str, int]:
    """Return how often a combination of each retriever was evaluated: what a service decides, in each sweep."""
    query = """
        select params.value, tags.value from runs join params using (run_uuid) join tags using (run_uuid)
        where params.key = 'retriever' and tags.key = 'combination' and status = 'FINISHED'
    """
    with closing(sqlite3.connect(folder / "mlruns" / "mlflow.db")) as database:
        rows = database.execute(query).fetchall()
    return {name: max(rows.count(row) for row in rows if row[0] == name) for name, _ in rows}
