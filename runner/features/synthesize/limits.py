"""Check the limits of a query, whoever wrote it: its length, how much it copies, and that it names no document."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from pathlib import Path
from string import punctuation
from types import MappingProxyType
from typing import Annotated, ClassVar

import regex
from pydantic import Field, field_validator
from pydantic.dataclasses import dataclass as settings

from retrievers.access import Access
from runner.datasets.folder import is_document
from runner.datasets.words import SPACELESS
from runner.features.synthesize.base import Chunks, Request, check_names

CAPS: Mapping[str, int] = MappingProxyType({
    "concept_seeking": 48, "exact_snippet": 96, "web_search_like": 16, "low_overlap": 48, "fact_seeking": 24,
    "keyword": 8, "misspellings": 24, "long": 64, "medium": 32, "short": 8, "comparison": 32,
})  # fmt: skip
"""The maximum number of tokens of a query of each type."""

LENGTHS: Mapping[str, tuple[int, int]] = MappingProxyType({"long": (21, 128), "medium": (5, 20), "short": (1, 4)})
"""The minimum and maximum number of tokens of the types defined by length; the cap applies as well."""

A_TERM = 4
"""Up to this many consecutive words count as a term, not as a copy."""

SHORTEST_ID = 3
"""Shorter identifiers are not looked for in queries, because they are too often ordinary numbers."""

ORDINARY = 2
"""A plain word in chunks of this many other documents is ordinary, even if it is a document's identifier."""

_PLAIN = regex.compile(r"\p{L}[\p{Ll}\p{Lo}]*")
_TOKENS = regex.compile(rf"[{SPACELESS}]|[^\s{SPACELESS}]+")
_WORDS = regex.compile(rf"[{SPACELESS}]|[^\W{SPACELESS}]+(?:['’][^\W{SPACELESS}]+)*")

Count = Annotated[int, Field(ge=1)]


@settings(frozen=True, kw_only=True, config={"extra": "forbid"})
class QueryLimits:
    """Limits of queries. Types missing from `caps` and `lengths` keep their defaults.

    `caps` are the maximum numbers of tokens by type, `lengths` the minimum and maximum of the types defined by length.
    At most a share of `copied` of a query's words may occur consecutively in a golden; exact snippets are exempt.
    """

    access: ClassVar[Access] = Access()

    caps: Mapping[str, Count] = field(default_factory=dict)
    lengths: Mapping[str, tuple[Count, Count]] = field(default_factory=dict)
    copied: float = Field(default=0.7, gt=0, le=1)

    @field_validator("caps", "lengths")
    @classmethod
    def _check_types(cls, value: Mapping[str, object]) -> Mapping[str, object]:
        check_names(value)
        return value

    @field_validator("lengths")
    @classmethod
    def _check_order(cls, value: Mapping[str, tuple[int, int]]) -> Mapping[str, tuple[int, int]]:
        for name, (least, most) in value.items():
            if least > most:
                raise ValueError(f"{name}: the minimum ({least} tokens) must not exceed the maximum ({most})")
        return value

    def bounds(self, query_type: str) -> tuple[int, int]:
        """Return the minimum and maximum number of tokens of a query of a type."""
        least, most = self.lengths.get(query_type, LENGTHS.get(query_type, (1, CAPS[query_type])))
        return least, min(most, self.caps.get(query_type, CAPS[query_type]))

    def fault(self, query: str, chunks: Chunks, request: Request) -> str:
        """Return the limit that a query breaks in a word or two, "" for none."""
        least, most = self.bounds(request.query_type)
        n_tokens = len(tokens(query))
        if not n_tokens:
            return "empty"
        if not least <= n_tokens <= most:
            return "too short" if n_tokens < least else "too long"
        goldens = request.bundle.goldens
        if names_document(query, [chunks.doc_ids[golden] for golden in goldens], find_ordinary_ids(chunks)):
            return "names its document"
        if request.query_type == "exact_snippet":
            return (
                ""
                if any(collapse_spaces(query) in collapse_spaces(chunks.texts[at]) for at in goldens)
                else "not verbatim"
            )
        if any(measure_copying(query, chunks.texts[golden]) > self.copied for golden in goldens):
            return "copied"
        return ""


def tokens(text: str) -> list[str]:
    """Split a text at white space; each character of a script without spaces is a token."""
    return list(map(str, _TOKENS.findall(text)))


def words(text: str) -> list[str]:
    """Return a text's words in lower case, without punctuation."""
    return list(map(str, _WORDS.findall(text.lower())))


def collapse_spaces(text: str) -> str:
    """Return a text with each sequence of white space replaced by one space."""
    return " ".join(text.split())


def measure_copying(query: str, text: str) -> float:
    """Return the share of a query's words in its longest sequence that is in a text; 0 if it is only a term."""
    query_words = words(query)
    text_words = f" {' '.join(words(text))} "
    longest, start = 0, 0
    for end in range(1, len(query_words) + 1):
        while start < end and f" {' '.join(query_words[start:end])} " not in text_words:
            start += 1
        longest = max(longest, end - start)
    return longest / len(query_words) if longest > A_TERM else 0.0


def names_document(query: str, doc_ids: Sequence[str], ordinary: Collection[str] = ()) -> bool:
    """Return whether a query contains a document's identifier, as one word or as consecutive words.

    An identifier that is an `ordinary` word only counts as the name of a Markdown or text file.
    """
    normalized = _normalize(query)
    names = (token.strip(punctuation).lower() for token in tokens(query))
    files = {Path(name).stem for name in names if is_document(Path(name))}
    return any(
        doc_id.lower() in files if doc_id in ordinary else _normalize(doc_id) in normalized
        for doc_id in doc_ids
        if len(doc_id) >= SHORTEST_ID
    )


@lru_cache(maxsize=2)
def find_ordinary_ids(chunks: Chunks) -> frozenset[str]:
    """Return the documents' identifiers that are ordinary words: plain words that other documents use as well.

    A plain word has only letters, and no capital after the first letter.
    """
    plain = {doc_id: doc_id.lower() for doc_id in chunks.doc_ids if _PLAIN.fullmatch(doc_id)}
    users: dict[str, set[str]] = {word: set() for word in plain.values()}
    for doc_id, text in zip(chunks.doc_ids, chunks.texts, strict=True) if plain else ():
        for word in users.keys() & set(words(text)):
            users[word].add(doc_id)
    return frozenset(doc_id for doc_id, word in plain.items() if len(users[word] - {doc_id}) >= ORDINARY)


def _normalize(text: str) -> str:
    return f" {' '.join(words(text.replace('_', ' ')))} "
