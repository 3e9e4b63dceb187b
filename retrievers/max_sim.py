"""MaxSim: the score of a document is the sum, over the tokens of a query, of the largest dot product with its tokens.

Khattab and Zaharia (2020), ColBERT: efficient and effective passage search via contextualized late interaction.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from retrievers.base import Rankings, rank
from retrievers.encoders.base import Vectors
from retrievers.encoders.multi_vector import TokenVectors

_BLOCK = 1 << 22
"""How many dot products are held at a time: 16 MiB."""

_SPARE = 16
"""How many candidates beyond the hits are scored again in double precision, at first."""


def score_max_sim(query: Vectors, document: Vectors) -> float:
    """Return the score of a document, in double precision; both arguments need at least one token."""
    return float((query.astype(np.float64) @ document.astype(np.float64).T).max(axis=1).sum())


def rank_max_sim(query: Vectors, documents: TokenVectors, k: int, tie_order: NDArray[np.int32]) -> Rankings:
    """Return the k best documents for one query, by the tie rule, out of those with a token.

    The last digits of products in single precision depend on the other documents of a block. So the best candidates are
    scored again in double precision, more of them if another document could still be among the best.
    """
    rows = np.flatnonzero(np.diff(documents.offsets)).astype(np.int32)
    rough = _score_all(query, documents, rows)
    # The largest error of a sum of products in single precision.
    reach = float(np.linalg.norm(query, axis=1).sum()) * documents.largest_norm
    error = query.shape[1] * np.finfo(np.float32).eps * reach
    depth = k + _SPARE
    while True:
        depth = min(depth, len(rows))
        places = np.argpartition(-rough, depth - 1)[:depth] if depth else np.zeros(0, dtype=np.int64)
        scores = [score_max_sim(query, documents[row]) for row in rows[places].tolist()]
        best = rank(rows[places][None], np.array([scores], dtype=np.float32), tie_order, k)
        if depth == len(rows) or best.scores[0, -1] > rough[places].min() + error:
            return best
        depth *= 4


def _score_all(query: Vectors, documents: TokenVectors, rows: NDArray[np.int32]) -> NDArray[np.float32]:
    """Return the score of each document with a token, in single precision."""
    scores = np.empty(len(rows), dtype=np.float32)
    offsets = np.append(documents.offsets[rows], documents.offsets[-1])
    size, first = max(_BLOCK // len(query), 1), 0
    while first < len(rows):
        last = max(int(np.searchsorted(offsets, offsets[first] + size, side="right")) - 1, first + 1)
        products = query @ documents.vectors[offsets[first] : offsets[last]].T
        scores[first:last] = np.maximum.reduceat(products, offsets[first:last] - offsets[first], axis=1).sum(axis=0)
        first = last
    return scores
