"""Count the use of words in a corpus of chunks: as nouns, as verbs, as names, and in headings.

In English, neighbouring words distinguish nouns from verbs, as in Klein and Simmons (1963), A computational approach to
grammatical coding of English words. In other languages, only frequencies are counted.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

import numpy as np
import regex

from retrievers.lexical.analyzer import Analyzer
from runner.features.synthesize.base import Chunks
from runner.features.synthesize.language import ENGLISH, detect_language, function_words, word_set
from runner.features.synthesize.terms import content

MOST_CHUNKS = 5_000
"""The maximum number of chunks to count; a larger corpus is sampled evenly."""

COMMON_HEADING = 3
"""A heading of this many documents, such as "Overview", names no topic."""

FEWEST_TOGETHER = 3
"""Two words are a term if they are neighbours in at least this many chunks."""

_FEW_CHUNKS = 100
"""In a smaller corpus, being neighbours once is enough."""

_OF_ALL = 0.2
"""The name of the subject of all chunks is in at least this share of them."""

GERMAN = "german"

_SAMPLE = 200
"""The number of chunks sampled to detect the language of all."""

_TOKEN = regex.compile(r"\p{L}[\p{L}\p{M}\p{N}'’-]*|[^\s\p{L}]")
_HEADING = regex.compile(r"^ {0,3}#{1,6}[ \t]+(.+?)[ \t#]*$", regex.MULTILINE)
_NO_NOUN = regex.compile(r"(?:ly|ed|ing|ous|ful|ive|able|ible|al|ic|less|ary|est)$")
"""The endings of likely adjectives, participles and adverbs."""

_SURELY = 3
"""A word that is a verb this many times as often as a noun is a verb."""

_AT_TIMES = 0.05
"""A noun occurs in the position of a noun in at least this share of its chunks."""

BEFORE_NOUN = word_set("""
a an the its their his her our your my each every any no of in on at for with from by between into
through under over about within without during via per against among across
""")
BEFORE_VERB = word_set("""
to can could will would may might must shall should cannot not you we they it he she i who which that
does do did don't doesn't let also
""")


@dataclass(frozen=True, eq=False)
class WordUsage:
    """Counts of words in lower case (in total, in positions of nouns and of verbs, as names), and counts of headings.

    `frequencies` and `pairs` (of neighbouring words) are numbers of chunks, `headings` numbers of documents; `n_chunks`
    is the number of chunks counted.
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
        """Return whether a word is likelier a noun than a verb, judged by its ending if it occurs as neither.

        In German, a noun has a capital; in other languages without such signs, any word may be a noun.
        """
        if self.language != ENGLISH:
            return self.language != GERMAN or self.is_name(word)
        nouns, verbs = self._count_forms(word.lower())
        if not nouns and not verbs:
            return not _NO_NOUN.search(word)
        return nouns > verbs and nouns >= _AT_TIMES * self.frequencies[word.lower()]

    def is_verb(self, word: str) -> bool:
        """Return whether a word is a verb and hardly ever a noun."""
        nouns, verbs = self._count_forms(word.lower())
        return verbs > _SURELY * nouns

    def _count_forms(self, word: str) -> tuple[int, int]:
        """Return the counts of a word as a noun and as a verb, including its form without a final s."""
        forms = {word, word.removesuffix("s")}
        return sum(self.nouns[form] for form in forms), sum(self.verbs[form] for form in forms)

    def is_name(self, word: str) -> bool:
        """Return whether a word mostly has a capital within sentences."""
        return 2 * self.names[word.lower()] > self.frequencies[word.lower()]

    def is_term(self, phrase: Sequence[str]) -> bool:
        """Return whether all neighbouring words of a phrase are neighbours in several chunks."""
        least = min(FEWEST_TOGETHER, 1 + self.n_chunks // _FEW_CHUNKS)
        return all(self.pairs[a.lower(), b.lower()] >= least for a, b in pairwise(phrase))

    @cached_property
    def site_name(self) -> str:
        """Return the most frequent name, such as the product of a manual, "" if there is none."""
        common = ((count, word) for word, count in self.frequencies.items() if count >= _OF_ALL * self.n_chunks)
        names = [(count, word) for count, word in common if self.is_name(word)]
        return max(names)[1] if names and self.n_chunks >= _FEW_CHUNKS else ""

    def is_common(self, heading: str) -> bool:
        """Return whether several documents have a heading."""
        return self.headings[_plain(heading)] >= COMMON_HEADING


@lru_cache(maxsize=2)
def count_usage(chunks: Chunks, analyzer: Analyzer) -> WordUsage:
    """Return the use of words in chunks, counted once for the same chunks; the analyzer's language is the default."""
    expected = analyzer.stopwords if isinstance(analyzer.stopwords, str) else analyzer.stemmer or ENGLISH
    n = len(chunks)
    sample = np.unique(np.linspace(0, n - 1, min(n, _SAMPLE)).astype(int)).tolist()
    languages = Counter(detect_language(content(chunks, at), expected) for at in sample)
    language = max(sorted(languages), key=languages.__getitem__, default=expected)
    counted = np.unique(np.linspace(0, n - 1, min(n, MOST_CHUNKS)).astype(int)).tolist()
    usage = WordUsage(
        language, Counter(), Counter(), Counter(), Counter(), _count_headings(chunks), Counter(), len(counted)
    )
    for at in counted:
        title = chunks.titles[at] if chunks.titles else ""
        _count(usage, f"# {title}\n\n{chunks.texts[at]}" if title else chunks.texts[at])
    return usage


def _count(usage: WordUsage, text: str) -> None:
    tokens = [str(token) for token in _TOKEN.findall(text)]
    small = [token.lower() for token in tokens]
    usage.frequencies.update({word for word in small if word[0].isalpha()})
    body = [str(token) for token in _TOKEN.findall(_HEADING.sub(".", text))]  # headings capitalise ordinary words
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


def _count_headings(chunks: Chunks) -> Counter[str]:
    documents: dict[str, set[str]] = defaultdict(set)
    for at, document in enumerate(chunks.doc_ids):
        titles = chunks.titles[at].split(" > ") if chunks.titles else []
        for heading in (*titles, *_HEADING.findall(chunks.texts[at])):
            documents[_plain(heading)].add(document)
    return Counter({heading: len(ids) for heading, ids in documents.items()})


def _plain(heading: str) -> str:
    return " ".join(regex.findall(r"[\p{L}\p{N}]+", heading.lower()))
