"""What a query can be made of: the subject of goldens, their phrases, words and sentences, weighed against distractors.

It knows nothing of the types of queries.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import regex

from runner.generation.synthesis.base import Bundle, Chunks
from runner.generation.synthesis.language import language_of
from runner.generation.synthesis.limits import words
from runner.generation.synthesis.phrases import LONGEST_PHRASE, Phrasing, spans
from runner.generation.synthesis.prose import Prose, prose_of
from runner.generation.synthesis.terms import Terms, content
from runner.generation.synthesis.usage import Usage, usage_of

_STATEMENTS = 4
"""How many sentences tell the gist of a chunk: who asks for the rest has read it."""

_HEADING = 3
"""How often a word of a heading counts."""

_USUAL = 10
"""Of a word in so many chunks, half of those who ask are taken to know it."""

_NUMBERING = regex.compile(r"^(?:\d+[.)]|\d+(?:\.\d+)+\.?|step\s+\d+[:.]?)\s+", regex.IGNORECASE)

_ASIDE = regex.compile(r"\s*\([^()]*\)")

_SPECIFIC = 0.5
"""A heading is about its section alone if a word of it has at least this share of the largest IDF there is."""

_IN_DISTRACTOR = 0.6
"""How much of its weight a word loses that all distractors have."""


@dataclass(frozen=True, eq=False)
class Material:
    """What goldens offer, the first before the others."""

    chunks: Chunks
    bundle: Bundle
    terms: Terms

    @cached_property
    def prose(self) -> Prose:
        """Return the prose of the first golden."""
        return self.prose_at(self.bundle.goldens[0])

    def prose_at(self, golden: int) -> Prose:
        """Return the prose of a golden."""
        return _prose(self.chunks.texts[golden], self.chunks.titles[golden] if self.chunks.titles else "")

    @cached_property
    def sentences(self) -> tuple[str, ...]:
        """Return the sentences of the first golden, those first that are most about what all of it is about.

        Where it has none, its headings stand for them.
        """
        said = self.prose.sentences or self.prose.headings
        return tuple(sorted(said, key=lambda sentence: -self._gist(sentence)))

    @cached_property
    def whole_sentences(self) -> tuple[str, ...]:
        """Return the sentences of the first golden that lack nothing, those first that are most about its subject."""
        return tuple(sorted(self.prose.statements, key=lambda sentence: -self._gist(sentence)))

    @cached_property
    def statements(self) -> tuple[str, ...]:
        """Return what the first golden says above all: headings that say as much as a sentence, and such sentences."""
        headings = [
            heading for heading in self.prose.headings if len(self.phrasing.content_words(heading)) > LONGEST_PHRASE
        ]
        return tuple(dict.fromkeys([*headings[::-1], *self.sentences]))[:_STATEMENTS]

    def _gist(self, sentence: str) -> float:
        weights = [self.weights[word] for word in set(self.phrasing.content_words(sentence))]
        total = math.fsum(weights)  # exact, as a set's order is another one in each process
        return total / math.sqrt(len(weights)) if weights else 0.0

    @cached_property
    def counts(self) -> Counter[str]:
        """Return how often the prose has each word, headings counted as if said several times."""
        sentences = Counter(word for text in self.prose.sentences for word in self.phrasing.content_words(text))
        headings = Counter(word for text in self.prose.headings for word in self.phrasing.content_words(text))
        return sentences + Counter({word: _HEADING * count for word, count in headings.items()})

    @cached_property
    def tf_idf(self) -> dict[str, float]:
        """Return the words of the prose with what each tells of it; less where distractors have the word too."""
        distractors = self.bundle.distractors
        elsewhere = Counter(word for at in distractors for word in set(words(content(self.chunks, at))))
        there = [elsewhere[word.lower()] / max(len(distractors), 1) for word in self.counts]
        return {
            word: (1 + math.log(count)) * self.terms.weight(word) * (1 - _IN_DISTRACTOR * share)
            for (word, count), share in zip(self.counts.items(), there, strict=True)
        }

    @cached_property
    def weights(self) -> dict[str, float]:
        """Return the words of the prose with how likely somebody asks by them who has not read it.

        What a chunk says again and again is asked for, and in words that others use too: a query simulated from the
        most telling words alone is easier for a search by words than real ones are. See Azzopardi, de Rijke and Balog
        (2007), Building simulated queries for known-item topics.
        """
        return {word: weight * self._known(word) for word, weight in self.tf_idf.items()}

    def _known(self, word: str) -> float:
        n_chunks = self.terms.n_chunks_with(word)
        return self.counts[word] * n_chunks / (n_chunks + _USUAL)

    @cached_property
    def usage(self) -> Usage:
        """Return how all chunks use their words."""
        return usage_of(self.chunks, self.terms.analyzer)

    @cached_property
    def phrasing(self) -> Phrasing:
        """Return how the first golden is cut into phrases, as its language asks."""
        language = language_of(content(self.chunks, self.bundle.goldens[0]), self.usage.language)
        return Phrasing(language, self.usage, self.terms.analyzer)

    @cached_property
    def phrases(self) -> tuple[str, ...]:
        """Return phrases of the prose, those that say most first; none is part of an earlier one."""
        found: Counter[tuple[str, ...]] = Counter()
        for text in (*self.prose.headings, *self.sentences):
            found.update(self.phrasing.phrases(text))
        ranked = sorted(found, key=lambda phrase: (-self.score(phrase, found[phrase]), phrase))
        kept: dict[str, None] = {}
        for phrase in ranked[:60]:
            joined = " ".join(phrase)
            if not any(_overlapping(joined, other) for other in kept):
                kept[joined] = None
        return tuple(kept)

    def score(self, phrase: Sequence[str], count: int = 1) -> float:
        """Return how much a phrase says that the prose has so many times."""
        if all(word.replace(".", "").isdigit() for word in phrase):
            return 0.0
        mean = sum(self.weights.get(word, 0.0) for word in phrase) / len(phrase)
        return mean * (1 + math.log(len(phrase))) * (1 + math.log(count))

    @cached_property
    def keywords(self) -> tuple[str, ...]:
        """Return the words of highest tf-idf, no numbers among them; only one of those with the same stem."""
        by_stem: dict[tuple[str, ...], str] = {}
        for word in sorted(self.tf_idf, key=lambda word: (-self.tf_idf[word], word)):
            if regex.search(r"\p{L}{2}|\p{Lo}", word):
                by_stem.setdefault(tuple(self.terms.analyzer.terms(word)), word)
        return tuple(by_stem.values())

    @cached_property
    def telling_headings(self) -> list[str]:
        """Return the headings that few documents have."""
        headings = [_ASIDE.sub("", _NUMBERING.sub("", heading)).strip(" ?!.:") for heading in self.prose.headings]
        return [each for each in headings if self.phrasing.content_words(each) and not self.usage.is_common(each)]

    @property
    def is_headed(self) -> bool:
        """Return whether a heading says what the chunk is about."""
        return bool(self.telling_headings)

    @cached_property
    def subject(self) -> str:
        """Return what the chunk is about: its innermost heading, with the outermost where that says too little."""
        headings = self.telling_headings
        if not headings:
            return next(iter(self.phrases), "")
        inner, outer = headings[-1], headings[0]
        if inner == outer or self.is_specific(inner):
            return inner
        return outer if len(self.phrasing.content_words(outer)) > 2 * LONGEST_PHRASE else f"{inner} in {outer}"

    def is_specific(self, heading: str) -> bool:
        """Tell a heading that names its matter from one that many chunks have, as "Overview"."""
        most = math.log1p(len(self.chunks))
        return max(map(self.terms.weight, self.phrasing.content_words(heading)), default=0.0) >= _SPECIFIC * most

    @cached_property
    def topic(self) -> str:
        """Return the subject in few words."""
        said = self.phrasing.content_words(self.subject)
        if len(said) <= LONGEST_PHRASE + 1:
            return " ".join(dict.fromkeys(said))
        parts = [part for _, run in self.phrasing.runs(self.subject) for part in spans(run)]
        best = max(parts, key=lambda part: (sum(self.weights.get(word, 0.0) for word in part), part), default=())
        return " ".join(best)


@lru_cache(maxsize=1024)
def _prose(text: str, title: str) -> Prose:
    return prose_of(text, title)


def _overlapping(phrase: str, other: str) -> bool:
    return bool(set(phrase.split()) & set(other.split()))
