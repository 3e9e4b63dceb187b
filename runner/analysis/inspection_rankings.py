"""What retrievers together tell of a dataset: coverage, queries that none or all of them find, gold that is suspicious.

Where they searched chunks, a document is found where its first chunk is. Knows nothing of the retrievers but their
names and what they found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from retrievers.base import Rankings
from runner.analysis.failures import Lexicon
from runner.datasets.base import Dataset
from runner.datasets.duplicates import Shingled
from runner.metrics.measures import parse
from runner.metrics.scores import Grader

DEEPEST = 3
"""How many documents above gold, those that most retrievers agree on, are looked at for each query."""


@dataclass(frozen=True)
class Suspicion:
    """A document that most retrievers rank above all of a query's gold, and that is like one of these, `gold`.

    All three are positions. `by` is how many retrievers do, `similarity` the share of shingles in common, `likeness`
    the LSA cosine.
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
        """Return in words what speaks for the document."""
        judged = "judged irrelevant" if self.judged_irrelevant else "unjudged"
        return (
            f"{judged}, above gold for {self.by} of {self.retrievers} retrievers; {self.similarity:.0%} of its "
            f"wording occurs in gold, LSA cosine {self.likeness:.2f}"
        )


@dataclass(frozen=True, eq=False)
class Findability:
    """What retrievers found of a dataset, by their `names`.

    `first_gold` (retrievers x n) is the place of each query's first gold, from 1, and 0 where there is none to `depth`.
    `success` and `judged` are the means of Success and Judged at `cutoff` of each retriever, NaN where no query counts.
    `answerable` (n) are the queries with gold, `missed` and `easy` those of them that no retriever finds at all, and
    that all find at once. The most `suspicious` come first.
    """

    names: Sequence[str]
    depth: int
    cutoff: int
    answerable: NDArray[np.bool_]
    first_gold: NDArray[np.int64]
    success: Sequence[float]
    judged: Sequence[float]
    suspicious: Sequence[Suspicion]

    @property
    def missed(self) -> NDArray[np.bool_]:
        """Return which queries with gold no retriever finds (n)."""
        none_found: NDArray[np.bool_] = (self.first_gold == 0).all(axis=0)
        return self.answerable & none_found & bool(len(self.names))

    @property
    def easy(self) -> NDArray[np.bool_]:
        """Return which queries with gold every retriever finds at rank 1 (n)."""
        all_first: NDArray[np.bool_] = (self.first_gold == 1).all(axis=0)
        return self.answerable & all_first & bool(len(self.names))


def get_grades(dataset: Dataset, query: int) -> dict[int, int]:
    """Return the grade of each document, by position, that is judged for a query and that the corpus has."""
    judgments = dataset.judgments
    of_query = slice(*np.searchsorted(judgments.queries, [query, query + 1]))
    graded = zip(judgments.documents[of_query].tolist(), judgments.grades[of_query].tolist(), strict=True)
    return {document: grade for document, grade in graded if document < len(dataset.documents)}


def list_golds(dataset: Dataset, query: int) -> list[int]:
    """Return the gold documents of a query, by position, that the corpus has."""
    return [document for document, grade in get_grades(dataset, query).items() if grade > 0]


def measure_findability(
    dataset: Dataset,
    shingled: Shingled,
    rankings: Mapping[str, Rankings],
    cutoff: int,
    near_duplicate: float,
    like_gold: float,
    lexicon: Lexicon,
) -> Findability:
    """Read off rankings what they tell of a dataset, whose documents are `shingled`, with their titles."""
    n = len(dataset.queries)
    grader = Grader(dataset.judgments, n, len(dataset.documents), dataset.document_of, dataset.judged_ids)
    measures = [parse(f"{name}@{cutoff}") for name in ("Success", "Judged")]
    means = [grader.score(ranking, measures).means() for ranking in rankings.values()]
    first = [grader.grade(ranking).first for ranking in rankings.values()]
    first_gold = np.where(np.isinf(first), 0, first).astype(np.int64).reshape(len(rankings), n)
    success, judged = ([mean[str(measure)] for mean in means] for measure in measures)
    suspicious = _suspicious(dataset, shingled, rankings, first_gold, near_duplicate, like_gold, lexicon)
    return Findability(
        names=list(rankings),
        depth=max((ranking.depth for ranking in rankings.values()), default=0),
        cutoff=cutoff,
        answerable=grader.golds > 0,
        first_gold=first_gold,
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
    """Yield what stands above gold for more than half of the retrievers and is like gold."""
    ids, document_of = dataset.documents.ids, dataset.document_of
    for query in np.flatnonzero((first_gold > 1).any(axis=0)).tolist():
        votes: Counter[int] = Counter()
        for first, ranking in zip(first_gold[:, query].tolist(), rankings.values(), strict=True):
            above = ranking.documents[query, : max(first - 1, 0)]  # what beats gold that was not found says little
            above = above[above < len(dataset.corpus)]  # a hit that the corpus lacks has no text to look at
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
            copied = similar[nearest] >= near_duplicate and shingled.words[document] > 0  # no copy where no words are
            if copied or likeness[i] >= like_gold:
                yield Suspicion(
                    query, document, golds[nearest], votes[document], len(rankings), similar[nearest],
                    float(likeness[i]), document in judged,
                )  # fmt: skip
