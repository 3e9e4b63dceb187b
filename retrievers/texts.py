"""Fetch, by id, the texts of documents that only the index behind a retriever has, for readers and judges."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from retrievers.base import Corpus, RetrieverError, iter_parts

log = logging.getLogger("retrievers")


@runtime_checkable
class FetchesTexts(Protocol):
    """A retriever that can return documents of its index by id."""

    def fetch_texts(self, ids: Sequence[str]) -> Mapping[str, str]:
        """Return the texts of documents by id, without those that it does not have."""
        ...


def has_texts(retriever: object) -> bool:
    """Return whether a retriever or one of its parts can return documents of its index."""
    return isinstance(retriever, FetchesTexts) or any(map(has_texts, iter_parts(retriever)))


def fetch_texts(retriever: object, ids: Sequence[str]) -> dict[str, str]:
    """Return the texts of documents by id, from the retriever or the first of its parts that has them.

    A part that fails returns no texts and logs a warning: texts only explain an existing result.
    """
    if isinstance(retriever, FetchesTexts):
        try:
            return dict(retriever.fetch_texts(ids)) if ids else {}
        except RetrieverError as error:
            log.warning("the texts of %s documents could not be fetched (%s)", f"{len(ids):,}", error)
            return {}
    texts: dict[str, str] = {}
    for part in iter_parts(retriever):
        texts |= fetch_texts(part, [name for name in ids if name not in texts])
    return texts


def fetch_documents(retriever: object, corpus: Corpus, ids: Sequence[str]) -> Corpus:
    """Return a corpus, extended by the documents with these ids that it lacks and the retriever's index has."""
    missing = [name for name in dict.fromkeys(ids) if name not in corpus.positions] if has_texts(retriever) else []
    texts = fetch_texts(retriever, missing)
    if not texts:
        return corpus
    return Corpus(
        [*corpus.ids, *texts],
        [*corpus.texts, *texts.values()],
        [*corpus.titles, *[""] * len(texts)] if corpus.titles else (),
        [*corpus.metadata, *({} for _ in texts)] if corpus.metadata else (),
    )
