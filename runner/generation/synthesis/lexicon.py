"""Other words for a word: from a list, from WordNet's files, or from which words stand in the same company.

It knows nothing of queries.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from retrievers.analyzer import Analyzer
from retrievers.store import fingerprint_of
from runner.config.objects import ConfigError
from runner.generation.synthesis.base import Chunks
from runner.generation.synthesis.terms import Terms, terms_of

Synonyms = Callable[[str], Sequence[str]]
"""Returns other words for a word, the best first."""

BUNDLED = "bundled:"
COMPANY = "cooccurrence"

_NEAREST = 8
_DIMENSIONS = 64
_LEAST_CHUNKS = 3
"""Of a term in fewer chunks, the company says too little."""


def check_lexicon(path: str) -> None:
    """Raise `ValueError` unless a path is "cooccurrence", the bundled list, a file, or a folder of WordNet's files."""
    if path == COMPANY:
        return
    place = _place(path)
    if not place.exists():
        raise ValueError(
            f"there is nothing at {path}: name a file with words of one meaning on each line, a folder of WordNet's "
            "files (Debian's wordnet-base has it at /usr/share/wordnet), bundled:english.txt or cooccurrence"
        )
    if place.is_dir() and not (place / "data.noun").is_file():
        raise ValueError(f"the folder {path} has no data.noun: it is not WordNet's")


def synonyms_in(path: str, chunks: Chunks, analyzer: Analyzer) -> Synonyms:
    """Return the synonyms that a lexicon has; a word that it has not is looked up as the first with the same stem."""
    if path == COMPANY:
        return _Company(terms_of(chunks, analyzer)).of
    groups, base = _groups(str(_place(path)), analyzer)
    return lambda word: groups.get(word.lower()) or groups.get(base.get(_stem(word, analyzer), ""), ())


def lexicon_identity(path: str) -> str:
    """Return a name for what a lexicon says: that of its files' content."""
    if path == COMPANY:
        return path
    place = _place(path)
    files = sorted(place.glob("*.*")) if place.is_dir() else [place]
    return fingerprint_of(hashlib.blake2b(file.read_bytes()).hexdigest() for file in files)


def _place(path: str) -> Path:
    if path.startswith(BUNDLED):
        return Path(__file__).parent / "lexicons" / path.removeprefix(BUNDLED)
    return Path(path).expanduser()


def _stem(word: str, analyzer: Analyzer) -> str:
    return " ".join(analyzer.tokens(word))


@lru_cache(maxsize=2)
def _groups(path: str, analyzer: Analyzer) -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
    """Return the synonyms of each word in small letters, and the first word of each stem."""
    place = Path(path)
    found: dict[str, dict[str, None]] = {}
    base: dict[str, str] = {}
    try:
        for word, others in _wordnet(place) if place.is_dir() else _listed(place):
            stem = _stem(word, analyzer)
            anew = [other for other in others if _stem(other, analyzer) != stem]
            if anew:
                base.setdefault(stem, word.lower())
                found.setdefault(word.lower(), {}).update(dict.fromkeys(anew))
    except (OSError, ValueError, LookupError) as error:
        raise ConfigError(f"lexicon={path}: cannot be read as a lexicon ({error})") from error
    return {word: tuple(others) for word, others in found.items()}, base


def _listed(file: Path) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield each word with the others on its line; commas keep words apart, and a line with # says nothing."""
    for line in file.read_text(encoding="utf-8").splitlines():
        group = [] if line.startswith("#") else [word.strip() for word in line.split(",") if word.strip()]
        yield from ((word, [other for other in group if other != word]) for word in group)


def _wordnet(folder: Path) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield each word of WordNet with those of its most frequent sense, as the part of speech that it mostly is.

    The files are described in wndb(5) of WordNet 3.0.
    """
    senses = []
    for part in ("noun", "verb", "adj", "adv"):
        groups = {}
        for line in _lines(folder / f"data.{part}"):
            fields = line.split(" ")
            at = range(4, 4 + 2 * int(fields[3], 16), 2)
            groups[fields[0]] = [fields[i].partition("(")[0].replace("_", " ") for i in at]
        for line in _lines(folder / f"index.{part}"):
            lemma, _, _, n_pointers, *rest = line.split()
            tagged, first = int(rest[int(n_pointers) + 1]), rest[int(n_pointers) + 2]
            senses.append((-tagged, lemma.replace("_", " "), groups[first]))
    senses.sort(key=lambda sense: sense[0])
    usual: dict[str, Sequence[str]] = {}
    for _, lemma, group in senses:
        usual.setdefault(lemma, group)
    yield from ((lemma, [other for other in group if other.lower() != lemma]) for lemma, group in usual.items())


def _lines(file: Path) -> list[str]:
    return [line for line in file.read_text(encoding="utf-8").splitlines() if line and not line.startswith("  ")]


class _Company:
    """Words that stand in the same company, by latent semantic analysis of the chunks: related, at times opposite."""

    def __init__(self, terms: Terms) -> None:
        from scipy.sparse import csc_matrix, diags_array
        from sklearn.preprocessing import normalize
        from sklearn.utils.extmath import randomized_svd

        postings = terms.postings
        shape = (len(postings.lengths), len(postings.vocabulary))
        weights = 1.0 + np.log(postings.counts.astype(np.float64))
        matrix = csc_matrix((weights, postings.documents, postings.offsets), shape=shape)
        matrix = normalize((matrix @ diags_array(terms.idf)).tocsr())
        _, strengths, right = randomized_svd(matrix, min(_DIMENSIONS, *shape), n_iter=4, random_state=0)
        self._vectors = normalize(right.T * strengths).astype(np.float32)
        self._terms = terms
        self._usual = np.flatnonzero(postings.frequencies >= _LEAST_CHUNKS)

    def of(self, word: str) -> Sequence[str]:
        position = self._terms.postings.positions.get(_stem(word, self._terms.analyzer))
        if position is None or self._terms.postings.frequencies[position] < _LEAST_CHUNKS:
            return ()
        near = self._vectors[self._usual] @ self._vectors[position]
        best = self._usual[np.argsort(-near, kind="stable")[: _NEAREST + 1]]
        return [self._terms.postings.vocabulary[at] for at in best if at != position]
