"""Turn text into terms: normalisation, word boundaries, identifiers, scripts without spaces, stop words, stemming.

An analyzer is a value; its repr is its identity in every key. It works in two steps, so that each distinct word of a
corpus is analysed once: `raw` splits a text into words, `terms` turns one word into terms.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import cache, lru_cache
from itertools import pairwise
from typing import ClassVar

import regex
import Stemmer
from pydantic import field_validator
from pydantic.dataclasses import dataclass as settings
from stop_words import AVAILABLE_LANGUAGES, get_stop_words

from retrievers.access import Access

RESULTS_VERSION = "analyzer 1"

# The stop words of Lucene's EnglishAnalyzer, used for published BM25 figures.
ENGLISH_STOP_WORDS = frozenset(
    [
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "but",
        "by",
        "for",
        "if",
        "in",
        "into",
        "is",
        "it",
        "no",
        "not",
        "of",
        "on",
        "or",
        "such",
        "that",
        "the",
        "their",
        "then",
        "there",
        "these",
        "they",
        "this",
        "to",
        "was",
        "will",
        "with",
    ]
)

# Scripts written without spaces (and Hangul, whose words are long compounds): indexed by bigrams of characters.
_BIGRAM_SCRIPTS = "".join(
    rf"\p{{{script}}}" for script in ("Han", "Hiragana", "Katakana", "Hangul", "Thai", "Lao", "Khmer", "Myanmar")
)
_LETTERS = r"\p{L}\p{M}\p{N}\p{Pc}\u200c\u200d"
_RUNS = regex.compile(rf"([{_BIGRAM_SCRIPTS}][{_BIGRAM_SCRIPTS}\p{{M}}ー]*)")
_CHARACTERS = regex.compile(r"\P{M}\p{M}*")
_CAMEL = regex.compile(
    r"[\p{Lu}\p{Lt}]+(?![\p{Ll}\p{M}])|[\p{Lu}\p{Lt}]?[\p{Ll}\p{M}]+|\p{N}+|[\p{Lo}\p{Lm}\p{M}\u200c\u200d]+"
)
_APOSTROPHES = re.compile("['’]")


@settings(frozen=True, config={"extra": "forbid"})
class Analyzer:
    """Settings of text analysis.

    `stemmer` is a Snowball algorithm (by language), `stopwords` a language or a list of words; null turns each off.
    With the stemmer `turkish`, I becomes a dotless i, and a dotted I an i, before the rest is lowercased.
    `identifiers` splits `ParallelAgent`, `snake_case` and `dotted.names` into their parts, and also keeps the whole
    identifier, lowercased, as a term.
    `bigrams` splits Chinese, Japanese, Korean, Thai, Lao, Khmer and Burmese into overlapping pairs of characters.
    """

    access: ClassVar[Access] = Access()

    stemmer: str | None = "english"
    stopwords: str | tuple[str, ...] | None = "english"
    lowercase: bool = True
    nfkc: bool = True
    identifiers: bool = False
    bigrams: bool = True

    @field_validator("stemmer")
    @classmethod
    def _check_stemmer(cls, value: str | None) -> str | None:
        if value is not None and value not in Stemmer.algorithms():
            raise ValueError(f"no such stemmer; choose one of {', '.join(Stemmer.algorithms())}, or null")
        return value

    @field_validator("stopwords")
    @classmethod
    def _check_stopwords(cls, value: str | tuple[str, ...] | None) -> str | tuple[str, ...] | None:
        if isinstance(value, str) and value not in AVAILABLE_LANGUAGES:
            raise ValueError(
                f"no such list of stop words; choose one of {', '.join(sorted(AVAILABLE_LANGUAGES))}, a list, or null"
            )
        return value

    def tokens(self, text: str) -> list[str]:
        """Return the terms of a text, in their order."""
        terms = _cache_terms(self)
        return [term for word in self.raw(text) for term in terms(word)]

    def raw(self, text: str) -> list[str]:
        """Split a text into words, before stop words, stemming and identifiers."""
        return _cutter(self)(text)

    def terms(self, word: str) -> list[str]:
        """Return the terms of one word from `raw`, none for a stop word."""
        return list(_cache_terms(self)(word))

    def is_half_pair(self, term: str) -> bool:
        """Return whether a term is a single character of a script that is split into pairs of characters."""
        return len(_CHARACTERS.findall(term)) == 1 and _RUNS.fullmatch(term) is not None

    @property
    def folds(self) -> bool:
        """Return whether a text is lowercased before it is split; identifiers are split at capitals first."""
        return self.lowercase and not self.identifiers

    @property
    def folds_ascii_alike(self) -> bool:
        """Return whether ASCII letters are lowercased as in English."""
        return self.stemmer != "turkish"

    def lower(self, text: str) -> str:
        """Return a text in lower case; in Turkish, i with and without a dot stay distinct (SpecialCasing)."""
        return text.lower() if self.folds_ascii_alike else text.replace("I", "ı").replace("İ", "i").lower()

    @property
    def joints(self) -> str:
        """Return the characters that belong to a word only inside it, as in don't and os.path."""
        return "'’." if self.identifiers else "'’"

    def once(self) -> Callable[[str], tuple[str, ...]]:
        """Return `tokens` as a function without a cache, for texts that do not repeat."""
        raw, terms = _cutter(self), _term_maker(self)

        def tokens(text: str) -> tuple[str, ...]:
            words = raw(text)
            return terms(words[0]) if len(words) == 1 else tuple(term for word in words for term in terms(word))

        return tokens


@cache
def _cutter(analyzer: Analyzer) -> Callable[[str], list[str]]:
    def words(letters: str) -> str:
        return f"[{letters}]+(?:[{analyzer.joints}][{letters}]+)*"

    folds, nfkc, lower = analyzer.folds, analyzer.nfkc, analyzer.lower
    in_ascii, in_any = re.compile(words(r"\w"), re.ASCII).findall, regex.compile(words(_LETTERS)).findall

    def raw(text: str) -> list[str]:
        if folds:
            text = lower(text)
        if text.isascii():
            return in_ascii(text)
        words_found: list[str] = in_any(unicodedata.normalize("NFKC", text) if nfkc else text)
        return words_found

    return raw


@cache
def _cache_terms(analyzer: Analyzer) -> Callable[[str], tuple[str, ...]]:
    """Return the second step of an analyzer, with a cache of recent words."""
    return lru_cache(maxsize=65536)(_term_maker(analyzer))


@cache
def _term_maker(analyzer: Analyzer) -> Callable[[str], tuple[str, ...]]:
    """Return the second step of an analyzer."""
    stem: Callable[[str], str] = Stemmer.Stemmer(analyzer.stemmer, 0).stemWord if analyzer.stemmer else str
    fold: Callable[[str], str] = analyzer.lower if analyzer.lowercase else str
    stopwords = _stopwords(analyzer.stopwords)

    def plain(word: str) -> list[str]:
        word = fold(word)
        if word in stopwords:
            return []
        return [stem(piece) for piece in _between_apostrophes(word) if piece not in stopwords]

    def whole_and_parts(word: str) -> list[str]:
        parts = _CAMEL.findall(word)
        if len(parts) < 2 or "'" in word or "’" in word:
            return plain(word)
        return [term for piece in (word, *parts) for term in plain(piece)]

    def terms(word: str) -> tuple[str, ...]:
        pieces: list[str] = []
        for position, run in enumerate(_RUNS.split(word) if analyzer.bigrams and not word.isascii() else [word]):
            if position % 2:
                pieces += _pairs(_CHARACTERS.findall(run))
            elif run.strip("_"):
                pieces += whole_and_parts(run) if analyzer.identifiers else plain(run)
        return tuple(filter(None, pieces))

    return terms


def _between_apostrophes(word: str) -> list[str]:
    if "'" not in word and "’" not in word:
        return [word]
    first, *rest = _APOSTROPHES.split(word)
    if rest and len(rest[-1]) == 1:
        rest.pop()  # the 's, 't and 'd of English
    return [first, *rest]


def _pairs(characters: list[str]) -> list[str]:
    return [a + b for a, b in pairwise(characters)] or characters


@cache
def _stopwords(words: str | tuple[str, ...] | None) -> frozenset[str]:
    if words == "english":
        return ENGLISH_STOP_WORDS
    if isinstance(words, str):
        return frozenset(get_stop_words(words))
    return frozenset(words or ())
