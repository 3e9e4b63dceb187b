"""Compare encoding in 8-bit integers with 32-bit floats: texts per second, in turns, and the nDCG@10 of both.

    python -m benchmarks.precision [--collection scifact] [--documents N]

The model is all-MiniLM-L6-v2, in one process. Documents are encoded 128 at a time, by both precisions one after the
other, in alternating order. With `--documents`, only the judged documents and as many others are encoded, for a quick
look. Exits with 1 if int8 encodes less than twice the texts per second, or if its nDCG@10 differs by more than 0.003.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import runner
from benchmarks.cases import DATA
from retrievers import Corpus, Dense
from retrievers.encoders.base import Vectors
from retrievers.encoders.sentence_transformer import SentenceTransformerEncoder
from retrievers.encoders.vectors import VectorFiles
from retrievers.store import MemoryStore

ENCODERS = {
    "fp32": SentenceTransformerEncoder(device="cpu"),
    "int8": SentenceTransformerEncoder(device="cpu", precision="int8"),
}

PART = 128
"""How many documents are encoded at a time: the most that are encoded without a trial for an estimate."""

FASTER, TOLERANCE = 2.0, 0.003
"""The lowest ratio of texts per second, and the largest difference of the nDCG@10."""


def take_documents(dataset: runner.Dataset, others: int | None) -> runner.Dataset:
    """Return a dataset with its judged documents and so many others; None for all."""
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


def encode_in_turns(corpus: Corpus) -> tuple[dict[str, list[Vectors]], dict[str, list[float]]]:
    """Return the vectors of a corpus by each encoder, in parts, and the seconds of each part."""
    store, texts = MemoryStore(), list(corpus.contents())
    vectors: dict[str, list[Vectors]] = {name: [] for name in ENCODERS}
    seconds: dict[str, list[float]] = {name: [] for name in ENCODERS}
    for encoder in ENCODERS.values():
        encoder.embed(Corpus(["word"], ["word"]), store)  # opens the model
    for number, start in enumerate(range(0, len(texts), PART)):
        part = texts[start : start + PART]
        for name in list(ENCODERS)[:: -1 if number % 2 else 1]:
            began = time.perf_counter()
            vectors[name] += ENCODERS[name].embed(Corpus(corpus.ids[start : start + PART], part), store).documents
            seconds[name].append(time.perf_counter() - began)
    return vectors, seconds


def main() -> int:
    """Print texts per second, nDCG@10 and cosines; return 1 if a bar is not met."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--collection", default="scifact", help="a folder of the collections in BEIR's layout")
    parser.add_argument("--documents", type=int, help="how many documents without judgments; all by default")
    options = parser.parse_args()
    dataset = take_documents(runner.load_dataset("beir", path=DATA / options.collection), options.documents)
    corpus, queries = dataset.corpus, dataset.queries
    vectors, seconds = encode_in_turns(corpus)
    means = {}
    with tempfile.TemporaryDirectory(prefix="precision-") as folder:
        for name, encoder in ENCODERS.items():
            files = [str(Path(folder) / f"{name}-{role}.npz") for role in ("documents", "queries")]
            np.savez(files[0], ids=corpus.ids, vectors=np.concatenate(vectors[name]))
            embedded = encoder.embed(Corpus([], []), MemoryStore()).queries(queries.texts, MemoryStore())[0]
            np.savez(files[1], ids=queries.ids, vectors=embedded)
            search = Dense(VectorFiles(*files))
            result = runner.evaluate(search, dataset, tracking_uri="none", store_path=Path(folder) / "store")
            means[name] = result.means["nDCG@10"]
            speed = len(corpus) / sum(seconds[name])
            print(f"{name}: {speed:.1f} texts per second, nDCG@10 {means[name]:.4f}")
    ratio, parts = sum(seconds["fp32"]) / sum(seconds["int8"]), np.divide(seconds["fp32"], seconds["int8"])
    cosines = (np.concatenate(vectors["fp32"]) * np.concatenate(vectors["int8"])).sum(axis=1)
    difference = means["int8"] - means["fp32"]
    print(
        f"{len(corpus):,} documents: {ratio:.2f} times as fast (median of the parts: {np.median(parts):.2f}); nDCG@10 "
        f"{difference:+.4f}; cosines to fp32: mean {cosines.mean():.4f}, lowest {cosines.min():.4f}"
    )
    return int(ratio < FASTER or abs(difference) > TOLERANCE)


if __name__ == "__main__":
    sys.exit(main())
