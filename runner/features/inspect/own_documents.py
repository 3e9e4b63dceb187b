"""Derive findings about queries that are documents of the corpus, or have the text of one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from runner.datasets.dataset import Dataset
from runner.datasets.own_documents import find_copies, find_own_queries
from runner.features.inspect.finding import DOUBTFUL, OF_NOTE, WRONG, Finding
from runner.features.inspect.texts import LEAST_WORDS


@dataclass(frozen=True, eq=False)
class OwnQueries:
    """The queries that are documents by their ids, and those with the text of a document of another id."""

    dataset: Dataset
    by_id: Sequence[int]
    copies: Sequence[tuple[int, int]]

    @classmethod
    def of(cls, dataset: Dataset, words: NDArray[np.int64]) -> Self:
        """Return the queries that are documents, and copies of `LEAST_WORDS` or more; `words` are counts (n,)."""
        copies = [(query, document) for query, document in find_copies(dataset) if words[query] >= LEAST_WORDS]
        return cls(dataset, np.flatnonzero(find_own_queries(dataset)).tolist(), copies)

    @property
    def are_documents(self) -> NDArray[np.bool_]:
        """Return whether each query is a document or its copy (n,); such queries are in every split of a collection."""
        flags = np.zeros(len(self.dataset.queries), dtype=np.bool_)
        flags[[*self.by_id, *(query for query, _ in self.copies)]] = True
        return flags

    def iter_findings(self, examples: int) -> Iterator[Finding]:
        """Yield the findings, with this many examples each."""
        n, mode = len(self.dataset.queries), self.dataset.exclude_self
        if self.by_id:
            count = f"{len(self.by_id):,} of {n:,} queries are themselves documents of the corpus"
            finds_itself = mode == "false"
            yield Finding(
                name="queries that are documents",
                gravity=WRONG if finds_itself else OF_NOTE,
                count=len(self.by_id),
                of=n,
                text=f"{count}, and each of them finds itself first."
                if finds_itself
                else f"{count}. Each is excluded from its own results (dataset.exclude_self={mode}).",
                remedy="Exclude them from their own results: dataset.exclude_self=auto."
                if finds_itself
                else "No action is needed if this is intended; dataset.exclude_self=false keeps them in the results.",
                examples=[self._cite(query) for query in self.by_id[:examples]],
            )
        if self.copies:
            count = f"{len(self.copies):,} of {n:,} queries have"
            yield Finding(
                name="queries with the text of a document",
                gravity=DOUBTFUL,
                count=len(self.copies),
                of=n,
                text=f"{count} the text of a document with another id, which is not gold. Every retriever ranks it "
                "high.",
                remedy="If a query is that document, exclude it by a rule for ids: "
                "dataset.exclude_self={pattern: SUFFIX} or {field: NAME}.",
                examples=[
                    {**self._cite(query), "document": self.dataset.documents.ids[document]}
                    for query, document in self.copies[:examples]
                ],
            )

    def _cite(self, query: int) -> dict[str, str]:
        return {"query": self.dataset.queries.ids[query], "text": self.dataset.queries.texts[query]}
