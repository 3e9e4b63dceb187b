"""Qdrant's engine reproduces what was measured without this program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from retrievers.engines.qdrant import Qdrant
from runner.evaluation import Bench
from runner.store.disk import DiskStore
from tests.retrievers.engines.figures import SCIFACT, TermSvd, check, evaluate


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(DiskStore(tmp_path_factory.mktemp("store")))


HNSW: dict[str, Any] = {"m": 16, "ef_construct": 100}


@pytest.mark.parametrize(
    ("name", "own", "ndcg", "recall"),
    [
        ("cranfield", {"index_type": "flat"}, 0.3834, None),
        ("cranfield", {**HNSW, "ef_search": 10}, None, 0.956),
        ("cranfield", {**HNSW, "ef_search": 16}, None, 0.982),
        ("cranfield", {**HNSW, "ef_search": 64}, 0.3834, 1.0),
        pytest.param("scifact", {"index_type": "flat"}, 0.4046, None, marks=SCIFACT),
        pytest.param("scifact", {**HNSW, "ef_search": 10}, None, 0.906, marks=SCIFACT),
        pytest.param("scifact", {**HNSW, "ef_search": 16}, None, 0.952, marks=SCIFACT),
        pytest.param("scifact", {**HNSW, "ef_search": 64}, None, 0.998, marks=SCIFACT),
        *(
            pytest.param(
                "scifact", {"index_type": "flat", "quantization": quantization, **search}, ndcg, recall, marks=SCIFACT
            )
            for quantization, figures in {
                "int8": [(0.4029, 0.970), (0.4033, 0.970), (0.4046, 1.0)],
                "binary": [(0.311, 0.491), (0.351, 0.491), (0.378, 0.741)],
                "product_x16": [(0.385, 0.818), (0.400, 0.818), (0.403, 0.993)],
                "turbo_4bit": [(0.402, 0.945), (0.403, 0.945), (0.405, 1.0)],
            }.items()
            for search, (ndcg, recall) in zip(
                ({"rescore": False}, {"rescore": True}, {"rescore": True, "oversampling": 3.0}), figures, strict=True
            )
        ),
    ],
)
def test_qdrant(
    bench: Bench, collections: Path, name: str, own: dict[str, Any], ndcg: float | None, recall: float | None
) -> None:
    pytest.importorskip("qdrant_edge", reason="qdrant-edge-py is not installed")
    check(evaluate(bench, collections, name, Qdrant(TermSvd(), **own)), ndcg, recall)
