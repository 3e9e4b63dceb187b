"""Inspect the quality of a dataset: its contents, and its problems, each with evidence.

The input is a dataset, what retrievers found in it, and the queries of its other splits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from retrievers.base import Corpus, Rankings
from retrievers.lexical.analyzer import Analyzer
from retrievers.store import Store
from runner.datasets.base import Queries
from runner.datasets.dataset import Dataset
from runner.datasets.duplicates import Shingled, word_counts
from runner.evaluation.failures import Lexicon
from runner.features.inspect.benchmark_overlap import BenchmarkHashes, find_overlaps
from runner.features.inspect.finding import Finding, order_findings
from runner.features.inspect.findings import InspectionSettings, answers, findings
from runner.features.inspect.rankings import Findability, list_golds, measure_findability
from runner.features.inspect.reliability import Reliability, measure_reliability
from runner.statistics.settings import Statistics

QUANTILES = {"min": 0.0, "5%": 0.05, "median": 0.5, "95%": 0.95, "max": 1.0}
"""The quantiles of a distribution by their names."""


SHOWN = 3
"""The number of queries that are shown with their gold."""


class QuerySample(NamedTuple):
    """A query with its gold documents, each with its id and its title or the beginning of its text."""

    query: str
    text: str
    gold: Sequence[tuple[str, str]]


@dataclass(frozen=True, eq=False)
class Inspection:
    """The contents of a dataset: counts, distributions, what retrievers find, and the findings, most serious first.

    `golds` (n,) are gold documents per query, `grades` the number of judgments by grade, and `types` the number of
    queries by type. Words are counted by document, by query and, if documents are searched in chunks, by chunk. The
    overlaps (n,) are the shares of each query's words, weighted by IDF, that its best gold has, and that random
    documents have on average; NaN if unknown. `lacking` says what the dataset does not have. `reliability` is None with
    fewer than two retrievers, or fewer than two queries with gold. `reading` says how the file of questions was
    understood, and `samples` are the first queries.
    """

    name: str
    split: str
    fingerprint: str
    counts: Mapping[str, int]
    grades: Mapping[int, int]
    types: Mapping[str, int]
    golds: NDArray[np.int64]
    words: Mapping[str, NDArray[np.int64]]
    gold_overlap: NDArray[np.float64]
    chance_overlap: NDArray[np.float64]
    findability: Findability
    lacking: Sequence[str]
    findings: Sequence[Finding]
    reliability: Reliability | None = None
    reading: str = ""
    samples: Sequence[QuerySample] = ()

    @property
    def distributions(self) -> dict[str, list[float | None]]:
        """Return the `QUANTILES` of lengths, of gold per query and of overlap, by quantity; None without values."""
        measured: dict[str, NDArray[Any]] = {f"words in {what}": words for what, words in self.words.items()}
        measured |= {
            "gold documents per query": self.golds,
            "overlap of query and gold": self.gold_overlap,
            "overlap of query and random documents": self.chance_overlap,
        }
        return {name: _quantiles(values) for name, values in measured.items()}


def inspect(
    dataset: Dataset,
    rankings: Mapping[str, Rankings],
    analyzer: Analyzer,
    store: Store,
    others: Mapping[str, Queries],
    settings: InspectionSettings,
    benchmarks: Sequence[BenchmarkHashes] = (),
) -> Inspection:
    """Inspect a dataset, given the rankings of retrievers by name and the queries of its other splits by split name."""
    lexicon, texts = Lexicon(dataset.documents, analyzer, store), list(dataset.documents.contents())
    shingled = Shingled.of(texts)
    findability = measure_findability(
        *(dataset, shingled, rankings, settings.depth, settings.measure, settings.cutoff),
        *(settings.near_duplicate, settings.like_gold, lexicon),
    )
    gold_overlap, chance_overlap = _overlaps(dataset, lexicon, settings)
    words = {"documents": shingled.words, "queries": word_counts(dataset.queries.texts)}
    if dataset.whole is not None:
        words["chunks"] = word_counts(dataset.corpus.contents())
    golds = dataset.judgments.golds(len(dataset.queries))
    return Inspection(
        name=dataset.name,
        split=dataset.split,
        fingerprint=dataset.fingerprint,
        counts=_counts(dataset, golds),
        grades=_tally(dataset.judgments.grades),
        types=_types(dataset),
        golds=golds,
        words=words,
        gold_overlap=gold_overlap,
        chance_overlap=chance_overlap,
        findability=findability,
        lacking=list(_lacking(dataset, others)),
        findings=order_findings(
            [
                *findings(dataset, texts, shingled, others, words, gold_overlap, findability, settings, analyzer),
                *find_overlaps(dataset, benchmarks, settings.examples),
            ]
        ),
        reliability=measure_reliability(dataset, rankings, settings.measure, Statistics(seed=settings.seed)),
        reading=dataset.reading,
        samples=[_sample(dataset, query) for query in range(min(SHOWN, len(dataset.queries)))],
    )


def _sample(dataset: Dataset, query: int) -> QuerySample:
    documents, judgments = dataset.documents, dataset.judgments
    names = [*documents.ids, *judgments.unknown_documents]
    own = judgments.documents[(judgments.queries == query) & (judgments.grades > 0)].tolist()
    known = {document: next(filter(None, map(str.strip, _list_texts(documents, document))), "") for document in own}
    return QuerySample(
        dataset.queries.ids[query], dataset.queries.texts[query], [(names[i], text) for i, text in known.items()]
    )


def _list_texts(documents: Corpus, document: int) -> Sequence[str]:
    """Return the title and the text of a document; none for one that the corpus lacks."""
    if document >= len(documents):
        return ()
    return [documents.titles[document] if documents.titles else "", documents.texts[document]]


def _quantiles(values: NDArray[Any]) -> list[float | None]:
    known = values[~np.isnan(values)]
    if not len(known):
        return [None] * len(QUANTILES)
    # a value that there is, so that counts stay counts
    return np.quantile(known, list(QUANTILES.values()), method="nearest").tolist()  # type: ignore[no-any-return]  # numpy


def _counts(dataset: Dataset, golds: NDArray[np.int64]) -> dict[str, int]:
    chunks = {} if dataset.whole is None else {"chunks": len(dataset.corpus)}
    return {
        "documents": len(dataset.documents),
        **chunks,
        "queries": len(dataset.queries),
        "judgments": len(dataset.judgments),
        "queries with gold": int(np.count_nonzero(golds)),
        "queries without gold": int(np.count_nonzero(golds == 0)),
        "gold documents": len(np.unique(dataset.judgments.documents[dataset.judgments.grades > 0])),
    }


def _tally(grades: NDArray[np.int32]) -> dict[int, int]:
    return dict(zip(*(column.tolist() for column in np.unique(grades, return_counts=True)), strict=True))


def _types(dataset: Dataset) -> dict[str, int]:
    names, counts = np.unique(np.array(dataset.queries.types, dtype=object), return_counts=True)
    return {name: int(count) for name, count in zip(names, counts, strict=True) if name}


def _lacking(dataset: Dataset, others: Mapping[str, Queries]) -> Iterator[str]:
    """Yield what the dataset lacks, and which questions this leaves open."""
    if not any(dataset.queries.types):
        yield "no query types: results cannot be broken down by type"
    if not any(answers(dataset.queries)):
        yield "no expected answers: it cannot be checked whether they repeat the queries"
    if not (dataset.judgments.grades == 0).any():
        yield "no documents judged irrelevant: all unjudged documents count as irrelevant"
    if len(np.unique(dataset.judgments.grades[dataset.judgments.grades > 0])) == 1:
        yield "only one grade of gold: no gold document counts as better than another"
    if (dataset.judgments.golds(len(dataset.queries)) > 0).all():
        yield "no queries without gold: thresholds cannot be assessed"
    if dataset.judgments.by_search_type:
        names = ", ".join(dataset.judgments.by_search_type)
        yield f"the judgments of single search types ({names}) are not inspected, only those for all search types"
    if not others:
        yield "no other splits: leakage cannot be checked"


def _overlaps(
    dataset: Dataset, lexicon: Lexicon, settings: InspectionSettings
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    n = len(dataset.queries)
    gold, chance = np.full(n, np.nan), np.full(n, np.nan)
    some = np.random.default_rng(settings.seed).integers(len(dataset.documents), size=(n, settings.random_documents))
    for query in range(n):
        text = dataset.queries.texts[query]
        chance[query] = lexicon.overlaps(text, [dataset.documents.ids[i] for i in some[query]]).mean()
        golds = list_golds(dataset, query)
        if golds:
            gold[query] = lexicon.overlaps(text, [dataset.documents.ids[i] for i in golds]).max()
    return gold, chance
