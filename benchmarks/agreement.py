"""Measure how well synthetic queries represent real ones: whether both rank the same retrievers in the same order.

`synthesize` generates queries from each collection's documents with its defaults, with several seeds, and five
retrievers are swept over these queries and over the collection's own. Kendall's tau compares the means of nDCG@10 on
real and on synthetic queries. The bar is a tau of 0.6, at which two of ten pairs of retrievers are in a different
order. A model embeds all documents, so the first run takes some minutes.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

from benchmarks.cases import DATA, RUNNER, folder_of_runs
from benchmarks.measure import Figure, spend

COUNT, SEEDS = 400, (0, 1, 2)
MOST_DISCORDANT = 2

RETRIEVERS = "sweep.union=[{retriever: [bm25, dense, hybrid, sqlite_fts]}, {retriever: dense, encoder: lsa}]"
QUESTIONS = ("informed_questions", "needle_questions", "needle_questions_adversarial")


def agreement_scifact() -> list[Figure]:
    """Order five retrievers on queries made of scifact's abstracts, and on its own claims."""
    with folder_of_runs() as folder:
        chunks = folder / "abstracts.jsonl"
        with (DATA / "scifact" / "corpus.jsonl").open() as documents, chunks.open("w") as out:
            for document in map(json.loads, documents):
                chunk = {"doc_id": document["_id"], "chunk_id": "0", "chunk_text": document["text"]}
                out.write(json.dumps(chunk | {"title": document["title"]}) + "\n")
        real = _means(folder, "real", "dataset=beir", f"dataset.path={DATA / 'scifact'}")
        return _agreement("scifact", folder, chunks, [], real)


def agreement_kubernetes() -> list[Figure]:
    """Order five retrievers on queries made of sections of Kubernetes' pages, and on questions of three kinds."""
    needle = DATA.parent / "needle"
    pages = needle / "corpus_kubernetes"
    with folder_of_runs() as folder:
        means, sizes = [], []
        for kind in QUESTIONS:
            file = needle / "questions" / f"{kind}.json"
            sizes.append(len(json.loads(file.read_text())["questions"]))
            dataset = ("dataset=needle", f"dataset.questions={file}", f"dataset.documents={pages}")
            means.append(_means(folder, kind, *dataset))
        real = [sum(m * n for m, n in zip(of, sizes, strict=True)) / sum(sizes) for of in zip(*means, strict=True)]
        return _agreement("Kubernetes", folder, pages, [f"dataset.corpus={pages}"], real)


AGREEMENT = (agreement_scifact, agreement_kubernetes)


def _agreement(name: str, folder: Path, source: Path, corpus: Sequence[str], real: Sequence[float]) -> list[Figure]:
    figures = []
    for seed in SEEDS:
        queries = folder / f"queries_{seed}.jsonl"
        wanted = [f"source.path={source}", f"output={queries}", f"count={COUNT}", f"seed={seed}"]
        spend([*RUNNER, "synthesize", *wanted], folder)
        made = _means(folder, f"made_{seed}", "dataset=synthetic", f"dataset.path={queries}", *corpus)
        pairs = combinations(range(len(real)), 2)
        discordant = sum((real[a] - real[b]) * (made[a] - made[b]) < 0 for a, b in pairs)
        what = f"retrievers in another order on made queries, {name}, seed {seed}"
        figures.append(Figure(what, "pairs of 10", discordant, MOST_DISCORDANT, 1))
    return figures


def _means(folder: Path, name: str, *dataset: str) -> list[float]:
    """Return the mean nDCG@10 of each retriever, in the same order for all datasets."""
    spend([*RUNNER, "-m", RETRIEVERS, *dataset, f"sweep.output={name}"], folder)
    with (folder / name / "leaderboard.csv").open(newline="") as file:
        rows = {(row["retriever"], row["encoder"]): float(row["nDCG@10"]) for row in csv.DictReader(file)}
    return [rows[which] for which in sorted(rows)]
