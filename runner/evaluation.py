"""One evaluation, from a composed config to a Result: what `evaluate` runs once and a sweep many times.

dataset -> retriever -> rankings -> scores, and grades where a language model is configured. The only step that touches
the retriever is `search_cached`; all after it is arithmetic, or the model's word. It knows neither Hydra nor MLflow.
"""

from __future__ import annotations

import platform
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from retrievers.analyzer import Analyzer
from retrievers.base import Rankings, Retriever
from retrievers.search import resolve_search_depth, search_cached
from retrievers.work import Cost, kind_of
from runner.analysis.clusters import count_clusters
from runner.analysis.failures import Lexicon
from runner.analysis.grading import SCALE, Grading, grade_found
from runner.config.environment import RESOLVER
from runner.config.objects import ConfigError, build
from runner.config.values import Settled, config_hash
from runner.datasets.base import Dataset, DatasetSource, Judgments
from runner.datasets.chunking import Whole
from runner.datasets.own_documents import exclude_own, rows_to_exclude
from runner.llm.journal import Journal
from runner.llm.none import NoLLM
from runner.measuring import JudgedQueries, Searched, measured
from runner.metrics.errors import MeasureError
from runner.metrics.measures import check_grades
from runner.metrics.scores import Grader
from runner.metrics.settings import MetricSettings
from runner.result import DatasetSummary, Result, Timings
from runner.store.disk import DiskStore

DECIDING_PACKAGES = (
    "retrieval-runner",
    "numpy",
    "scipy",
    "scikit-learn",
    "numba",
    "regex",
    "PyStemmer",
    "stop-words",
    "rank-bm25",
    "faiss-cpu",
    "sentence-transformers",
    "transformers",
    "torch",
    "ir-measures",
)
"""What a result's environment names the versions of."""

LARGEST_INTEGER = 2**63 - 1
"""The largest whole number that records, databases and random generators take."""


@dataclass(frozen=True, eq=False)
class Experiment:
    """A composed config as objects. `parameters` are the config flattened, `swept` the keys that vary in a sweep.

    `grading` is None where no language model is configured. `named_by` is the setting that the dataset's name comes
    from, as it is recorded, where an environment variable gives it.
    """

    name: str
    retriever_name: str
    retriever: Retriever
    source: DatasetSource
    metrics: MetricSettings
    config: Mapping[str, Any]
    parameters: Mapping[str, str]
    swept: Mapping[str, Any] = field(default_factory=dict)
    grading: Grading | None = None
    named_by: str = ""

    @property
    def search_type(self) -> str:
        """Return by what name a dataset may expect other items: that of a search API's search, or the retriever's."""
        return str(getattr(self.retriever, "search_type", None) or self.retriever_name)


def experiment_of(settled: Settled, name: str | None = None, swept: Mapping[str, Any] | None = None) -> Experiment:
    """Make the objects of a config; raises `ConfigError` before any work is done."""
    config = settled.config
    plugins = config.get("plugins") or ()
    parts = {key: build(config[key], key, plugins) for key in ("retriever", "dataset", "metrics")}
    for key, kind in (("retriever", Retriever), ("dataset", DatasetSource), ("metrics", MetricSettings)):
        if not isinstance(parts[key], kind):
            raise ConfigError(f"{key}: {type(parts[key]).__name__} is not a {kind.__name__}")
    _check_values(parts["retriever"])
    _check_integers(config)
    grading = _grading(config, plugins)
    settled = settled if grading else _without_grading(settled)
    choice, swept = str(config["choices"].get("retriever", "retriever")), swept or {}
    first = {key: settled.parameters[key] for key in swept if key in settled.parameters}
    return Experiment(
        name or choice, choice, parts["retriever"], parts["dataset"], parts["metrics"],
        settled.public, {**first, **settled.parameters}, swept, grading, _named_by(settled, parts["dataset"]),
    )  # fmt: skip


def _named_by(settled: Settled, source: DatasetSource) -> str:
    """Return the recorded setting of a dataset's name, or path, where it refers to the environment, else ""."""
    own, recorded = settled.config["dataset"], settled.public["dataset"]
    wanted = source.name or source.origin
    values = (recorded[key] for key in own if own[key] == wanted)
    return next((value for value in values if isinstance(value, str) and RESOLVER in value), "")


def _grading(config: Mapping[str, Any], plugins: Sequence[str]) -> Grading | None:
    """Return how to grade; None where no language model is configured, or grading=none says not to."""
    if not config.get("grading"):
        return None
    made = build(config["grading"], "grading", plugins)
    if not isinstance(made, Grading):
        raise ConfigError(f"grading: {type(made).__name__} is not a Grading")
    return None if isinstance(made.llm, NoLLM) else made


def _without_grading(settled: Settled) -> Settled:
    """Return a config without the settings of a grading that does not take place: they decide nothing."""
    chosen = settled.public["choices"]
    off = {"grading", "llm"} if chosen.get("llm") == "none" else {"grading"}
    choices = {group: choice for group, choice in chosen.items() if group not in off}
    public = {key: value for key, value in settled.public.items() if key not in off} | {"choices": choices}
    kept = {key: value for key, value in settled.parameters.items() if key.partition(".")[0] not in off}
    return replace(settled, public=public, parameters=kept)


def _check_values(retriever: object) -> None:
    """Refuse a retriever that is no dataclass: its repr would not tell it from another, nor its code be known."""
    if not is_dataclass(retriever):
        raise ConfigError(f"retriever: {type(retriever).__name__} is not a dataclass, whose settings are its identity")
    for parts in (value for each in fields(retriever) if isinstance(value := getattr(retriever, each.name), Mapping)):
        for part in parts.values():
            if isinstance(part, Retriever) and not isinstance(part, Sequence):  # text has an `index` too
                _check_values(part)


def _check_integers(node: object, path: str = "") -> None:
    """Refuse a whole number that a record cannot hold, before any work."""
    if isinstance(node, int) and not -LARGEST_INTEGER <= node <= LARGEST_INTEGER:
        raise ConfigError(f"{path}={node}: should be at most {LARGEST_INTEGER}, the largest integer of 64 bits")
    items = node.items() if isinstance(node, Mapping) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        if isinstance(value, int | Mapping | list):
            _check_integers(value, f"{path}.{key}" if path else str(key))


class Bench:
    """What evaluations share: the store, the datasets that were loaded, and their judgments made ready.

    `analyzer` tells words in reports of what searches without one.
    """

    def __init__(self, store: DiskStore, analyzer: Analyzer = Analyzer()) -> None:  # noqa: B008 (immutable)
        self.store, self.analyzer = store, analyzer
        self._datasets: dict[str, Dataset] = {}
        self._graders: dict[tuple[str, str], tuple[Grader, JudgedQueries]] = {}
        self._journals: list[Journal] = []

    def dataset(self, source: DatasetSource) -> Dataset:
        """Return a source's dataset, loaded once; raises `DatasetError`."""
        if repr(source) not in self._datasets:
            uncut = replace(source, chunking=Whole())  # read once, however many ways to cut it are tried
            dataset = source.load() if uncut == source else self.dataset(uncut).chunked(source.chunking)
            self._datasets[repr(source)] = dataset
        return self._datasets[repr(source)]

    def lexicon(self, experiment: Experiment) -> Lexicon:
        """Return which words the documents of an experiment have, as its analyzer tells words."""
        own = experiment.config.get("analyzer")
        analyzer = build(own, "analyzer", experiment.config.get("plugins") or ()) if own else self.analyzer
        return Lexicon(self.dataset(experiment.source).documents, analyzer, self.store)

    def check_grades(self, experiment: Experiment) -> None:
        """Raise `ConfigError` for a measure that the dataset's grades are too large for, before any search."""
        judgments = self.dataset(experiment.source).judgments_for(experiment.search_type)
        try:
            check_grades(experiment.metrics.expanded, int(judgments.grades.max(initial=0)))
        except MeasureError as error:
            raise ConfigError(f"metrics: {error}") from None

    def evaluate(self, experiment: Experiment) -> Result:
        """Run one evaluation. Queries that fail are part of the result; a retriever that fails raises."""
        start = time.perf_counter()
        dataset, settings = self.dataset(experiment.source), experiment.metrics
        self.check_grades(experiment)
        grader, asked = self._grader(experiment, dataset)
        with self.store.account() as costs:
            wanted = settings.depth + rows_to_exclude(dataset)
            depth = resolve_search_depth(experiment.retriever, dataset.corpus, wanted)
            rankings = search_cached(experiment.retriever, dataset.corpus, dataset.queries.texts, depth, self.store)
        rankings = exclude_own(dataset, rankings, settings.depth)
        self.store.note_use(costs, _recorded_name(dataset, experiment.named_by), dataset.fingerprint, experiment.name)
        scoring = time.perf_counter()
        result = _result(experiment, dataset, grader, asked, rankings)
        done = time.perf_counter()
        return _timed(result, costs, rankings, done - scoring, done - start)

    def graded(self, experiment: Experiment, result: Result) -> Result:
        """Return a result with what it found graded, where a language model is configured.

        What is paid for is kept until `safe` is told, and for the next start where that has something left to ask.
        """
        if experiment.grading is None or result.hits is None:
            return result
        dataset, n = self.dataset(experiment.source), len(result.queries.ids)
        failed = {position for position in range(n) if result.queries.errors[position]}
        found = [result.hits.ids(position, experiment.grading.k) for position in range(n)]
        grades, journal = grade_found(
            experiment.grading, dataset.corpus, dataset.queries, found, result.queries.expected, failed,
            self.store.folder.parent / "grading", repr(experiment.retriever),
        )  # fmt: skip
        result = replace(result, grades=grades, warnings=[*result.warnings, *grades.warnings(SCALE)])
        if not (grades.unasked or grades.failed):
            self._journals.append(journal)
        return result

    def safe(self) -> None:
        """Forget what was kept of gradings that are over, now that their results are safe: the next one is fresh."""
        while self._journals:
            self._journals.pop().forget()

    def _grader(self, experiment: Experiment, dataset: Dataset) -> tuple[Grader, JudgedQueries]:
        judgments = dataset.judgments_for(experiment.search_type)
        searched_as = experiment.search_type if judgments is not dataset.judgments else ""
        key = (repr(experiment.source), searched_as)
        if key not in self._graders:
            n, judged_ids = len(dataset.documents), dataset.judged_ids
            grader = Grader(judgments, len(dataset.queries), n, dataset.document_of, judged_ids)
            self._graders[key] = grader, _asked(dataset, judgments)
        return self._graders[key]


def _result(
    experiment: Experiment, dataset: Dataset, grader: Grader, queries: JudgedQueries, rankings: Rankings
) -> Result:
    shown = dataset.corpus.metadata if experiment.source.golden else ()
    result = measured(
        rankings,
        grader,
        experiment.metrics,
        queries=queries,
        searched=Searched(dataset.corpus.ids, shown, dataset.parents),
        name=experiment.name,
        retriever=experiment.retriever_name,
        config=experiment.config,
        config_hash=config_hash(experiment.config),
        dataset=_summary(dataset, experiment.named_by),
    )
    return replace(result, swept=dict(experiment.swept), environment=environment(), search_type=experiment.search_type)


def _asked(dataset: Dataset, judgments: Judgments) -> JudgedQueries:
    """Return the queries with what these judgments of the dataset's expect of them."""
    queries, (gold, grades), own = dataset.queries, _gold(dataset, judgments), []
    if judgments is not dataset.judgments:
        in_general = zip(*_gold(dataset, dataset.judgments), strict=True)
        columns = zip(queries.ids, zip(gold, grades, strict=True), in_general, strict=True)
        own = [query for query, mine, others in columns if mine != others]
    columns_of_all = (list(queries.ids), list(queries.texts), list(queries.types))
    return JudgedQueries(*columns_of_all, gold, grades, own, list(queries.clusters))


def _recorded_name(dataset: Dataset, named_by: str) -> str:
    """Return a dataset's name, or the setting that it comes from where that hides it."""
    return dataset.name if dataset.name in named_by else named_by or dataset.name


def _summary(dataset: Dataset, named_by: str) -> DatasetSummary:
    return DatasetSummary(
        name=_recorded_name(dataset, named_by),
        split=dataset.split,
        fingerprint=dataset.fingerprint,
        corpus_fingerprint=dataset.corpus.fingerprint,
        documents=len(dataset.documents),
        queries=len(dataset.queries),
        judgments=len(dataset.judgments),
        chunks=len(dataset.corpus) if dataset.whole else None,
        clusters=count_clusters(dataset.queries.clusters),
    )


def _gold(dataset: Dataset, judgments: Judgments) -> tuple[list[list[str]], list[list[int]]]:
    """Return the ids of each query's gold, the highest grade first, and their grades."""
    n = len(dataset.documents)
    gold: list[list[str]] = [[] for _ in dataset.queries.ids]
    grades: list[list[int]] = [[] for _ in dataset.queries.ids]
    order = np.lexsort((judgments.documents, -judgments.grades, judgments.queries))
    for query, document, grade in zip(
        judgments.queries[order].tolist(),
        judgments.documents[order].tolist(),
        judgments.grades[order].tolist(),
        strict=True,
    ):
        if grade > 0:
            name = dataset.documents.ids[document] if document < n else dataset.unknown_documents[document - n]
            gold[query].append(name)
            grades[query].append(grade)
    return gold, grades


def _timed(result: Result, costs: Mapping[str, Cost], rankings: Rankings, score_s: float, wall_s: float) -> Result:
    index_s, search_s = (
        sum(cost.seconds for cost in costs.values() if kind_of(cost.kind).stage == stage)
        for stage in ("index", "search")
    )
    alone = rankings.seconds[~np.isnan(rankings.seconds)] * 1000 if rankings.seconds is not None else np.zeros(0)
    timed = len(alone) > 0
    return replace(
        result,
        timings=Timings(
            index_s, search_s, score_s, wall_s,
            float(alone.mean()) if timed else None, float(np.percentile(alone, 95)) if timed else None,
            list(costs.values()), _each_ms(rankings),
        ),
    )  # fmt: skip


def _each_ms(rankings: Rankings) -> list[float | None]:
    """Return what each query took, up to the last that was timed."""
    each = [] if rankings.seconds is None else [None if s != s else s * 1000 for s in rankings.seconds.tolist()]
    while each and each[-1] is None:
        each.pop()
    return each


@cache
def environment() -> dict[str, Any]:
    """Return the versions of what decides a result, and the git commit of this program if it runs from a checkout."""
    versions = {}
    for package in DECIDING_PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "packages": versions,
        "git_commit": _git("rev-parse", "HEAD"),
        "git_dirty": bool(_git("status", "--porcelain", "--untracked-files=no")),
    }


def _git(*arguments: str) -> str:
    """Ask git about this program's own checkout; "" where it has none."""
    command = ["git", "-C", str(Path(__file__).parent), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=5)  # noqa: S603 (fixed)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
