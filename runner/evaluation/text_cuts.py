"""Describe what encoders and rerankers cut from texts that are longer than they read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from retrievers.base import Corpus, iter_parts
from retrievers.encoders.cuts import CUT, UNITS, CutKind, Cuts, SilentCutter
from retrievers.llm.model_calls import count_bytes


def describe_cuts(figures: Mapping[str, float], sizes: Mapping[CutKind, int], pieces: str) -> list[str]:
    """Return a sentence for each part of a retriever that cut texts, from its counts among the figures of a search.

    `sizes` are the numbers of documents and queries, and `pieces` what the documents are called.
    """
    nouns: Mapping[CutKind, str] = {
        "documents": pieces,
        "queries": "queries",
        "pairs": "pairs of query and document",
        "passages": "passages",
    }
    sentences = []
    for kind, noun in nouns.items():
        for part in (name.removesuffix(f"{kind}{CUT}") for name in figures if name.endswith(f"{kind}{CUT}")):
            cuts = Cuts.from_figures(figures, kind, part)
            if not cuts.cut or (part and not part.endswith(".")):
                continue
            who = f"{part.removesuffix('.')}: the model" if part else "the model"
            n = f"{cuts.cut:,} of {sizes[kind]:,}" if kind in sizes else f"{cuts.cut:,}"
            what = f"cut {n} {noun}, which are longer than it reads"
            if kind == "passages":
                what = f"was shown only the beginning of {n} {noun}, which are longer than max_words"
            sentences.append(
                f"{who} {what}: {cuts.unread / cuts.tokens:.1%} of the {UNITS[kind]} of all {noun} were not read; "
                f"{_REMEDIES[kind]}"
            )
    return sentences


def describe_silent_cuts(settings: object, corpus: Corpus) -> list[str]:
    """Return a sentence for each service within a retriever that may cut the longest document without saying so."""
    sentences = list(_iter_silent_cuts(settings))
    longest = max(map(count_bytes, corpus.contents()), default=0) if sentences else 0
    return [f"{text}. The longest document has {longest:,} bytes" for text in sentences if longest > _SHORT]


def _iter_silent_cuts(settings: object) -> Iterator[str]:
    if isinstance(settings, SilentCutter) and (sentence := settings.describe_silent_cuts()):
        yield sentence
    for part in iter_parts(settings):
        yield from _iter_silent_cuts(part)


_SHORT = 2_000
"""The number of bytes of a text that every service reads whole: the least read 512 tokens."""

_REMEDIES: Mapping[CutKind, str] = {
    "documents": "split documents (chunking=tokens), or choose a model that reads more",
    "queries": "shorten the queries, or choose a model that reads more",
    "pairs": "split documents (chunking=tokens), or choose a model that reads more",
    "passages": "split documents (chunking=tokens), or raise max_words of the reranker",
}
