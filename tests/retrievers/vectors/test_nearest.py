"""Exact nearest neighbours: every row against a sort of all scores, in one block and in several."""

from __future__ import annotations

import numpy as np
import pytest

from retrievers.vectors import nearest
from retrievers.vectors.nearest import find_nearest


@pytest.mark.parametrize("l2", [False, True])
@pytest.mark.parametrize("block", [1, 60, nearest.BLOCK])
@pytest.mark.parametrize("depth", [1, 7, 40])
def test_find_nearest_returns_the_best_rows_in_order(
    l2: bool, block: int, depth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nearest, "BLOCK", block)
    random = np.random.default_rng(0)
    queries, vectors = (random.normal(size=(n, 5)).astype(np.float32) for n in (3, 40))
    exact = -((queries[:, None] - vectors) ** 2).sum(axis=2) if l2 else queries @ vectors.T
    scores, rows = find_nearest(queries, vectors, depth, l2)
    order = np.argsort(-exact, axis=1)[:, :depth]
    assert rows.tolist() == order.tolist()
    np.testing.assert_allclose(scores, np.take_along_axis(exact, order, axis=1), rtol=1e-4, atol=1e-4)
