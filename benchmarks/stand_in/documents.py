"""Compute documents from their numbers: their words, texts and vectors, and questions about some of them.

Every document has a topic. About half of its words are from the vocabulary of its topic, in which words come in pairs
of synonyms; the others are from a vocabulary that all topics share. A question has words of one document, half of them
replaced by their synonyms, so that neither full text nor vectors find every answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

DIMENSIONS = 32
TOPIC_WORDS = 64
SHORTEST, LONGEST = 12, 36
"""The number of words of a document."""

_DRAWS = 1 << 18
_SYLLABLES = [consonant + vowel for consonant in "bdfghjklmnprstvz" for vowel in "aeiou"]
_PLACES = {syllable: place for place, syllable in enumerate(_SYLLABLES)}
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Documents:
    """Generated documents, numbered from 0 to `count` - 1."""

    count: int

    @property
    def topics(self) -> int:
        """Return the number of topics. The topic of a document is its number modulo this number."""
        return min(max(self.count // 100, 8), 2048)

    @property
    def shared_words(self) -> int:
        """Return the number of words that all topics share; the words of the topics are numbered after them."""
        return min(max(self.count // 20, 500), 100_000)

    @property
    def vocabulary(self) -> int:
        """Return the number of different words."""
        return self.shared_words + self.topics * TOPIC_WORDS

    @cached_property
    def draws(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return tables that turn a uniformly distributed number into a shared word and into a word of a topic."""
        return _draw_by_zipf(self.shared_words, _DRAWS), _draw_by_zipf(TOPIC_WORDS, 1 << 10)

    @property
    def shape(self) -> tuple[int, int, NDArray[np.int32], NDArray[np.int32]]:
        """Return what compiled code needs to compute the words of a document."""
        return self.topics, self.shared_words, *self.draws

    @cached_property
    def word_vectors(self) -> NDArray[np.float32]:
        """Return the vector of each word, float32 of shape (vocabulary, DIMENSIONS); synonyms have similar ones."""
        rng = np.random.default_rng(1)
        centres = np.repeat(rng.standard_normal((self.topics, DIMENSIONS), np.float32), TOPIC_WORDS, axis=0)
        pairs = rng.standard_normal((len(centres) // 2, DIMENSIONS), np.float32).repeat(2, axis=0)
        own = rng.standard_normal((self.vocabulary, DIMENSIONS), np.float32)
        vectors = np.float32(0.3) * own
        vectors[self.shared_words :] += np.float32(0.4) * centres + np.float32(1.2) * pairs
        return vectors

    def compute_vectors(self, threads: int = 2) -> NDArray[np.float32]:
        """Return the vectors of all documents, of length 1, grouped by topic: shape (topics, documents, DIMENSIONS).

        The topics may differ in size by one document: the last row of a smaller one is zero.
        """
        rows = -(-self.count // self.topics)
        vectors = np.zeros((self.topics, rows, DIMENSIONS), np.float32)
        ends = np.linspace(0, self.count, 16 * threads + 1).astype(int).tolist()
        with ThreadPoolExecutor(threads) as pool:
            parts = [
                pool.submit(_sum_word_vectors, first, last, *self.shape, self.word_vectors, vectors)
                for first, last in pairwise(ends)
            ]
            for part in parts:
                part.result()
        return vectors

    def list_words(self, number: int) -> NDArray[np.int32]:
        """Return the words of a document, by number."""
        words = np.empty(LONGEST, np.int32)
        return words[: _fill_words(number, *self.shape, words)]

    def write_text(self, number: int) -> str:
        """Return the text of a document."""
        return " ".join(map(spell, self.list_words(number).tolist())).capitalize() + "."

    def parse_words(self, text: str) -> list[int]:
        """Return the known words of a text, by number."""
        numbers = map(parse_word, _WORD.findall(text.lower()))
        return [number for number in numbers if 0 <= number < self.vocabulary]

    def iter_questions(self, count: int, judged: int = 25) -> Iterator[tuple[str, str, Mapping[str, int]]]:
        """Yield the id and the text of questions, and the grades of documents by id.

        The document that a question is about has grade 2. Other documents of its topic are judged, too: those with two
        words of the question, or their synonyms, have grade 1, the rest 0.
        """
        rng = np.random.default_rng(2)
        for place in range(count):
            target = int(rng.integers(self.count))
            words = self.list_words(target)
            topical = np.unique(words[words >= self.shared_words])
            asked = rng.permutation(topical)[:4]
            asked = np.where(rng.random(len(asked)) < 0.5, self._swap(asked), asked)
            common = rng.permutation(words[words < self.shared_words])[:1]
            text = " ".join(map(spell, rng.permutation([*asked.tolist(), *common.tolist()]).tolist()))
            grades = {f"d{target}": 2}
            concepts = set((asked - self.shared_words) // 2)
            rows = rng.permutation(-(-self.count // self.topics))[:judged]
            for other in (rows * self.topics + target % self.topics).tolist():
                if other != target and other < self.count:
                    shared = concepts & set((self.list_words(other) - self.shared_words) // 2)
                    grades[f"d{other}"] = int(len(shared) >= 2)
            yield f"q{place}", text, grades

    def _swap(self, words: NDArray[Any]) -> NDArray[Any]:
        """Return the synonyms of words of a topic."""
        return ((words - self.shared_words) ^ 1) + self.shared_words


def spell(number: int) -> str:
    """Return the spelling of a word: the digits of its number as syllables, in reverse order."""
    return _SYLLABLES[number % 80] + _SYLLABLES[number // 80 % 80] + _SYLLABLES[number // 6400 % 80]


def parse_word(word: str) -> int:
    """Return the number of a word from its spelling, -1 for an unknown word."""
    places = [_PLACES.get(word[at : at + 2], -1) for at in (0, 2, 4)]
    return (places[2] * 80 + places[1]) * 80 + places[0] if len(word) == 6 and min(places) >= 0 else -1


def _draw_by_zipf(size: int, draws: int) -> NDArray[np.int32]:
    """Return a table in which the frequency of rank r is about proportional to 1 / (r + 2.7)."""
    shares = np.cumsum(1 / (np.arange(size) + 2.7))
    places: NDArray[Any] = np.searchsorted(shares / shares[-1], (np.arange(draws) + 0.5) / draws)
    return places.astype(np.int32)


@njit(cache=True, nogil=True)
def _mix(value: np.uint64) -> np.uint64:
    """Return a pseudorandom number determined by a number (splitmix64; Steele, Lea and Flood 2014)."""
    z = value * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@njit(cache=True, nogil=True)
def _fill_words(number, topics, shared_words, shared, topical, words):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 (compiled by numba)
    """Write the words of a document into `words`, and return how many there are."""
    seed = np.uint64(number) * np.uint64(64) + np.uint64(1)
    length = 12 + int(_mix(seed) % np.uint64(25))
    first = shared_words + number % topics * 64
    for place in range(length):
        draw = _mix(seed + np.uint64(1 + place))
        if draw & np.uint64(1):
            words[place] = shared[draw >> np.uint64(46)]
        else:
            words[place] = first + topical[draw >> np.uint64(54)]
    return length


@njit(cache=True, nogil=True)
def _sum_word_vectors(first, last, topics, shared_words, shared, topical, word_vectors, vectors):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 (compiled by numba)
    """Write the vectors of documents: the sums of the vectors of their words, scaled to length 1."""
    words = np.empty(36, np.int32)
    total = np.empty(word_vectors.shape[1], np.float32)
    for number in range(first, last):
        length = _fill_words(number, topics, shared_words, shared, topical, words)
        total[:] = 0
        for place in range(length):
            row = word_vectors[words[place]]
            for d in range(len(total)):
                total[d] += row[d]
        norm = np.float32(1 / np.sqrt((total * total).sum()))
        for d in range(len(total)):
            vectors[number % topics, number // topics, d] = total[d] * norm


@njit(cache=True, nogil=True)
def count_terms(count, topics, shared_words, shared, topical, frequencies, lengths):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201 (compiled by numba)
    """Count the documents of each word, and the words of each document."""
    words = np.empty(36, np.int32)
    for number in range(count):
        length = _fill_words(number, topics, shared_words, shared, topical, words)
        lengths[number] = length
        for place in range(length):
            seen = False
            for before in range(place):
                seen |= words[before] == words[place]
            if not seen:
                frequencies[words[place]] += 1


@njit(cache=True, nogil=True)
def fill_postings(count, topics, shared_words, shared, topical, ends, numbers, occurrences):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201 (compiled by numba)
    """Write the documents of each word and how often they have it; `ends` are the next free entries of each word."""
    words = np.empty(36, np.int32)
    for number in range(count):
        length = _fill_words(number, topics, shared_words, shared, topical, words)
        for place in range(length):
            word, times = words[place], 0
            for other in range(length):
                if words[other] == word:
                    times += 1
                    if other < place:
                        times = -1000
            if times > 0:
                numbers[ends[word]] = number
                occurrences[ends[word]] = times
                ends[word] += 1
