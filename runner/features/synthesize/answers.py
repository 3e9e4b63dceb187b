"""Locate the sentences of a gold chunk that a query was generated from, by the words of the query.

Nothing here understands the text: the sentences have the words of the query, and usually its answer.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from typing import Literal, NamedTuple

import regex

from runner.datasets.words import sentence_ends
from runner.features.synthesize.language import question_analyzer

Way = Literal["exact", "words", "chunk"]
"""How a passage was located: the query occurs in it verbatim, or it has the words of the query; or it is the chunk."""

LEAST = 0.5
"""The share of the terms of a query that a chunk must have for its sentences to be told apart by them."""

_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t].*", re.MULTILINE)


class GoldPassage(NamedTuple):
    """The characters of a chunk that answer a query, and how they were located."""

    start: int
    end: int
    way: Way


def locate_answer(query: str, chunk: str, title: str, language: str) -> GoldPassage:
    """Return the sentences of a chunk that a query is about, or all of it if no sentences stand out.

    These are the sentences in which the query occurs verbatim, if it occurs once; else the shortest run of sentences
    with all terms of the query that the chunk has. It is the chunk if that has less than half of the terms, if several
    runs are the shortest, or if the title or the headings have these terms as well: then the query is about the whole
    section.
    """
    whole, analyzer = GoldPassage(0, len(chunk), "chunk"), question_analyzer(language)
    terms, headings = set(analyzer.tokens(query)), "\n".join([title, *_HEADING.findall(chunk)])
    bounds = sorted({0, *sentence_ends(chunk), len(chunk)})
    sentences = [terms.intersection(analyzer.tokens(chunk[start:end])) for start, end in pairwise(bounds)]
    wanted = set[str]().union(*sentences)
    if wanted <= set(analyzer.tokens(headings)):
        return whole
    if place := _find_verbatim(query, chunk):
        start = max(bound for bound in bounds if bound <= place[0])
        return _trim(chunk, start, min(bound for bound in bounds if bound >= place[1]), "exact")
    if len(wanted) < LEAST * len(terms):
        return whole
    runs = _list_runs(sentences, wanted)
    shortest = min(end - first for first, end in runs)
    best, *others = [run for run in runs if run[1] - run[0] == shortest]
    return whole if others else _trim(chunk, bounds[best[0]], bounds[best[1]], "words")


def _find_verbatim(query: str, chunk: str) -> tuple[int, int] | None:
    """Return the only place of a query in a chunk, None without one; case and white space may differ."""
    pattern = r"\s+".join(map(regex.escape, query.split()))
    places = [match.span() for match in regex.finditer(pattern, chunk, regex.IGNORECASE)] if pattern else []
    return places[0] if len(places) == 1 else None


def _list_runs(sentences: list[set[str]], wanted: set[str]) -> list[tuple[int, int]]:
    """Return the runs of sentences with all wanted terms, none of which contains another.

    A window over the sentences grows at its end until it has all terms, then shrinks from its start while it still has
    them; so each sentence enters and leaves once, and a long chunk takes no longer per sentence than a short one.
    """
    runs: list[tuple[int, int]] = []
    seen, first = Counter[str](), 0
    for end, terms in enumerate(sentences, start=1):
        seen.update(terms)
        while all(seen[term] - (term in sentences[first]) > 0 for term in wanted) and first < end - 1:
            seen.subtract(sentences[first])
            first += 1
        if all(seen[term] > 0 for term in wanted) and not (runs and runs[-1][0] == first):
            runs.append((first, end))
    return runs


def _trim(chunk: str, start: int, end: int, way: Way) -> GoldPassage:
    passage = chunk[start:end]
    if passage.strip() == chunk.strip():
        return GoldPassage(0, len(chunk), "chunk")
    return GoldPassage(start + len(passage) - len(passage.lstrip()), start + len(passage.rstrip()), way)
