"""The engines on real collections: nDCG@10 and recall of the exact ten, as measured without this program.

The vectors only give the engines something to hold: TF-IDF and a truncated SVD of 128 dimensions, by scikit-learn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

from retrievers.base import Corpus, Retriever
from retrievers.encoders.base import Embedded, Vectors
from retrievers.store import Key, Store
from runner.datasets.beir import Beir
from runner.evaluation import Bench
from runner.experiment import Experiment
from runner.metrics.settings import MetricSettings
from runner.result import Result

NDCG, RECALL, CLUSTERED = 0.005, 0.02, 0.06
"""The largest differences from the figures. Builds are random: lists of clusters differ more than graphs."""

TOP_TEN = MetricSettings(measures=("nDCG@10",), depth=10, k_values=(10,))


@dataclass(frozen=True)
class TermSvd:
    """TF-IDF and a truncated SVD, fitted on the documents."""

    dimensions: int = 128

    def embed(self, corpus: Corpus, store: Store) -> Embedded:
        def fit() -> tuple[Vectors, Any, Any]:
            terms = TfidfVectorizer(sublinear_tf=True)
            svd = TruncatedSVD(self.dimensions, random_state=42)
            return svd.fit_transform(terms.fit_transform(corpus.contents())).astype(np.float32), terms, svd

        documents, terms, svd = store.share(Key.of("term svd", [], corpus=corpus.fingerprint), fit)

        def embed_queries(texts: Sequence[str], store: Store) -> tuple[Vectors, NDArray[np.float32]]:
            vectors = svd.transform(terms.transform(texts)).astype(np.float32)
            return vectors, np.zeros(len(texts), dtype=np.float32)

        return Embedded([documents], embed_queries)


def evaluate(bench: Bench, collections: Path, name: str, retriever: Retriever) -> Result:
    source = Beir(path=str(collections / name))
    return bench.evaluate(Experiment("x", "x", retriever, source, TOP_TEN, {"choices": {}}, {}))  # type: ignore[arg-type]


def check(result: Result, ndcg: float | None, recall: float | None, within: float = RECALL) -> None:
    if ndcg is not None:
        assert result.means["nDCG@10"] == pytest.approx(ndcg, abs=NDCG)
    if recall is not None:
        assert result.diagnostics["index_recall_at_10"] == pytest.approx(recall, abs=within)
        assert result.diagnostics["short_answers_at_10"] == 0


SCIFACT = pytest.mark.slow(reason="factorises five thousand documents")
