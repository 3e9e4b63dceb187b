"""Find synonyms of a word: from a list, from WordNet's files, or from the co-occurrence of words in the chunks."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import regex

from retrievers.encoders.svd import factorise, scale_rows
from retrievers.lexical.analyzer import Analyzer
from retrievers.store import fingerprint_texts
from runner.config.objects import ConfigError
from runner.features.synthesize.base import Chunks
from runner.features.synthesize.language import ENGLISH
from runner.features.synthesize.terms import Terms, count_terms
from runner.features.synthesize.usage import WordUsage, count_usage

Synonyms = Callable[[str], Sequence[str]]
"""Returns the synonyms of a word, the best first."""

BUNDLED = "bundled:"
COMPANY = "cooccurrence"

_NEAREST = 8
_DIMENSIONS = 64
_LEAST_CHUNKS = 3
"""Terms in fewer chunks have too little co-occurrence data."""


def check_lexicon(path: str) -> None:
    """Raise `ValueError` unless a path is "cooccurrence", the bundled list, a file, or a folder of WordNet's files."""
    if path == COMPANY:
        return
    place = _place(path)
    if not place.exists():
        raise ValueError(
            "no such file or folder; set a file with one group of synonyms per line, a folder of WordNet files "
            "(/usr/share/wordnet with Debian's wordnet-base), bundled:english.txt or cooccurrence"
        )
    if place.is_dir() and not (place / "data.noun").is_file():
        raise ValueError("the folder contains no data.noun, so it is not a folder of WordNet files")


def load_synonyms(path: str, chunks: Chunks, analyzer: Analyzer) -> Synonyms:
    """Load the synonyms of a lexicon; an inflected word has the inflected synonyms of its base.

    Bundled lexicons and WordNet are English, so they have no synonyms for chunks in other languages.
    """
    if path == COMPANY:
        return _Company(count_terms(chunks, analyzer), count_usage(chunks, analyzer)).of
    place = _place(path)
    is_english = path.startswith(BUNDLED) or place.is_dir()
    if is_english and count_usage(chunks, analyzer).language != ENGLISH:
        return lambda word: ()
    groups, base = _groups(str(place), analyzer)

    def of(word: str) -> Sequence[str]:
        small = word.lower()
        if small in groups:
            return groups[small]
        first = base.get(_stem(small, analyzer), "")
        form = next((form for form in FORMS if first and small in form(first)), None)
        return tuple(anew for other in groups[first] for anew in form(other)) if form else ()

    return of


def _with_s(word: str) -> Sequence[str]:
    """Return the plural of a noun, the third person of a verb."""
    if regex.search(r"[^aeiou]y$", word):
        return (f"{word[:-1]}ies",)
    return (f"{word}es",) if regex.search(r"(?:s|x|z|ch|sh)$", word) else (f"{word}s",)


def _with_ed(word: str) -> Sequence[str]:
    """Return a likely past tense of a verb."""
    if regex.search(r"[^aeiou]y$", word):
        return (f"{word[:-1]}ied",)
    return (f"{word}d",) if word.endswith("e") else (f"{word}ed", f"{word}{word[-1:]}ed")


def _with_ing(word: str) -> Sequence[str]:
    """Return a likely participle of a verb."""
    return (f"{word[:-1]}ing",) if regex.search(r"[^e]e$", word) else (f"{word}ing", f"{word}{word[-1:]}ing")


FORMS = (_with_s, _with_ed, _with_ing)
"""The regular forms of English words; a wrong form is a word that no chunk has."""


def lexicon_identity(path: str) -> str:
    """Return a hash of the content of a lexicon."""
    if path == COMPANY:
        return path
    place = _place(path)
    files = sorted(place.glob("*.*")) if place.is_dir() else [place]
    return fingerprint_texts(hashlib.blake2b(file.read_bytes()).hexdigest() for file in files)


def _place(path: str) -> Path:
    if path.startswith(BUNDLED):
        return Path(__file__).parent / "lexicons" / path.removeprefix(BUNDLED)
    return Path(path).expanduser()


def _stem(word: str, analyzer: Analyzer) -> str:
    return " ".join(analyzer.tokens(word))


@lru_cache(maxsize=2)
def _groups(path: str, analyzer: Analyzer) -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
    """Return the synonyms of each word in lower case, and the first word of each stem."""
    place = Path(path)
    groups: dict[str, dict[str, None]] = {}
    base: dict[str, str] = {}
    try:
        for word, others in _read_wordnet(place) if place.is_dir() else _read_list(place):
            stem = _stem(word, analyzer)
            anew = [other for other in others if _stem(other, analyzer) != stem]
            if anew:
                base.setdefault(stem, word.lower())
                groups.setdefault(word.lower(), {}).update(dict.fromkeys(anew))
    except (OSError, ValueError, LookupError) as error:
        raise ConfigError(f"lexicon={path}: cannot be read as a lexicon ({error})") from error
    return {word: tuple(others) for word, others in groups.items()}, base


def _read_list(file: Path) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield each word with the others on its line; words are separated by commas, and lines with # are comments."""
    for line in file.read_text(encoding="utf-8").splitlines():
        group = [] if line.startswith("#") else [word.strip() for word in line.split(",") if word.strip()]
        yield from ((word, [other for other in group if other != word]) for word in group)


def _read_wordnet(folder: Path) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield each word of WordNet with the words of its most frequent sense in any part of speech.

    The file format is described in wndb(5) of WordNet 3.0.
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
    """Words with similar co-occurrence, by latent semantic analysis of the chunks: related, sometimes opposite."""

    def __init__(self, terms: Terms, usage: WordUsage) -> None:
        from scipy.sparse import csc_matrix, diags_array

        postings = terms.postings
        shape = (len(postings.lengths), len(postings.vocabulary))
        weights = 1.0 + np.log(postings.counts.astype(np.float64))
        matrix = csc_matrix((weights, postings.documents, postings.offsets), shape=shape)
        matrix = scale_rows((matrix @ diags_array(terms.idf)).tocsr())
        _, strengths, right = factorise(matrix, min(_DIMENSIONS, *shape), 4, seed=0)
        vectors = right.T * strengths
        lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))[:, np.newaxis]
        self._vectors = (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)
        self._terms = terms
        words: dict[str, str] = {}
        for word, _ in usage.frequencies.most_common():
            words.setdefault(_stem(word, terms.analyzer), word)
        self._words = words
        self._usual = np.flatnonzero(postings.frequencies >= _LEAST_CHUNKS)

    def of(self, word: str) -> Sequence[str]:
        position = self._terms.postings.positions.get(_stem(word, self._terms.analyzer))
        if position is None or self._terms.postings.frequencies[position] < _LEAST_CHUNKS:
            return ()
        near = self._vectors[self._usual] @ self._vectors[position]
        best = self._usual[np.argsort(-near, kind="stable")[: _NEAREST + 1]]
        near_terms = [self._terms.postings.vocabulary[at] for at in best if at != position]
        return [self._words[term] for term in near_terms if term in self._words]
