"""Evaluate a retriever given as an object, from this program or from the caller."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import is_dataclass, replace
from functools import cache
from os import PathLike
from typing import Any

from omegaconf import DictConfig, OmegaConf, open_dict

from retrievers.base import Retriever, iter_parts
from retrievers.runs.existing import GivenRetriever
from runner.api.data import check_overrides, list_overrides, locate
from runner.api.results import RunResult, with_run
from runner.commands.evaluate import run_experiment
from runner.config import CONF
from runner.config.arguments import format_override
from runner.config.composing import compose_config
from runner.config.hydra_internals import load_yaml
from runner.config.objects import build, build_settings, describe_settings
from runner.config.report import ReportSettings
from runner.config.values import check_read, settle
from runner.datasets.dataset import Dataset
from runner.evaluation.bench import Bench
from runner.evaluation.experiment import build_experiment
from runner.pages import console
from runner.store.opening import open_store
from runner.store.settings import store_settings
from runner.system.processes import main_module_not_imported_again
from runner.tracking.tracing import traces


def evaluate(
    retriever: object,
    dataset: Dataset,
    *overrides: str,
    name: str | None = None,
    tracking_uri: str | None = None,
    store_path: str | PathLike[str] | None = None,
) -> RunResult:
    """Evaluate a retriever on a dataset, log the run, and return the result.

    `retriever` is a retriever of the package `retrievers`, an object with `search(queries, k)`, a function of a query
    (and optionally of the number of hits), a LangChain or LlamaIndex retriever, or a Haystack pipeline. `overrides` are
    other settings as on the command line, such as "metrics.depth=1000". `name` is the name of the run, and of the
    system in comparisons and tables. `tracking_uri` is where the run is logged ("none": not logged) and `store_path`
    where work is cached; for both, None means the default of the command line.

    Failed queries are part of the result (`failures`). Raises `ConfigError`, `DatasetError` or `RetrieverError` for
    mistakes, `FailedEvaluation` if the retriever fails.
    """
    if not isinstance(dataset, Dataset):
        raise TypeError(f"dataset: should be a Dataset, not {type(dataset).__name__}; use load_dataset or Dataset.of")
    check_overrides(overrides, dataset, taken=("retriever", "sweep", "hydra"))
    own = adapt_retriever(retriever)
    node: dict[str, Any] = describe_settings(own)
    choice = find_choice(str(node["_target_"]))
    chosen = [format_override("retriever", choice)] if choice else []
    words = [*list_overrides(dataset), *chosen, *overrides, *locate(tracking_uri, store_path)]
    config, choices = compose_config("evaluate", words)
    _set_retriever(config, node, keep=bool(choice))
    settled = settle(config, choices | {"retriever": choice or _name_retriever(own)})
    own_settings = "the retriever is given with settings of its own; set its {group} instead (docs/python.md)"
    check_read(overrides, [settled.config], own_settings)
    experiment = replace(build_experiment(settled, name, retriever=own), label=name or "")
    analyzer = build(OmegaConf.to_container(config.analyzer, resolve=True), "analyzer", settled.config["plugins"])
    bench = Bench(open_store(store_settings(settled.config)), analyzer)
    bench.datasets.add(experiment.source, experiment.chunking, dataset)
    tracking = build(settled.config["tracking"], "tracking")
    texts = build_settings(ReportSettings, settled.config["report"], "report").texts
    resume = not isinstance(own, GivenRetriever)  # it can only be identified by its name
    with console.silence(), main_module_not_imported_again():
        result, run = run_experiment(experiment, bench, tracking, traces(settled.config), resume=resume, texts=texts)
    return with_run(result, run)


def adapt_retriever(retriever: object) -> Retriever:
    """Return an object as a retriever of this program; if its code cannot be identified, its work is never cached."""
    is_value = is_dataclass(retriever) and not isinstance(retriever, type)
    if is_value and isinstance(retriever, Retriever) and all(map(_has_source, _iter_settings(retriever))):
        return retriever
    return GivenRetriever(name=getattr(retriever, "__name__", type(retriever).__name__), retriever=retriever)


def _iter_settings(value: object) -> list[object]:
    """Return settings and all settings nested in them."""
    return [value, *(inner for part in iter_parts(value) for inner in _iter_settings(part))]


def _has_source(value: object) -> bool:
    """Return whether the code of settings can be read, as is necessary for cache keys."""
    return not is_dataclass(value) or hasattr(sys.modules.get(type(value).__module__), "__file__")


def _name_retriever(retriever: Retriever) -> str:
    return retriever.name if isinstance(retriever, GivenRetriever) else type(retriever).__name__


@cache
def _list_choices() -> Mapping[str, str]:
    """Return the file in `conf/retriever` for each class; if there are several, the one with the shortest name."""
    files = sorted((CONF / "retriever").glob("[!_]*.yaml"), key=lambda file: (-len(file.stem), file.stem))
    contents = {file.stem: load_yaml(file.read_text(encoding="utf-8")) for file in files}
    return {str(content["_target_"]): name for name, content in contents.items() if "_target_" in content}


def find_choice(target: str) -> str | None:
    """Return the choice on the command line that creates this class, None if there is none."""
    return _list_choices().get(target)


def _set_retriever(config: DictConfig, node: Mapping[str, Any], keep: bool) -> None:
    """Set the retriever of a config; with `keep`, settings that already have the right value are not touched."""
    with open_dict(config):
        if not keep:
            config["retriever"] = dict(node)
            return
        before: Any = OmegaConf.to_container(config.retriever, resolve=True, throw_on_missing=False)
        for key, value in node.items():
            if key not in before or before[key] != value:
                config.retriever[key] = value
