"""Describe what encoders and rerankers cut from texts that are longer than they read."""

from __future__ import annotations

from collections.abc import Mapping

from retrievers.encoders.cuts import CUT, CutKind, Cuts


def describe_cuts(figures: Mapping[str, float], sizes: Mapping[CutKind, int], pieces: str) -> list[str]:
    """Return a sentence for each part of a retriever that cut texts, from its counts among the figures of a search.

    `sizes` are the numbers of documents and queries, and `pieces` what the documents are called.
    """
    nouns: Mapping[CutKind, str] = {"documents": pieces, "queries": "queries", "pairs": "pairs of query and document"}
    sentences = []
    for kind, noun in nouns.items():
        for part in (name.removesuffix(f"{kind}{CUT}") for name in figures if name.endswith(f"{kind}{CUT}")):
            cuts = Cuts.from_figures(figures, kind, part)
            if not cuts.cut or (part and not part.endswith(".")):
                continue
            who = f"{part.removesuffix('.')}: the model" if part else "the model"
            n = f"{cuts.cut:,} of {sizes[kind]:,}" if kind in sizes else f"{cuts.cut:,}"
            sentences.append(
                f"{who} cut {n} {noun}, which are longer than it reads: {cuts.unread / cuts.tokens:.1%} of the tokens "
                f"of all {noun} were not read; {_REMEDIES[kind]}"
            )
    return sentences


_REMEDIES: Mapping[CutKind, str] = {
    "documents": "split documents (chunking=tokens), or choose a model that reads more",
    "queries": "shorten the queries, or choose a model that reads more",
    "pairs": "split documents (chunking=tokens), or choose a model that reads more",
}
