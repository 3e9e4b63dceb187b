"""Weights of terms in texts, from learned sparse models, and their pruning.

A term is a number: a token of the model's vocabulary. A text has the terms whose weight is above 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrievers.store import Arrays

Column = NDArray[Any]


class DamagedWeightsError(ValueError):
    """Stored weights or postings are inconsistent."""


_COLUMNS = ("offsets", "terms", "weights")


@dataclass(frozen=True, eq=False)
class TermWeights:
    """The terms of texts with their weights: for text i, the entries `offsets[i]` to `offsets[i + 1]`.

    `terms` (int32, ascending for each text) are below `n_terms`; `weights` are float32.
    """

    n_terms: int
    offsets: NDArray[np.int64]
    terms: NDArray[np.int32]
    weights: NDArray[np.float32]

    @classmethod
    def of(cls, arrays: Arrays) -> TermWeights:
        """Return stored weights; raises `DamagedWeightsError`, as compiled code does not check its bounds."""
        n_terms, offsets, terms, weights = int(arrays["n_terms"]), *(arrays[name] for name in _COLUMNS)
        fits = len(offsets) and offsets[0] == 0 and offsets[-1] == len(terms) == len(weights)
        if not fits or (np.diff(offsets) < 0).any() or (len(terms) and not 0 <= terms.min() <= terms.max() < n_terms):
            raise DamagedWeightsError("the stored weights of terms are damaged; set another store.path")
        return cls(n_terms, offsets, terms, weights)

    def to_arrays(self) -> Arrays:
        """Return the weights as arrays, in the form in which they are stored."""
        return {"n_terms": np.array(self.n_terms), **{name: getattr(self, name) for name in _COLUMNS}}

    def select(self, text: int) -> TermWeights:
        """Return the weights of one text."""
        entries = slice(*self.offsets[text : text + 2])
        offsets = np.array([0, entries.stop - entries.start], dtype=np.int64)
        return TermWeights(self.n_terms, offsets, self.terms[entries], self.weights[entries])

    def prune(self, most: int | None) -> TermWeights:
        """Keep the `most` heaviest terms of each text, None for all; of equal weights, the lower term number wins."""
        sizes = np.diff(self.offsets)
        if most is None or not len(sizes) or sizes.max() <= most:
            return self
        texts = np.repeat(np.arange(len(sizes)), sizes)
        order = np.lexsort((self.terms, -self.weights, texts))
        kept = np.zeros(len(order), dtype=np.bool_)
        kept[order[np.arange(len(order)) - self.offsets[texts] < most]] = True
        return TermWeights(self.n_terms, _sum_up(np.minimum(sizes, most)), self.terms[kept], self.weights[kept])


def join_weights(parts: Sequence[TermWeights]) -> TermWeights:
    """Return the weights of several lists of texts as those of one list."""
    sizes = np.concatenate([np.zeros(0, dtype=np.int64), *(np.diff(part.offsets) for part in parts)])
    return TermWeights(
        max((part.n_terms for part in parts), default=0),
        _sum_up(sizes),
        np.concatenate([np.zeros(0, dtype=np.int32), *(part.terms for part in parts)]),
        np.concatenate([np.zeros(0, dtype=np.float32), *(part.weights for part in parts)]),
    )


def _sum_up(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    offsets = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets
