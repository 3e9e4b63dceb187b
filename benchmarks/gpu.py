"""Measure encoders and rerankers on a GPU beside plain sentence-transformers with its best batch size.

    python -m benchmarks.gpu FOLDER --model FOLDER_OF_MODEL

FOLDER is a collection in BEIR format. Needs `retrievers` and its packages, not the whole environment. The cross-encoder
has the layers of the model and random weights, which take the same time as trained ones.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrievers.base import Corpus
from retrievers.encoders.sentence_transformer import SentenceTransformerEncoder
from retrievers.rerankers.cross_encoder import CrossEncoderReranker
from retrievers.store import MemoryStore

Vectors = NDArray[np.float32]

PEER_BATCHES = (32, 128, 512, 2048)
OUR_TOKENS = (4_096, 32_768, 131_072, 524_288)
ROUNDS = 3


def read_lines(file: Path) -> list[Any]:
    """Return the values of the lines of a JSON Lines file."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def time_best(name: str, choices: Sequence[int], n: int, run: Callable[[int], object]) -> float:
    """Print the median items per second of `run` with each choice, and return the largest."""
    rates = {}
    for choice in choices:
        seconds = []
        for _ in range(ROUNDS):
            start = time.perf_counter()
            run(choice)
            seconds.append(time.perf_counter() - start)
        rates[choice] = n / statistics.median(seconds)
        print(f"{name} {choice:>7,}: {rates[choice]:>9,.0f} per second", flush=True)
    return max(rates.values())


def mean_ndcg(documents: Vectors, queries: Vectors, grades: Sequence[dict[int, int]], cutoff: int = 10) -> float:
    """Return the mean nDCG of an exact search by inner product, with the grade as the gain, as in trec_eval."""
    values = []
    discounts = 1 / np.log2(np.arange(2, cutoff + 2))
    for query, gold in zip(queries, grades, strict=True):
        best = np.argsort(-(documents @ query), kind="stable")[:cutoff]
        ideal = sorted(gold.values(), reverse=True)[:cutoff]
        gain = sum(gold.get(int(document), 0) * discounts[rank] for rank, document in enumerate(best))
        values.append(gain / sum(np.array(ideal) * discounts[: len(ideal)]))
    return float(np.mean(values))


def embed(model: str, corpus: Corpus, device: str, batch_tokens: int, store: MemoryStore) -> Vectors:
    """Return the vectors of all documents, encoded as in an evaluation; `store` keeps only the open model."""
    encoder = SentenceTransformerEncoder(model=model, device=device, batch_tokens=batch_tokens)
    fresh = MemoryStore()
    live = encoder.build_live_key()
    fresh.share(live, lambda: store.share(live, encoder._open))
    return np.concatenate([*encoder.embed(corpus, fresh).documents]).reshape(len(corpus), -1)


def compare_encoders(folder: Path, model: str, device: str) -> None:
    """Print texts per second of both sides, and the nDCG@10 of their vectors."""
    from sentence_transformers import SentenceTransformer

    lines = read_lines(folder / "corpus.jsonl")
    texts = [f"{line['title']} {line['text']}" for line in lines]
    places = {line["_id"]: place for place, line in enumerate(lines)}
    query_texts = {line["_id"]: line["text"] for line in read_lines(folder / "queries.jsonl")}
    gold: dict[str, dict[int, int]] = {}
    for row in (folder / "qrels" / "test.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        query, document, grade = row.split("\t")
        if int(grade) > 0:
            gold.setdefault(query, {})[places[document]] = int(grade)
    corpus = Corpus(ids=[line["_id"] for line in lines], texts=texts)

    peer = SentenceTransformer(model, device=device)
    store = MemoryStore()
    embed(model, Corpus(ids=["0"], texts=["word"]), device, OUR_TOKENS[0], store)

    def encode(batch: int) -> Vectors:
        return peer.encode(texts, batch_size=batch, normalize_embeddings=True, show_progress_bar=False)

    best = time_best("peer, batch of texts ", PEER_BATCHES, len(texts), encode)
    ours = time_best("ours, batch of tokens", OUR_TOKENS, len(texts), lambda b: embed(model, corpus, device, b, store))
    print(f"encoder: {ours:,.0f} against {best:,.0f} texts per second: ratio {best / ours:.2f} (below 1 is faster)")

    queries = peer.encode([query_texts[query] for query in gold], normalize_embeddings=True, show_progress_bar=False)
    judged = list(gold.values())
    figures = {
        "plain, batch of 32": encode(32),
        f"ours, {OUR_TOKENS[-1]:,} tokens": embed(model, corpus, device, OUR_TOKENS[-1], store),
        "ours, 4,096 tokens": embed(model, corpus, device, 4_096, store),
    }
    for name, vectors in figures.items():
        print(f"nDCG@10 {mean_ndcg(vectors, queries, judged):.6f} ({name})")
    limit_memory(model, corpus, device, figures["ours, 4,096 tokens"], store)


def limit_memory(model: str, corpus: Corpus, device: str, expected: Vectors, store: MemoryStore) -> None:
    """Encode with a batch that is far larger than the memory that this process may use."""
    import torch

    if device != "cuda":
        return
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + (1 << 30)) / total)
    vectors = embed(model, corpus, device, 10_000_000, store)
    torch.cuda.set_per_process_memory_fraction(1.0)
    print(
        f"with 1 GiB of memory and batches of 10,000,000 tokens: largest difference {abs(vectors - expected).max():.1e}"
    )


def compare_rerankers(folder: Path, model: str, device: str, pairs_wanted: int) -> None:
    """Print pairs per second of both sides."""
    import torch
    from sentence_transformers import CrossEncoder
    from transformers import AutoConfig, AutoModelForSequenceClassification

    queries = [line["text"] for line in read_lines(folder / "queries.jsonl")]
    texts = [line["text"] for line in read_lines(folder / "corpus.jsonl")]
    pairs = [(queries[n % len(queries)], texts[n % len(texts)]) for n in range(pairs_wanted)]
    with tempfile.TemporaryDirectory(prefix="cross-encoder-") as name:
        for file in Path(model).glob("*"):
            if file.is_file() and file.suffix in (".json", ".txt") and "modules" not in file.name:
                shutil.copy(file, name)
        torch.manual_seed(0)
        config = AutoConfig.from_pretrained(model, num_labels=1)
        AutoModelForSequenceClassification.from_config(config).save_pretrained(name)
        peer = CrossEncoder(name, device=device)
        opened = CrossEncoderReranker(model=name, device=device).open(MemoryStore()).score  # type: ignore[attr-defined]
        opened(pairs[:2])

        best = time_best(
            "peer, batch of pairs ",
            PEER_BATCHES,
            len(pairs),
            lambda batch: peer.predict(pairs, batch_size=batch, show_progress_bar=False),
        )

        def score(tokens: int) -> object:
            scorer = scorers[tokens]
            return [scorer(pairs[start : start + 256]) for start in range(0, len(pairs), 256)]  # as in an evaluation

        scorers = {
            tokens: CrossEncoderReranker(model=name, device=device, batch_tokens=tokens).open(MemoryStore()).score  # type: ignore[attr-defined]
            for tokens in OUR_TOKENS
        }
        for scorer in scorers.values():
            scorer(pairs[:2])
        ours = time_best("ours, batch of tokens", OUR_TOKENS, len(pairs), score)
    print(f"cross-encoder: {ours:,.0f} against {best:,.0f} pairs per second: ratio {best / ours:.2f}")


def main() -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--model", required=True)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--pairs", type=int, default=20_000)
    options = parser.parse_args()
    compare_encoders(options.folder, options.model, options.device)
    compare_rerankers(options.folder, options.model, options.device, options.pairs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
