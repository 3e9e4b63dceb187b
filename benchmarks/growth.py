"""How time, memory and disk grow with documents, queries, combinations and workers: `python -m benchmarks.growth`.

Documents are generated: 10,000, 100,000 and a million, or up to a number that is named (`python -m benchmarks.growth
10000000`). BM25 reads their texts. Vectors of 384 dimensions are read from a file; the weights of a learned sparse
model are generated as well, 120 terms a document and 40 a query. So no time of a model is in these figures. Each
measurement is a process of its own on one thread, which compiles its code on another dataset before the clock starts.
Its time is processor time, which other programs on the machine change little.

The figures of each step are in `growth.json` as soon as it ends; `python -m release.growth` draws them.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import date
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
from numpy.typing import NDArray

from benchmarks.cases import RUNNER, folder_of_runs
from benchmarks.corpora import Synthetic, write
from benchmarks.measure import spend
from benchmarks.vector_files import CELLS, write_vectors

if TYPE_CHECKING:
    from retrievers.base import Retriever

FIGURES = Path(__file__).with_name("growth.json")

DOCUMENTS = (10_000, 100_000, 1_000_000, 10_000_000)
FIXED = 100_000
"""The number of documents where something else grows."""

QUERIES, COMBINATIONS, WORKERS = (100, 1_000, 10_000), (10, 100, 1_000), (1, 2)
SEARCHED, DEPTH, REPEATS = 32, 100, 3
"""Queries that are timed one by one, hits of each, and how often; the fastest of the repeated searches counts."""

RETRIEVERS = ("BM25", "learned sparse", "dense, exact", "dense, IVF int8", "hybrid")
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
_HERE = (sys.executable, "-m", "benchmarks.growth")


def main(largest: int) -> None:
    """Measure everything, and write the figures after each step."""
    started = time.perf_counter()
    facts: dict[str, Any] = {
        "on": date.today().isoformat(),
        "processors": os.cpu_count(),
        "load": round(os.getloadavg()[2], 1),
    }
    rows: list[dict[str, Any]] = []
    commit = find_commit()
    for row in measure(largest):
        rows.append({**row, "commit": commit})
        print(f"{time.perf_counter() - started:.0f} s: {row}", flush=True)
        facts["load"] = max(facts["load"], round(os.getloadavg()[2], 1))
        FIGURES.write_text(json.dumps({**facts, "rows": rows}, indent=1) + "\n", encoding="utf-8")


def find_commit() -> str:
    """Return the last commit that changed the program, marked if files of it are changed."""
    program, root = ("--", "runner", "retrievers"), Path(__file__).parents[1]
    commit, dirty = (
        subprocess.run(["git", *command, *program], cwd=root, check=True, capture_output=True, text=True).stdout
        for command in (("log", "-1", "--format=%h", "--abbrev=8"), ("status", "--porcelain"))
    )
    return commit.strip() + "-dirty" * bool(dirty)


def measure(largest: int) -> Iterator[dict[str, Any]]:
    """Yield a row for each retriever and number of documents, then those of queries, combinations and workers."""
    with folder_of_runs() as folder:
        _write(folder / "warm", 1000, 100)
        for n in (n for n in DOCUMENTS if n <= largest):
            data = folder / "data"
            _write(data, n, 100)
            for name in RETRIEVERS:
                spent = spend([*_HERE, "index", name, str(folder / "warm"), str(data)], folder, **_path(), **ONE_THREAD)
                figures = orjson.loads((folder / "said.txt").read_bytes().splitlines()[-1])
                yield {"axis": "documents", "size": n, "name": name, **figures, "mebibytes": round(spent.mebibytes)}
            shutil.rmtree(data)
        data = folder / "data"
        _write(data, FIXED, max(QUERIES))
        yield from _measure_commands(folder, data)


def _measure_commands(folder: Path, data: Path) -> Iterator[dict[str, Any]]:
    """Yield the time of whole commands, in a folder of runs that is new for each."""
    bm25 = ("retriever=bm25", "dataset=beir", f"dataset.path={data}")

    def run(axis: str, size: int, *command: str) -> dict[str, Any]:
        shutil.rmtree(folder / "mlruns", ignore_errors=True)
        spent = spend([*RUNNER, *command], folder, **_path())
        seconds = {"seconds": round(spent.cpu_seconds, 1), "elapsed": round(spent.seconds, 1)}
        row = {"axis": axis, "size": size, "name": "BM25", **seconds, "mebibytes": round(spent.mebibytes)}
        return {**row, "orjson": metadata.version("orjson")}  # it writes the reports

    run("queries", 1, *bm25, "dataset.max_queries=100")  # compiles
    for n in QUERIES:
        yield run("queries", n, *bm25, f"dataset.max_queries={n}")
    few = ("dataset.max_queries=100",)
    for n in COMBINATIONS:
        yield run("combinations", n, "-m", *bm25, *few, *_axes(n))
    many = ("dataset.max_queries=1000", "sweep.backend=loky")
    for n in WORKERS:
        yield run("workers", n, "-m", *bm25, *many, *_axes(100), f"sweep.workers={n}")


def _axes(n: int) -> tuple[str, str]:
    """Return axes of k1 and b with n combinations."""
    return f"retriever.k1=range(0.1,{n // 10 * 0.02 + 0.09:.2f},0.02)", "retriever.b=range(0,1,0.1)"


def _path() -> dict[str, str]:
    return {"PYTHONPATH": str(Path(__file__).parents[1])}


def _write(folder: Path, n: int, queries: int) -> None:
    """Write documents, queries, and the vectors of both."""
    corpus = Synthetic(n)
    write(corpus, folder, queries)
    write_vectors(folder, n, np.array(corpus.select_targets(queries)))


def _index(name: str, warm: Path, data: Path) -> dict[str, float]:
    """Return the figures of reading, indexing in a new store and answering a first query, and of searching."""
    _measure(name, warm)
    return _measure(name, data)


def _measure(name: str, data: Path) -> dict[str, float]:
    import runner as program
    from runner.store.disk import DiskStore

    with folder_of_runs() as folder:
        store, retriever = DiskStore(folder / "store"), build(name, data)
        began, start = time.process_time(), time.perf_counter()
        dataset = program.load_dataset("beir", path=str(data))
        searcher = retriever.index(dataset.corpus, store)
        searcher.search(dataset.queries.inputs[:1], DEPTH)  # parts of a hybrid are indexed now
        seconds, elapsed = time.process_time() - began, time.perf_counter() - start
        took = []
        for query in dataset.queries.inputs[:SEARCHED]:
            times = []
            for _ in range(REPEATS):
                start = time.perf_counter()
                rankings = searcher.search([query], DEPTH)
                whole = time.perf_counter() - start
                alone = np.nan if rankings.seconds is None else float(rankings.seconds[0])
                times.append(whole if np.isnan(alone) else alone)
            took.append(min(times))
        size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    return {
        "seconds": round(seconds, 2),
        "elapsed": round(elapsed, 2),
        "query_ms": round(1000 * statistics.median(took), 3),
        "index_mebibytes": round(size / 2**20, 1),
    }


def build(name: str, data: Path) -> Retriever:
    """Return the retriever of a name; generated weights are generated here."""
    from retrievers.composed.fusion import Hybrid
    from retrievers.encoders.vectors import VectorFiles
    from retrievers.lexical.bm25 import BM25
    from retrievers.vectors.dense import Dense

    n = len(np.load(data / "documents.npy", mmap_mode="r"))
    encoder = VectorFiles(str(data / "documents.npy"), str(data / "queries.npy"))
    cells = max(round(CELLS * (n / DOCUMENTS[-1]) ** 0.5), 1)
    ivf = Dense(encoder, "ivf", nlist=cells, nprobe=16, quantization="int8", rescore=True, oversampling=4)
    match name:
        case "BM25":
            return BM25()
        case "learned sparse":
            return generate_sparse(n)
        case "dense, exact":
            return Dense(encoder)
        case "dense, IVF int8":
            return ivf
        case _:
            return Hybrid({"lexical": BM25(), "semantic": ivf})


def generate_sparse(n: int) -> Retriever:
    """Return learned sparse retrieval with generated weights instead of those of a model."""
    from retrievers.store import Store
    from retrievers.vectors.sparse import LearnedSparse
    from retrievers.vectors.term_weights import TermWeights

    shards = [draw(block, min(BLOCK, n - first), 120) for block, first in enumerate(range(0, n, BLOCK))]

    class Generated(LearnedSparse):
        def list_parts(self, role: str) -> dict[str, object]:
            return {"generated": n}

        def weigh_documents(self, corpus: object, store: Store) -> list[TermWeights]:
            return shards

        def weigh_queries(
            self, queries: Sequence[str], store: Store, live: Store
        ) -> tuple[TermWeights, NDArray[np.float32]]:
            seed = int(queries[0].id[1:]) if queries[0] else 0  # type: ignore[attr-defined]  # texts of a dataset have ids
            return draw(-1 - seed, len(queries), 40), np.zeros(len(queries), dtype=np.float32)

    return Generated(model="generated")


BLOCK, TERMS = 8192, 30_522


def draw(seed: int, n: int, mean: int) -> Any:  # noqa: ANN401 (weights of terms, imported here only)
    """Return weights of n texts, `mean` draws of terms each by Zipf's law; weights log(1 + x) with x exponential."""
    from retrievers.vectors.term_weights import TermWeights

    rng = np.random.default_rng([abs(seed), seed < 0])
    chances = np.cumsum(1 / (np.arange(TERMS) + 100))  # the commonest is in a fifth of documents of 120 terms
    drawn = np.searchsorted(chances, rng.random(n * mean) * chances[-1])
    keys = np.unique(np.repeat(np.arange(n), mean) * TERMS + drawn)
    weights = np.log1p(rng.exponential(size=len(keys))).astype(np.float32)
    offsets = np.searchsorted(keys, np.arange(n + 1) * TERMS)
    return TermWeights(TERMS, offsets, (keys % TERMS).astype(np.int32), weights)


if __name__ == "__main__":
    if sys.argv[1:2] == ["index"]:
        print(json.dumps(_index(sys.argv[2], *map(Path, sys.argv[3:]))))
    else:
        main(int(sys.argv[1]) if sys.argv[1:] else 1_000_000)
