"""How measures of several chunkings depend on the threshold of gold spans, on generated documents.

Each of 200 documents has 40 lines of words from a long-tailed vocabulary. Each of 300 queries draws five words of a
span of one to four lines. BM25 searches. `python -m benchmarks.simulations.span_thresholds` prints two tables.
"""

from __future__ import annotations

import sys

import numpy as np

from retrievers.base import Corpus, Rankings
from retrievers.lexical.bm25 import BM25
from retrievers.store import MemoryStore
from runner.datasets.anchoring import Anchor
from runner.datasets.chunking import Sentences, Tokens
from runner.datasets.dataset import Dataset
from runner.datasets.overlap import attach_spans
from runner.datasets.spans import AnchoredSpan, GoldSpan
from runner.evaluation.span_sensitivity import THRESHOLDS, measure_by_threshold
from runner.metrics.measures import parse
from runner.metrics.scores import Grader
from runner.metrics.tokens import build_token_gold

DOCUMENTS, LINES, QUERIES, DEPTH = 200, 40, 300, 100
CHUNKINGS = (Tokens(16), Tokens(64), Tokens(64, 32), Sentences(64), Tokens(256))
MEASURES = tuple(
    map(parse, ("TokenR@5", "TokenIoU@5", "TokenR@tokens=256", "TokenP@tokens=256", "TokenIoU@tokens=256"))
)


def draw_dataset(seed: int = 0) -> Dataset:
    """Return documents, queries and gold spans."""
    rng = np.random.default_rng(seed)
    weights = 1 / np.arange(10, 3010)
    words = [f"w{number}" for number in range(len(weights))]
    lines = [
        [
            " ".join(rng.choice(words, rng.integers(8, 16), p=weights / weights.sum())).capitalize() + "."
            for _ in range(LINES)
        ]
        for _ in range(DOCUMENTS)
    ]
    texts, spans, queries = ["\n".join(own) for own in lines], [], {}
    for number in range(QUERIES):
        document, first, length = rng.integers(DOCUMENTS), rng.integers(LINES - 4), rng.integers(1, 5)
        passage = "\n".join(lines[document][first : first + length])
        start = sum(len(line) + 1 for line in lines[document][:first])
        queries[f"q{number}"] = " ".join(rng.choice(passage.replace(".", "").split(), 5))
        span = GoldSpan(f"q{number}", f"d{document}")
        spans.append(AnchoredSpan(span, Anchor(start, start + len(passage), "exact")))
    ids = [f"d{number}" for number in range(DOCUMENTS)]
    qrels = {anchored.span.query: [anchored.span.document] for anchored in spans}
    whole = Dataset.of(Corpus(ids, texts), queries, qrels, name="generated")
    return attach_spans(whole, spans, (), 0.5)


def search(dataset: Dataset) -> Rankings:
    """Return the rankings of BM25."""
    rankings: Rankings = BM25().index(dataset.corpus, MemoryStore()).search(dataset.queries.inputs, DEPTH)
    return rankings


def main() -> int:
    """Print nDCG by threshold, and measures of tokens, for each chunking."""
    whole, primary = draw_dataset(), parse("nDCG@10")
    rows = []
    for chunking in CHUNKINGS:
        dataset = whole.split_documents(chunking)
        rankings = search(dataset)
        n = len(dataset.corpus)
        grader = Grader(dataset.judgments, QUERIES, n, None, dataset.judged_ids, build_token_gold(dataset))
        means = grader.score(rankings, MEASURES).means()
        rows.append((chunking, measure_by_threshold(dataset, rankings, primary).values(), means.values()))
    for titles, column in (([f"nDCG@10 at {t:g}" for t in THRESHOLDS], 1), ([str(m) for m in MEASURES], 2)):
        print(f"| chunking | {' | '.join(titles)} |\n|---{'|--:' * len(titles)}|")
        for row in rows:
            print(f"| `{row[0]}` | {' | '.join(f'{value:.3f}' for value in row[column])} |")
        print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
