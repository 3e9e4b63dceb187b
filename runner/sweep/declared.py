"""The declaration of a sweep, from its command and YAML: settings, combinations, experiments, stores and output.

Sweeps, plans and searches all start from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from hydra.core.config_loader import ConfigLoader
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from runner.comparison.comparability import explain_chunk_gold
from runner.config.mistakes import explain
from runner.config.objects import ConfigError, build, build_settings
from runner.config.report import ReportSettings
from runner.config.values import check_read
from runner.datasets.dataset import Dataset
from runner.datasets.given import GivenDataset
from runner.evaluation.bench import Bench
from runner.evaluation.experiment import Experiment, build_experiment
from runner.metrics.settings import MetricSettings
from runner.store.opening import open_store
from runner.store.settings import store_settings
from runner.sweep.axes import name_of
from runner.sweep.compose import Composer
from runner.sweep.grid import combinations
from runner.sweep.identity import report_id, sweep_id
from runner.sweep.products import Combination, Product, products
from runner.sweep.settings import SweepSettings
from runner.tracking.logged import Sweep
from runner.tracking.settings import Tracking
from runner.tracking.tracing import traces


class Declared:
    """A declared sweep; `arguments` are the overrides of its command line, `params` the axes of its YAML.

    `given` is the dataset that the config describes if it was made in Python.
    """

    def __init__(
        self,
        loader: ConfigLoader,
        config: DictConfig,
        arguments: Sequence[str],
        params: Mapping[str, Any],
        given: Dataset | None = None,
    ) -> None:
        self.loader, self.config, self.arguments, self.params = loader, config, list(arguments), params
        _check_launcher(config)
        self._given = given
        shared = [key for key in ("sweep", "tracking", "store", "analyzer", "plugins", "report") if key in config]
        own: Any = OmegaConf.to_container(OmegaConf.masked_copy(config, shared), resolve=True)
        self.settings = build_settings(SweepSettings, own.get("sweep"), "sweep")
        self.tracking: Tracking = build(own["tracking"], "tracking")
        self.texts = build_settings(ReportSettings, own.get("report"), "report").texts
        self.traces = traces(config)
        analyzer = build(own["analyzer"], "analyzer", own.get("plugins") or ())
        self.bench = Bench(open_store(store_settings(own)), analyzer)
        if config.get("junit"):
            raise ConfigError("junit: is only available for a single evaluation; remove it from the sweep")
        self.output = None if self.settings.dry_run else _make_folder(self.settings.output)
        self.composer = Composer(loader, config.hydra.job.config_name, list(config.hydra.overrides.hydra))

    @cached_property
    def products(self) -> list[Product]:
        """Return the products of the sweep; raises `ConfigError`."""
        return products(self.arguments, self.params, self.settings, self.loader, self.composer.value)

    @cached_property
    def points(self) -> list[Combination]:
        """Return every combination of the grid; raises `ConfigError`."""
        return combinations(self.arguments, self.params, self.settings, self.loader, self.composer.value)

    def experiments(self, points: Sequence[Combination]) -> list[Experiment]:
        """Return experiments with their datasets loaded, so that all errors are raised before any of them runs."""
        experiments = [self._experiment(point) for point in points]
        self.metrics(experiments)
        for experiment in experiments:
            self.bench.check_grades(experiment)
        return experiments

    def check_read(self, points: Iterable[Combination]) -> None:
        """Raise `ConfigError` for an override of the command line that none of these points uses."""
        check_read(self.arguments, (self.composer.settle(point.overrides).config for point in points))

    def default_of(self, point: Combination) -> Combination | None:
        """Return a point with the default of every swept value; None if only choices of groups were swept.

        The dataset and the measures stay the same, so that the two points can be compared.
        """
        return _without(point, [key for key in point.swept if not (_is_given(key) or self.composer.is_group(key))])

    def default_choice_of(self, point: Combination) -> Combination | None:
        """Return a point with the default of every swept choice and value; None if nothing was swept."""
        return _without(point, [key for key in point.swept if not _is_given(key)])

    def metrics(self, experiments: Sequence[Experiment]) -> MetricSettings:
        """Return the measures of the sweep; raise `ConfigError` if the primary measures of experiments differ.

        Neither can a measure of chunks rank several chunkings if gold is spans.
        """
        primaries = dict.fromkeys(str(e.metrics.primary_measure) for e in experiments)
        if len(primaries) > 1:
            raise ConfigError(
                "metrics.primary: a sweep needs one primary measure, but its experiments have "
                f"{' and '.join(primaries)}; choose one"
            )
        chunkings: dict[str, list[str]] = {}
        for e in experiments:
            if e.source.gold == "spans" and not e.metrics.primary_measure.needs_spans:
                chunkings.setdefault(repr(e.source), []).append(repr(e.chunking))
        for names in (list(dict.fromkeys(own)) for own in chunkings.values()):
            if len(names) > 1:
                measures = [str(measure) for measure in experiments[0].metrics.expanded]
                primary = str(experiments[0].metrics.primary_measure)
                raise ConfigError(f"metrics.primary: {explain_chunk_gold(primary, measures, names, 'metrics.primary')}")
        return experiments[0].metrics

    def sweep(
        self,
        axes: Mapping[str, str],
        combinations: int,
        experiments: Sequence[Experiment],
        choice: Mapping[str, object],
    ) -> Sweep:
        """Return the sweep to log, given its axes with their values.

        `experiments` and `choice` identify the report of the parent run, as in `report_id`.
        """
        report = report_id(experiments, {**choice, "texts": self.texts})
        if self.settings.name:  # commands with the same name belong to one sweep
            return Sweep(sweep_id(self.settings.name, ()), self.settings.name, axes, combinations, report=report)
        preset = self.composer.value(self.arguments, "experiment")
        fixed = [argument for argument in self.arguments if argument.partition("=")[0].lstrip("+~") not in axes]
        identity, name = sweep_id(preset or ", ".join(sorted(axes)), fixed), preset or _name(axes)
        if name.endswith(".yaml"):
            name = Path(name).stem
        return Sweep(identity, name, axes, combinations, report=report)

    def _experiment(self, point: Combination) -> Experiment:
        try:
            experiment = build_experiment(self.composer.settle(point.overrides), point.name, point.swept)
            if isinstance(experiment.source, GivenDataset):  # workers need the dataset itself
                return replace(experiment, source=replace(experiment.source, dataset=self._given))
            return experiment
        except ConfigError as error:
            raise ConfigError(f"{error} (in the combination {point.name})" if point.swept else str(error)) from error
        except (HydraException, OmegaConfBaseException) as error:
            message = explain(error, self.composer.verb, point.overrides)
            if not point.swept:
                raise ConfigError(message) from error
            way_out = "sweep.when limits an axis to some combinations, sweep.union combines separate grids"
            raise ConfigError(f"{message} (in the combination {point.name}; {way_out})") from error


def _is_given(key: str) -> bool:
    """Return whether a key belongs to the dataset, measures or statistics, which have no default to compare with."""
    return key.partition(".")[0] in ("dataset", "metrics", "statistics")


def _without(point: Combination, keys: Sequence[str]) -> Combination | None:
    lines = (line for line in point.overrides if name_of(line.partition("=")[0]) not in keys)
    return Combination(tuple(lines), {}) if keys else None


def axes_of_points(points: Sequence[Combination]) -> dict[str, str]:
    """Return the values of each axis as text."""
    axes: dict[str, dict[str, None]] = {}
    for point in points:
        for key, value in point.swept.items():
            axes.setdefault(key, {})[str(value)] = None
    return {key: ", ".join(values) for key, values in axes.items()}


def _name(axes: Mapping[str, str]) -> str:
    """Return the name of a sweep, made of its axes."""
    keys = dict.fromkeys(key.rpartition(".")[2] for key in axes)
    return f"sweep over {', '.join(keys)}" if keys else "single combination"


def _check_launcher(config: DictConfig) -> None:
    """Raise `ConfigError` for a launcher of Hydra, which the sweepers of this program would not use."""
    launcher = config.hydra.runtime.choices.get("hydra/launcher", "basic")
    if launcher != "basic":
        raise ConfigError(
            f"hydra/launcher={launcher}: only used with hydra/sweeper=basic, which evaluates combinations "
            "separately; for workers that share their work, set sweep.backend=slurm (or loky, dask, ray)"
        )


def _make_folder(output: str | None) -> Path | None:
    """Create the folder of the reports; raise `ConfigError` before any work if that fails."""
    if not output:
        return None
    try:
        Path(output).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"sweep.output={output}: cannot be created ({error.strerror})") from error
    return Path(output)
