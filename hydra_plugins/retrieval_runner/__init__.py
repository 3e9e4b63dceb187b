"""Hands sweepers and the config folders of features to Hydra, which finds plug-ins in this namespace package alone."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Never

from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.config_store import ConfigStore
from hydra.plugins.search_path_plugin import SearchPathPlugin
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig

from runner.config.features import list_conf_folders

if TYPE_CHECKING:
    from runner.evaluation.failures import Lexicon
    from runner.evaluation.result import Result
    from runner.sweep.declared import Declared
    from runner.sweep.reporting import ReportWriter


class GridSweeper(Sweeper):
    """Every combination of a sweep, in one process, with its work shared."""

    def __init__(self, params: dict[str, Any] | None = None) -> None:
        self.params = params or {}

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Take what Hydra knows of the sweep."""
        self.loader, self.composed = hydra_context.config_loader, config

    def sweep(self, arguments: Sequence[str]) -> Never:
        """Run the sweep and end with its exit code."""
        from runner.sweep.declared import Declared
        from runner.sweep.execute import sweep

        declared = Declared(self.loader, self.composed, arguments, self.params)
        sys.exit(sweep(declared, report_writer(declared)).exit_code)  # Hydra would drop a returned code


class OptunaSweeper(Sweeper):
    """A search for the best combination, which Optuna asks for one after the other."""

    def __init__(self, params: dict[str, Any] | None = None, **settings: Any) -> None:  # noqa: ANN401 (checked later)
        self.params, self.settings = params or {}, settings

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Take what Hydra knows of the sweep."""
        self.loader, self.composed = hydra_context.config_loader, config

    def sweep(self, arguments: Sequence[str]) -> Never:
        """Run the search and end with its exit code."""
        from runner.sweep.declared import Declared
        from runner.sweep.search import search

        declared = Declared(self.loader, self.composed, arguments, self.params)
        sys.exit(search(declared, self.settings, report_writer(declared)).exit_code)


class FeatureConfigs(SearchPathPlugin):
    """The config folders of installed features, after that of the program."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        """Add the folders."""
        for folder in list_conf_folders()[1:]:
            search_path.append("retrieval-runner", f"file://{folder}")


def report_writer(declared: Declared) -> ReportWriter:
    """Return the functions that write the reports of a sweep, which lead to its runs."""
    from functools import partial

    from runner.comparison.insights import find_insights
    from runner.evaluation.report.files import evaluation_files
    from runner.features.golden.report.files import golden_files
    from runner.sweep.report.files import sweep_files
    from runner.sweep.report.selection import selection_tags
    from runner.sweep.reporting import ReportWriter
    from runner.tracking.pages import create_place

    place, texts = create_place(declared.tracking), declared.texts

    def evaluation(result: Result, lexicon: Lexicon | None) -> dict[str, str]:
        insight = find_insights(result, lexicon)
        return evaluation_files(result, insight, None if lexicon is None else lexicon.corpus, place, texts)

    sweep = partial(sweep_files, place=place, texts=texts)
    return ReportWriter(evaluation, sweep, partial(golden_files, texts=texts), selection_tags)


ConfigStore.instance().store(
    group="hydra/sweeper",
    name="grid",
    node={"_target_": "hydra_plugins.retrieval_runner.GridSweeper", "_convert_": "all", "params": None},
    provider="retrieval-runner",
)
ConfigStore.instance().store(
    group="hydra/sweeper",
    name="optuna",
    node={
        "_target_": "hydra_plugins.retrieval_runner.OptunaSweeper",
        "_convert_": "all",
        "params": None,
        "n_trials": 40,
        "sampler": "tpe",
        "seed": 0,
        "objectives": None,
        "storage": None,
    },
    provider="retrieval-runner",
)
