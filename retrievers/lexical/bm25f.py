"""BM25F: BM25 over the fields of a document, with a weight and a length normalisation for each field.

The terms of each field are counted once; a new weight, b or k1 costs one pass over the postings of the query terms.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import AfterValidator, Field
from pydantic.dataclasses import dataclass as settings

from retrievers.access import Access
from retrievers.base import Corpus, RetrieverError, check_search_fields
from retrievers.capabilities import Capabilities
from retrievers.lexical.analyzer import Analyzer
from retrievers.lexical.bm25 import IDF, BM25Searcher, Weights
from retrievers.lexical.bm25 import RESULTS_VERSION as BM25_VERSION
from retrievers.lexical.postings import Postings, build_postings_key, load_postings
from retrievers.search import Work, build_rankings_key
from retrievers.store import Store

RESULTS_VERSION = f"bm25f 1, {BM25_VERSION}"


@settings(frozen=True, config={"extra": "forbid"})
class FieldWeight:
    """The weight of a term in a field relative to other fields, and the length normalisation of the field."""

    weight: float = Field(default=1.0, ge=0, le=1e6, allow_inf_nan=False)
    b: float = Field(default=0.4, ge=0, le=1)


_FIELDS: dict[str, FieldWeight] = {"text": FieldWeight(), "title": FieldWeight(2.0)}


def _sort(fields: dict[str, FieldWeight]) -> dict[str, FieldWeight]:
    """Return the fields sorted by name, so that their order does not change the identity."""
    return dict(sorted(fields.items()))


@settings(frozen=True, config={"extra": "forbid"})
class BM25F:
    """Settings of BM25F: the weights of `title`, `text` and any of the corpus' `search_fields`.

    See Robertson and Zaragoza (2009), The probabilistic relevance framework: BM25 and beyond, section 3.6. The fields'
    counts of a term are added up before they are saturated: tf is the sum over the fields of
    weight * count / (1 - b + b * length / mean length), and the term weighs its idf times tf / (tf + k1) in lucene and
    robertson, (k1 + 1) tf / (tf + k1) in atire. The idf is that of BM25, of documents with the term in any field.

    If `b` is set, all fields share it, and the length that it normalises is the weighted sum of the lengths of the
    fields (Robertson, Zaragoza and Taylor 2004; `combined_fields` in Elasticsearch). With weights of 1, that is BM25 on
    title and text together. A field of weight 0 is left out.
    """

    access: ClassVar[Access] = Access()
    capabilities: ClassVar[Capabilities] = Capabilities(filters=True)

    analyzer: Analyzer = Analyzer()
    fields: Annotated[dict[str, FieldWeight], AfterValidator(_sort)] = Field(default_factory=_FIELDS.copy)
    k1: float = Field(default=0.9, ge=0, le=1e6, allow_inf_nan=False)
    b: float | None = Field(default=None, ge=0, le=1)
    variant: Literal["lucene", "robertson", "atire"] = "lucene"

    def __post_init__(self) -> None:
        if not self.field_names:
            raise RetrieverError("fields: at least one field should have a weight above 0; set fields.text.weight=1")

    @property
    def field_names(self) -> list[str]:
        """Return the fields whose weight is not 0, in the order in which they are counted."""
        return [name for name, field in self.fields.items() if field.weight]

    def index(self, corpus: Corpus, store: Store) -> BM25Searcher:
        """Return a searcher; the terms of the fields are counted unless the store has the counts.

        Raises `RetrieverError` for a field that the documents do not have.
        """
        check_search_fields(corpus, "fields", self.field_names)
        postings = load_postings(corpus, self.analyzer, store, self.field_names)
        return BM25Searcher.of(self, postings, corpus, store, self.field_names)

    def plan(self, corpus: Corpus, queries: Sequence[str], k: int, store: Store) -> Work:
        """Return the search as work, which needs the term counts of the fields."""
        needs = (Work(build_postings_key(corpus, self.analyzer, self.field_names)),)
        return Work(build_rankings_key(self, corpus, queries, k), needs)

    def compute_weights(self, postings: Postings) -> Weights:
        """Return idf by term, the weight of a count by document and field (n, fields), k1, and 0."""
        fields = [self.fields[name] for name in self.field_names]
        weights = np.array([field.weight for field in fields])
        lengths = postings.lengths
        if self.b is None:
            b = np.array([field.b for field in fields])
        else:
            b, lengths = np.full(len(fields), self.b), (lengths @ weights)[:, None]
        means = lengths.mean(axis=0) if len(lengths) else np.zeros(lengths.shape[1])
        divisors = 1 - b + b * lengths / np.where(means > 0, means, 1.0)
        norm = np.divide(weights, divisors, out=np.zeros(divisors.shape), where=divisors > 0)  # 0: an empty field
        idf = IDF[self.variant](len(lengths), postings.frequencies.astype(np.float64))
        if self.variant == "atire":
            idf = idf * (self.k1 + 1)
        least = np.float32(max(self.k1, 1e-30))  # divides a sum that may be 0
        return idf.astype(np.float32), norm.astype(np.float32), least, np.float32(0)
