"""Find queries that are documents of the corpus, and leave them out of their own results.

Duplicate questions, query by example and argument retrieval search a collection for documents like one of its own.
Every retriever ranks that document first, which says nothing; BEIR and MTEB leave it out (`ignore_identical_ids`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from retrievers.base import NOTHING, Corpus, Rankings

if TYPE_CHECKING:
    from runner.datasets.base import Dataset, Judgments, Queries

ExcludeSelf = Literal["auto", "true", "false"]

EXCLUDED = "own_documents_excluded"
"""The diagnostic that counts how often a query's own document was removed from its ranking."""


def own_documents(corpus: Corpus, queries: Queries, judgments: Judgments, mode: ExcludeSelf) -> NDArray[np.int32]:
    """Return the position of the document that each query is (n,), int32, -1 for none.

    It has the query's id; with `auto` it must have the same text too, because ids of queries and documents may both be
    plain numbers. A document that is gold for the query is not left out.
    """
    own = np.full(len(queries), NOTHING, dtype=np.int32)
    if mode == "false":
        return own
    query_at = {identifier: position for position, identifier in enumerate(queries.ids)}
    for document, identifier in enumerate(corpus.ids):
        query = query_at.get(identifier)
        if query is not None and (mode == "true" or _is_text_of(queries.texts[query], corpus, document)):
            own[query] = document
    if (own == NOTHING).all():
        return own
    gold = judgments.grades > 0
    is_gold = own[judgments.queries[gold]] == judgments.documents[gold]
    own[judgments.queries[gold][is_gold]] = NOTHING
    return own


def rows_to_exclude(dataset: Dataset) -> int:
    """Return how many more results to request so that enough remain without a query's own document.

    It is one, or the largest number of chunks of such a document; 0 if no query is a document.
    """
    own = dataset.own_documents[dataset.own_documents != NOTHING]
    if not len(own) or dataset.document_of is None:
        return int(len(own) > 0)
    return int(np.bincount(dataset.document_of, minlength=int(own.max()) + 1)[own].max())


def exclude_own(dataset: Dataset, rankings: Rankings, depth: int) -> Rankings:
    """Return the rankings without each query's own document, cut to `depth`; later hits move up."""
    if not rows_to_exclude(dataset):
        return rankings
    documents, n = rankings.documents, len(dataset.corpus)
    known = (documents != NOTHING) & (documents < n)  # unknown hits are not documents of the dataset
    parents = documents if dataset.document_of is None else dataset.document_of[np.where(known, documents, 0)]
    own = known & (parents == dataset.own_documents[:, None])
    order = np.argsort(own, axis=1, kind="stable")
    kept = np.take_along_axis(np.where(own, np.int32(NOTHING), documents), order, axis=1)
    scores = np.take_along_axis(np.where(own, np.float32(-np.inf), rankings.scores), order, axis=1)
    diagnostics: Mapping[str, float] = {**rankings.diagnostics, EXCLUDED: float(own.any(axis=1).sum())}
    return replace(rankings, documents=kept, scores=scores, diagnostics=diagnostics).cut(depth)


def _is_text_of(query: str, corpus: Corpus, document: int) -> bool:
    title, text = corpus.titles[document] if corpus.titles else "", corpus.texts[document]
    return _plain(query) in {_plain(text), _plain(title), _plain(f"{title} {text}")}


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())
