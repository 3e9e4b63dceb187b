"""A million generated vectors of 128 dimensions in Qdrant's engine: built once, swept over `ef_search`, memory bounded.

The sweep runs through the program, with an encoder that generates the vectors of numbered documents block by block. It
prints recall against exact search, the time of the build and of the sweep, and the peak memory of each. Fewer vectors,
or other settings: `python -m benchmarks.million_vectors 100000 retriever.ef_construct=50`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import orjson
from numpy.typing import NDArray

from benchmarks.cases import RUNNER, folder_of_runs
from benchmarks.measure import Figure, spend
from retrievers.base import Corpus
from retrievers.encoders.base import Embedded, Vectors
from retrievers.store import Store

DIMENSIONS, QUERIES, BLOCK = 128, 1000, 8192
EF_SEARCH = (16, 32, 64, 128)
TIMES_VECTORS = 4
"""The limit of the peak memory, as a multiple of the bytes of the vectors."""


@dataclass(frozen=True)
class GeneratedVectors:
    """The vectors of numbered documents: points near a plane of `latent` dimensions. A query is near its document.

    The text of the document at position i is "i", and so is the text of a query near it. Vectors that fill all
    dimensions evenly would have no near neighbours, which is unrealistic.
    """

    latent: int = 16
    noise: float = 0.1
    seed: int = 0

    def embed(self, corpus: Corpus, store: Store) -> Embedded:
        """Return the vectors in blocks, each generated when it is read."""
        return Embedded(Blocks(self, len(corpus)), self._embed_queries)

    def generate(self, block: int) -> Vectors:
        """Return the vectors of a block of documents."""
        plane = np.random.default_rng([self.seed, 1]).standard_normal((self.latent, DIMENSIONS), dtype=np.float32)
        rng = np.random.default_rng([self.seed, 2, block])
        vectors = rng.standard_normal((BLOCK, self.latent), dtype=np.float32) @ plane / np.float32(DIMENSIONS**0.5)
        return vectors + np.float32(self.noise) * rng.standard_normal(vectors.shape, dtype=np.float32)

    def _embed_queries(self, texts: Sequence[str], store: Store) -> tuple[Vectors, NDArray[np.float32]]:
        numbers, vectors = np.array(list(map(int, texts))), np.empty((len(texts), DIMENSIONS), dtype=np.float32)
        for block in np.unique(numbers // BLOCK).tolist():
            here = numbers // BLOCK == block
            vectors[here] = self.generate(block)[numbers[here] % BLOCK]
        for row, number in enumerate(numbers.tolist()):
            vectors[row] += self.noise * np.random.default_rng([self.seed, 3, number]).standard_normal(DIMENSIONS)
        return vectors, np.zeros(len(texts), dtype=np.float32)


@dataclass(frozen=True)
class Blocks(Sequence[Vectors]):
    """The blocks of generated vectors of a corpus."""

    encoder: GeneratedVectors
    documents: int

    def __len__(self) -> int:
        return -(-self.documents // BLOCK)

    def __getitem__(self, block: int) -> Vectors:  # type: ignore[override]  # no slices
        if not 0 <= block < len(self):
            raise IndexError(block)
        return self.encoder.generate(block)[: self.documents - block * BLOCK]


def million_vectors() -> list[Figure]:
    """Sweep `ef_search` over a million generated vectors in Qdrant's engine; the limits are fixed."""
    return sweep_vectors(1_000_000)


MILLION_VECTORS = (million_vectors,)


def sweep_vectors(n: int, overrides: Sequence[str] = ()) -> list[Figure]:
    """Build an index of n vectors once and sweep `ef_search`; print recall, and return time and peak memory."""
    with folder_of_runs() as folder:
        _write(folder, n)
        arguments = [
            "retriever=qdrant",
            "encoder=generated",
            "plugins=[benchmarks.million_vectors]",
            "--config-dir=conf",
        ]
        arguments += ["dataset=beir", "dataset.path=data", "metrics.depth=10", "metrics.k_values=[1,10]"]
        arguments += overrides
        run = partial(spend, folder=folder, PYTHONPATH=str(Path(__file__).parents[1]))
        built = run([*RUNNER, *arguments, f"retriever.ef_search={EF_SEARCH[0]}"])
        swept = run([*RUNNER, "-m", *arguments, f"retriever.ef_search={','.join(map(str, EF_SEARCH))}"])
        print((folder / "said.txt").read_text())
        indexes = len(list((folder / "mlruns" / "cache" / "qdrant_index").glob("*/")))
    print(f"{n:,} vectors; building: {built.seconds:.0f} s, {built.mebibytes:.0f} MiB at the peak; ", end="")
    print(f"sweeping {len(EF_SEARCH)} values: {swept.seconds:.0f} s, {swept.mebibytes:.0f} MiB; indexes: {indexes}")
    vectors, name = n * DIMENSIONS * 4 / 2**20, f"{n:,} vectors"
    return [
        Figure(f"indexes of {name}, built for {len(EF_SEARCH)} settings", "", indexes, 1, 1),
        Figure(f"peak memory while indexing {name}, to the vectors", "MiB", built.mebibytes, vectors, TIMES_VECTORS),
        Figure(f"peak memory while sweeping {name}, to the vectors", "MiB", swept.mebibytes, vectors, TIMES_VECTORS),
        Figure(f"sweeping ef_search over {name}, to the first search", "s", swept.seconds, built.seconds, 1),
    ]


def _write(folder: Path, n: int) -> None:
    """Write numbered documents, and queries, each with the nearby document as its only answer."""
    data = folder / "data"
    (data / "qrels").mkdir(parents=True)
    with (data / "corpus.jsonl").open("wb") as documents:
        for number in range(n):
            documents.write(orjson.dumps({"_id": f"d{number}", "title": "", "text": str(number)}) + b"\n")
    targets = range(0, n, max(n // QUERIES, 1))
    queries = (orjson.dumps({"_id": f"q{number}", "text": str(number)}) for number in targets)
    (data / "queries.jsonl").write_bytes(b"\n".join(queries) + b"\n")
    rows = ["query-id\tcorpus-id\tscore", *(f"q{number}\td{number}\t1" for number in targets)]
    (data / "qrels" / "test.tsv").write_text("\n".join(rows) + "\n")
    (folder / "conf" / "encoder").mkdir(parents=True)
    encoder = "_target_: benchmarks.million_vectors.GeneratedVectors\nlatent: 16\nnoise: 0.1\nseed: 0\n"
    (folder / "conf" / "encoder" / "generated.yaml").write_text(encoder)


if __name__ == "__main__":
    count, *settings = sys.argv[1:] or ["1000000"]
    for figure in sweep_vectors(int(count), settings):
        print(f"{figure.name}: {figure.ours:.4g} {figure.unit}, {figure.ratio:.2f}, at most {figure.bar}")
