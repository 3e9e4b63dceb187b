"""Hands the sweep room to Hydra, which takes sweepers from this namespace package alone. It holds nothing else."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Never

from hydra.core.config_store import ConfigStore
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig


class GridSweeper(Sweeper):
    """Every combination of a sweep, in one process, with its work shared."""

    def __init__(self, params: dict[str, Any] | None = None) -> None:
        self.params = params or {}

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Take what Hydra knows of the sweep."""
        self.loader, self.composed = hydra_context.config_loader, config

    def sweep(self, arguments: Sequence[str]) -> Never:
        """Run the sweep and end with its exit code."""
        from runner.sweep.execute import sweep

        sys.exit(sweep(self.loader, self.composed, arguments, self.params))  # Hydra would drop a returned code


class OptunaSweeper(Sweeper):
    """A search for the best combination, which Optuna asks for one after the other."""

    def __init__(self, params: dict[str, Any] | None = None, **settings: Any) -> None:  # noqa: ANN401 (checked later)
        self.params, self.settings = params or {}, settings

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Take what Hydra knows of the sweep."""
        self.loader, self.composed = hydra_context.config_loader, config

    def sweep(self, arguments: Sequence[str]) -> Never:
        """Run the search and end with its exit code."""
        from runner.sweep.search import search

        sys.exit(search(self.loader, self.composed, arguments, self.params, self.settings))


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
