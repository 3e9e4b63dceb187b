"""How well the predictors of query performance agree with nDCG@10, on the collections of real data.

`python -m benchmarks.predictors [COLLECTION ...]` prints Kendall's tau-b of each predictor with nDCG@10, searched by
BM25 and by LSA with 128 dimensions to a depth of 100, by default on all collections; `*` marks a p-value below 0.05
after Holm's correction over the predictors. `DATA` (see `benchmarks.cases`) names the folder; a name that ends with a
language code chooses its stemmer.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from benchmarks.cases import DATA
from retrievers.base import Retriever
from retrievers.encoders.lsa import LSAEncoder
from retrievers.lexical.analyzer import Analyzer
from retrievers.lexical.bm25 import BM25
from retrievers.search import search_cached
from retrievers.store import MemoryStore
from retrievers.vectors.dense import Dense
from runner.datasets.beir import Beir
from runner.datasets.dataset import Dataset
from runner.evaluation.language import ANALYZERS
from runner.metrics.measures import parse
from runner.metrics.scores import Grader
from runner.statistics.prediction import PREDICTORS, Correlation, correlations, predict

MEASURE, DEPTH = parse("nDCG@10"), 100


def list_retrievers(analyzer: Analyzer) -> Iterator[tuple[str, Retriever]]:
    """Yield the name and the settings of each search."""
    yield "BM25", BM25(analyzer=analyzer)
    yield "LSA", Dense(LSAEncoder(analyzer, dimensions=128))


def measure_predictors(dataset: Dataset, retriever: Retriever) -> dict[str, Correlation]:
    """Return how each predictor agrees with the measure over the queries."""
    depth = min(DEPTH, len(dataset.corpus))
    rankings = search_cached(retriever, dataset.corpus, dataset.queries.inputs, depth, MemoryStore())
    grader = Grader(dataset.judgments, len(dataset.queries), len(dataset.corpus))
    lengths = [len(text.split()) for text in dataset.queries.texts]
    return correlations(predict(rankings, lengths), grader.score(rankings, [MEASURE]).values[0])


def main() -> None:
    """Print a row for each collection and retriever."""
    print(f"| collection | retriever | queries | {' | '.join(PREDICTORS)} |\n|---|---|--:|{'--:|' * len(PREDICTORS)}")
    for name in sys.argv[1:] or sorted(path.parent.name for path in DATA.glob("*/corpus.jsonl")):
        code = name.rpartition("-")[2] if "-" in name else "en"
        if (language := ANALYZERS.get(code)) is None:
            continue
        dataset = Beir(path=str(DATA / name)).load()
        for title, retriever in list_retrievers(Analyzer(stemmer=language, stopwords=language)):
            found = measure_predictors(dataset, retriever)
            cells = [f"{c.kendall:.2f}{'*' if c.p_value < 0.05 else ''}" for c in found.values()]
            count = max(c.queries for c in found.values())
            print(f"| {name} | {title} | {count} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
