"""What stop words do to BM25, with the stemmer of each language, on the collections of real data.

`python -m benchmarks.stop_words` prints the mean of each measure with stop words and without, and the p-value of their
difference by paired random flips. `DATA` (see `benchmarks.cases`) names the folder; further collections are read too if
their names end with a language code, such as `xquad-es`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.cases import DATA
from retrievers.lexical.analyzer import Analyzer
from retrievers.lexical.bm25 import BM25
from retrievers.search import search_cached
from retrievers.store import MemoryStore
from runner.datasets.beir import Beir
from runner.datasets.dataset import Dataset
from runner.evaluation.language import ANALYZERS
from runner.metrics.measures import parse
from runner.metrics.scores import Grader

MEASURES = tuple(map(parse, ("nDCG@10", "R@10")))
FLIPS = 10_000


def measure_stop_words(dataset: Dataset, language: str) -> Iterator[tuple[str, float, float, float]]:
    """Yield each measure with its means with and without stop words, and the p-value of their difference."""
    grader = Grader(dataset.judgments, len(dataset.queries), len(dataset.corpus))
    values = []
    for words in (language, None):
        retriever = BM25(analyzer=Analyzer(stemmer=language, stopwords=words))
        depth = min(100, len(dataset.corpus))
        rankings = search_cached(retriever, dataset.corpus, dataset.queries.inputs, depth, MemoryStore())
        values.append(grader.score(rankings, MEASURES).values)
    for measure, with_words, without in zip(MEASURES, *values, strict=True):
        differences = (with_words - without)[~np.isnan(with_words)]
        signs = np.random.default_rng(0).choice((-1, 1), size=(FLIPS, len(differences)))
        extreme = np.abs(signs @ differences) >= abs(differences.sum()) - 1e-9
        yield str(measure), np.nanmean(with_words), np.nanmean(without), (1 + extreme.sum()) / (1 + FLIPS)


def main() -> None:
    """Print a row for each collection and measure."""
    for folder in sorted(path for path in DATA.iterdir() if (path / "corpus.jsonl").is_file()):
        code = folder.name.rpartition("-")[2] if "-" in folder.name else "en"
        if (language := ANALYZERS.get(code)) is not None:
            for name, with_words, without, p in measure_stop_words(Beir(path=str(folder)).load(), language):
                print(f"{folder.name:12} {language:9} {name:8} {with_words:.4f} {without:.4f} {p:.4f}")


if __name__ == "__main__":
    main()
