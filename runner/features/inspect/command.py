"""Inspect a dataset: its content, its problems, and their remedies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig
from pydantic.dataclasses import dataclass as settings

from retrievers.base import NOTHING, Rankings, Retriever
from retrievers.files import replace_texts
from retrievers.lexical.analyzer import Analyzer
from retrievers.search import search_cached
from runner.comparison.comparability import compute_depth
from runner.comparison.labels import label_results
from runner.comparison.notes import describe_dataset
from runner.config.addresses import RequiredPath
from runner.config.objects import ConfigError, build, build_settings
from runner.config.values import resolve_config
from runner.datasets.base import DatasetError, Queries
from runner.datasets.dataset import Dataset
from runner.datasets.own_documents import search_others
from runner.datasets.settings import build_dataset
from runner.datasets.source import DatasetSource
from runner.evaluation.result import Hits, Result
from runner.features.inspect.benchmark_overlap import hash_dataset, load_hashes
from runner.features.inspect.findings import InspectionSettings
from runner.features.inspect.inspection import inspect
from runner.features.inspect.report import reliability, tables
from runner.features.inspect.report.page import inspection_page
from runner.pages import console
from runner.pages.output import create_folder, writing_to
from runner.pages.progress import Status
from runner.results.lookup import as_typed, list_results
from runner.store.base import WorkStore
from runner.store.opening import open_store
from runner.store.settings import store_settings


@settings(frozen=True, config={"extra": "forbid", "arbitrary_types_allowed": True, "coerce_numbers_to_str": True})
class InspectSettings:
    """How a dataset is inspected, and where the report goes: see `conf/inspect.yaml`."""

    analyzer: Analyzer
    retrievers: Mapping[str, Retriever]
    inspection: InspectionSettings
    output: RequiredPath | None = None


def main(cfg: DictConfig) -> int:
    """Load the dataset, search it, and write and show the findings."""
    config = resolve_config(cfg)
    own = build_settings(InspectSettings, config, plugins=config["plugins"])
    source, chunking = build_dataset(config["dataset"], config["plugins"])
    benchmarks = [load_hashes(Path(path).expanduser()) for path in own.inspection.benchmarks]
    folder = None if own.output is None else create_folder(own.output)
    store = open_store(store_settings(config))
    with Status("inspect") as status:
        status.note("loading the dataset")
        dataset, others = source.load().split_documents(chunking), _load_other_splits(source)
        inspection_settings, rankings = own.inspection, {}
        if config["runs"] is not None:
            results = _load_results(config, dataset)
            deepest = max(max(compute_depth(result), result.hits.rankings.depth) for result in results if result.hits)
            depth = min(own.inspection.depth, deepest)
            inspection_settings = replace(own.inspection, depth=depth)
            rankings = _locate_rankings(results, dataset, depth)
        for name, retriever in own.retrievers.items() if config["runs"] is None else ():
            status.note(f"searching with {name}")
            search = partial(_search, dataset, store)
            rankings[name] = ranking = search_others(dataset, retriever, own.inspection.depth, search)
            if ranking.errors:
                first = next(iter(ranking.errors.values()))
                console.note(f"{name}: {len(ranking.errors):,} searches failed; the first error was: {first}")
        status.note("analysing the results")
        inspection = inspect(dataset, rankings, own.analyzer, store, others, inspection_settings, benchmarks)
    document = tables.as_json(inspection).decode()
    if folder is not None:
        files = {
            "inspection.json": document,
            "hashes.json": hash_dataset(dataset).to_json().decode(),
            "inspection.html": inspection_page(inspection),
        }
        with writing_to(str(folder)):
            replace_texts(folder, files)
    console.document(lambda: document)
    console.line(tables.heading(inspection))
    if inspection.reading:
        console.paragraph(inspection.reading)
    console.show_table(tables.samples_table(inspection), "First queries and their gold")
    console.line(f"\n{tables.verdict(inspection)}")
    console.show_table(tables.findings_table(inspection), "Findings, most severe first")
    console.show_table(tables.retrievers_table(inspection), "Retrievers")
    if inspection.reliability is not None:
        console.line(f"\nReliability: {reliability.describe_scope(inspection.reliability)}")
        for title, text in reliability.describe_reliability(inspection.reliability):
            console.paragraph(f"{title}. {text}")
        console.show_table(reliability.separations_table(inspection.reliability), "Neighbours in the ranking")
    for line in inspection.lacking:
        console.note(line)
    if folder is not None:
        console.line(f"\nreport: {folder / 'inspection.html'}")
    return 0


def _load_results(config: Mapping[str, Any], dataset: Dataset) -> list[Result]:
    """Return the results on a dataset that `runs` names; raises `ConfigError` for none, or for one without rankings."""
    words = as_typed(config["runs"], "runs", HydraConfig.get().overrides.task)
    tracking = build(config["tracking"], "tracking")
    every = [result for word in words for result in list_results(word, tracking, Path("baselines"))]
    results = [result for result in every if result.dataset.fingerprint == dataset.fingerprint]
    if not results:
        raise ConfigError(
            f"runs: {every[0].name} was measured on {describe_dataset(every[0])}, but this dataset is {dataset.name} "
            f"({dataset.split}, {dataset.fingerprint[:8]}); choose the dataset of the runs"
        )
    for result in results:
        if result.hits is None:
            raise ConfigError(
                f"runs: the record of {result.name} contains no rankings; choose a run whose artifacts are complete"
            )
        if bool(result.hits.parents) != (dataset.whole is not None):
            raise ConfigError(f"runs: {result.name} was measured with another chunking; set chunking=... as in the run")
    return results


def _locate_rankings(results: Sequence[Result], dataset: Dataset, depth: int) -> dict[str, Rankings]:
    """Return the rankings of results by label, to a depth."""
    positions = {document: i for i, document in enumerate(dataset.corpus.ids)}
    return dict(
        zip(
            label_results(results),
            [_locate(result.hits, result, positions).cut(depth) for result in results if result.hits],
            strict=True,
        )
    )


def _locate(hits: Hits, result: Result, positions: Mapping[str, int]) -> Rankings:
    """Return the rankings of a result with the positions of a corpus; other documents come after these."""
    unknown: dict[str, int] = {}
    table = [
        positions[i] if i in positions else unknown.setdefault(i, len(positions) + len(unknown)) for i in hits.documents
    ]
    places = np.array([*table, NOTHING], dtype=np.int32)  # the last element is for empty places
    errors = {i: error for i, error in enumerate(result.queries.errors) if error}
    return replace(
        hits.rankings,
        documents=places[hits.rankings.documents],
        unknown_ids=list(unknown),
        errors=errors,
    )


def _search(dataset: Dataset, store: WorkStore, retriever: Retriever, depth: int) -> Rankings:
    return search_cached(retriever, dataset.corpus, dataset.queries.inputs, depth, store)


def _load_other_splits(source: DatasetSource) -> dict[str, Queries]:
    """Return the queries of the splits that are not inspected."""
    queries = {}
    for split in (split for split in source.splits() if split != source.split):
        try:
            queries[split] = replace(source, split=split, max_queries=None).load().queries
        except DatasetError as error:
            raise DatasetError(f"the split {split} cannot be checked for leakage: {error}") from None
    return queries
