"""Builds the objects of a composed config: the retriever, the dataset, the measures and the statistics.

Runs no evaluation and uses neither Hydra nor MLflow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

from retrievers.base import Retriever
from retrievers.capabilities import derive_capabilities
from runner.config.environment import RESOLVER
from runner.config.features import list_features
from runner.config.objects import ConfigError, build, build_settings
from runner.config.values import Settled
from runner.datasets.chunking import Chunking, Whole
from runner.datasets.settings import build_dataset
from runner.datasets.source import DatasetSource
from runner.evaluation.grading import Grading
from runner.evaluation.result import Result
from runner.llm.none import NoLLM
from runner.metrics.settings import MetricSettings
from runner.statistics.settings import Statistics

LARGEST_INTEGER = 2**63 - 1
"""The largest integer that records, databases and random generators accept."""


@dataclass(frozen=True, eq=False)
class Experiment:
    """A composed config as objects. `parameters` is the flattened config, `swept` the keys that vary in a sweep.

    `chunking` is how the documents of `source` are split before the search. `grading` is None without a language model.
    If an environment variable gives the dataset's name, `named_by` is the setting that refers to it, as recorded; else
    it is "". `index` is what the index reported about itself when the experiment was identified. `blocks` are the
    positions of queries that a race has searched, block by block, so that their rankings are in the store. `metrics`
    are what is measured, `statistics` how results are compared. `features` are the settings of features that add
    figures, by feature. `label` is the name of the system from Python, "" for that of its retriever.
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
    chunking: Chunking = Whole()  # noqa: RUF009 (immutable)
    index: Mapping[str, str] = field(default_factory=dict)
    blocks: Sequence[Sequence[int]] = ()
    statistics: Statistics = Statistics()
    features: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""

    @property
    def system(self) -> str:
        """Return the name of the system in results."""
        return self.label or self.retriever_name

    @property
    def search_type(self) -> str:
        """Return the name by which a dataset may expect other items: a search API's search type, or the retriever's."""
        return derive_capabilities(self.retriever).search_type or self.retriever_name

    def relabel(self, result: Result) -> Result:
        """Return an earlier result of the same combination with the names and the swept settings of this experiment."""
        return replace(result, name=self.name, retriever=self.system, swept=dict(self.swept))


def build_experiment(
    settled: Settled,
    name: str | None = None,
    swept: Mapping[str, Any] | None = None,
    retriever: Retriever | None = None,
) -> Experiment:
    """Return the experiment of a config; raises `ConfigError` before any work is done.

    `retriever` is the retriever that the config describes, if it is already built.
    """
    config = settled.config
    plugins = config.get("plugins") or ()
    retriever = build(config["retriever"], "retriever", plugins) if retriever is None else retriever
    source, chunking = build_dataset(config["dataset"], plugins)
    metrics = build(config["metrics"], "metrics", plugins)
    for key, part, kind in (("retriever", retriever, Retriever), ("metrics", metrics, MetricSettings)):
        if not isinstance(part, kind):
            raise ConfigError(f"{key}: expected a {kind.__name__}, found {type(part).__name__}")
    metrics = _adapt_measures(metrics, source)
    statistics = build_settings(Statistics, config.get("statistics"), "statistics")
    _check_dataclass(retriever)
    _check_integers(config)
    grading = _build_grading(config, plugins)
    settled = settled if grading else _without_grading(settled)
    choice = str(getattr(retriever, "label", None) or config["choices"].get("retriever", "retriever"))
    swept = swept or {}
    first = {key: settled.parameters[key] for key in swept if key in settled.parameters}
    return Experiment(
        name or choice, choice, retriever, source, metrics, settled.public, {**first, **settled.parameters}, swept,
        grading, _find_name_setting(settled, source), chunking, statistics=statistics,
        features={name: config[name] for name, of in list_features().items() if of.figures and name in config},
    )  # fmt: skip


def _adapt_measures(metrics: MetricSettings, source: DatasetSource) -> MetricSettings:
    """Return the measures of a dataset: with those of tokens if its gold is spans; raises `ConfigError` without."""
    if source.gold == "spans":
        return metrics.add_token_measures()
    if of_spans := next((measure for measure in metrics.expanded if measure.needs_spans), None):
        raise ConfigError(
            f"metrics: {of_spans} counts words of gold spans; set dataset.gold=spans, or remove this measure"
        )
    return metrics


def _find_name_setting(settled: Settled, source: DatasetSource) -> str:
    """Return the recorded setting of a dataset's name or path if it refers to an environment variable, else ""."""
    own, recorded = settled.config["dataset"], settled.public["dataset"]
    wanted = source.name or source.origin
    values = (recorded[key] for key in own if own[key] == wanted)
    return next((value for value in values if isinstance(value, str) and RESOLVER in value), "")


def _build_grading(config: Mapping[str, Any], plugins: Sequence[str]) -> Grading | None:
    """Return the settings of grading; None without a language model, or with `grading=none`."""
    if not config.get("grading"):
        return None
    grading = build(config["grading"], "grading", plugins)
    if not isinstance(grading, Grading):
        raise ConfigError(f"grading: expected a Grading, found {type(grading).__name__}")
    return None if isinstance(grading.llm, NoLLM) else grading


def _without_grading(settled: Settled) -> Settled:
    """Return a config without the settings of grading, which have no effect if nothing is graded."""
    chosen = settled.public["choices"]
    off = {"grading", "llm"} if chosen.get("llm") == "none" else {"grading"}
    choices = {group: choice for group, choice in chosen.items() if group not in off}
    public = {key: value for key, value in settled.public.items() if key not in off} | {"choices": choices}
    kept = {key: value for key, value in settled.parameters.items() if key.partition(".")[0] not in off}
    return replace(settled, public=public, parameters=kept)


def _check_dataclass(retriever: object) -> None:
    """Raise `ConfigError` for a retriever that is not a dataclass: its repr and code would not identify it."""
    if not is_dataclass(retriever):
        raise ConfigError(
            f"retriever: {type(retriever).__name__} should be a dataclass, because its settings identify its results"
        )
    values = (getattr(retriever, field.name) for field in fields(retriever))
    for parts in (value for value in values if isinstance(value, Mapping)):
        for part in parts.values():
            if isinstance(part, Retriever) and not isinstance(part, Sequence):  # text has an `index` too
                _check_dataclass(part)


def _check_integers(node: object, path: str = "") -> None:
    """Raise `ConfigError` for an integer that does not fit in 64 bits and so cannot be recorded."""
    if isinstance(node, int) and not -LARGEST_INTEGER <= node <= LARGEST_INTEGER:
        raise ConfigError(f"{path}={node}: should be from -{LARGEST_INTEGER} to {LARGEST_INTEGER}, as a 64-bit integer")
    items = node.items() if isinstance(node, Mapping) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        if isinstance(value, int | Mapping | list):
            _check_integers(value, f"{path}.{key}" if path else str(key))
