"""Find copies and near-duplicates among texts: the similarity of pairs, and groups of similar texts.

The similarity is the exact Jaccard index of sets of shingles, runs of consecutive words (Broder 1997, On the
resemblance and containment of documents). Nothing here depends on documents, queries or judgments.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count, pairwise

import numpy as np
from numpy.typing import NDArray

from retrievers.lexical.analyzer import Analyzer
from retrievers.lexical.term_ids import iter_term_ids

SIZE = 3
"""The number of words of a shingle."""

ALIKE = 0.8
"""The default similarity from which texts are near-duplicates."""

WORDS = Analyzer(stemmer=None, stopwords=None)
"""Splits texts into words without stemming; scripts without spaces, such as Chinese, into pairs of characters."""

_PADDING = 0
_ROUNDING = 1e-9


def similarity(first: str, second: str, size: int = SIZE) -> float:
    """Return the similarity of two texts from 0 to 1; 1 if they have the same shingles."""
    return Shingled.of([first, second], size).similarity(0, 1)


def groups(texts: Iterable[str], least: float = ALIKE, size: int = SIZE) -> list[tuple[int, ...]]:
    """Return groups of similar texts as ascending positions, ordered by their first text.

    Two texts are in one group if their similarity is at least `least` (above 0), or if other such texts link them.
    """
    return Shingled.of(texts, size).groups(least)


@dataclass(frozen=True, eq=False)
class Shingled:
    """Texts as sets of shingles: ascending numbers, those of text i from `starts[i]` to `starts[i + 1]`.

    The rarer a shingle is among the texts, the lower its number. A text with fewer words than a shingle is a single
    shingle, and so is a text without words, which is a copy of any other such text. `words` (n,) is the number of words
    of each text.
    """

    shingles: NDArray[np.int64]
    starts: NDArray[np.int64]
    words: NDArray[np.int64]

    @staticmethod
    def of(texts: Iterable[str], size: int = SIZE) -> Shingled:
        """Split texts into shingles of `size` words, ignoring case and punctuation."""
        known: defaultdict[str, int] = defaultdict(count(_PADDING + 1).__next__)
        words, n_words = _count_words(texts, known.__getitem__)
        missing = np.maximum(size - n_words, 0)
        words = np.insert(words, np.repeat(np.cumsum(n_words), missing), _PADDING)
        windows = _windows(words, len(known) + 1, size)
        of_text = np.repeat(np.arange(len(n_words)), n_words + missing)
        inside = of_text[: len(windows)] == of_text[size - 1 :] if len(windows) else np.zeros(0, dtype=np.bool_)
        return Shingled(*_sets(of_text[: len(windows)][inside], windows[inside], len(n_words)), n_words)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def of_text(self, position: int) -> NDArray[np.int64]:
        """Return the shingles of a text."""
        return self.shingles[self.starts[position] : self.starts[position + 1]]

    def similarity(self, first: int, second: int) -> float:
        """Return the Jaccard index of the shingles of two texts."""
        a, b = self.of_text(first), self.of_text(second)
        common = len(np.intersect1d(a, b, assume_unique=True))
        return common / (len(a) + len(b) - common)

    def groups(self, least: float = ALIKE) -> list[tuple[int, ...]]:
        """Return groups of similar texts, as the function `groups` does."""
        leader = list(range(len(self)))

        def leading(text: int) -> int:
            while leader[text] != text:
                leader[text] = text = leader[leader[text]]
            return text

        for text, first in self._copies():
            leader[text] = first
        for first, second in self._candidates(least):
            a, b = leading(first), leading(second)
            if a != b and self.similarity(first, second) >= least - _ROUNDING:
                leader[max(a, b)] = min(a, b)
        together: defaultdict[int, list[int]] = defaultdict(list)
        for text in range(len(self)):
            together[leading(text)].append(text)
        return [tuple(texts) for texts in together.values() if len(texts) > 1]

    def _copies(self) -> Iterator[tuple[int, int]]:
        """Yield each text with the same shingles as an earlier text, with the first of these."""
        seen: dict[bytes, int] = {}
        for text in range(len(self)):
            first = seen.setdefault(self.of_text(text).tobytes(), text)
            if first != text:
                yield text, first

    def _candidates(self, least: float) -> Iterator[tuple[int, int]]:
        """Yield all pairs of texts that may be similar, except copies; no similar pair is missed.

        If two sets have a similarity of t, neither is smaller than t times the other. Of n shingles in a common order,
        the first n - ceil(t n) + 1 of both sets share at least one (Bayardo, Ma and Srikant 2007, Scaling up all pairs
        similarity search). With rare shingles first, few other pairs share one.
        """
        copies = {text for text, _ in self._copies()}
        having: defaultdict[int, list[int]] = defaultdict(list)
        sizes = np.diff(self.starts).tolist()
        for text in sorted(set(range(len(self))) - copies, key=lambda text: (sizes[text], text)):
            size = sizes[text]
            fewest = math.ceil(least * size - _ROUNDING)
            first = self.of_text(text)[: size - fewest + 1]
            met: dict[int, None] = {}
            for shingle in first[first >= self._shared_from].tolist():
                others = having[shingle]  # smaller sets first
                met |= dict.fromkeys(others[bisect_left(others, fewest, key=sizes.__getitem__) :])
                others.append(text)
            yield from ((other, text) for other in met)

    @cached_property
    def _shared_from(self) -> int:
        """Return the number from which shingles occur in more than one text."""
        counts = np.bincount(self.shingles)
        return int(np.searchsorted(counts, 2))


def most_alike(shingled: Shingled, text: int, others: Sequence[int]) -> float:
    """Return the similarity of a text to the most similar of others; 0 if there are none."""
    return max((shingled.similarity(text, other) for other in others), default=0.0)


def word_counts(texts: Iterable[str]) -> NDArray[np.int64]:
    """Return the number of words of each text (n,)."""
    return _count_words(texts, lambda _: _PADDING)[1]


def _count_words(texts: Iterable[str], number: Callable[[str], int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the numbers of the words of all texts, concatenated, and the number of words of each text."""
    chunks = [(chunk.terms, chunk.lengths) for chunk in iter_term_ids(texts, WORDS, number)]
    nothing = np.zeros(0, dtype=np.int64)
    return np.concatenate([nothing, *(c[0] for c in chunks)]), np.concatenate([nothing, *(c[1] for c in chunks)])


def _windows(words: NDArray[np.int64], n_words: int, size: int) -> NDArray[np.int64]:
    """Return a number for each run of `size` words; equal runs have equal numbers."""
    windows, n_windows = words, n_words
    for offset in range(1, size):
        if n_windows * n_words > np.iinfo(np.int64).max:  # renumber to make room for the next word
            known, windows = np.unique(windows, return_inverse=True)
            n_windows = len(known)
        windows = windows[:-1] * n_words + words[offset:]
        n_windows *= n_words
    return windows


def _sets(
    of_text: NDArray[np.int64], windows: NDArray[np.int64], n_texts: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct windows of each text, numbered by how many texts have them, and their starts (n + 1,)."""
    known, numbers = np.unique(windows, return_inverse=True)
    pairs = np.sort(of_text * max(len(known), 1) + numbers)
    new = np.ones(len(pairs), dtype=np.bool_)
    new[1:] = pairs[1:] != pairs[:-1]
    of_text, numbers = np.divmod(pairs[new], max(len(known), 1))
    order = np.argsort(np.bincount(numbers, minlength=len(known)), kind="stable")
    by_rarity = np.empty(len(known), dtype=np.int64)
    by_rarity[order] = np.arange(len(known))
    shingles = by_rarity[numbers]
    starts = np.searchsorted(of_text, np.arange(n_texts + 1))
    for begin, end in pairwise(starts.tolist()):
        shingles[begin:end].sort()
    return shingles, starts
