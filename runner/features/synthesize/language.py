"""Detect the language of a text by its function words or its script, and list the function words of a language."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache
from types import MappingProxyType

import regex
import Stemmer
from stop_words import AVAILABLE_LANGUAGES, get_stop_words

from retrievers.lexical.analyzer import ENGLISH_STOP_WORDS, Analyzer
from runner.datasets.words import SPACELESS

ENGLISH = "english"

SURER = 2.0
"""To be chosen over the expected language, a language must have this many times its function words."""

_ENGLISH_QUESTION_WORDS = frozenset({
    "what", "how", "why", "when", "where", "who", "which", "whose", "do", "does", "did", "can", "i", "my", "you",
    "your", "we", "our", "use", "used", "work", "works",
})  # fmt: skip
"""The words of questions such as "How does X work?" that say nothing about X."""

_ENGLISH_CONNECTIVES = frozenset({
    "about", "after", "all", "any", "before", "between", "both", "each", "every", "from", "has", "have", "its", "more",
    "other", "per", "should", "than", "through", "under", "until", "via", "when", "while", "within", "without",
})  # fmt: skip

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


@cache
def function_words(language: str) -> frozenset[str]:
    """Return the function words of a language, empty without a list.

    English has a list of its own, because that of the library has nouns, such as "system" and "value".
    """
    if language == ENGLISH:
        return ENGLISH_STOP_WORDS | _ENGLISH_QUESTION_WORDS | _ENGLISH_CONNECTIVES
    return frozenset(get_stop_words(language)) if language in AVAILABLE_LANGUAGES else frozenset()


@cache
def question_analyzer(language: str) -> Analyzer:
    """Return an analyzer of questions that leaves out the words that only make them questions, and function words."""
    words = ENGLISH_STOP_WORDS | _ENGLISH_QUESTION_WORDS if language == ENGLISH else function_words(language)
    return Analyzer(stemmer=language if language in Stemmer.algorithms() else None, stopwords=tuple(sorted(words)))


def fold_question(query: str) -> str:
    """Return what near-copies have in common: the terms of a query in any order, without the words of questions."""
    terms = question_analyzer(ENGLISH).tokens(query) or [query.casefold()]
    return " ".join(sorted(set(terms)))


@cache
def _languages() -> Mapping[str, tuple[str, ...]]:
    """Return each function word with its languages; for English only a few, because its list contains French words."""
    languages: dict[str, tuple[str, ...]] = {}
    for language in sorted(AVAILABLE_LANGUAGES):
        for word in ENGLISH_STOP_WORDS if language == ENGLISH else function_words(language):
            languages[word] = (*languages.get(word, ()), language)
    return MappingProxyType(languages)
