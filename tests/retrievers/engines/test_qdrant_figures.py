"""Qdrant's engine reproduces figures: those of Cranfield were measured without this program.

Those of SciFact were measured with it: the exact vectors of the other measurement are not known.
"""

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
        pytest.param("scifact", {"index_type": "flat"}, 0.3974, None, marks=SCIFACT),
        pytest.param("scifact", {**HNSW, "ef_search": 10}, None, 0.888, marks=SCIFACT),
        pytest.param("scifact", {**HNSW, "ef_search": 16}, None, 0.941, marks=SCIFACT),
        pytest.param("scifact", {**HNSW, "ef_search": 64}, None, 0.995, marks=SCIFACT),
        *(
            pytest.param(
                "scifact", {"index_type": "flat", "quantization": quantization, **search}, ndcg, recall, marks=SCIFACT
            )
            for quantization, figures in {
                "int8": [(0.4000, 0.961), (0.3985, 0.961), (0.3974, 1.0)],
                "binary": [(0.3185, 0.454), (0.3589, 0.454), (0.3925, 0.697)],
                "product_x16": [(0.3706, 0.789), (0.3902, 0.789), (0.3974, 0.994)],
                "turbo_4bit": [(0.3924, 0.936), (0.3946, 0.936), (0.3974, 1.0)],
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
