"""Reword phrases in frames, and find the words of a sentence that a query can ask for."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import regex

from runner.features.synthesize.language import ENGLISH
from runner.features.synthesize.lexicon import Synonyms
from runner.features.synthesize.limits import QueryLimits, tokens
from runner.features.synthesize.material import Material
from runner.features.synthesize.phrases import is_identifier
from runner.features.synthesize.terms import compute_share, content

FEWEST_CHUNKS = 2
"""A word in fewer chunks is not used as a synonym, because the corpus hardly uses it."""

ENOUGH_CHUNKS = 500
"""In a smaller corpus, a word may be usual without occurring."""

_RARER = 0.1
"""A word with less than this share of the frequency of another is not used as its synonym."""

NUMBER = regex.compile(r"(?<![\w.,-])\d+(?:[.,]\d+)*%?(?![\w-])")
_AROUND = ",;:()\"'“”"
_LINKING = regex.compile(
    r"^(?:however|therefore|thus|moreover|furthermore|for example|in addition|finally|note that|as a result|hence|"
    r"in this case|by default|also)\b,?\s*",
    regex.IGNORECASE,
)
_PLURAL = regex.compile(r"[^su]s$")
_FORM = regex.compile(r"(?:ed|ing)$")
"""A form made by a rule, which may not be a word unless the chunks have it."""
GAP = "___"

FEWEST_PIECES = 5
"""A shorter sentence says too little once a word is missing."""

_AS_IT_IS = 0.25
"""The probability that a noun keeps its number."""


@dataclass(frozen=True)
class Task:
    """The input of a writer of queries."""

    material: Material
    chance: random.Random
    limits: QueryLimits
    synonyms: Synonyms
    overlap: tuple[float, float]
    most_overlap: float

    @cached_property
    def there(self) -> frozenset[str]:
        """Return the terms of all goldens."""
        chunks, terms = self.material.chunks, self.material.terms.analyzer.tokens
        return frozenset(term for at in self.material.bundle.goldens for term in terms(content(chunks, at)))

    @property
    def is_english(self) -> bool:
        """Return whether the golden is in English, the language of the frames."""
        return self.material.phrasing.language == ENGLISH

    def share(self, query: str) -> float:
        """Return the share of a query's terms that are in a golden."""
        return compute_share(self.material.terms.analyzer.tokens(query), self.there)


def draw_early(things: Sequence[str], n: int, chance: random.Random) -> list[str]:
    """Return `n` random things, drawn with a weight of 1 / (r + 2) for position r, so that early ones are likelier.

    Efraimidis and Spirakis (2006), Weighted random sampling with a reservoir.
    """
    keys = {thing: chance.random() ** (place + 2) for place, thing in enumerate(dict.fromkeys(things))}
    return sorted(keys, key=lambda thing: -keys[thing])[:n]


def fill_frame(task: Task, frame: str, phrases: Sequence[str], most: float, fewest: int = 2) -> str:
    """Return a frame filled with reworded phrases, of whose terms at most a share of `most` is in a golden.

    If rewording is not enough, the longest phrases lose their first words, as in the queries of people who do not know
    the details, but keep the `fewest`; the share may then exceed `most`. The result is "" if a word would occur twice.
    """
    parts = [
        [*(_reword(word, task, False) for word in words[:-1]), _reword(words[-1], task, True)]
        for words in map(str.split, phrases)
    ]
    all_terms = [tuple(task.material.terms.analyzer.tokens(word)) for part in parts for word in part]
    if len(set(all_terms)) < len(all_terms):
        return ""
    while True:
        query = frame.format(*(" ".join(part) for part in parts))
        longest = max(parts, key=len)
        if len(longest) <= fewest or task.share(query) <= most:
            return query
        del longest[0]


def fit_parts(parts: Iterable[str], task: Task, query_type: str) -> list[str]:
    """Return the parts that fit into a query of a type, preferring the first ones."""
    _, most = task.limits.bounds(query_type)
    fitting: list[str] = []
    for part in parts:
        if len(tokens(" ".join((*fitting, part)))) <= most:
            fitting.append(part)
    return fitting


def draw_share(task: Task) -> float:
    """Draw a share between the bounds of `overlap`."""
    return task.chance.uniform(*task.overlap)


def find_synonym(word: str, task: Task) -> str:
    """Return a synonym of a word that is in no golden, "" if there is none; frequent synonyms are preferred.

    The corpus must use the synonym often enough, as the same part of speech, and together with the word. This selects
    the predominant sense more simply than McCarthy et al. (2004), Finding predominant word senses in untagged text.
    """
    if is_identifier(word):
        return ""
    terms, usage = task.material.terms, task.material.usage
    least = max(FEWEST_CHUNKS, _RARER * usage.frequencies[word.lower()])
    is_small = len(task.material.chunks) < ENOUGH_CHUNKS

    def fits(other: str) -> bool:
        if " " in other or usage.is_noun(other) != usage.is_noun(word):
            return False
        if usage.frequencies[other] >= least:
            return terms.lift(word, other) >= 1
        return is_small and not _FORM.search(other)

    synonyms = filter(fits, task.synonyms(word))
    others = [other for other in synonyms if not task.there & set(terms.analyzer.tokens(other))]
    others.sort(key=lambda other: -usage.frequencies[other])
    return task.chance.choice(others[:2]) if others else ""


def has_synonym(phrase: str, task: Task) -> bool:
    """Return whether a word of a phrase has a synonym to replace it."""
    *before, last = phrase.split()
    return bool(_find_replacement(last, task, True)) or any(_find_replacement(word, task, False) for word in before)


def _find_replacement(word: str, task: Task, is_last: bool) -> str:
    """Return a synonym of a word of a phrase; a noun before a noun is part of a name and has none."""
    return find_synonym(word, task) if is_last or not task.material.usage.is_noun(word) else ""


def _reword(word: str, task: Task, is_last: bool) -> str:
    """Return a synonym of a word, the word in another number, or the word itself."""
    anew = _find_replacement(word, task, is_last)
    return anew or task.material.phrasing.restore_case((_other_number(word, task) if is_last else "") or word)


def _other_number(word: str, task: Task) -> str:
    """Return the singular of a plural noun, or the plural of a singular one, if chunks have it; "" at random."""
    usage = task.material.usage
    if not task.is_english or is_identifier(word) or task.chance.random() < _AS_IT_IS:
        return ""
    other = word[:-1] if _PLURAL.search(word) else f"{word}s"
    return other if usage.frequencies[other] >= FEWEST_CHUNKS and usage.is_noun(other) else ""


def split_pieces(sentence: str) -> list[str]:
    """Return the words of a sentence with their punctuation, without the sentence end and linking words."""
    return str(_LINKING.sub("", sentence)).rstrip(".!? 。！？").split()


def choose_gap(pieces: Sequence[str], task: Task) -> int | None:
    """Return the position of the word to ask for: a number, else a name or an identifier, else None."""
    if len(pieces) < FEWEST_PIECES:
        return None
    numbers = [at for at, piece in enumerate(pieces) if NUMBER.fullmatch(piece.strip(_AROUND))]
    if numbers:
        return task.chance.choice(numbers)
    names = [at for at, piece in enumerate(pieces) if at and _is_name(piece.strip(_AROUND), task)]
    return max(names, key=lambda at: (task.material.terms.weight(pieces[at].strip(_AROUND)), at), default=None)


def find_clause(pieces: Sequence[str], at: int, most: int) -> tuple[int, int]:
    """Return the bounds of a sentence or, if it has more than `most` words, of the clause around a word."""
    if len(pieces) <= most:
        return 0, len(pieces)
    marks = [place + 1 for place, piece in enumerate(pieces) if piece[-1] in ",;:"]
    return max((mark for mark in marks if mark <= at), default=0), min(
        (mark for mark in marks if mark > at), default=len(pieces)
    )


def _is_name(piece: str, task: Task) -> bool:
    return is_identifier(piece) or (len(piece) > 2 and piece[0].isupper() and task.material.usage.is_name(piece))
