"""The results that people judge: their rankings with the dataset, and the pool of the desk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from retrievers.base import NOTHING, Corpus, Rankings
from retrievers.strict_values import fits_columns, show_value
from retrievers.texts import fetch_documents
from runner.config.consent import Consent, restore_values
from runner.config.objects import ConfigError, build
from runner.datasets.base import Judgments
from runner.datasets.chunking import Chunking
from runner.datasets.dataset import Dataset
from runner.datasets.settings import build_dataset
from runner.datasets.source import DatasetSource
from runner.evaluation.result import Result, ResultError
from runner.features.judge.desk.pairs import DeskPool
from runner.features.judge.judging import JudgedRankings, pool
from runner.pages import console


def build_desk_pool(
    results: Sequence[Result],
    ranked: Sequence[JudgedRankings],
    depth: int,
    scale: int | None = None,
    queries: int | None = None,
    seed: int = 0,
) -> DeskPool:
    """Return the pool of results, limited to a random choice of `queries` that have something to judge; None: to all.

    Queries without gold are pooled if the dataset keeps unjudged queries or has no gold at all.
    """
    keeps = any(result.config["dataset"].get("unjudged_queries") == "keep" for result in results)
    pairs = pool(ranked, depth, all_queries=keeps or not (ranked[0].judgments.grades > 0).any())
    if queries is not None:
        having = sorted({query for query, _ in pairs})
        chosen = {having[place] for place in np.random.default_rng(seed).permutation(len(having))[:queries].tolist()}
        pairs = {pair: place for pair, place in pairs.items() if pair[0] in chosen}
    used = tuple(dict.fromkeys(file for result in results for file in result.extra_qrels))
    return replace(DeskPool.build(ranked, pairs, depth, scale), extra_qrels=used)


def name_judged(runs: Sequence[str]) -> str:
    """Return the name of the folder for judgments of runs, given their full ids."""
    return runs[0] if len(runs) == 1 else "-".join(sorted(run[:8] for run in runs))


def load_rankings(results: Sequence[Result], depth: int, consent: Consent) -> list[JudgedRankings]:
    """Return the rankings of results with their dataset, which is loaded again and split as it was for each result.

    Documents among the first `depth` hits that the dataset lacks are added if the retrievers can return them by id.
    """
    prints = {result.dataset.fingerprint: result for result in results}
    if len(prints) > 1:
        names = ", ".join(sorted(result.dataset.name for result in prints.values()))
        raise ConfigError(f"run: the sweep has several datasets ({names}); choose one of its combinations")
    built = [build_recorded_dataset(result, consent) for result in results]
    whole = built[0][0].load()
    if whole.judgments.spans is not None:
        raise ConfigError(
            f"run: the gold of {whole.name} is spans, but judge grades documents; add passages to the file of spans, "
            "or evaluate with dataset.gold=documents"
        )
    datasets = {repr(chunking): whole.split_documents(chunking) for _, chunking in built}
    for (_, chunking), result in zip(built, results, strict=True):
        dataset, summary = datasets[repr(chunking)], result.dataset
        if (dataset.fingerprint, dataset.corpus.fingerprint) != (summary.fingerprint, summary.corpus_fingerprint):
            raise ConfigError(f"run: the dataset {dataset.name} has changed since the evaluation; evaluate it again")
    if all(dataset.whole is None for dataset in datasets.values()):
        whole = _add_documents(whole, results, depth, consent)
        datasets = dict.fromkeys(datasets, whole)
    ranked = []
    for (_, chunking), result in zip(built, results, strict=True):
        dataset = datasets[repr(chunking)]
        judgments = whole.judgments.select(result.search_type or result.retriever)
        ranked.append(JudgedRankings(dataset, _positions(result, dataset), judgments))
    return ranked


def build_recorded_dataset(result: Result, consent: Consent) -> tuple[DatasetSource, Chunking]:
    """Return the source and the chunking of the dataset that a result was measured on; raises `ConfigError`."""
    values = restore_values({"dataset": result.config.get("dataset") or {}}, consent)["dataset"]
    return build_dataset(values, consent.plugins)


def _add_documents(dataset: Dataset, results: Sequence[Result], depth: int, consent: Consent) -> Dataset:
    """Return the dataset with the documents among the first hits that it lacks, fetched from the retrievers by id."""
    documents = dataset.corpus
    for result in results:
        if result.hits is None:
            continue
        first, grades = result.hits.rankings.documents[:, :depth], result.hits.grades[:, :depth]
        hits = [result.hits.documents[place] for place in first[(first != NOTHING) & (grades < 0)].tolist()]
        ids = [name for name in hits if fits_columns(name)]
        if len(ids) < len(hits):
            wrong = show_value(next(name for name in hits if not fits_columns(name)))
            console.note(f"hits cannot be judged under ids such as {wrong}, which end a column or a line in judgments")
        if not all(name in documents.positions for name in ids):
            try:
                settings = restore_values({"retriever": result.config.get("retriever")}, consent)["retriever"]
                retriever = build(settings, "retriever", consent.plugins)
            except ConfigError as error:
                console.note(f"the texts of hits outside the dataset are not available ({error})")
                continue
            documents = fetch_documents(retriever, documents, ids)
    return dataset if documents is dataset.corpus else extend_corpus(dataset, documents)


def extend_corpus(dataset: Dataset, documents: Corpus) -> Dataset:
    """Return the same queries and judgments with `documents`, which start with those of the corpus, unsplit."""
    unknown = dataset.judgments.unknown_documents
    absent = tuple(name for name in unknown if name not in documents.positions)
    places = {**documents.positions} | {name: len(documents) + place for place, name in enumerate(absent)}
    moved = np.array([places[name] for name in (*dataset.corpus.ids, *unknown)], dtype=np.int32)

    def move(own: Judgments) -> Judgments:
        positions = moved[own.documents]
        order = np.lexsort((positions, own.queries))
        tables = {name: move(table) for name, table in own.by_search_type.items()}
        columns = own.queries[order], positions[order], own.grades[order]
        return Judgments(*columns, absent, tables, own.intervals, unjudged=own.unjudged)

    return replace(dataset, corpus=documents, judgments=move(dataset.judgments))


def _positions(result: Result, dataset: Dataset) -> Rankings:
    """Return the rankings of a result with documents by their position in the dataset's corpus."""
    if result.hits is None:
        raise ResultError(f"{result.name}: the record contains no rankings to judge")
    at = {identifier: position for position, identifier in enumerate(dataset.corpus.ids)}
    unknown = tuple(dict.fromkeys(i for i in result.hits.documents if i not in at))
    at |= {identifier: len(dataset.corpus) + place for place, identifier in enumerate(unknown)}
    positions = np.array([*(at[i] for i in result.hits.documents), NOTHING], dtype=np.int32)
    return replace(result.hits.rankings, documents=positions[result.hits.rankings.documents], unknown_ids=unknown)
