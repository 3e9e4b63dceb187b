"""Collect the material for queries: subject, phrases, words and sentences of goldens, weighted against distractors."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import regex

from runner.features.synthesize.base import Bundle, Chunks
from runner.features.synthesize.language import detect_language
from runner.features.synthesize.limits import words
from runner.features.synthesize.phrases import LONGEST_PHRASE, Phrasing, iter_spans
from runner.features.synthesize.prose import Prose, parse_prose
from runner.features.synthesize.terms import Terms, content
from runner.features.synthesize.usage import WordUsage, count_usage

_STATEMENTS = 4
"""The number of sentences that summarise a chunk; only a reader of the chunk would ask about the others."""

_HEADING = 3
"""The weight of a word in a heading, in occurrences."""

_USUAL = 10
"""A word in this many chunks is assumed to be known to half of the people who ask."""

_NUMBERING = regex.compile(r"^(?:\d+[.)]|\d+(?:\.\d+)+\.?|step\s+\d+[:.]?)\s+", regex.IGNORECASE)

_ASIDE = regex.compile(r"\s*\([^()]*\)")

_SPECIFIC = 0.5
"""A heading is specific to its section if one of its words has at least this share of the largest possible IDF."""

_IN_DISTRACTOR = 0.6
"""The share of its weight that a word loses if all distractors have it."""


@dataclass(frozen=True, eq=False)
class Material:
    """The material of goldens; the first golden comes before the others."""

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
        """Return the sentences of the first golden, or its headings if it has none, the most central first."""
        sentences = self.prose.sentences or self.prose.headings
        return tuple(sorted(sentences, key=lambda sentence: -self._centrality(sentence)))

    @cached_property
    def whole_sentences(self) -> tuple[str, ...]:
        """Return the complete sentences of the first golden, the most central first."""
        return tuple(sorted(self.prose.statements, key=lambda sentence: -self._centrality(sentence)))

    @cached_property
    def statements(self) -> tuple[str, ...]:
        """Return the main statements of the first golden: long headings and central sentences."""
        headings = [
            heading for heading in self.prose.headings if len(self.phrasing.content_words(heading)) > LONGEST_PHRASE
        ]
        return tuple(dict.fromkeys([*headings[::-1], *self.sentences]))[:_STATEMENTS]

    def _centrality(self, sentence: str) -> float:
        weights = [self.weights[word] for word in set(self.phrasing.content_words(sentence))]
        total = math.fsum(weights)  # exact, because the order of a set differs between processes
        return total / math.sqrt(len(weights)) if weights else 0.0

    @cached_property
    def counts(self) -> Counter[str]:
        """Return the count of each word in the prose; words of headings count several times."""
        sentences = Counter(word for text in self.prose.sentences for word in self.phrasing.content_words(text))
        headings = Counter(word for text in self.prose.headings for word in self.phrasing.content_words(text))
        return sentences + Counter({word: _HEADING * count for word, count in headings.items()})

    @cached_property
    def tf_idf(self) -> dict[str, float]:
        """Return the tf-idf weight of each word of the prose, reduced for words that distractors have too."""
        distractors = self.bundle.distractors
        elsewhere = Counter(word for at in distractors for word in set(words(content(self.chunks, at))))
        shares_elsewhere = [elsewhere[word.lower()] / max(len(distractors), 1) for word in self.counts]
        return {
            word: (1 + math.log(count)) * self.terms.weight(word) * (1 - _IN_DISTRACTOR * share)
            for (word, count), share in zip(self.counts.items(), shares_elsewhere, strict=True)
        }

    @cached_property
    def weights(self) -> dict[str, float]:
        """Return the weight of each word of the prose as a query word of people who have not read it.

        People ask about what a chunk repeats, in words that other texts use too: a query simulated from only the most
        specific words is easier for lexical search than real queries. See Azzopardi, de Rijke and Balog (2007),
        Building simulated queries for known-item topics.
        """
        return {word: weight * self._familiarity(word) for word, weight in self.tf_idf.items()}

    def _familiarity(self, word: str) -> float:
        n_chunks = self.terms.n_chunks_with(word)
        return self.counts[word] * n_chunks / (n_chunks + _USUAL)

    @cached_property
    def usage(self) -> WordUsage:
        """Return the use of words in all chunks."""
        return count_usage(self.chunks, self.terms.analyzer)

    @cached_property
    def phrasing(self) -> Phrasing:
        """Return how the first golden is split into phrases in its language."""
        language = detect_language(content(self.chunks, self.bundle.goldens[0]), self.usage.language)
        return Phrasing(language, self.usage, self.terms.analyzer)

    @cached_property
    def phrases(self) -> tuple[str, ...]:
        """Return phrases of the prose by descending score; no two share a word."""
        counts: Counter[tuple[str, ...]] = Counter()
        for text in (*self.prose.headings, *self.sentences):
            counts.update(self.phrasing.phrases(text))
        ranked = sorted(counts, key=lambda phrase: (-self.score(phrase, counts[phrase]), phrase))
        kept: dict[str, None] = {}
        for phrase in ranked[:60]:
            joined = " ".join(phrase)
            if not any(_overlapping(joined, other) for other in kept):
                kept[joined] = None
        return tuple(kept)

    def score(self, phrase: Sequence[str], count: int = 1) -> float:
        """Return the score of a phrase that the prose has `count` times."""
        if all(word.replace(".", "").isdigit() for word in phrase):
            return 0.0
        mean = sum(self.weights.get(word, 0.0) for word in phrase) / len(phrase)
        return mean * (1 + math.log(len(phrase))) * (1 + math.log(count))

    @cached_property
    def keywords(self) -> tuple[str, ...]:
        """Return the words by descending tf-idf, without numbers, and one word per stem."""
        by_stem: dict[tuple[str, ...], str] = {}
        for word in sorted(self.tf_idf, key=lambda word: (-self.tf_idf[word], word)):
            if regex.search(r"\p{L}{2}|\p{Lo}", word):
                by_stem.setdefault(tuple(self.terms.analyzer.terms(word)), word)
        return tuple(by_stem.values())

    @cached_property
    def telling_headings(self) -> list[str]:
        """Return the headings that few documents have, without numbering and parentheses."""
        headings = [_ASIDE.sub("", _NUMBERING.sub("", heading)).strip(" ?!.:") for heading in self.prose.headings]
        return [text for text in headings if self.phrasing.content_words(text) and not self.usage.is_common(text)]

    @property
    def is_headed(self) -> bool:
        """Return whether a heading names the subject of the chunk."""
        return bool(self.telling_headings)

    @cached_property
    def subject(self) -> str:
        """Return the subject of the chunk: its innermost heading, with the outermost one if it is not specific."""
        headings = self.telling_headings
        if not headings:
            return next(iter(self.phrases), "")
        inner, outer = headings[-1], headings[0]
        if inner == outer or self.is_specific(inner):
            return inner
        return outer if len(self.phrasing.content_words(outer)) > 2 * LONGEST_PHRASE else f"{inner} in {outer}"

    def is_specific(self, heading: str) -> bool:
        """Return whether a heading has a word that few chunks have, unlike "Overview"."""
        most = math.log1p(len(self.chunks))
        return max(map(self.terms.weight, self.phrasing.content_words(heading)), default=0.0) >= _SPECIFIC * most

    @cached_property
    def topic(self) -> str:
        """Return the subject in a few words."""
        words_of_subject = self.phrasing.content_words(self.subject)
        if len(words_of_subject) <= LONGEST_PHRASE + 1:
            return " ".join(dict.fromkeys(words_of_subject))
        parts = [part for _, run in self.phrasing.runs(self.subject) for part in iter_spans(run)]
        best = max(parts, key=lambda part: (sum(self.weights.get(word, 0.0) for word in part), part), default=())
        return " ".join(best)


@lru_cache(maxsize=1024)
def _prose(text: str, title: str) -> Prose:
    return parse_prose(text, title)


def _overlapping(phrase: str, other: str) -> bool:
    return bool(set(phrase.split()) & set(other.split()))
