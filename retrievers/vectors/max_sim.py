"""MaxSim: the score of a document is the sum, over the tokens of a query, of the largest dot product with its tokens.

Khattab and Zaharia (2020), ColBERT: efficient and effective passage search via contextualized late interaction.
"""

from __future__ import annotations

import numpy as np

from retrievers.encoders.base import Vectors


def score_max_sim(query: Vectors, document: Vectors) -> float:
    """Return the score of a document, in double precision; both arguments need at least one token."""
    return float((query.astype(np.float64) @ document.astype(np.float64).T).max(axis=1).sum())
