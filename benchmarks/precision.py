"""Compare backends and precisions of an encoder with PyTorch in 32-bit floats: texts per second, and the nDCG@10.

    python -m benchmarks.precision [--documents N] [--threads N] [COLLECTION ...]

The model is all-MiniLM-L6-v2, in one process. Documents are encoded 64 at a time by all encoders one after the other,
first in this and then in the opposite order. With `--documents`, only the judged documents and that many others are
encoded, for a quick look. Exits with 1 if the fastest encodes less than 3 times the texts per second of PyTorch, or if
an nDCG@10 differs by more than 0.003. Needs the extra `openvino`.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from statistics import median

import numpy as np
from rich.console import Console
from rich.table import Table

import runner
from benchmarks.cases import DATA, folder_of_runs
from benchmarks.measure import Figure
from retrievers import Corpus, Dense
from retrievers.encoders.backends import Precision
from retrievers.encoders.base import Vectors
from retrievers.encoders.sentence_transformer import SentenceTransformerEncoder
from retrievers.encoders.vectors import VectorFiles
from retrievers.extras import is_installed
from retrievers.store import MemoryStore, Store

COLLECTIONS = ("scifact", "cosqa", "xquad-en")

TORCH = "torch, fp32"

PART = 64
"""How many documents are encoded in a turn."""

FASTER, TOLERANCE = 3.0, 0.003
"""The lowest ratio of texts per second of the fastest, and the largest difference of the nDCG@10."""


def list_encoders() -> dict[str, SentenceTransformerEncoder]:
    """Return the encoders by their names, PyTorch first."""
    precisions: tuple[Precision, ...] = ("fp32", "bf16", "int8")
    others = {
        f"openvino, {name}": SentenceTransformerEncoder(backend="openvino", precision=name) for name in precisions
    }
    return {TORCH: SentenceTransformerEncoder(backend="torch", device="cpu"), **others}


def take_documents(dataset: runner.Dataset, others: int | None) -> runner.Dataset:
    """Return a dataset with its judged documents and a number of others; None for all."""
    corpus = dataset.corpus
    judged = set(dataset.judgments.documents.tolist())
    places = [*judged, *[place for place in range(len(corpus)) if place not in judged][:others]]
    texts = list(corpus.contents())
    qrels = [
        (dataset.queries.ids[query], corpus.ids[document], int(grade))
        for query, document, grade in zip(
            dataset.judgments.queries, dataset.judgments.documents, dataset.judgments.grades, strict=True
        )
    ]
    documents = {corpus.ids[place]: texts[place] for place in sorted(places)}
    return runner.Dataset.of(documents, dict(zip(dataset.queries.ids, dataset.queries.texts, strict=True)), qrels)


def encode_in_turns(
    texts: list[str], encoders: dict[str, SentenceTransformerEncoder], store: Store
) -> tuple[dict[str, Vectors], dict[str, list[float]]]:
    """Return the vectors of texts by each encoder, and the seconds of each part; the store has the open models."""
    vectors: dict[str, list[Vectors]] = {name: [] for name in encoders}
    seconds: dict[str, list[float]] = {name: [] for name in encoders}
    for number, start in enumerate(range(0, len(texts), PART)):
        part = texts[start : start + PART]
        corpus = Corpus([str(place) for place in range(len(part))], part)
        for name in list(encoders)[:: -1 if number % 2 else 1]:
            began = time.perf_counter()
            vectors[name] += encoders[name].embed(corpus, store).documents
            seconds[name].append(time.perf_counter() - began)
    return {name: np.concatenate(parts) for name, parts in vectors.items()}, seconds


def measure_ndcg(dataset: runner.Dataset, documents: Vectors, queries: Vectors, folder: Path) -> float:
    """Return the nDCG@10 of an exact search of vectors."""
    files = [str(folder / f"{role}.npz") for role in ("documents", "queries")]
    np.savez(files[0], ids=dataset.corpus.ids, vectors=documents)
    np.savez(files[1], ids=dataset.queries.ids, vectors=queries)
    result = runner.evaluate(Dense(VectorFiles(*files)), dataset, tracking_uri="none", store_path=folder / "store")
    return float(result.means["nDCG@10"])


def compare(collections: list[str], documents: int | None) -> list[Figure]:
    """Print a table for each collection; return the time of each encoder beside PyTorch's, and its loss of nDCG@10."""
    encoders, store, figures = list_encoders(), MemoryStore(), []
    for encoder in encoders.values():
        encoder.embed(Corpus(["word"], ["word"]), store)  # exports and opens the model
    for collection in collections:
        dataset = take_documents(runner.load_dataset("beir", path=DATA / collection), documents)
        vectors, seconds = encode_in_turns(list(dataset.corpus.contents()), encoders, store)
        queries = {
            name: e.embed(Corpus([], []), store).queries(dataset.queries.texts, store)[0]
            for name, e in encoders.items()
        }
        with folder_of_runs() as folder:
            ndcg = {name: measure_ndcg(dataset, vectors[name], queries[name], folder) for name in encoders}
        title = f"{collection}, {len(dataset.corpus):,} documents"
        table = Table(title, "texts per second", "times torch", "median of parts", "nDCG@10", "cosine", "lowest")
        for name in encoders:
            speed, ratios = len(dataset.corpus) / sum(seconds[name]), np.divide(seconds[TORCH], seconds[name])
            times = sum(seconds[TORCH]) / sum(seconds[name])
            cosines = (vectors[TORCH] * vectors[name]).sum(axis=1)[vectors[TORCH].any(axis=1)]
            values = (speed, times, median(ratios.tolist()), ndcg[name], cosines.mean(), cosines.min())
            table.add_row(
                name, *(f"{value:.{digits}f}" for value, digits in zip(values, (1, 2, 2, 4, 5, 5), strict=True))
            )
            if name != TORCH:
                bar = 1 / FASTER if name.endswith("int8") else 1.0
                what, taken = f"encoding {collection} with {name}", (sum(seconds[name]), sum(seconds[TORCH]))
                difference = abs(ndcg[name] - ndcg[TORCH])
                figures.append(Figure(f"{what}, to torch", "s", *taken, bar))
                figures.append(Figure(f"{what}: change of nDCG@10", "", difference, TOLERANCE, 1))
        Console(width=120).print(table)
    return figures


def encoding_openvino() -> list[Figure]:
    """Encode samples of three collections on OpenVINO, beside PyTorch."""
    if not is_installed("optimum.intel"):
        print("not measured: the extra `openvino` is not installed")
        return []
    return compare(list(COLLECTIONS), 200)


PRECISION = (encoding_openvino,)


def main() -> int:
    """Print the tables; return 1 if a bar is not met."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("collections", nargs="*", default=list(COLLECTIONS), help="folders in BEIR's layout")
    parser.add_argument("--documents", type=int, help="how many documents without judgments; all by default")
    parser.add_argument("--threads", type=int, help="how many threads encode; all cores by default")
    options = parser.parse_args()
    if options.threads:
        import torch

        torch.set_num_threads(options.threads)
    return int(not all(figure.met for figure in compare(options.collections, options.documents)))


if __name__ == "__main__":
    sys.exit(main())
