"""Seismic and BMP alone, in an environment of their own (`pip install pyseismic-lsr bmp numpy`).

usage: python sparse_alone.py FOLDER DEPTH. It reads the columns of documents and queries in FOLDER, builds an index of
each library on one thread, searches and writes FOLDER/peers.json: the seconds of the build, and for each setting of the
search, the seconds a query and the documents. BMP rounds weights to integers of 8 bits, those of queries to 32 levels.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Column = NDArray[Any]

CUTS = ((5, 0.9), (10, 0.8), (10, 0.7), (40, 0.7))
"""Settings of Seismic's search: the number of terms of a query, and the heap factor."""


def read(folder: Path, name: str) -> list[Column]:
    """Return the offsets, terms and weights of texts."""
    return [np.load(folder / f"{name}_{column}.npy", mmap_mode="r") for column in ("offsets", "terms", "weights")]


def write_for_seismic(file: Path, offsets: Column, terms: Column, weights: Column) -> None:
    """Write texts in Seismic's own format: their number; for each, the number of terms, the terms and the weights."""
    with file.open("wb") as out:
        out.write(np.uint32(len(offsets) - 1).tobytes())
        for begin, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
            out.write(np.uint32(end - begin).tobytes())
            out.write(terms[begin:end].astype(np.uint32).tobytes())
            out.write(weights[begin:end].tobytes())


def run_seismic(folder: Path, depth: int) -> dict[str, Any]:
    """Return the figures of Seismic."""
    import seismic

    for name in ("documents", "queries"):
        write_for_seismic(folder / f"{name}.bin", *read(folder, name))
    start = time.perf_counter()
    index = seismic.SeismicIndexRaw.build(str(folder / "documents.bin"))
    built, searched = time.perf_counter() - start, {}
    for cut, factor in CUTS:
        took = []
        for _ in range(3):
            start = time.perf_counter()
            rows = index.batch_search(str(folder / "queries.bin"), depth, cut, factor, 0, True, num_threads=1)
            took.append((time.perf_counter() - start) / len(rows))
        documents = [[document for _, document in row] for row in rows]
        searched[f"query_cut={cut}, heap_factor={factor}"] = {"seconds": sorted(took)[1], "documents": documents}
    return {"build": built, "searches": searched}


def run_bmp(folder: Path, depth: int) -> dict[str, Any]:
    """Return the figures of BMP, with blocks of 32 documents, without approximations beyond those of the weights."""
    import bmp

    offsets, terms, weights = read(folder, "documents")
    levels = np.ceil(weights * (255 / weights.max())).astype(int)
    start = time.perf_counter()
    indexer = bmp.Indexer(str(folder / "index.bmp"), 32, False)
    for n, (begin, end) in enumerate(zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)):
        vector = dict(zip(map(str, terms[begin:end].tolist()), levels[begin:end].tolist(), strict=True))
        indexer.add_document(str(n), vector)
    indexer.finish()
    built = time.perf_counter() - start
    searcher = bmp.Searcher(str(folder / "index.bmp"))
    offsets, terms, weights = read(folder, "queries")
    queries = []
    for begin, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        scaled = np.ceil(weights[begin:end] * (32 / weights[begin:end].max())).astype(int)
        queries.append(dict(zip(map(str, terms[begin:end].tolist()), scaled.tolist(), strict=True)))
    took = []
    for _ in range(3):
        start = time.perf_counter()
        rows = [searcher.search(query, depth, 1.0, 1.0) for query in queries]
        took.append((time.perf_counter() - start) / len(queries))
    documents = [[int(document) for document in row[0]] for row in rows]
    return {"build": built, "searches": {"alpha=1, beta=1": {"seconds": sorted(took)[1], "documents": documents}}}


if __name__ == "__main__":
    place, hits = Path(sys.argv[1]), int(sys.argv[2])
    os.environ["RAYON_NUM_THREADS"] = "1"
    figures = {"Seismic": run_seismic(place, hits), "BMP": run_bmp(place, hits)}
    (place / "peers.json").write_text(json.dumps(figures))
