"""The figures of searches about themselves in the database, against values worked out by hand."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

import numpy as np
import pytest

from tests.figures.logged import Figures, prepare_store, read_figures, run_logged
from tests.figures.planted import write_lines

NEAR, FAR = 4, 16
"""Two clusters of documents: an index that searches one of them finds that many."""

# The exact first ten of a query near the small cluster are its 4 documents and 6 others, of which the index finds 4.
INDEX = {
    "index_recall_at_10": fmean([4 / 10, 4 / 10, 1]),
    "short_answers_at_10": 2,
    "index_recall_at_20": fmean([4 / 20, 4 / 20, 16 / 20]),
    "short_answers_at_20": 3,
}
RUN = "q1 Q0 n1 1 9 r\nq1 Q0 x1 2 8 r\nq1 Q0 x2 3 7 r\nq1 Q0 n1 4 6 r\nq1 Q0 x3 5 5 r\nq1 Q0 x3 6 4 r\n"
FILE = {"unknown_items": 3, "repeated_items": 2, "missing_queries": 2}
HYBRID = {f"semantic.{name}": value for name, value in FILE.items()}
EXPECTED = {**INDEX, **FILE, **HYBRID}


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory, migrated: Path) -> Figures:
    """Return what is logged of an index of clusters, of a run file, and of a hybrid with that file."""
    folder = tmp_path_factory.mktemp("searched")
    prepare_store(migrated, folder)
    names = [*(f"n{i}" for i in range(NEAR)), *(f"f{i}" for i in range(FAR))]
    write_lines(folder / "d.jsonl", ({"id": name, "text": name} for name in names))
    write_lines(folder / "q.jsonl", ({"id": f"q{i}", "text": f"about {i}", "gold": ["n1"]} for i in (1, 2, 3)))
    (folder / "run.trec").write_text(RUN)
    turns = np.array([*(0.01 * i for i in range(NEAR)), *(np.pi / 2 + 0.01 * i for i in range(FAR))])
    asked = np.array([0.005, 0.015, np.pi / 2])
    for file, angles, ids in (("d.npz", turns, names), ("q.npz", asked, ["q1", "q2", "q3"])):
        vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
        np.savez(folder / file, ids=np.array(ids), vectors=vectors)
    data = ("dataset=jsonl", "dataset.documents=d.jsonl", "dataset.queries=q.jsonl")
    run_logged(
        folder, "retriever=dense", "encoder=vectors", "encoder.documents=d.npz", "encoder.queries=q.npz",
        "retriever.index_type=ivf", "retriever.nlist=2", "retriever.nprobe=1", *data,
    )  # fmt: skip
    run_logged(folder, "retriever=run", "retriever.path=run.trec", *data)
    run_logged(
        folder, "retriever=hybrid", "retriever@retriever.parts.semantic=run", "retriever.parts.semantic.path=run.trec",
        *data,
    )  # fmt: skip
    logged = read_figures(folder)
    return {**logged["dense"], **logged["run"], **logged["hybrid"]}


@pytest.mark.parametrize("name", EXPECTED)
def test_figure_of_a_search_is_worked_out_by_hand(figures: Figures, name: str) -> None:
    assert figures[name] == pytest.approx(EXPECTED[name])
