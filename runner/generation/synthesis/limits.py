"""What a query must keep to, whoever wrote it: its length, how much it copies, and that it names no document.

It knows nothing of how queries are written.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from pathlib import Path
from string import punctuation
from types import MappingProxyType
from typing import Annotated

import regex
from pydantic import Field, field_validator
from pydantic.dataclasses import dataclass as settings

from runner.config.objects import suggestion
from runner.datasets.folder import is_document
from runner.datasets.words import SPACELESS
from runner.generation.synthesis.base import QUERY_TYPES, Chunks, Wanted

CAPS: Mapping[str, int] = MappingProxyType({
    "concept_seeking": 48, "exact_snippet": 96, "web_search_like": 16, "low_overlap": 48, "fact_seeking": 24,
    "keyword": 8, "misspellings": 24, "long": 64, "medium": 32, "short": 8, "comparison": 32,
})  # fmt: skip
"""The most tokens that a query of each type has."""

LENGTHS: Mapping[str, tuple[int, int]] = MappingProxyType({"long": (21, 128), "medium": (5, 20), "short": (1, 4)})
"""The least and the most tokens of the types that are about length; the cap holds as well."""

A_TERM = 4
"""So many words in a row are a term that has no other words, and no copy."""

SHORTEST_ID = 3
"""An identifier of fewer characters is an ordinary number too often to be held against a query."""

ORDINARY = 2
"""A plain word that chunks of so many other documents have is an ordinary one, though a document is called by it."""

_PLAIN = regex.compile(r"\p{L}[\p{Ll}\p{Lo}]*")
_TOKENS = regex.compile(rf"[{SPACELESS}]|[^\s{SPACELESS}]+")
_WORDS = regex.compile(rf"[{SPACELESS}]|[^\W{SPACELESS}]+(?:['’][^\W{SPACELESS}]+)*")

Count = Annotated[int, Field(ge=1)]


@settings(frozen=True, kw_only=True, config={"extra": "forbid"})
class Limits:
    """The limits of queries. What is not given of `caps` and `lengths` stays as it is.

    `caps` are the most tokens by type, `lengths` the least and the most of types that are about length. At most
    `copied` of a query's words may stand in one run in one of its goldens, but for exact snippets, which are copies.
    """

    caps: Mapping[str, Count] = field(default_factory=dict)
    lengths: Mapping[str, tuple[Count, Count]] = field(default_factory=dict)
    copied: float = Field(default=0.7, gt=0, le=1)

    @field_validator("caps", "lengths")
    @classmethod
    def _of_known_types(cls, value: Mapping[str, object]) -> Mapping[str, object]:
        for name in value.keys() - set(QUERY_TYPES):
            raise ValueError(f"there is no query type {name!r}: {suggestion(name, QUERY_TYPES)}")
        return value

    @field_validator("lengths")
    @classmethod
    def _in_order(cls, value: Mapping[str, tuple[int, int]]) -> Mapping[str, tuple[int, int]]:
        for name, (least, most) in value.items():
            if least > most:
                raise ValueError(f"{name} is to have at least {least} and at most {most} tokens: no query has")
        return value

    def bounds(self, query_type: str) -> tuple[int, int]:
        """Return the least and the most tokens of a query of a type."""
        least, most = self.lengths.get(query_type, LENGTHS.get(query_type, (1, CAPS[query_type])))
        return least, min(most, self.caps.get(query_type, CAPS[query_type]))

    def fault(self, query: str, chunks: Chunks, wanted: Wanted) -> str:
        """Return what is wrong with a query in a word or two, "" for nothing."""
        least, most = self.bounds(wanted.query_type)
        n_tokens = len(tokens(query))
        if not n_tokens:
            return "empty"
        if not least <= n_tokens <= most:
            return "too short" if n_tokens < least else "too long"
        goldens = wanted.bundle.goldens
        if names_document(query, [chunks.doc_ids[golden] for golden in goldens], ordinary_ids(chunks)):
            return "names its document"
        if wanted.query_type == "exact_snippet":
            return "" if any(squeezed(query) in squeezed(chunks.texts[at]) for at in goldens) else "not verbatim"
        if any(copied(query, chunks.texts[golden]) > self.copied for golden in goldens):
            return "copied"
        return ""


def tokens(text: str) -> list[str]:
    """Cut a text at white space; characters of scripts that are written without it are tokens each."""
    return list(map(str, _TOKENS.findall(text)))


def words(text: str) -> list[str]:
    """Return a text's words in lower case, without punctuation."""
    return list(map(str, _WORDS.findall(text.lower())))


def squeezed(text: str) -> str:
    """Return a text with each run of white space made one space: a line break within a paragraph reads as one."""
    return " ".join(text.split())


def copied(query: str, text: str) -> float:
    """Return the share of a query's words that stand in one run in a text, 0 where the run is no more than a term."""
    asked = words(query)
    there = f" {' '.join(words(text))} "
    longest, start = 0, 0
    for end in range(1, len(asked) + 1):
        while start < end and f" {' '.join(asked[start:end])} " not in there:
            start += 1
        longest = max(longest, end - start)
    return longest / len(asked) if longest > A_TERM else 0.0


def names_document(query: str, doc_ids: Sequence[str], ordinary: Collection[str] = ()) -> bool:
    """Tell whether a query has a document's identifier, as a word or as words in a row, whatever joins them.

    One that is an `ordinary` word is meant only where it is written as the name of a file of Markdown or text.
    """
    asked = _spelt(query)
    names = (token.strip(punctuation).lower() for token in tokens(query))
    files = {Path(name).stem for name in names if is_document(Path(name))}
    return any(
        doc_id.lower() in files if doc_id in ordinary else _spelt(doc_id) in asked
        for doc_id in doc_ids
        if len(doc_id) >= SHORTEST_ID
    )


@lru_cache(maxsize=2)
def ordinary_ids(chunks: Chunks) -> frozenset[str]:
    """Return the documents' identifiers that are ordinary words: plain ones, which other documents use as well.

    What has a digit, a capital after the first letter, or anything that is no letter, is none.
    """
    plain = {doc_id: doc_id.lower() for doc_id in chunks.doc_ids if _PLAIN.fullmatch(doc_id)}
    users: dict[str, set[str]] = {word: set() for word in plain.values()}
    for doc_id, text in zip(chunks.doc_ids, chunks.texts, strict=True) if plain else ():
        for word in users.keys() & set(words(text)):
            users[word].add(doc_id)
    return frozenset(doc_id for doc_id, word in plain.items() if len(users[word] - {doc_id}) >= ORDINARY)


def _spelt(text: str) -> str:
    return f" {' '.join(words(text.replace('_', ' ')))} "
