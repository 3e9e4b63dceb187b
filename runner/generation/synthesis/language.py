"""Which language a text is in, by the words that say nothing by themselves, and which words these are.

Beside the lists of `stop_words` it knows how scripts without spaces are told apart, and no grammar.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache
from types import MappingProxyType

import regex
from stop_words import AVAILABLE_LANGUAGES, get_stop_words

from retrievers.analyzer import ENGLISH_STOP_WORDS
from runner.datasets.words import SPACELESS

ENGLISH = "english"

SURER = 2.0
"""So many times the share of function words it takes to be in another language than the one that is expected."""

_READ = 4000
"""How many characters of a text are looked at."""

_WORDS = regex.compile(r"\p{L}+")
_KANA = regex.compile(r"[\p{Hiragana}\p{Katakana}]")
_THAI = regex.compile(r"\p{Thai}")
_OTHERS = regex.compile(r"[\p{Lao}\p{Khmer}\p{Myanmar}]")
_LETTERS = regex.compile(r"\p{L}")
_UNSPACED_LETTERS = regex.compile(f"[{SPACELESS}]")


@lru_cache(maxsize=4096)
def language_of(text: str, expected: str = ENGLISH) -> str:
    """Return the language of a text, "" for one that it has no words of; `expected`, unless another is much likelier.

    The likeliest is the language that most of its words are function words of: Cavnar and Trenkle (1994), N-gram-based
    text categorization, compare with this.
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
    """Return the words of a language that say nothing by themselves, none of one without a list.

    They are more than an index leaves out.
    """
    if language not in AVAILABLE_LANGUAGES:
        return frozenset()
    return frozenset(get_stop_words(language)) | (ENGLISH_STOP_WORDS if language == ENGLISH else frozenset())


@cache
def _languages() -> Mapping[str, tuple[str, ...]]:
    """Return each function word with the languages that have it; of English, whose list has French words, a few."""
    found: dict[str, tuple[str, ...]] = {}
    for language in sorted(AVAILABLE_LANGUAGES):
        for word in ENGLISH_STOP_WORDS if language == ENGLISH else function_words(language):
            found[word] = (*found.get(word, ()), language)
    return MappingProxyType(found)
