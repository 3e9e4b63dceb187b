"""A randomised truncated SVD of a sparse matrix, and the scaling of its rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_OVERSAMPLES = 10


def factorise(
    matrix: Any, rank: int, iterations: int, seed: int  # noqa: ANN401 (any sparse matrix, which have no types)
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:  # fmt: skip
    """Return the largest singular values of a matrix with their vectors: left (n x rank), values, right (rank x m).

    Halko et al. (2011), Finding structure with randomness, algorithm 4.4 with LU in place of QR between iterations. The
    signs make the largest entry of each left vector positive, of each right one if there are more columns than rows.
    """
    from scipy import linalg

    is_wide = matrix.shape[0] < matrix.shape[1]
    tall = matrix.T.tocsr() if is_wide else matrix  # a product of rows is faster than one of columns
    basis = np.random.RandomState(seed).normal(size=(tall.shape[1], rank + _OVERSAMPLES))
    basis = basis.astype(matrix.dtype, copy=False)
    for _ in range(iterations):
        basis, _ = linalg.lu(tall @ basis, permute_l=True, overwrite_a=True, check_finite=False)
        basis, _ = linalg.lu(tall.T @ basis, permute_l=True, overwrite_a=True, check_finite=False)
    basis, _ = linalg.qr(tall @ basis, mode="economic", check_finite=False)
    within, values, right = linalg.svd(basis.T @ tall, full_matrices=False)
    left = basis @ within
    deciding = right if is_wide else left.T
    signs = np.sign(deciding[np.arange(len(deciding)), np.abs(deciding).argmax(axis=1)])
    left, right = left * signs, right * signs[:, np.newaxis]
    if is_wide:
        left, right = right.T, left.T
    return left[:, :rank], values[:rank], right[:rank]


def scale_rows(matrix: csr_matrix) -> csr_matrix:
    """Return a sparse matrix with rows of length 1; rows without entries stay."""
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    lengths = np.sqrt(np.bincount(rows, weights=matrix.data**2, minlength=matrix.shape[0]))
    scaled = matrix.copy()
    scaled.data = matrix.data / lengths[rows]
    return scaled
