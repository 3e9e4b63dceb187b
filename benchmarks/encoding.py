"""Encode one corpus on the workers of each backend, one of which is killed, and compare the bytes with one process.

    python -m benchmarks.encoding --documents 2048

The encoder is all-MiniLM-L6-v2. Exits with 1 if the vectors of a backend differ, or a shard is missing.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil

from retrievers.encoders.sentence_transformer import SentenceTransformerEncoder
from retrievers.vectors.dense import Dense
from runner.datasets.beir import Beir
from runner.evaluation.bench import Bench
from runner.evaluation.experiment import Experiment
from runner.metrics.settings import MetricSettings
from runner.store.disk import DiskStore
from runner.sweep.encoding import encode_missing, find_encodings
from runner.sweep.identity import combination_id
from runner.sweep.settings import SweepSettings
from runner.sweep.workers import crew_of, encode_documents

BACKENDS = ("loky", "dask", "ray")


def write_dataset(folder: Path, documents: int) -> Beir:
    """Write documents of 5 to 20 words, drawn with a fixed seed, and one query."""
    chance = random.Random(0)
    words = [f"{a}{b}" for a in ("river", "stone", "light", "paper", "cloud") for b in ("", "s", "ing", "less", "work")]
    texts = [" ".join(chance.choices(words, k=chance.randint(5, 20))) for _ in range(documents)]
    lines = [json.dumps({"_id": str(n), "title": "", "text": text}) for n, text in enumerate(texts)]
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text("\n".join(lines))
    (folder / "queries.jsonl").write_text(json.dumps({"_id": "q", "text": texts[0]}))
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\t0\t1\n")
    return Beir(path=str(folder))


def read_vectors(store: Path) -> dict[str, bytes]:
    """Return the bytes of the vectors of each shard, by the digest of its key."""
    return {file.parent.name: file.read_bytes() for file in (store / "document_vectors").glob("*/vectors.npy")}


def kill_one_worker(store: Path, killed: list[int]) -> None:
    """Kill the process that holds the lock of a shard, once the first shard is stored."""
    while len(read_vectors(store)) < 1:
        time.sleep(0.1)
    while not killed:
        for lock in (store / "document_vectors").glob("*.lock"):
            try:
                process = psutil.Process(int(lock.read_text().partition(" ")[0].rpartition(".")[2]))
                process.kill()
            except (OSError, ValueError, psutil.NoSuchProcess):
                continue
            killed.append(process.pid)
            return
        time.sleep(0.01)


def main() -> int:
    """Print how many bytes equal those of one process; return 1 if any backend differs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--documents", type=int, default=2048)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--backends", nargs="*", choices=BACKENDS, default=BACKENDS)
    options = parser.parse_args()
    wrong = False
    alone: dict[str, bytes] = {}
    with tempfile.TemporaryDirectory(prefix="encoding-") as name:
        source = write_dataset(Path(name) / "data", options.documents)
        retriever = Dense(SentenceTransformerEncoder())
        experiment = Experiment("dense", "dense", retriever, source, MetricSettings(), {}, {})
        for backend in ("one process", *options.backends):
            store = Path(name) / backend
            bench = Bench(DiskStore(store))
            combination = combination_id(experiment, bench.dataset(experiment))
            began = time.monotonic()
            killed: list[int] = []
            for encoding in find_encodings({combination: experiment}, bench):
                if backend == "one process":
                    encode_missing(encoding, bench)
                    continue
                threading.Thread(target=kill_one_worker, args=(store, killed), daemon=True).start()
                with crew_of(SweepSettings(backend=backend, workers=options.workers), bench) as crew:
                    encode_documents(encoding, crew)
            vectors = read_vectors(store)
            alone = alone or vectors
            same = vectors == alone and not find_encodings({combination: experiment}, bench)
            wrong |= not same or (backend != "one process" and not killed)
            size = sum(map(len, vectors.values()))
            print(
                f"{backend}: {len(vectors)} shards, {size:,} bytes, {'the same' if same else 'DIFFERENT'}; "
                f"{len(killed)} workers killed; {time.monotonic() - began:.0f} s",
                flush=True,
            )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
