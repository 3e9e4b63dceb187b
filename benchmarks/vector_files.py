"""Ten million vectors of 384 dimensions in a file: an IVF index of bytes, built once and swept over `nprobe`.

The file has half-precision numbers: points near a plane of 32 dimensions, with noise in all dimensions, and queries
near some of them. The sweep runs through the program, as with vectors of any model (`encoder=vectors`). It prints the
recall of the exact ranking. BENCH_SCALE=0.1 runs it at a tenth of the size, with the same number of cells per root of
the number of vectors; the limit of memory is scaled.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import orjson
from numpy.typing import NDArray

from benchmarks.cases import RUNNER, folder_of_runs
from benchmarks.measure import Figure, spend

SCALE = float(os.environ.get("BENCH_SCALE", "1"))
DIMENSIONS, LATENT, NOISE, QUERIES, BLOCK = 384, 32, 0.1, 200, 65_536
CELLS, PROBES = 2048, (16, 64, 256)
MEBIBYTES = 24 * 1024


def vector_files() -> list[Figure]:
    """Search ten million vectors of a file by the program: build an index, then sweep `nprobe`; at most 24 GiB."""
    n = round(10_000_000 * SCALE)
    with folder_of_runs() as folder:
        _report(f"writing {n:,} vectors")
        _write(folder / "data", n)
        command = [*RUNNER, "-m", "retriever=dense", "encoder=vectors", "encoder.documents=data/documents.npy"]
        command += ["encoder.queries=data/queries.npy", "retriever.index_type=ivf", "retriever.quantization=int8"]
        command += [
            f"retriever.nlist={round(CELLS * SCALE**0.5)}",
            "retriever.rescore=true",
            "retriever.oversampling=4",
        ]
        command += ["dataset=beir", "dataset.path=data", "metrics.depth=10", "metrics.k_values=[1,10]"]
        _report("indexing and sweeping")
        spent = spend([*command, f"retriever.nprobe={','.join(map(str, PROBES))}"], folder)
        print((folder / "said.txt").read_text())
    _report(f"the sweep took {spent.seconds:.0f} s and {spent.mebibytes:,.0f} MiB")
    name = f"a sweep over {n:,} vectors of a file"
    return [Figure(f"peak memory of {name}", "MiB", spent.mebibytes, MEBIBYTES * SCALE, 1)]


VECTOR_FILES = (vector_files,)


def _write(folder: Path, n: int) -> None:
    """Write vectors of documents and queries, the ids, and for each query its nearby document as the only answer."""
    (folder / "qrels").mkdir(parents=True)
    targets = np.linspace(0, n - 1, QUERIES).astype(int)
    write_vectors(folder, n, targets)
    with (folder / "corpus.jsonl").open("wb") as documents:
        for number in range(n):
            documents.write(b'{"_id": "d%d", "title": "", "text": "%d"}\n' % (number, number))
    lines = [orjson.dumps({"_id": f"q{number}", "text": str(number)}) for number in targets]
    (folder / "queries.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    rows = "".join(f"q{number}\td{number}\t1\n" for number in targets)
    (folder / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{rows}")


def write_vectors(folder: Path, n: int, targets: NDArray[np.int64]) -> None:
    """Write the vectors of documents d0, d1 ... and of the queries about some of them, q and the same number."""
    rng = np.random.default_rng(0)
    plane = rng.standard_normal((LATENT, DIMENSIONS), dtype=np.float32) / np.float32(DIMENSIONS**0.5)
    matrix = np.lib.format.open_memmap(folder / "documents.npy", mode="w+", dtype=np.float16, shape=(n, DIMENSIONS))
    for start in range(0, n, BLOCK):
        block = matrix[start : start + BLOCK]
        block[:] = rng.standard_normal((len(block), LATENT), dtype=np.float32) @ plane
        block += NOISE * rng.standard_normal(block.shape, dtype=np.float32)
    near = matrix[targets] + NOISE * rng.standard_normal((len(targets), DIMENSIONS), dtype=np.float32)
    np.save(folder / "queries.npy", near.astype(np.float32))
    matrix.flush()
    _write_ids(folder / "documents.txt", range(n), "d")
    _write_ids(folder / "queries.txt", targets, "q")


def _write_ids(file: Path, numbers: Sequence[int] | range | NDArray[np.int64], letter: str) -> None:
    file.write_text("".join(f"{letter}{number}\n" for number in numbers))


def _report(step: str) -> None:
    """Print what happens now, with the time: at full size, a step takes minutes."""
    print(f"{time.strftime('%H:%M:%S')} {step}", flush=True)
