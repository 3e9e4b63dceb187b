"""Search of many queries by compiled code: threads fill the rankings of parts of the queries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrievers.base import Corpus, Rankings, create_empty_rankings, list_filters
from retrievers.threads import count_threads, map_threads

Column = NDArray[Any]
Masks = tuple[NDArray[np.bool_], NDArray[np.int64]]
Fill = Callable[[slice, Masks, NDArray[np.int32], NDArray[np.float32]], None]
"""Searches a part of the queries: their filters, as masks of documents, and the rankings to fill."""

_FEWEST = 32
"""The fewest queries for which another thread saves more than it costs."""

_NO_MASKS: Masks = np.zeros((0, 0), dtype=np.bool_), np.zeros(0, dtype=np.int64)
"""The masks of queries without filters."""


def search_in_parts(queries: Sequence[str], corpus: Corpus, k: int, fill: Fill) -> Rankings:
    """Return the rankings of queries, which threads fill part by part."""
    filters, rankings = list_filters(queries), create_empty_rankings(len(queries), min(k, len(corpus)))

    def fill_part(part: slice) -> None:
        masks = corpus.fields.stack(filters[part]) if any(filters) else _NO_MASKS
        fill(part, masks, rankings.documents[part], rankings.scores[part])

    n_threads = max(min(count_threads(), len(queries) // _FEWEST), 1)
    n_parts = max(n_threads, -(-len(queries) // _FEWEST)) if any(filters) else n_threads  # few masks at a time
    bounds = (n * len(queries) // n_parts for n in range(n_parts + 1))
    list(map_threads(fill_part, (slice(*pair) for pair in pairwise(bounds)), n_threads))
    return rankings
