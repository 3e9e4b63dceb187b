"""The randomised SVD and the scaling of rows, bit for bit against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import random_array
from threadpoolctl import threadpool_limits

from retrievers.encoders.svd import factorise, scale_rows

extmath = pytest.importorskip("sklearn.utils.extmath", reason="scikit-learn, the oracle, is not installed")
preprocessing = pytest.importorskip("sklearn.preprocessing", reason="scikit-learn, the oracle, is not installed")


@pytest.mark.parametrize("shape", [(30, 80), (80, 30), (20, 20)])
def test_a_sparse_matrix_is_factorised_as_by_scikit_learn(shape: tuple[int, int]) -> None:
    matrix = random_array(shape, density=0.2, format="csr", rng=np.random.default_rng(1))
    with threadpool_limits(1):
        expected = extmath.randomized_svd(matrix, 6, n_iter=5, random_state=3)
        actual = factorise(matrix, 6, 5, seed=3)
    assert all(np.array_equal(*pair) for pair in zip(expected, actual, strict=True))


def test_rows_get_length_1_and_empty_rows_stay() -> None:
    matrix = random_array((30, 40), density=0.05, format="csr", rng=np.random.default_rng(2))
    assert 0 in np.diff(matrix.indptr)
    assert np.array_equal(scale_rows(matrix).toarray(), preprocessing.normalize(matrix).toarray())
