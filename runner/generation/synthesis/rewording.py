"""Phrases in other words, in frames that ask about them, and sentences with a word asked for.

It knows nothing of the types of queries.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import regex

from runner.generation.synthesis.language import ENGLISH
from runner.generation.synthesis.lexicon import Synonyms
from runner.generation.synthesis.limits import Limits
from runner.generation.synthesis.material import Material
from runner.generation.synthesis.phrases import is_identifier
from runner.generation.synthesis.terms import content, shares

FEWEST_CHUNKS = 2
"""A word that fewer chunks have is no other word for another: nobody says it here."""

ENOUGH_CHUNKS = 500
"""What is not said in fewer chunks might be said all the same."""

_RARER = 0.1
"""Nor is one that is so much rarer than the word itself."""

NUMBER = regex.compile(r"(?<![\w.,-])\d+(?:[.,]\d+)*%?(?![\w-])")
_AROUND = ",;:()\"'“”"
_LINKING = regex.compile(
    r"^(?:however|therefore|thus|moreover|furthermore|for example|in addition|finally|note that|as a result|hence|"
    r"in this case|by default|also)\b,?\s*",
    regex.IGNORECASE,
)
_PLURAL = regex.compile(r"[^su]s$")
_FORM = regex.compile(r"(?:ed|ing)$")
"""A form that a rule has made, of which only the chunks can tell whether there is such a word."""
GAP = "___"

FEWEST_PIECES = 5
"""Of fewer words, one that is asked for leaves too little to know it by."""

_AS_IT_IS = 0.25
"""How often a noun keeps its number, though it has another."""


@dataclass(frozen=True)
class Task:
    """What a writer works with."""

    material: Material
    chance: random.Random
    limits: Limits
    synonyms: Synonyms
    overlap: tuple[float, float]
    most_overlap: float

    @cached_property
    def there(self) -> frozenset[str]:
        """Return the terms that any golden has."""
        chunks, terms = self.material.chunks, self.material.terms.analyzer.tokens
        return frozenset(term for at in self.material.bundle.goldens for term in terms(content(chunks, at)))

    @property
    def is_english(self) -> bool:
        """Return whether there are frames for the language of the golden."""
        return self.material.phrasing.language == ENGLISH

    def share(self, query: str) -> float:
        """Return the share of a query's terms that a golden has."""
        return shares(self.material.terms.analyzer.tokens(query), self.there)


def early(things: Sequence[str], n: int, chance: random.Random) -> list[str]:
    """Return n of some things at random, each the likelier the earlier: the weight of place r is 1 / (r + 2).

    Efraimidis and Spirakis (2006), Weighted random sampling with a reservoir.
    """
    keys = {thing: chance.random() ** (place + 2) for place, thing in enumerate(dict.fromkeys(things))}
    return sorted(keys, key=lambda thing: -keys[thing])[:n]


def framed(task: Task, frame: str, phrases: Sequence[str], most: float, fewest: int = 2) -> str:
    """Return phrases in other words in the gaps of a frame, with at most a share of terms that a golden has.

    Where other words do not do it, the phrases lose the words before their last one, as a phrase does when somebody
    says it who does not know the particulars, but keep the `fewest`; the share is more where that is not enough. It is
    "" where a word would be said twice.
    """
    parts = [
        [*(_said(word, task, False) for word in words[:-1]), _said(words[-1], task, True)]
        for words in map(str.split, phrases)
    ]
    said = [tuple(task.material.terms.analyzer.tokens(word)) for part in parts for word in part]
    if len(set(said)) < len(said):
        return ""
    while True:
        query = frame.format(*(" ".join(part) for part in parts))
        longest = max(parts, key=len)
        if len(longest) <= fewest or task.share(query) <= most:
            return query
        del longest[0]


def drawn_share(task: Task) -> float:
    """Return a share that is drawn between the bounds of `overlap`."""
    return task.chance.uniform(*task.overlap)


def other_word(word: str, task: Task) -> str:
    """Return another word for a word that is in no golden, "" where there is none; rather one that many chunks have.

    The corpus has to speak for it: it says the word often enough, uses it as the same part of speech, and in the same
    company. Of a word's senses this finds the one that is meant here, as McCarthy et al. (2004), Finding predominant
    word senses in untagged text, do with more care.
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

    others = [each for each in task.synonyms(word) if fits(each) and not task.there & set(terms.analyzer.tokens(each))]
    others.sort(key=lambda other: -usage.frequencies[other])
    return task.chance.choice(others[:2]) if others else ""


def has_other_word(phrase: str, task: Task) -> bool:
    """Tell whether a word of a phrase is said anew where the phrase is framed."""
    *before, last = phrase.split()
    return bool(_anew(last, task, True)) or any(_anew(word, task, False) for word in before)


def _anew(word: str, task: Task, is_last: bool) -> str:
    """Return another word for a word of a phrase; a noun before a noun is part of a name that has no other words."""
    return other_word(word, task) if is_last or not task.material.usage.is_noun(word) else ""


def _said(word: str, task: Task, is_last: bool) -> str:
    """Return a word of a phrase as somebody may say it: another, in another number, or as it is."""
    anew = _anew(word, task, is_last)
    return anew or task.material.phrasing.spelt((_other_number(word, task) if is_last else "") or word)


def _other_number(word: str, task: Task) -> str:
    """Return the singular of a plural noun, or the plural of another, where chunks have it; "" at times."""
    usage = task.material.usage
    if not task.is_english or is_identifier(word) or task.chance.random() < _AS_IT_IS:
        return ""
    other = word[:-1] if _PLURAL.search(word) else f"{word}s"
    return other if usage.frequencies[other] >= FEWEST_CHUNKS and usage.is_noun(other) else ""


def pieces_of(sentence: str) -> list[str]:
    """Return the words of a sentence with their punctuation, but for its end and what links it to others."""
    return str(_LINKING.sub("", sentence)).rstrip(".!? 。！？").split()


def asked_for(pieces: Sequence[str], task: Task) -> int | None:
    """Return which word of a sentence to ask for: a number, else a name or an identifier, else none."""
    if len(pieces) < FEWEST_PIECES:
        return None
    numbers = [at for at, piece in enumerate(pieces) if NUMBER.fullmatch(piece.strip(_AROUND))]
    if numbers:
        return task.chance.choice(numbers)
    names = [at for at, piece in enumerate(pieces) if at and _is_name(piece.strip(_AROUND), task)]
    return max(names, key=lambda at: (task.material.terms.weight(pieces[at].strip(_AROUND)), at), default=None)


def clause_around(pieces: Sequence[str], at: int, most: int) -> tuple[int, int]:
    """Return where a sentence begins and ends, or where it has more than so many words, its clause around a word."""
    if len(pieces) <= most:
        return 0, len(pieces)
    marks = [place + 1 for place, piece in enumerate(pieces) if piece[-1] in ",;:"]
    return max((mark for mark in marks if mark <= at), default=0), min(
        (mark for mark in marks if mark > at), default=len(pieces)
    )


def _is_name(piece: str, task: Task) -> bool:
    return is_identifier(piece) or (len(piece) > 2 and piece[0].isupper() and task.material.usage.is_name(piece))
