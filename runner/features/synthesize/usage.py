"""Count how the chunks of a corpus use words: as verbs, as nouns, and in headings."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
import regex

from runner.features.synthesize.base import Chunks
from runner.features.synthesize.language import ENGLISH, detect_languages

MOST_CHUNKS = 5_000
"""The maximum number of chunks to count; a larger corpus is sampled evenly."""

COMMON_HEADING = 2
"""A heading of this many documents, such as "Overview", names no topic."""

EDGES = " \t.,;:!?()[]{}\"'“”‘’«»…*`"
"""The characters around a word that do not belong to it."""

_IDENTIFIER = regex.compile(
    r"(?=.{4,30}$)(?=.*\p{L})(?:--\w[\w-]+|\w*(?:\p{Ll}\p{Lu}|\p{L}_\p{L}|\p{L}{2}\.\p{L}{2})[\w.]*)"
)
_WORD = regex.compile(r"[\p{L}\p{M}'’]+")
_HEADING = regex.compile(r"^ {0,3}#{1,6}[ \t]+(.+?)[ \t#]*$", regex.MULTILINE)
_BEFORE_VERB = frozenset({"to", "can", "could", "will", "would", "may", "might", "must", "should", "cannot"})
_BEFORE_NOUN = frozenset({"a", "an", "the", "its", "their", "your", "this", "each", "every", "any", "no", "of"})


@dataclass(frozen=True, eq=False)
class WordUsage:
    """Counts of lower-case words after words that precede verbs or nouns, and headings.

    `headings` and `identifiers` are numbers of documents, `titles` the outermost headings of documents by id. Verbs and
    nouns are only counted in English.
    """

    verbs: Counter[str]
    nouns: Counter[str]
    headings: Counter[str]
    titles: Mapping[str, str]
    identifiers: Counter[str]

    def is_verb(self, word: str) -> bool:
        """Return whether a word, in its base form, is more often a verb than a noun."""
        return self.verbs[word] > self.nouns[word]

    def is_common(self, heading: str) -> bool:
        """Return whether several documents have a heading."""
        return self.headings[_plain(heading)] >= COMMON_HEADING

    def is_shared(self, identifier: str) -> bool:
        """Return whether several documents have a name from code, which is then not made up for an example."""
        return self.identifiers[identifier] > 1


@lru_cache(maxsize=2)
def count_usage(chunks: Chunks) -> WordUsage:
    """Return the use of words in chunks, counted once for the same chunks."""
    usage = WordUsage(Counter(), Counter(), *_count_headings(chunks), _count_identifiers(chunks))
    languages, sample = detect_languages(chunks), np.linspace(0, len(chunks) - 1, min(len(chunks), MOST_CHUNKS))
    for at in [at for at in sample.astype(int).tolist() if languages[at] == ENGLISH]:
        for before, word in pairwise(map(str.lower, _WORD.findall(chunks.texts[at]))):
            if before in _BEFORE_VERB:
                usage.verbs[word] += 1
            elif before in _BEFORE_NOUN:
                usage.nouns[word] += 1
    return usage


def is_identifier(word: str) -> bool:
    """Return whether a word is a name from code, such as `maxSize`, `max_size`, `app.run` or `--verbose`."""
    return bool(_IDENTIFIER.fullmatch(word))


def iter_identifiers(text: str) -> Iterator[str]:
    """Yield the names from code in a text."""
    yield from (name for piece in text.split() if is_identifier(name := piece.strip(EDGES)))


def _count_identifiers(chunks: Chunks) -> Counter[str]:
    """Return the number of documents with each name from code."""
    pairs = {
        (document, name)
        for document, text in zip(chunks.doc_ids, chunks.texts, strict=True)
        for name in iter_identifiers(text)
    }
    return Counter(name for _, name in pairs)


def _list_headings(chunks: Chunks, at: int) -> list[str]:
    titles = chunks.titles[at].split(" > ") if chunks.titles and chunks.titles[at] else []
    return [*titles, *map(str, _HEADING.findall(chunks.texts[at]))]


def _count_headings(chunks: Chunks) -> tuple[Counter[str], dict[str, str]]:
    """Return the number of documents with each heading, and the heading that all chunks of a document begin with."""
    documents: dict[str, set[str]] = defaultdict(set)
    outermost: dict[str, set[str]] = defaultdict(set)
    for at, document in enumerate(chunks.doc_ids):
        headings = _list_headings(chunks, at)
        outermost[document].update(headings[:1])
        for heading in headings:
            documents[_plain(heading)].add(document)
    counts = Counter({heading: len(ids) for heading, ids in documents.items()})
    return counts, {document: next(iter(titles)) for document, titles in outermost.items() if len(titles) == 1}


def _plain(heading: str) -> str:
    return " ".join(regex.findall(r"[\p{L}\p{N}]+", heading.lower()))
