"""Detect the language of a text by its function words or its script, and list the function words of a language."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache
from types import MappingProxyType

import regex
from stop_words import AVAILABLE_LANGUAGES, get_stop_words

from retrievers.lexical.analyzer import ENGLISH_STOP_WORDS
from runner.datasets.words import SPACELESS

ENGLISH = "english"

SURER = 2.0
"""To be chosen over the expected language, a language must have this many times its function words."""

_READ = 4000
"""The number of characters read from a text."""

_WORDS = regex.compile(r"\p{L}+")
_KANA = regex.compile(r"[\p{Hiragana}\p{Katakana}]")
_THAI = regex.compile(r"\p{Thai}")
_OTHERS = regex.compile(r"[\p{Lao}\p{Khmer}\p{Myanmar}]")
_LETTERS = regex.compile(r"\p{L}")
_UNSPACED_LETTERS = regex.compile(f"[{SPACELESS}]")


@lru_cache(maxsize=4096)
def detect_language(text: str, expected: str = ENGLISH) -> str:
    """Return the language of a text: `expected` unless another is much likelier, "" for one without a word list.

    The likeliest language is the one with the most function words in the text, a baseline of Cavnar and Trenkle (1994),
    N-gram-based text categorization.
    """
    text = text[:_READ]
    letters, unspaced = len(_LETTERS.findall(text)), _UNSPACED_LETTERS.findall(text)
    if 2 * len(unspaced) > letters:
        if _THAI.search(text) or _OTHERS.search(text):
            return ""
        return "japanese" if 10 * len(_KANA.findall(text)) > len(unspaced) else "chinese"
    hits = {language: 0 for language in AVAILABLE_LANGUAGES}
    for word in _WORDS.findall(text.lower()):
        for language in _languages().get(word, ()):
            hits[language] += 1
    best = max(sorted(hits), key=hits.__getitem__)
    return best if hits[best] > SURER * hits.get(expected, 0) and hits[best] > 2 else expected


def word_set(words: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(words.split())


@cache
def function_words(language: str) -> frozenset[str]:
    """Return the function words of a language, empty without a list; they are more than the stop words of an index."""
    if language not in AVAILABLE_LANGUAGES:
        return frozenset()
    return frozenset(get_stop_words(language)) | (ENGLISH_STOP_WORDS if language == ENGLISH else frozenset())


@cache
def _languages() -> Mapping[str, tuple[str, ...]]:
    """Return each function word with its languages; for English only a few, because its list contains French words."""
    languages: dict[str, tuple[str, ...]] = {}
    for language in sorted(AVAILABLE_LANGUAGES):
        for word in ENGLISH_STOP_WORDS if language == ENGLISH else function_words(language):
            languages[word] = (*languages.get(word, ()), language)
    return MappingProxyType(languages)
