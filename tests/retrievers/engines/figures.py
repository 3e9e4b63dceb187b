"""The engines on real collections: nDCG@10 and recall of the exact ten, as measured without this program.

The vectors only give the engines something to hold: TF-IDF and a truncated SVD of 128 dimensions, by scikit-learn, with
the settings of those measurements.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

from retrievers.base import Corpus, Retriever
from retrievers.encoders.base import Embedded, Vectors
from retrievers.store import Key, MemoryStore, Store
from retrievers.vectors.vector_search import VectorSearcher
from retrievers.work import WorkKind
from runner.datasets.beir import Beir
from runner.evaluation.bench import Bench
from runner.evaluation.experiment import Experiment
from runner.evaluation.result import Result
from runner.metrics.settings import MetricSettings

T = TypeVar("T")

NDCG, RECALL, EXACT = 0.005, 0.01, 0.0005
"""The largest differences from the figures: of an index from nDCG and recall, and of an exact search from nDCG."""

TOP_TEN = MetricSettings(measures=("nDCG@10",), depth=10, k_values=(10,))


@dataclass(frozen=True)
class TermSvd:
    """TF-IDF and a truncated SVD, fitted on the documents."""

    dimensions: int = 128

    def embed(self, corpus: Corpus, store: Store) -> Embedded:
        def fit() -> tuple[Vectors, Any, Any]:
            terms = TfidfVectorizer(sublinear_tf=True, stop_words="english", min_df=2)
            svd = TruncatedSVD(self.dimensions, random_state=0)
            return svd.fit_transform(terms.fit_transform(corpus.contents())).astype(np.float32), terms, svd

        documents, terms, svd = store.share(
            Key.of(WorkKind("term svd", "index"), "retrievers.search", corpus=corpus.fingerprint), fit
        )

        def embed_queries(texts: Sequence[str], store: Store) -> tuple[Vectors, NDArray[np.float32]]:
            vectors = svd.transform(terms.transform(texts)).astype(np.float32)
            return vectors, np.zeros(len(texts), dtype=np.float32)

        return Embedded([documents], embed_queries)


def evaluate(bench: Bench, collections: Path, name: str, retriever: Retriever) -> Result:
    source = Beir(path=str(collections / name))
    return bench.evaluate(Experiment("x", "x", retriever, source, TOP_TEN, {"choices": {}}, {}))


def check(result: Result, ndcg: float | None, recall: float | None, within: float = NDCG) -> None:
    if ndcg is not None:
        assert result.means["nDCG@10"] == pytest.approx(ndcg, abs=within)
    if recall is not None:
        assert result.diagnostics["index_recall_at_10"] == pytest.approx(recall, abs=RECALL)
        assert result.diagnostics["short_answers_at_10"] == 0


class OneBuild(MemoryStore):
    """The store of one build of an index; it shares everything else with other builds."""

    def __init__(self, shared: MemoryStore) -> None:
        super().__init__()
        self._shared = shared

    def share(self, key: Key, make: Callable[[], T]) -> T:
        return super().share(key, make) if "index" in key.kind.name else self._shared.share(key, make)


def check_mean_recall(
    collections: Path, name: str, builds: int, create: Callable[[int, int], Retriever], figures: Mapping[int, Any]
) -> None:
    """Compare the mean recall of builds with figures, to `RECALL` unless they have an interval of their own.

    `figures` are by the effort of a search; `create` makes the retriever of a build and an effort.
    """
    dataset, shared = Beir(path=str(collections / name)).load(), MemoryStore()
    recalls: dict[int, list[float]] = {effort: [] for effort in figures}
    for build in range(builds):
        store = OneBuild(shared)
        for effort in figures:
            searcher = create(build, effort).index(dataset.corpus, store)
            assert isinstance(searcher, VectorSearcher)
            diagnostics = searcher.diagnostics(dataset.queries.inputs, 10, store)
            recalls[effort].append(diagnostics["index_recall_at_10"])
            assert diagnostics["short_answers_at_10"] == 0
    means = {effort: float(np.mean(values)) for effort, values in recalls.items()}
    assert means == {
        effort: pytest.approx(figure, abs=RECALL) if isinstance(figure, float) else figure
        for effort, figure in figures.items()
    }


SCIFACT = pytest.mark.slow(reason="factorises five thousand documents")
