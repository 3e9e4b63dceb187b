"""Runs one evaluation, from an experiment to a result: `evaluate` does this once, a sweep many times.

dataset -> retriever -> rankings -> scores, and grades if a language model is configured. Only `search_cached` uses the
retriever; the rest is arithmetic or the verdicts of the model. A worker measures, the process that composed the
settings grades, and `build_result` makes the result of both. Uses neither Hydra nor MLflow.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from retrievers.base import Corpus, Rankings, Retriever
from retrievers.blocks import search_in_blocks
from retrievers.encoders.cuts import CutKind
from retrievers.index_facts import describe_indexes, remember_facts
from retrievers.lexical.analyzer import Analyzer
from retrievers.search import RESULTS_VERSION as SEARCH_VERSION
from retrievers.search import search_cached
from retrievers.texts import fetch_documents
from retrievers.work import Cost, kind_of
from runner.config.environment import hide_values
from runner.config.features import list_features, load_function
from runner.config.objects import ConfigError, build
from runner.config.values import config_hash
from runner.datasets.base import Judgments, Queries
from runner.datasets.chunking import Chunking, Whole
from runner.datasets.dataset import Dataset
from runner.datasets.document_hashes import DocumentHashes
from runner.datasets.own_documents import search_others
from runner.datasets.query_fields import select_fields
from runner.datasets.source import DatasetSource
from runner.evaluation.experiment import Experiment
from runner.evaluation.failures import Lexicon
from runner.evaluation.grades import Grades
from runner.evaluation.grading import SCALE, grade_found
from runner.evaluation.language import label_languages
from runner.evaluation.losses import Losses
from runner.evaluation.measuring import RankedDocuments, measure
from runner.evaluation.represented import measure_over_searches
from runner.evaluation.result import ChunkPlaces, DatasetSummary, JudgedQueries, Measurements, Result, Timings
from runner.evaluation.selectivity import measure_by_selectivity
from runner.evaluation.span_sensitivity import measure_by_threshold
from runner.evaluation.stage_ranks import StageReader
from runner.evaluation.termless_queries import describe_termless_queries
from runner.evaluation.text_cuts import describe_cuts, describe_silent_cuts
from runner.llm.journal import Journal
from runner.metrics.errors import MeasureError
from runner.metrics.measures import check_grades
from runner.metrics.scores import Grader
from runner.metrics.settings import RESULTS_VERSION as METRICS_VERSION
from runner.metrics.tokens import build_token_gold
from runner.statistics.clusters import count_clusters, number_clusters
from runner.store.base import WorkStore
from runner.system.environment import describe_code, describe_environment

RESULTS_VERSION = f"evaluation 2, {METRICS_VERSION}, {SEARCH_VERSION}"

DETECTED = "detected_language"
"""The field with the detected language of a query."""


@dataclass(frozen=True, eq=False)
class MeasuredExperiment:
    """What a worker measured for an experiment: the part of its result that does not depend on who asked for it.

    `figures` are further diagnostics: measures by selectivity of filters and at other thresholds of gold spans, and
    those that features add.
    """

    measurements: Measurements
    figures: Mapping[str, float]
    dataset: DatasetSummary
    timings: Timings
    environment: Mapping[str, Any]
    index: Mapping[str, str]
    document_hashes: DocumentHashes | None
    losses: Losses


def build_result(
    experiment: Experiment,
    measured: MeasuredExperiment,
    grades: Grades | None = None,
    spending: Mapping[str, float] | None = None,
) -> Result:
    """Return the result of an experiment; `spending` are the figures of models behind APIs, as diagnostics.

    The values of private environment variables are hidden in its errors and addresses. Call this in the process that
    composed the settings: a worker may not have the variables.
    """
    before = measured.measurements
    measurements = replace(
        before,
        queries=replace(before.queries, errors=[error and hide_values(error) for error in before.queries.errors]),
        addresses={part: hide_values(address) for part, address in before.addresses.items()},
        diagnostics={**before.diagnostics, **measured.figures, **(spending or {})},
        warnings=[*before.warnings, *(grades.warnings(SCALE) if grades else ())],
    )
    return Result(
        **vars(measurements),
        name=experiment.name,
        retriever=experiment.system,
        config=experiment.config,
        config_hash=config_hash(experiment.config),
        swept=dict(experiment.swept),
        dataset=measured.dataset,
        timings=measured.timings,
        grades=grades,
        environment=measured.environment,
        search_type=experiment.search_type,
        index=measured.index,
        document_hashes=measured.document_hashes,
        losses=measured.losses,
    )


class LoadedDatasets:
    """Loaded datasets and their graders; each dataset is loaded once, and split once for each chunking."""

    def __init__(self) -> None:
        self._datasets: dict[tuple[str, str], Dataset] = {}
        self._graders: dict[tuple[str, str, str], tuple[Grader, JudgedQueries, Sequence[str]]] = {}
        self._readers: dict[Grader, StageReader] = {}
        self._chunks: dict[tuple[str, str], ChunkPlaces] = {}

    def add(self, source: DatasetSource, chunking: Chunking, dataset: Dataset) -> None:
        """Add a dataset that is already loaded, either whole or split by `chunking`."""
        self._datasets[repr(source), repr(chunking if dataset.whole else Whole())] = dataset

    def load(self, source: DatasetSource, chunking: Chunking = Whole()) -> Dataset:  # noqa: B008 (immutable)
        """Return the dataset of a source; raises `DatasetError`. All chunkings share one read of the files."""
        key = repr(source), repr(chunking)
        if key not in self._datasets:
            whole = isinstance(chunking, Whole)
            self._datasets[key] = source.load() if whole else self.load(source).split_documents(chunking)
        return self._datasets[key]

    def locate_chunks(self, experiment: Experiment) -> ChunkPlaces | None:
        """Return where the chunks that an experiment searches are in their documents; None without chunks."""
        dataset, key = (
            self.load(experiment.source, experiment.chunking),
            (repr(experiment.source), repr(experiment.chunking)),
        )
        if dataset.parents and key not in self._chunks:
            self._chunks[key] = ChunkPlaces.of(dataset.corpus)
        return self._chunks.get(key)

    def build_grader(self, experiment: Experiment) -> tuple[Grader, JudgedQueries, Sequence[str]]:
        """Return the grader of an experiment's rankings, the queries, and the ids of those with gold of their own."""
        dataset = self.load(experiment.source, experiment.chunking)
        judgments = dataset.judgments.select(experiment.search_type)
        search_type = experiment.search_type if judgments is not dataset.judgments else ""
        key = repr(experiment.source), repr(experiment.chunking), search_type
        if key not in self._graders:
            n, judged_ids = len(dataset.documents), dataset.judged_ids
            tokens = build_token_gold(dataset)
            grader = Grader(judgments, len(dataset.queries), n, dataset.document_of, judged_ids, tokens)
            self._graders[key] = grader, *_resolve_queries(dataset, judgments)
        return self._graders[key]

    def read_stages(self, experiment: Experiment, grader: Grader) -> StageReader:
        """Return the reader of the rankings of an experiment's stages, by the judgments of its grader."""
        if grader not in self._readers:
            self._readers[grader] = StageReader(self.load(experiment.source, experiment.chunking), grader)
        return self._readers[grader]


class Bench:
    """The store and the datasets that evaluations share.

    `analyzer` splits words in reports on retrievers without an analyzer.
    """

    def __init__(self, store: WorkStore, analyzer: Analyzer = Analyzer()) -> None:  # noqa: B008 (immutable)
        self.store, self.analyzer = store, analyzer
        self.datasets = LoadedDatasets()
        self._journals: list[Journal] = []

    def dataset(self, experiment: Experiment) -> Dataset:
        """Return the dataset that an experiment searches; raises `DatasetError`."""
        return self.datasets.load(experiment.source, experiment.chunking)

    def lexicon(self, experiment: Experiment, result: Result) -> Lexicon | None:
        """Return the words of an experiment's documents, as its analyzer splits them; None without documents.

        If the dataset has no documents, the gold and the first hits of missed queries are used, provided that the
        retriever can return them by id.
        """
        documents = self.dataset(experiment).documents
        if not len(documents):
            documents = fetch_documents(experiment.retriever, documents, _list_evidence(result))
        return self.read_words(experiment, documents)

    def read_words(self, experiment: Experiment, documents: Corpus) -> Lexicon | None:
        """Return the words of documents, as the analyzer of an experiment splits them; None without documents."""
        if not len(documents):
            return None
        own = experiment.config.get("analyzer")
        analyzer = build(own, "analyzer", experiment.config.get("plugins") or ()) if own else self.analyzer
        return Lexicon(documents, analyzer, self.store)

    def check_grades(self, experiment: Experiment) -> None:
        """Raise `ConfigError` if the dataset's grades are too large for a measure; called before any search."""
        judgments = self.dataset(experiment).judgments.select(experiment.search_type)
        try:
            check_grades(experiment.metrics.expanded, int(judgments.grades.max(initial=0)))
        except MeasureError as error:
            raise ConfigError(f"metrics: {error}") from None

    def evaluate(self, experiment: Experiment) -> Result:
        """Return the result of an experiment, without grades; raises the errors of `measure`."""
        return build_result(experiment, self.measure(experiment))

    def measure(self, experiment: Experiment) -> MeasuredExperiment:
        """Search and measure. Failed queries are among the measurements; an error of the whole retriever is raised."""
        start = time.perf_counter()
        dataset, settings = self.dataset(experiment), experiment.metrics
        self.check_grades(experiment)
        grader, queries, own_gold = self.datasets.build_grader(experiment)
        searches: list[tuple[Retriever, int]] = []

        def search(retriever: Retriever, depth: int) -> Rankings:
            searches.append((retriever, depth))
            return self._search(dataset, experiment.blocks, retriever, depth)

        with remember_facts():
            with self.store.account() as costs:
                index = describe_indexes(experiment.retriever)
                rankings = search_others(dataset, experiment.retriever, settings.depth, search)
            scoring = time.perf_counter()
            stages = self.datasets.read_stages(experiment, grader)
            losses = stages.find_losses(*searches[-1], rankings, settings, self.store, experiment.blocks)
        recorded_name = _choose_name(dataset, experiment.named_by)
        self.store.note_use(costs, recorded_name, dataset.fingerprint, experiment.name)
        metadata = dataset.corpus.metadata if experiment.source.golden else ()
        chunks = self.datasets.locate_chunks(experiment)
        documents = RankedDocuments(dataset.corpus.ids, metadata, dataset.parents, chunks)
        measurements = measure(rankings, grader, settings, experiment.statistics, queries, documents, own_gold)
        sizes: dict[CutKind, int] = {"documents": len(dataset.corpus), "queries": len(dataset.queries)}
        cuts = describe_cuts(rankings.diagnostics, sizes, "chunks" if dataset.whole else "documents")
        silent = describe_silent_cuts(experiment.retriever, dataset.corpus)
        termless = describe_termless_queries(dataset.queries, experiment.retriever)
        measurements = replace(measurements, warnings=[*measurements.warnings, *cuts, *silent, *termless])
        primary = measurements.scores[measurements.measures.index(measurements.primary)]
        by_filter = measure_by_selectivity(dataset, rankings, settings.depth, measurements.primary, primary)
        by_threshold = measure_by_threshold(dataset, rankings, settings.primary_measure)
        units = number_clusters(dataset.queries.clusters)
        over_searches = measure_over_searches(
            dataset.queries.metadata, primary, experiment.statistics.confidence, units
        )
        added = self._list_added_figures(experiment)
        environment = describe_environment() | {"code": describe_code(experiment.retriever)}
        end = time.perf_counter()
        return MeasuredExperiment(
            measurements=measurements,
            figures={**by_filter, **by_threshold, **over_searches, **added},
            dataset=_summarize(dataset, recorded_name),
            timings=_sum_costs(costs, rankings, end - scoring, end - start),
            environment=environment,
            index=index,
            document_hashes=dataset.document_hashes,
            losses=losses,
        )

    def _list_added_figures(self, experiment: Experiment) -> dict[str, float]:
        """Return the figures that features add to an evaluation with their settings."""
        functions = (load_function(list_features()[name].figures) for name in experiment.features)
        return {name: value for function in functions for name, value in function(experiment, self).items()}

    def _search(self, dataset: Dataset, blocks: Sequence[Sequence[int]], retriever: Retriever, depth: int) -> Rankings:
        search = retriever, dataset.corpus, dataset.queries.inputs, depth, self.store
        return search_cached(*search, partial(search_in_blocks, *search, blocks) if blocks else None)

    def grade(self, experiment: Experiment, measured: MeasuredExperiment) -> Grades | None:
        """Return the grades of hits; None without a configured language model.

        Replies of the model are kept until `forget_journals` is called. If some grades are missing, their journal is
        kept beyond that, so that the next run asks only for the rest.
        """
        top, queries = measured.measurements.hits, measured.measurements.queries
        if experiment.grading is None or top is None:
            return None
        dataset, n = self.dataset(experiment), len(queries.ids)
        failed = {position for position in range(n) if queries.errors[position]}
        hits = [top.ids(position, experiment.grading.k) for position in range(n)]
        corpus = fetch_documents(experiment.retriever, dataset.corpus, [name for row in hits for name in row])
        grades, journal = grade_found(
            experiment.grading, corpus, dataset.queries, hits, queries.expected, failed,
            self.store.run_files.gradings, repr(experiment.retriever),
        )  # fmt: skip
        if not (grades.unasked or grades.failed):
            self._journals.append(journal)
        return grades

    def forget_journals(self) -> None:
        """Forget the replies of finished gradings once their results are saved; the next grading starts afresh."""
        while self._journals:
            self._journals.pop().forget()


def _resolve_queries(dataset: Dataset, judgments: Judgments) -> tuple[JudgedQueries, Sequence[str]]:
    """Return the queries with their gold by these judgments, and the ids of those that have other gold in general."""
    queries, (gold, grades), own = dataset.queries, _list_gold(dataset, judgments), []
    if judgments is not dataset.judgments:
        in_general = zip(*_list_gold(dataset, dataset.judgments), strict=True)
        columns = zip(queries.ids, zip(gold, grades, strict=True), in_general, strict=True)
        own = [query for query, mine, others in columns if mine != others]
    columns_of_all = (list(queries.ids), list(queries.texts), list(queries.types))
    return JudgedQueries(*columns_of_all, gold, grades, list(queries.clusters), _list_fields(queries)), own


def _list_fields(queries: Queries) -> list[dict[str, str]]:
    """Return the fields of queries to slice by, with the detected language if several are spoken and no field says."""
    rows: Sequence[Mapping[str, Any]] = queries.metadata or [{}] * len(queries)
    if not any(name.lower() in ("language", "lang") for fields in rows for name in fields) and (
        languages := label_languages(queries.texts)
    ):
        rows = [{**fields, DETECTED: code} for fields, code in zip(rows, languages, strict=True)]
    return select_fields(rows)


def _list_evidence(result: Result) -> list[str]:
    """Return the ids of the gold and the first hits of the queries whose first hits contain no gold."""
    if result.hits is None or result.holes is None:
        return []
    cutoff = result.holes.cutoff
    missed = ~np.isnan(result.of(result.primary)) & ~(result.hits.grades[:, :cutoff] > 0).any(axis=1)
    return [
        name
        for query in np.flatnonzero(missed).tolist()
        for name in (*result.queries.expected[query], *result.hits.ids(query, cutoff))
    ]


def _choose_name(dataset: Dataset, named_by: str) -> str:
    """Return a dataset's name, or the setting that it comes from if that setting hides the value."""
    return dataset.name if dataset.name in named_by else named_by or dataset.name


def _summarize(dataset: Dataset, name: str) -> DatasetSummary:
    return DatasetSummary(
        name=name,
        split=dataset.split,
        fingerprint=dataset.fingerprint,
        corpus_fingerprint=dataset.corpus.fingerprint,
        documents=len(dataset.full_documents),
        queries=len(dataset.queries),
        judgments=len(dataset.judgments),
        chunks=len(dataset.corpus) if dataset.whole else None,
        clusters=count_clusters(dataset.queries.clusters),
    )


def _list_gold(dataset: Dataset, judgments: Judgments) -> tuple[list[list[str]], list[list[int]]]:
    """Return the ids and the grades of each query's gold, highest grade first."""
    n = len(dataset.documents)
    gold: list[list[str]] = [[] for _ in dataset.queries.ids]
    grades: list[list[int]] = [[] for _ in dataset.queries.ids]
    columns = (column[judgments.gold_order] for column in (judgments.queries, judgments.documents, judgments.grades))
    for query, document, grade in zip(*(column.tolist() for column in columns), strict=True):
        name = dataset.documents.ids[document] if document < n else dataset.judgments.unknown_documents[document - n]
        gold[query].append(name)
        grades[query].append(grade)
    return gold, grades


def _sum_costs(costs: Mapping[str, Cost], rankings: Rankings, score_s: float, wall_s: float) -> Timings:
    index_s, search_s = (
        sum(cost.seconds for cost in costs.values() if kind_of(cost.kind).stage == stage)
        for stage in ("index", "search")
    )
    alone = rankings.seconds[~np.isnan(rankings.seconds)] * 1000 if rankings.seconds is not None else np.zeros(0)
    timed = len(alone) > 0
    return Timings(
        index_s, search_s, score_s, wall_s,
        float(alone.mean()) if timed else None, float(np.percentile(alone, 95)) if timed else None,
        list(costs.values()), _list_times(rankings), _size_index(costs.values()),
        sum(cost.money for cost in costs.values()),
    )  # fmt: skip


def _size_index(costs: Iterable[Cost]) -> int | None:
    """Return the bytes of the indexes among costs; None without one, or if the size of one is unknown."""
    sizes = [cost.bytes for cost in costs if kind_of(cost.kind).stores_index]
    return sum(filter(None, sizes)) or None if None not in sizes else None


def _list_times(rankings: Rankings) -> list[float | None]:
    """Return the time of each query in milliseconds, up to the last query that was timed; None if it was not."""
    times = [] if rankings.seconds is None else [None if s != s else s * 1000 for s in rankings.seconds.tolist()]
    while times and times[-1] is None:
        times.pop()
    return times
