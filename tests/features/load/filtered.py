"""A collection with filters of two selectivities, on which approximate indexes lose hits."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

SIZE, QUERIES = 600, 24


def write_filtered(folder: Path) -> list[str]:
    """Write it in BEIR's layout, and return the overrides that read it; every second query has the broader filter."""
    rng, words = np.random.default_rng(0), [f"w{number}" for number in range(300)]
    topics = [rng.choice(words, 25, replace=False) for _ in range(20)]
    kinds, languages = rng.integers(10, size=SIZE).tolist(), rng.integers(2, size=SIZE).tolist()
    texts = [" ".join([*rng.choice(topics[i % 20], 12), *rng.choice(words, 6)]) for i in range(SIZE)]
    (folder / "qrels").mkdir(parents=True)
    documents = [
        {"_id": f"d{i}", "text": text, "metadata": {"kind": kinds[i], "language": languages[i]}}
        for i, text in enumerate(texts)
    ]
    queries, qrels = [], ["query-id\tcorpus-id\tscore"]
    for query in range(QUERIES):
        gold = int(rng.integers(SIZE))
        own = {"language": languages[gold]} if query % 2 else {"kind": kinds[gold]}
        queries.append({"_id": f"q{query}", "text": " ".join(texts[gold].split()[:8]), "metadata": {"filter": own}})
        qrels.append(f"q{query}\td{gold}\t1")
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, documents)))
    (folder / "queries.jsonl").write_text("\n".join(map(json.dumps, queries)))
    (folder / "qrels" / "test.tsv").write_text("\n".join(qrels))
    data = ["dataset=beir", f"dataset.path={folder}", "dataset.filter_field=filter", "encoder=lsa", "tracking=none"]
    return [*data, "metrics.depth=10", "metrics.k_values=[1,10]", "statistics.permutations=100"]


def read_table(output: str, title: str) -> list[list[str]]:
    """Return the cells of a table in the terminal."""
    lines = output.partition(f"\n{title}\n")[2].split("\n\n")[0].splitlines()[2:]
    rows = [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in lines]
    return [row for row in rows if len(row) > 1]  # a line of text may follow
