"""Qdrant's engine reproduces figures that were measured without this program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from retrievers.engines.qdrant import Qdrant
from runner.datasets.beir import Beir
from runner.evaluation.bench import Bench
from runner.store.disk import DiskStore
from tests.retrievers.engines.figures import EXACT, SCIFACT, TermSvd, check, check_mean_recall, evaluate

pytest.importorskip("qdrant_edge", reason="qdrant-edge-py is not installed: pip install 'retrieval-runner[qdrant]'")


LONG = pytest.mark.slow(reason="stores the words of five thousand documents")


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(DiskStore(tmp_path_factory.mktemp("store")))


@pytest.mark.parametrize(("name", "ndcg"), [("cranfield", 0.3834), pytest.param("scifact", 0.4046, marks=SCIFACT)])
def test_an_exact_search_has_the_measured_ndcg(bench: Bench, collections: Path, name: str, ndcg: float) -> None:
    check(evaluate(bench, collections, name, Qdrant(TermSvd(), index_type="flat")), ndcg, None, EXACT)


# The recall of a build is random. With the mean of these numbers of builds, the test fails by chance with a probability
# of at most 2e-6 on Cranfield and 5e-5 on SciFact. These follow from the mean and the standard deviation of a build at
# ef_search=10, which varies most: 0.9547 and 0.0038 (8 builds) on Cranfield, 0.9026 and 0.0059 (5 builds) on SciFact.
@pytest.mark.parametrize(
    ("name", "builds", "figures"),
    [
        ("cranfield", 4, {10: 0.956, 16: 0.982, 64: 1.0}),
        pytest.param("scifact", 12, {10: 0.906, 16: 0.952, 64: 0.998}, marks=SCIFACT),
    ],
)
def test_graphs_have_the_measured_recall_in_the_mean(
    collections: Path, name: str, builds: int, figures: dict[int, float]
) -> None:
    def create(build: int, ef_search: int) -> Qdrant:
        return Qdrant(TermSvd(), m=16, ef_construct=100, ef_search=ef_search)

    check_mean_recall(collections, name, builds, create, figures)


@pytest.mark.parametrize(
    ("name", "own", "ndcg"),
    [
        ("cranfield", {"rank": "text", "language": None, "k1": 0.9, "b": 0.4}, 0.3230),
        ("cranfield", {"rank": "text", "language": None}, 0.3416),
        ("cranfield", {"rank": "bm25", "mean_length": "words"}, 0.3685),
        pytest.param("scifact", {"rank": "text", "language": None, "k1": 0.9, "b": 0.4}, 0.6601, marks=LONG),
        pytest.param("scifact", {"rank": "text", "language": None}, 0.6617, marks=LONG),
        pytest.param("scifact", {"rank": "bm25", "mean_length": "words"}, 0.6846, marks=LONG),
    ],
)
def test_words_have_the_measured_ndcg(
    bench: Bench, collections: Path, name: str, own: dict[str, Any], ndcg: float
) -> None:
    if "mean_length" in own:  # was measured by the spaces in a text; the engine counts 103 of 177 words on Cranfield
        texts = list(Beir(path=str(collections / name)).load().corpus.contents())
        own = {**own, "mean_length": sum(len(text.split()) for text in texts) / len(texts)}
    check(evaluate(bench, collections, name, Qdrant(**own)), ndcg, None)


@SCIFACT
@pytest.mark.parametrize(
    ("quantization", "search", "ndcg", "recall"),
    [
        (quantization, search, ndcg, recall)
        for quantization, figures in {
            "int8": [(0.4029, 0.970), (0.4033, 0.970), (0.4046, 1.0)],
            # With rescoring alone, nDCG@10 was measured as 0.351, and is 0.3615 here, though the recall is equal. Codes
            # of 128 bits have ties at the tenth place, which the order of the documents breaks: 80 random orders had
            # 0.351 to 0.367. So a figure in one order is not compared with that in another.
            "binary": [(0.311, 0.491), (None, 0.491), (0.378, 0.741)],
            "product_x16": [(0.385, 0.818), (0.400, 0.818), (0.403, 0.993)],
            "turbo_4bit": [(0.402, 0.945), (0.403, 0.945), (0.405, 1.0)],
        }.items()
        for search, (ndcg, recall) in zip(
            ({"rescore": False}, {"rescore": True}, {"rescore": True, "oversampling": 3.0}), figures, strict=True
        )
    ],
)
def test_compression_has_the_measured_loss(
    bench: Bench, collections: Path, quantization: Any, search: dict[str, Any], ndcg: float | None, recall: float
) -> None:
    own = Qdrant(TermSvd(), index_type="flat", quantization=quantization, **search)
    check(evaluate(bench, collections, "scifact", own), ndcg, recall)
