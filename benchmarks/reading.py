"""The case about existing runs: how long 100 runs of 1,000 queries with 1,000 hits take to read.

A limit of ten seconds stands in the place of a peer. Four files are read in turn, as TREC runs and as Parquet, to the
default depth of measures and to the last hit.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.cases import folder_of_runs
from benchmarks.measure import Figure
from retrievers.base import Corpus, QueryText
from retrievers.run_file import RunFile
from retrievers.store import NoStore

QUERIES, HITS, DEPTH, DOCUMENTS, FILES, READ, LIMIT_S = 1000, 1000, 100, 200_000, 4, 100, 10.0


def reading_runs(read: int = READ) -> list[Figure]:
    """Read 100 runs of a million hits and rank them by a corpus of 200,000 documents."""
    corpus = Corpus([f"doc{d:07d}" for d in range(DOCUMENTS)], [""] * DOCUMENTS)
    queries = [QueryText("", f"q{q}") for q in range(QUERIES)]
    with folder_of_runs() as folder:
        files = [_write(folder, seed) for seed in range(FILES)]
        figures = []
        for kind in ("trec", "parquet"):
            _read(files[0][kind], corpus, queries, HITS)  # compiles, and fills the cache of files
            for depth in (DEPTH, HITS):
                start = time.perf_counter()
                for number in range(read):
                    _read(files[number % FILES][kind], corpus, queries, depth)
                seconds = (time.perf_counter() - start) / read * READ
                name = f"reading 100 {kind} runs of a million hits to depth {depth:,}, to the limit"
                figures.append(Figure(name, "s", seconds, LIMIT_S, 1))
    return figures


READING = (reading_runs,)


def _read(file: Path, corpus: Corpus, queries: list[QueryText], depth: int) -> None:
    RunFile(str(file)).index(corpus, NoStore()).search(queries, depth)


def _write(folder: Path, seed: int) -> dict[str, Path]:
    random = np.random.default_rng(seed)
    documents = np.concatenate([random.choice(DOCUMENTS, HITS, replace=False) for _ in range(QUERIES)])
    scores = -np.sort(-random.random((QUERIES, HITS)).astype(np.float32), axis=1).ravel()
    names = [f"doc{d:07d}" for d in documents.tolist()]
    rows = zip(names, scores.tolist(), strict=True)
    lines = (f"q{i // HITS} Q0 {name} {i % HITS + 1} {score!r} x\n" for i, (name, score) in enumerate(rows))
    trec, parquet = folder / f"{seed}.trec", folder / f"{seed}.parquet"
    trec.write_text("".join(lines))
    ids = [f"q{i // HITS}" for i in range(len(names))]
    pq.write_table(pa.table({"query_id": ids, "document_id": names, "score": scores}), parquet)
    return {"trec": trec, "parquet": parquet}
