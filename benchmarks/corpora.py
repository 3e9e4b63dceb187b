"""Generate corpora of any size from a seed, with queries; words follow Zipf's law and look like real words.

Documents are generated in blocks with separate random generators, so that a corpus is the beginning of every larger
one. No data is read. To write a folder in BEIR's layout: `python -m benchmarks.corpora FOLDER DOCUMENTS [QUERIES]`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

_COMMON, _ONSETS, _NUCLEI, _CODAS, _SUFFIXES = map(
    str.split,
    (
        """the of and to in a is that for it was as with on be by at are this from or an have not they which you he
        were but his one had their all we can her has there been if more when will would who so no out up what about
        into than them then its time some could these only may other new do over such like after two also our me first
        any my now people most made between where way even through many well back should because each those how""",
        "b c d f g h j k l m n p r s t v w z br ch cl cr dr fl gr pl pr sh sl sp st tr",
        "a a e e i i o o u u y ai ea io oo",
        "l n r s t m d c nd ng st",
        "s s s ed ed ing ing er ers ly al ation ations ness ment ful able ity ive 's",
    ),
)
"""The most common English words, in descending order, and the parts of invented words."""

_ACCENTS = str.maketrans("aeioun", "áéïöüñ")
_ASKING = ("what is", "how does", "which", "why are", "who had", "where was", "effects of", "")

_BLOCK = 8192
_EXPONENT, _FLATTENED = 1.1, 2.7
"""Zipf's exponent, and Mandelbrot's constant, which makes the most common words rarer than Zipf's law says."""


@dataclass(frozen=True)
class Synthetic:
    """Settings of a corpus: the number of documents, their mean number of words, and the number of different words.

    The frequency of the word of rank r is proportional to 1 / (r + 2.7)^1.1, roughly as in English; one word in seven
    repeats a recent word of its document. Lengths have a gamma distribution. About one document in ten is not ASCII.
    """

    documents: int
    mean_words: int = 60
    words: int = 600_000
    seed: int = 0

    def texts(self) -> Iterator[str]:
        """Yield the documents."""
        words = np.array(vocabulary(self.words, self.seed), dtype=np.object_)
        blocks = (self._block(number, words) for number in range(-(-self.documents // _BLOCK)))
        return islice((text for block in blocks for text in block), self.documents)

    def _block(self, number: int, words: NDArray[Any]) -> Iterator[str]:
        rng = np.random.default_rng([self.seed, number])
        lengths = np.maximum(rng.gamma(6, self.mean_words / 6, _BLOCK).astype(np.int64), 3)
        ends = np.cumsum(lengths)
        total, starts = int(ends[-1]), np.repeat(ends - lengths, lengths)
        ranks = _ranks(rng.random(total), len(words))
        before = np.arange(total) - rng.integers(1, 30, total)
        again = (before >= starts) & (rng.random(total) < 1 / 7)
        ranks[again] = ranks[before[again]]
        text = words[ranks].tolist()
        for comma in np.flatnonzero(rng.random(total) < 1 / 25).tolist():
            text[comma] += ","
        stops = np.union1d(np.flatnonzero(rng.random(total) < 1 / 14), ends - 1).tolist()
        for before_first, last in pairwise([-1, *stops]):
            text[before_first + 1] = text[before_first + 1].capitalize()
            text[last] += "."
        return (" ".join(text[end - length : end]) for end, length in zip(ends.tolist(), lengths.tolist(), strict=True))

    def select_targets(self, queries: int) -> list[int]:
        """Return the positions of the documents that queries are about, spread over the corpus."""
        return [number * self.documents // queries for number in range(queries)]

    def question(self, position: int, text: str) -> str:
        """Return a question that the document at a position of the corpus answers: some of its words."""
        rng = np.random.default_rng([self.seed, 1, position])
        words = [word.strip(".,").lower() for word in text.split()]
        picked = sorted(rng.choice(len(words), min(len(words), int(rng.integers(3, 9))), replace=False))
        return " ".join([_ASKING[rng.integers(len(_ASKING))], *(words[at] for at in picked)]).strip() + "?"


def _ranks(throws: NDArray[np.float64], size: int) -> NDArray[np.int64]:
    """Turn numbers between 0 and 1 into ranks by the inverse of the distribution, treated as continuous."""
    power = 1 - _EXPONENT
    first, last = _FLATTENED**power, (size + _FLATTENED) ** power
    ranks: NDArray[np.float64] = (first - throws * (first - last)) ** (1 / power) - _FLATTENED
    return ranks.astype(np.int64)


def vocabulary(size: int, seed: int) -> list[str]:
    """Return distinct words, the most common first: English words, then invented ones.

    Half of the invented words are an earlier word with an ending that stemmers remove; rarer words are longer. One in a
    hundred is a number.
    """
    rng = np.random.default_rng([seed, 2])
    found = dict.fromkeys(_COMMON)
    stems = ["time"]
    while len(found) < size:
        for kind, length, *throws, coda, accent in rng.random((4096, 12)).tolist():
            if kind < 0.01:
                word = str(int(10 ** (1 + 5 * length)))
            elif kind < 0.5:
                word = _of(stems, length) + _of(_SUFFIXES, coda)
            else:
                n_syllables = 1 + int(length * min(4, 1 + len(found) / 20_000))
                word = "".join(_of(_ONSETS, a) + _of(_NUCLEI, b) for a, b in pairwise(throws[: n_syllables + 1]))
                word += _of(_CODAS, 2 * coda) if coda < 0.5 else ""
                word = word.translate(_ACCENTS) if accent < 0.003 else word
                stems.append(word)
            found.setdefault(word)
    return list(found)[:size]


def _of(choices: list[str], throw: float) -> str:
    return choices[int(throw * len(choices))]


def write(corpus: Synthetic, folder: Path, queries: int = 1000) -> None:
    """Write a corpus in BEIR's layout, a document at a time, with questions that have one known answer each."""
    targets = set(corpus.select_targets(queries))
    (folder / "qrels").mkdir(parents=True)
    with (
        (folder / "corpus.jsonl").open("wb") as documents,
        (folder / "queries.jsonl").open("wb") as questions,
        (folder / "qrels" / "test.tsv").open("w") as qrels,
    ):
        print("query-id", "corpus-id", "score", sep="\t", file=qrels)
        for position, text in enumerate(corpus.texts()):
            documents.write(orjson.dumps({"_id": f"d{position}", "title": "", "text": text}) + b"\n")
            if position in targets:
                question = {"_id": f"q{position}", "text": corpus.question(position, text)}
                questions.write(orjson.dumps(question) + b"\n")
                print(f"q{position}", f"d{position}", 1, sep="\t", file=qrels)


if __name__ == "__main__":
    write(Synthetic(int(sys.argv[2])), Path(sys.argv[1]), *map(int, sys.argv[3:]))
