"""Plan an experiment in a file, with the times that its retrievers take on a small sample of the documents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from hydra.types import RunMode

from retrievers.capabilities import is_live
from runner.config.composing import open_loader
from runner.datasets.chunking import Whole
from runner.datasets.dataset import Dataset
from runner.evaluation.bench import Bench
from runner.evaluation.experiment import Experiment
from runner.evaluation.result import Result
from runner.sweep.declared import Declared
from runner.sweep.plan import plan_combinations
from runner.sweep.work import Plan

WORDS, QUERIES = 5_000, 10
"""The words and the queries of a sample, about."""


def plan_experiment(preset: str, overrides: Sequence[str]) -> Plan:
    """Return the plan of an experiment, given as an override; `overrides` say where runs and work are kept.

    Each retriever searches a sample first, except live ones, so that the store knows the speed of this machine. Raises
    `ConfigError` and `DatasetError`.
    """
    with open_loader("plan", [preset, *overrides]) as (loader, words):
        config = loader.load_configuration("plan", words, run_mode=RunMode.MULTIRUN)
        declared = Declared(loader, config, list(config.hydra.overrides.task), {})
        experiments = declared.experiments(declared.points)
    wanted = {experiment.name: experiment for experiment in experiments}
    samples = list(time_samples(experiments, declared.bench))
    return plan_combinations(Path(preset).stem, wanted, (), declared.bench, 1, samples)


def time_samples(experiments: Sequence[Experiment], bench: Bench) -> Iterator[Result]:
    """Yield the result of an experiment of each retriever and encoder on a sample of the documents."""
    first: dict[tuple[str, str], Experiment] = {}
    for experiment in experiments:
        if not is_live(experiment.retriever):
            first.setdefault((experiment.retriever_name, experiment.parameters.get("encoder", "")), experiment)
    sample = Bench(bench.store)
    for experiment in first.values():
        sample.datasets.add(experiment.source, Whole(), cut_sample(bench.datasets.load(experiment.source)))
        yield sample.evaluate(experiment)


def cut_sample(dataset: Dataset) -> Dataset:
    """Return the first documents and queries of a dataset; the first document is the gold of each query."""
    words = np.cumsum([text.count(" ") + 1 for text in dataset.corpus.texts])
    n = int(np.searchsorted(words, WORDS)) + 1
    documents = dict(zip(dataset.corpus.ids[:n], dataset.corpus.texts[:n], strict=True))
    queries = dict(zip(dataset.queries.ids[:QUERIES], dataset.queries.texts[:QUERIES], strict=True))
    return Dataset.of(documents, queries, {query: [dataset.corpus.ids[0]] for query in queries}, "sample")
