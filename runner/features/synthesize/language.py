"""Detect the language of each chunk, and list the function words of a language. Languages are ISO 639-1 codes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache

from stop_words import LANGUAGE_MAPPING, get_stop_words

from retrievers.lexical.analyzer import ENGLISH_STOP_WORDS, Analyzer
from runner.evaluation.language import ANALYZERS, detect_language, label_languages
from runner.features.synthesize.base import Chunks
from runner.features.synthesize.terms import content

ENGLISH = "en"

_ENGLISH_QUESTION_WORDS = frozenset({
    "what", "how", "why", "when", "where", "who", "which", "whose", "do", "does", "did", "can", "i", "my", "you",
    "your", "we", "our", "use", "used", "work", "works",
})  # fmt: skip
"""The words of questions such as "How does X work?" that say nothing about X."""

_ENGLISH_CONNECTIVES = frozenset({
    "about", "after", "all", "any", "before", "between", "both", "each", "every", "from", "has", "have", "its", "more",
    "other", "per", "should", "than", "through", "under", "until", "via", "when", "while", "within", "without",
})  # fmt: skip


@lru_cache(maxsize=2)
def detect_languages(chunks: Chunks) -> Sequence[str]:
    """Return the language of each chunk; if that is unclear, the language of most chunks, or else English."""
    texts = [content(chunks, at) for at in range(len(chunks))]
    most = detect_language(texts)
    labels = label_languages(texts) or [""] * len(texts)
    return [label or (most.code if most else ENGLISH) for label in labels]


@cache
def function_words(language: str) -> frozenset[str]:
    """Return the function words of a language, empty without a list.

    English has a list of its own, because that of the library has nouns, such as "system" and "value".
    """
    if language == ENGLISH:
        return ENGLISH_STOP_WORDS | _ENGLISH_QUESTION_WORDS | _ENGLISH_CONNECTIVES
    return frozenset(get_stop_words(language)) if language in LANGUAGE_MAPPING else frozenset()


@cache
def question_analyzer(language: str) -> Analyzer:
    """Return an analyzer of questions that leaves out the words that only make them questions, and function words."""
    words = ENGLISH_STOP_WORDS | _ENGLISH_QUESTION_WORDS if language == ENGLISH else function_words(language)
    return Analyzer(stemmer=ANALYZERS.get(language), stopwords=tuple(sorted(words)))


def fold_question(query: str) -> str:
    """Return what near-copies have in common: the terms of a query in any order, without the words of questions."""
    terms = question_analyzer(ENGLISH).tokens(query) or [query.casefold()]
    return " ".join(sorted(set(terms)))
