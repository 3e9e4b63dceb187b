"""Assess a dataset by the rankings of several retrievers: coverage, queries that none or all find, suspicious gold.

If chunks were searched, a document has the rank of its first chunk.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from retrievers.base import Rankings
from runner.datasets.dataset import Dataset
from runner.datasets.duplicates import Shingled
from runner.evaluation.failures import Lexicon
from runner.metrics.measures import parse
from runner.metrics.scores import Grader

DEEPEST = 3
"""How many documents above gold, those that most retrievers agree on, are examined for each query."""


@dataclass(frozen=True)
class Suspicion:
    """A document that most retrievers rank above all of a query's gold and that is like one gold document, `gold`.

    The query and both documents are positions. `by` is how many retrievers rank it so, `similarity` the share of
    shingles in common, `likeness` the LSA cosine.
    """

    query: int
    document: int
    gold: int
    by: int
    retrievers: int
    similarity: float
    likeness: float
    judged_irrelevant: bool

    @property
    def evidence(self) -> str:
        """Return the evidence for the document in words."""
        judged = "judged irrelevant" if self.judged_irrelevant else "unjudged"
        return (
            f"{judged}, above gold for {self.by} of {self.retrievers} retrievers; {self.similarity:.0%} of its "
            f"wording occurs in gold, LSA cosine {self.likeness:.2f}"
        )


@dataclass(frozen=True, eq=False)
class Findability:
    """What retrievers found in a dataset, by their `names`.

    `first_gold` (retrievers x n) is the rank of each query's first gold, from 1, and 0 if there is none down to
    `depth`. `success` and `judged` are the means of Success and Judged at `cutoff` of each retriever, NaN if no query
    counts. `answerable` (n,) marks the queries with gold; of these, no retriever finds the `missed` ones at all, and
    all find the `easy` ones at rank 1, with `equal` values of the inspected measure. The most `suspicious` documents
    come first.
    """

    names: Sequence[str]
    depth: int
    cutoff: int
    answerable: NDArray[np.bool_]
    first_gold: NDArray[np.int64]
    equal: NDArray[np.bool_]
    success: Sequence[float]
    judged: Sequence[float]
    suspicious: Sequence[Suspicion]

    @property
    def without_gold(self) -> NDArray[np.int64]:
        """Return the number of queries with gold of which a retriever finds none, by retriever."""
        counts: NDArray[np.int64] = np.count_nonzero((self.first_gold == 0) & self.answerable, axis=1)
        return counts

    @property
    def missed(self) -> NDArray[np.bool_]:
        """Return which queries with gold no retriever finds (n,)."""
        none_found: NDArray[np.bool_] = (self.first_gold == 0).all(axis=0)
        return self.answerable & none_found & bool(len(self.names))

    @property
    def easy(self) -> NDArray[np.bool_]:
        """Return which queries with gold every retriever answers equally well, with gold at rank 1 (n,)."""
        all_first: NDArray[np.bool_] = (self.first_gold == 1).all(axis=0)
        return self.answerable & all_first & self.equal & bool(len(self.names))


def get_grades(dataset: Dataset, query: int) -> dict[int, int]:
    """Return the grade of each judged document of a query, by its position in the corpus."""
    judgments = dataset.judgments
    of_query = slice(*np.searchsorted(judgments.queries, [query, query + 1]))
    graded = zip(judgments.documents[of_query].tolist(), judgments.grades[of_query].tolist(), strict=True)
    return {document: grade for document, grade in graded if document < len(dataset.documents)}


def list_golds(dataset: Dataset, query: int) -> list[int]:
    """Return the positions of the gold documents of a query that are in the corpus."""
    return [document for document, grade in get_grades(dataset, query).items() if grade > 0]


def measure_findability(
    dataset: Dataset,
    shingled: Shingled,
    rankings: Mapping[str, Rankings],
    depth: int,
    measure: str,
    cutoff: int,
    near_duplicate: float,
    like_gold: float,
    lexicon: Lexicon,
) -> Findability:
    """Assess a dataset by rankings of a depth and a measure; `shingled` are its documents with their titles."""
    n = len(dataset.queries)
    grader = Grader(dataset.judgments, n, len(dataset.documents), dataset.document_of, dataset.judged_ids)
    measures = [parse(f"{name}@{cutoff}") for name in ("Success", "Judged")]
    means = [grader.score(ranking, measures).means() for ranking in rankings.values()]
    inspected = [grader.score(ranking, [parse(measure)]).values[0] for ranking in rankings.values()]
    first = [grader.grade(ranking).first for ranking in rankings.values()]
    first_gold = np.where(np.isinf(first), 0, first).astype(np.int64).reshape(len(rankings), n)
    success, judged = ([mean[str(measure)] for mean in means] for measure in measures)
    suspicious = _suspicious(dataset, shingled, rankings, first_gold, near_duplicate, like_gold, lexicon)
    return Findability(
        names=list(rankings),
        depth=depth,
        cutoff=cutoff,
        answerable=grader.golds > 0,
        first_gold=first_gold,
        equal=np.ptp(np.reshape(inspected, (-1, n)), axis=0) <= 1e-12 if inspected else np.ones(n, dtype=np.bool_),
        success=success,
        judged=judged,
        suspicious=sorted(suspicious, key=lambda s: (-max(s.similarity, s.likeness), -s.by, s.query)),
    )


def _suspicious(
    dataset: Dataset,
    shingled: Shingled,
    rankings: Mapping[str, Rankings],
    first_gold: NDArray[np.int64],
    near_duplicate: float,
    like_gold: float,
    lexicon: Lexicon,
) -> Iterator[Suspicion]:
    """Yield the documents above gold for more than half of the retrievers that are like gold."""
    ids, document_of = dataset.documents.ids, dataset.document_of
    for query in np.flatnonzero((first_gold > 1).any(axis=0)).tolist():
        votes: Counter[int] = Counter()
        for first, ranking in zip(first_gold[:, query].tolist(), rankings.values(), strict=True):
            above = ranking.documents[query, : max(first - 1, 0)]  # without gold, says little
            above = above[above < len(dataset.corpus)]  # a hit outside the corpus has no text
            votes.update(set((above if document_of is None else document_of[above]).tolist()))
        agreed = [d for d in votes if 2 * votes[d] > len(rankings)]
        agreed = sorted(agreed, key=lambda d: (-votes[d], ids[d]))[:DEEPEST]
        if not agreed:
            continue
        judged, golds = get_grades(dataset, query), list_golds(dataset, query)
        likeness = lexicon.meaning.likeness([ids[d] for d in agreed], [ids[d] for d in golds])
        for i, document in enumerate(agreed):
            similar = [shingled.similarity(document, gold) for gold in golds]
            nearest = int(np.argmax(similar))
            copied = similar[nearest] >= near_duplicate and shingled.words[document] > 0  # no words, no copy
            if copied or likeness[i] >= like_gold:
                yield Suspicion(
                    query, document, golds[nearest], votes[document], len(rankings), similar[nearest],
                    float(likeness[i]), document in judged,
                )  # fmt: skip
