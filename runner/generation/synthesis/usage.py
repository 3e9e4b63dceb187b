"""How a corpus of chunks uses its words: as nouns, as verbs, as names, and in which headings.

English tells a noun from a verb by the words before and after; of other languages it knows frequencies alone. It knows
nothing of queries.

Klein and Simmons (1963), A computational approach to grammatical coding of English words, tell parts of speech so too.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

import numpy as np
import regex

from retrievers.analyzer import Analyzer
from runner.generation.synthesis.base import Chunks
from runner.generation.synthesis.language import ENGLISH, function_words, language_of
from runner.generation.synthesis.terms import content

MOST_CHUNKS = 5_000
"""So many chunks tell how words are used; of more, as many are looked at, evenly spread."""

COMMON_HEADING = 3
"""A heading that so many documents have, as "Overview", names nothing."""

FEWEST_TOGETHER = 3
"""In so many chunks two words stand next to each other that make up a term."""

_FEW_CHUNKS = 100
"""In fewer chunks, words that belong together may stand so only once."""

_OF_ALL = 0.2
"""The share of chunks that have the name of what all of them are about."""

GERMAN = "german"

_SAMPLE = 200
"""How many chunks tell the language of all."""

_TOKEN = regex.compile(r"\p{L}[\p{L}\p{M}\p{N}'’-]*|[^\s\p{L}]")
_HEADING = regex.compile(r"^ {0,3}#{1,6}[ \t]+(.+?)[ \t#]*$", regex.MULTILINE)
_NO_NOUN = regex.compile(r"(?:ly|ed|ing|ous|ful|ive|able|ible|al|ic|less|ary|est)$")
"""Endings of words that are rather adjectives, participles or adverbs."""

_SURELY = 3
"""What is a verb so many times as often as a noun is no noun."""

_AT_TIMES = 0.05
"""A word that stands alone where a noun can stand in fewer of its chunks is something else."""

_BEFORE_NOUN = """a an the its their his her our your my each every any no of in on at for with from by between into
through under over about within without during via per against among across"""
_BEFORE_VERB = """to can could will would may might must shall should cannot not you we they it he she i who which that
does do did don't doesn't let also"""
BEFORE_NOUN, BEFORE_VERB = frozenset(_BEFORE_NOUN.split()), frozenset(_BEFORE_VERB.split())


@dataclass(frozen=True, eq=False)
class Usage:
    """Counts of words in small letters: in all, where only a noun or a verb can stand, as names; and of headings.

    `frequencies` and `pairs` (of neighbouring words) are numbers of chunks, `headings` numbers of documents;
    `n_chunks` is how many were counted.
    """

    language: str
    frequencies: Counter[str]
    nouns: Counter[str]
    verbs: Counter[str]
    names: Counter[str]
    headings: Counter[str]
    pairs: Counter[tuple[str, str]]
    n_chunks: int

    def is_noun(self, word: str) -> bool:
        """Tell a word that is rather a noun than a verb; by its ending where it is never seen as either.

        In German, a word with a capital; in languages that say neither, any word.
        """
        if self.language != ENGLISH:
            return self.language != GERMAN or self.is_name(word)
        nouns, verbs = self._seen(word.lower())
        if not nouns and not verbs:
            return not _NO_NOUN.search(word)
        return nouns > verbs and nouns >= _AT_TIMES * self.frequencies[word.lower()]

    def is_verb(self, word: str) -> bool:
        """Tell a word that is a verb, and hardly ever anything else."""
        nouns, verbs = self._seen(word.lower())
        return verbs > _SURELY * nouns

    def _seen(self, word: str) -> tuple[int, int]:
        """Return how often a word is a noun and a verb; what ends in s, together with what it is without."""
        forms = {word, word.removesuffix("s")}
        return sum(self.nouns[form] for form in forms), sum(self.verbs[form] for form in forms)

    def is_name(self, word: str) -> bool:
        """Tell a word that mostly has a capital, and not for being the first of its sentence."""
        return 2 * self.names[word.lower()] > self.frequencies[word.lower()]

    def is_term(self, phrase: Sequence[str]) -> bool:
        """Tell a phrase whose neighbouring words stand together in several chunks, so that it is no accident."""
        least = min(FEWEST_TOGETHER, 1 + self.n_chunks // _FEW_CHUNKS)
        return all(self.pairs[a.lower(), b.lower()] >= least for a, b in pairwise(phrase))

    @cached_property
    def site_name(self) -> str:
        """Return the name that most chunks have, as that of a product its manual is about, "" where there is none."""
        common = ((count, word) for word, count in self.frequencies.items() if count >= _OF_ALL * self.n_chunks)
        names = [(count, word) for count, word in common if self.is_name(word)]
        return max(names)[1] if names and self.n_chunks >= _FEW_CHUNKS else ""

    def is_common(self, heading: str) -> bool:
        """Tell a heading that many documents have."""
        return self.headings[_plain(heading)] >= COMMON_HEADING


@lru_cache(maxsize=2)
def usage_of(chunks: Chunks, analyzer: Analyzer) -> Usage:
    """Return how chunks use their words, counted once for the same chunks; the analyzer's language is the likeliest."""
    expected = analyzer.stopwords if isinstance(analyzer.stopwords, str) else analyzer.stemmer or ENGLISH
    n = len(chunks)
    sample = np.unique(np.linspace(0, n - 1, min(n, _SAMPLE)).astype(int)).tolist()
    languages = Counter(language_of(content(chunks, at), expected) for at in sample)
    language = max(sorted(languages), key=languages.__getitem__, default=expected)
    counted = np.unique(np.linspace(0, n - 1, min(n, MOST_CHUNKS)).astype(int)).tolist()
    usage = Usage(language, Counter(), Counter(), Counter(), Counter(), _headings(chunks), Counter(), len(counted))
    for at in counted:
        title = chunks.titles[at] if chunks.titles else ""
        _count(usage, f"# {title}\n\n{chunks.texts[at]}" if title else chunks.texts[at])
    return usage


def _count(usage: Usage, text: str) -> None:
    tokens = [str(token) for token in _TOKEN.findall(text)]
    small = [token.lower() for token in tokens]
    usage.frequencies.update({word for word in small if word[0].isalpha()})
    body = [str(token) for token in _TOKEN.findall(_HEADING.sub(".", text))]  # headings capitalize ordinary words
    usage.names.update({
        token.lower() for before, token in zip([".", *body], body, strict=False)
        if (before[0].isalpha() or before == ",") and token[0].isupper() and not token.isupper()
    })  # fmt: skip
    idle = function_words(usage.language)
    usage.pairs.update({
        (a, b) for a, b in pairwise(small) if a[0].isalpha() and b[0].isalpha() and a not in idle and b not in idle
    })  # fmt: skip
    if usage.language != ENGLISH:
        return
    for before, word, after in zip([".", *small], small, [*small[1:], "."], strict=False):
        if before in BEFORE_VERB and word not in idle:
            usage.verbs[word] += 1
        elif before in BEFORE_NOUN and (after in idle or not after[0].isalpha()) and word not in idle:
            usage.nouns[word] += 1


def _headings(chunks: Chunks) -> Counter[str]:
    documents: dict[str, set[str]] = defaultdict(set)
    for at, document in enumerate(chunks.doc_ids):
        titles = chunks.titles[at].split(" > ") if chunks.titles else []
        for heading in (*titles, *_HEADING.findall(chunks.texts[at])):
            documents[_plain(heading)].add(document)
    return Counter({heading: len(found) for heading, found in documents.items()})


def _plain(heading: str) -> str:
    return " ".join(regex.findall(r"[\p{L}\p{N}]+", heading.lower()))
