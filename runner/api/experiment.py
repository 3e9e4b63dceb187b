"""Load the retriever and the dataset of an experiment, to search with them from Python."""

from __future__ import annotations

from dataclasses import dataclass, field
from os import PathLike, fspath
from typing import NamedTuple

from retrievers.base import NOTHING, Retriever, RetrieverError, Searcher
from retrievers.search import open_searcher
from runner.config.arguments import format_override
from runner.config.composing import compose_config
from runner.config.objects import ConfigError
from runner.config.values import settle
from runner.datasets.dataset import Dataset
from runner.evaluation.bench import Bench
from runner.evaluation.experiment import build_experiment
from runner.store.opening import open_store
from runner.store.settings import store_settings


class SearchHit(NamedTuple):
    """A document or chunk that was retrieved, best first from rank 1."""

    rank: int
    id: str
    score: float
    title: str
    text: str


@dataclass(frozen=True, eq=False)
class LoadedExperiment:
    """A retriever over the documents of a dataset, which are split if the experiment splits them."""

    retriever: Retriever
    dataset: Dataset
    searcher: Searcher = field(repr=False)

    def search(self, query: str, k: int = 10) -> list[SearchHit]:
        """Return at most k hits for a query; raises `RetrieverError` if the search fails."""
        rankings, corpus = self.searcher.search([query], k), self.dataset.corpus
        if rankings.errors:
            raise RetrieverError(rankings.errors[0])
        pairs = zip(rankings.documents[0].tolist(), rankings.scores[0].tolist(), strict=True)
        return [
            SearchHit(rank, corpus.ids[i], score, corpus.titles[i] if corpus.titles else "", corpus.texts[i])
            for rank, (i, score) in enumerate(((i, score) for i, score in pairs if i != NOTHING), start=1)
        ]


def load_experiment(file: str | PathLike[str], *overrides: str) -> LoadedExperiment:
    """Return the retriever of an experiment in a file, such as the winner of a sweep, over its documents.

    Paths in the file are relative to the working folder. `overrides` are other settings as on the command line. Raises
    `ConfigError` and `DatasetError` for mistakes, also for the file of a sweep, which `run_sweep` runs.
    """
    words = [format_override("experiment", fspath(file)), *overrides]
    settled = settle(*compose_config("evaluate", words))
    if settled.config["sweep"]["union"]:
        raise ConfigError(f"{fspath(file)}: describes several combinations; run it with run_sweep")
    experiment, store = build_experiment(settled), open_store(store_settings(settled.config))
    dataset = Bench(store).dataset(experiment)
    return LoadedExperiment(experiment.retriever, dataset, open_searcher(experiment.retriever, dataset.corpus, store))
