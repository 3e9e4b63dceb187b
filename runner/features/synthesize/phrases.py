"""Find content words and phrases of a text, by the rules of its language.

In English and German, a phrase ends with a noun; in other languages, it is a sequence of content words. In scripts
without spaces, function words separate the words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

import regex

from retrievers.lexical.analyzer import Analyzer
from runner.datasets.words import SPACELESS
from runner.features.synthesize.language import ENGLISH, function_words
from runner.features.synthesize.usage import BEFORE_NOUN, BEFORE_VERB, GERMAN, WordUsage

LONGEST_PHRASE = 4

_EDGES = " \t,;:.!?()[]{}\"'“”‘’«»…*`|/\\<>=–—-\u200b\ufeff"
_CUT = regex.compile(r"[,;:!?()\[\]{}\"“”«»…|–—]|\.(?=\s|$)")
_IDENTIFIER = regex.compile(r"\p{Ll}\p{Lu}|\w[._/:]\w|_|\p{Lu}{2}|\p{L}\d|\p{Ll}-\p{Ll}+-\p{Ll}")
_GARBAGE = regex.compile(
    r"(?=(?:\D*\d){5})[^\s]{8,}|[^\s]{40,}|[=<>{}$@\\%&#^~]"
    r"|(?<!\S)(?=[\p{L}\d]{10,}(?!\S))(?=\S*\p{Lu})(?:\S*?\p{L}\d+\p{L}){2}"
)
"""Numbers, very long words, symbols, and tokens such as keys and hashes, with digits between letters twice."""

_UNSPACED = regex.compile(f"[{SPACELESS}]")
_UNSPACED_RUN = regex.compile(f"([{SPACELESS}ー]+)")

LEAST_LETTERS = 3
"""A phrase with fewer letters is a symbol; in scripts without spaces, two characters are a word."""

LONGEST_UNSPACED = 6
"""A longer sequence between function words, in a script without spaces, is several words."""


@dataclass(frozen=True, eq=False)
class Phrasing:
    """Splits texts of a language into phrases; `language` is "" for one without a list of function words."""

    language: str
    usage: WordUsage
    analyzer: Analyzer

    @cached_property
    def idle(self) -> frozenset[str]:
        """Return the words without content of their own."""
        around = BEFORE_NOUN | BEFORE_VERB if self.language == ENGLISH else frozenset()
        return function_words(self.language) | around

    def content_words(self, text: str) -> list[str]:
        """Return the content words of a text, in lower case except for identifiers."""
        return [word for _, run in self.runs(text) for word in run]

    def runs(self, text: str) -> Iterator[tuple[str, list[str]]]:
        """Yield each sequence of content words without function words or punctuation, after the word before it.

        These are the candidates of Rose et al. (2010), Automatic keyword extraction from individual documents.
        """
        for part in _CUT.split(text):
            before, run = "", list[str]()
            for piece in (piece.strip(_EDGES) for piece in self._pieces(part)):
                word = piece if is_identifier(piece) else piece.lower()
                if word.lower() in self.idle or _GARBAGE.search(word) or not self.analyzer.terms(word):
                    yield before, run
                    before, run = word.lower(), []
                else:
                    run.append(word)
            yield before, run

    def _pieces(self, text: str) -> Iterator[str]:
        """Yield words; in scripts without spaces, the text between function words, and "" in place of these."""
        for piece in text.split():
            if not _UNSPACED.search(piece):
                yield piece
                continue
            for at, run in enumerate(_UNSPACED_RUN.split(piece)):
                for part in _cutter(self.idle).split(run) if at % 2 else [run]:
                    yield from ("", part if len(part) <= LONGEST_UNSPACED or not at % 2 else "")

    def phrases(self, text: str) -> Iterator[tuple[str, ...]]:
        """Yield the phrases of a text, in order."""
        for before, run in self.runs(text):
            has_nouns = self.language in (ENGLISH, GERMAN)
            for phrase in self._noun_phrases(before, run) if has_nouns else iter_spans(run):
                if sum(map(str.isalpha, "".join(phrase))) >= (2 if _UNSPACED.search(phrase[0]) else LEAST_LETTERS):
                    yield phrase

    def _noun_phrases(self, before: str, run: Sequence[str]) -> Iterator[tuple[str, ...]]:
        """Yield the phrases between the verbs of a sequence, each up to its last noun."""
        usage, part = self.usage, list[str]()
        for at, word in enumerate([*run, ""]):
            is_verb = usage.is_verb(word) or (not at and before in BEFORE_VERB) or word.endswith("ly")
            if word and not (is_verb and not is_identifier(word)):
                part.append(word)
                continue
            while part and not (usage.is_noun(part[-1]) or is_identifier(part[-1])):
                part.pop()
            while part and part[0].replace(".", "").isdigit():
                part.pop(0)
            if part and len(set(part)) == len(part):
                yield tuple(part[-LONGEST_PHRASE:])
            part = []

    def restore_case(self, text: str) -> str:
        """Return a text with capitals only in names, as in the chunks."""
        return " ".join(self._restore_case(word) for word in text.split())

    def _restore_case(self, word: str) -> str:
        if is_identifier(word.strip(_EDGES)) or not word[:1].isalpha():
            return word
        return word[:1].upper() + word[1:] if self.usage.is_name(word.strip(_EDGES)) else word[:1].lower() + word[1:]


def is_identifier(word: str) -> bool:
    """Return whether a word is a name from code or an acronym."""
    return bool(_IDENTIFIER.search(word))


@lru_cache(maxsize=8)
def _cutter(idle: frozenset[str]) -> regex.Pattern[str]:
    """Return a pattern of the function words of scripts without spaces, the longest first."""
    unspaced = sorted((word for word in idle if _UNSPACED.search(word)), key=lambda word: (-len(word), word))
    return regex.compile("|".join(map(regex.escape, unspaced)) or r"(?!)")


def iter_spans(run: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield the contiguous subsequences of at most four words, all different, including all of a short sequence."""
    for size in range(1, LONGEST_PHRASE + 1):
        for at in range(len(run) - size + 1):
            span = tuple(run[at : at + size])
            if len(set(span)) == size and not any(a == b for a, b in pairwise(span)):
                yield span
