"""Explain why queries miss their gold: classes of failure, each with its evidence.

The input is rankings by document id, their grades and, optionally, a lexicon of the corpus. Without a lexicon, classes
that need the texts are not assigned.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.base import NOTHING, Corpus, Rankings
from retrievers.lexical.analyzer import Analyzer
from retrievers.lexical.postings import Postings, load_postings
from retrievers.store import Store
from runner.evaluation.failure_classes import UNCLASSIFIED, FailureClass, FailureLabel
from runner.evaluation.meaning import Meaning
from runner.metrics.formulas import MISSED_CUTOFF

Floats = NDArray[np.float64]

UNJUDGED = -1
"""The grade of a document that was found but not judged."""


@settings(frozen=True, kw_only=True, config={"extra": "forbid"})
class FailureSettings:
    """When a query counts as missed, and the limits from which evidence suggests a class of failure.

    A query is missed if no gold is among its first `cutoff` hits. Overlaps are shares of the query's information, see
    `Lexicon`: gold with at most `low_overlap` has almost none of it; gold with at most `some_overlap` is a vocabulary
    mismatch if a semantic retriever finds it. A query is vague if the mean IDF of its words, as a share of the largest,
    is at most `low_idf`. Scores are alike if the first exceeds the one at the cutoff by at most `alike` times the
    median of the run. A document is like gold from a cosine of `like_gold`. LSA is not computed for a corpus of more
    than `semantic_documents`, where it would take longer than the evaluation.

    The defaults were set on 50 failures of BM25 that were classified by hand, and tested on each half of them.
    """

    cutoff: int = Field(default=MISSED_CUTOFF, ge=1)
    low_overlap: float = Field(default=0.1, ge=0, le=1)
    some_overlap: float = Field(default=0.3, ge=0, le=1)
    low_idf: float = Field(default=0.3, ge=0, le=1)
    alike: float = Field(default=0.5, ge=0)
    like_gold: float = Field(default=0.75, ge=-1, le=1)
    semantic_documents: int = Field(default=10_000, ge=0)


@dataclass(frozen=True, eq=False)
class Lexicon:
    """The words of the documents of a corpus; counted on first use and cached in the store."""

    corpus: Corpus
    analyzer: Analyzer
    store: Store

    def overlaps(self, query: str, ids: Sequence[str]) -> Floats:
        """Return the share of a query's information that each document has (m,), NaN for documents not in the corpus.

        This is the share of the query's distinct terms, each weighted by its IDF, ln(N / n). A term that occurs in no
        document counts as if it occurred in one. All are NaN for a query that has no terms, or only terms that occur in
        every document.
        """
        terms = sorted(set(self.analyzer.tokens(query)))
        places = np.array([self.positions.get(i, NOTHING) for i in ids], np.int32)
        weights, shared = self._idfs(terms), np.zeros(len(ids))
        for term, weight in zip(terms, weights.tolist(), strict=True):
            if term in self.postings.positions:
                having = self._having(term)  # ascending, with at least one document
                shared += weight * (having[np.searchsorted(having[:-1], places)] == places)
        return np.where(places == NOTHING, np.nan, shared / (weights.sum() or np.nan))

    def idf(self, query: str) -> float:
        """Return the mean IDF, ln(N / n), of a query's distinct terms that the corpus has, as a share of ln N.

        It is 1 if each term is in one document, and 0 if each is in all documents; NaN if the corpus has none of them.
        """
        known = sorted(set(self.analyzer.tokens(query)) & self.postings.positions.keys())
        return float(np.mean(self._idfs(known))) if known else np.nan

    @cached_property
    def meaning(self) -> Meaning:
        """Return the LSA vectors of the documents."""
        return Meaning.of(self.corpus, self.analyzer, self.store)

    @cached_property
    def positions(self) -> dict[str, int]:
        """Return each document's position in the corpus."""
        return {i: position for position, i in enumerate(self.corpus.ids)}

    @cached_property
    def postings(self) -> Postings:
        """Return the term counts of the corpus."""
        return load_postings(self.corpus, self.analyzer, self.store)

    def _idfs(self, terms: Sequence[str]) -> Floats:
        """Return ln(N / n) of each term (m) as a share of ln N, the largest."""
        positions, frequencies = self.postings.positions, self.postings.frequencies
        counts = [frequencies[positions[term]] if term in positions else 1 for term in terms]
        idfs: Floats = 1 - np.log(np.array(counts, dtype=np.float64)) / np.log(max(len(self.corpus), 2))
        return idfs

    def _having(self, term: str) -> NDArray[np.int32]:
        first, end = self.postings.offsets[self.postings.positions[term] :][:2]
        documents: NDArray[np.int32] = self.postings.documents[first:end]
        return documents


@dataclass(frozen=True)
class QueryFailure:
    """A missed query (by position), the likely classes of its failure, and the evidence.

    `gold_rank` is the rank of the first gold, below the cutoff, and `gold` its id, or that of the gold with the highest
    grade if none was found; `semantic_rank` is the rank of the first gold by LSA. `overlap` is the largest share of the
    query's information that any gold has, `idf` the mean of the query (see `Lexicon`), and `spread` how far scores fall
    until the cutoff, divided by the median of the run. `rival` is the first document that should not be above gold: one
    judged irrelevant, or else one that has more overlap than gold and is not like it; `lead` is its score less that of
    the first gold. `unjudged` counts unjudged documents above gold, up to the cutoff; `lookalike` is the one most like
    gold, by the cosine `likeness`. `absent` are the ids of gold that the corpus lacks. `needed_depth` is a depth at
    which the last step of the retriever reads gold that it does not read now. Unknown values are None. `reached` are
    other results of the same sweep that have gold within the cutoff, by label, with the rank of the first gold, best
    first.
    """

    query: int
    classes: tuple[FailureClass, ...]
    gold: str
    gold_rank: int | None = None
    semantic_rank: int | None = None
    overlap: float | None = None
    idf: float | None = None
    spread: float | None = None
    rival: str | None = None
    rival_grade: int | None = None
    rival_overlap: float | None = None
    lead: float | None = None
    unjudged: int = 0
    lookalike: str | None = None
    likeness: float | None = None
    absent: tuple[str, ...] = ()
    needed_depth: int | None = None
    reached: Mapping[str, int] = field(default_factory=dict)

    @property
    def labels(self) -> tuple[FailureLabel, ...]:
        """Return the classes, or that there are none."""
        return self.classes or (UNCLASSIFIED,)


@dataclass(frozen=True, eq=False)
class JudgedRun:
    """The rankings of a run with their grades.

    `grades` (n x k) are -1 for unjudged documents, `documents` the ids for the positions in the rankings, and
    `expected` the gold ids of each query, highest grade first. `counted` (n,) marks the queries that have gold and were
    answered. `known` are the ids of the corpus, if available. `depth` is that of the search, if it is known: the
    rankings may be shorter.
    """

    queries: Sequence[str]
    rankings: Rankings
    grades: NDArray[np.int32]
    documents: Sequence[str]
    expected: Sequence[Sequence[str]]
    counted: NDArray[np.bool_]
    known: Container[str] | None = None
    depth: int = 0

    @cached_property
    def first_gold(self) -> NDArray[np.int64]:
        """Return the position of each query's first gold, from 0 (n,); the width of the rankings if there is none."""
        gold = self.grades > 0
        return np.where(gold.any(axis=1), gold.argmax(axis=1), gold.shape[1]) if gold.size else np.zeros(len(gold), int)

    def find_missed(self, cutoff: int) -> NDArray[np.int64]:
        """Return the positions of the queries that have no gold among their first `cutoff` hits."""
        none_found = self.first_gold >= min(cutoff, self.rankings.depth)
        return np.flatnonzero(self.counted & none_found)

    def spreads(self, cutoff: int) -> Floats:
        """Return how far scores fall from the first to the cutoff (n,) over the median; NaN below two hits."""
        counts = np.count_nonzero(self.rankings.documents != NOTHING, axis=1)
        spreads = np.full(len(counts), np.nan)
        some = np.flatnonzero(counts > 1)
        scores = self.rankings.scores.astype(np.float64)
        spreads[some] = scores[some].max(axis=1, initial=-np.inf) - scores[some, np.minimum(counts[some], cutoff) - 1]
        usual = spreads[self.counted & (counts > 1)]
        median = float(np.median(usual)) if len(usual) else 0.0
        return spreads / median if median > 0 else np.full(len(counts), np.nan)


def explain_failures(
    run: JudgedRun,
    lexicon: Lexicon | None = None,
    semantic: NDArray[np.bool_] | None = None,
    settings: FailureSettings = FailureSettings(),  # noqa: B008 (immutable)
) -> list[QueryFailure]:
    """Return the queries that missed their gold, in their order, with the classes that the evidence supports.

    - *absent from the corpus*: the corpus lacks some of the gold.
    - *vocabulary mismatch*: gold has almost none of the query's words; or it has few, and a semantic retriever finds
      it: one that answers the query, as given by `semantic` (n,), or else LSA, down to the depth in which the run has
      no gold. Needs a lexicon.
    - *specificity gap*: the query's words are common, and many documents score alike; without a lexicon, by scores
      alone.
    - *distractor overlap*: a document judged irrelevant is above the gold; or, with a lexicon, one that is not like
      gold and has more of the query's words, if gold has some of these and they are not common.
    - *unjudged above gold*: an unjudged document above the gold is like it. Needs a lexicon.
    """
    spreads, missed = run.spreads(settings.cutoff), run.find_missed(settings.cutoff).tolist()
    ranks: Sequence[int | None] = [None] * len(missed)
    if missed and lexicon is not None and len(lexicon.corpus) <= settings.semantic_documents:
        ranks = lexicon.meaning.rank(
            [run.queries[query] for query in missed], [run.expected[query] for query in missed]
        )
    return [_failure(run, query, float(spreads[query]), rank, lexicon, semantic, settings)
            for query, rank in zip(missed, ranks, strict=True)]  # fmt: skip


def _failure(
    run: JudgedRun,
    query: int,
    spread: float,
    semantic_rank: int | None,
    lexicon: Lexicon | None,
    semantic: NDArray[np.bool_] | None,
    settings: FailureSettings,
) -> QueryFailure:
    expected, text, first = run.expected[query], run.queries[query], int(run.first_gold[query])
    is_found = first < run.rankings.depth
    upper = run.rankings.documents[query, : min(first, settings.cutoff)]
    at: dict[str, int] = {}  # first position of each document above the gold; chunks repeat a document
    for place in np.flatnonzero(upper != NOTHING).tolist():
        at.setdefault(run.documents[upper[place]], place)
    above, places = list(at), list(at.values())
    grades = run.grades[query, places]
    known = run.known if lexicon is None else lexicon.positions
    absent = tuple(i for i in expected if known is not None and i not in known)
    overlap, idf = np.nan, np.nan
    overlaps, likeness = np.full(len(above), np.nan), np.full(len(above), -1.0)
    if lexicon is not None:
        overlap = float(np.nanmax([-1, *lexicon.overlaps(text, expected)]))
        overlap = overlap if overlap >= 0 else np.nan
        idf, overlaps = lexicon.idf(text), lexicon.overlaps(text, above)
        if len(lexicon.corpus) <= settings.semantic_documents:
            likeness = lexicon.meaning.likeness(above, expected).astype(np.float64)
    vague = spread <= settings.alike and (lexicon is None or idf <= settings.low_idf)
    irrelevant, likely = (grades <= 0) & (grades != UNJUDGED), likeness >= settings.like_gold
    telling = overlap > settings.low_overlap and not vague
    distracting = irrelevant if irrelevant.any() else (overlaps > overlap) & ~likely & telling
    rival = int(np.argmax(distracting)) if distracting.any() else None
    unjudged = np.flatnonzero(grades == UNJUDGED)
    lookalike = int(unjudged[likeness[unjudged].argmax()]) if likely[unjudged].any() else None
    by_meaning = not is_found and semantic_rank is not None and semantic_rank <= max(run.depth, run.rankings.depth)
    other_words = by_meaning or overlap <= settings.low_overlap if semantic is None else bool(semantic[query])
    evidence: dict[FailureClass, bool] = {
        "absent from the corpus": bool(absent),
        "vocabulary mismatch": overlap <= settings.some_overlap and other_words,
        "specificity gap": vague,
        "distractor overlap": rival is not None,
        "unjudged above gold": lookalike is not None,
    }
    scores = run.rankings.scores[query]
    return QueryFailure(
        query=query,
        classes=tuple(name for name, holds in evidence.items() if holds),
        gold=run.documents[run.rankings.documents[query, first]] if is_found else next(iter(expected), ""),
        gold_rank=first + 1 if is_found else None,
        semantic_rank=semantic_rank,
        overlap=_get_known(overlap),
        idf=_get_known(idf),
        spread=_get_known(spread),
        rival=None if rival is None else above[rival],
        rival_grade=None if rival is None or grades[rival] == UNJUDGED else int(grades[rival]),
        rival_overlap=None if rival is None else _get_known(float(overlaps[rival])),
        lead=None if rival is None or not is_found else float(scores[places[rival]] - scores[first]),
        unjudged=len(unjudged),
        lookalike=None if lookalike is None else above[lookalike],
        likeness=None if lookalike is None else float(likeness[lookalike]),
        absent=absent,
    )


def _get_known(value: float) -> float | None:
    """Return a number, or None for NaN."""
    return float(value) if value == value else None
