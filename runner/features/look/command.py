"""Serve the pages of stored runs in the browser, with newer data, whole texts and the judging desk."""

from __future__ import annotations

from pathlib import Path

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from runner.comparison.compare import TableStatistics
from runner.config.addresses import LocalPath
from runner.config.consent import Consent
from runner.config.objects import ConfigError, build, build_settings
from runner.config.values import resolve_config
from runner.evaluation.bench import Bench
from runner.features.look.app import create_look_app, open_apps
from runner.features.look.pages import PageBuilder
from runner.features.look.results import StoredResults
from runner.features.look.shown import list_shown, select_shown
from runner.pages import console
from runner.results.lookup import as_typed
from runner.store.opening import open_store
from runner.store.settings import store_settings
from runner.tracking.fetching import Runs, format_runs
from runner.tracking.store import choose_store
from runner.web.guard import LOOPBACK, LoopbackAccess
from runner.web.server import bind_socket, format_address, serve


@settings(frozen=True, config={"extra": "forbid", "coerce_numbers_to_str": True})
class LookSettings:
    """Where the server listens, and how its desk works: see `conf/look.yaml`."""

    port: int = Field(default=8003, ge=0, le=65535)
    assessor: str | None = None
    depth: int = Field(default=10, ge=1)
    baselines: LocalPath = "baselines"
    statistics: TableStatistics = TableStatistics()


def main(cfg: DictConfig) -> int:
    """Serve pages until Ctrl-C; raises `ConfigError` if there is nothing to show or the port is in use."""
    config = resolve_config(cfg)
    own, tracking = build_settings(LookSettings, config), build(config["tracking"], "tracking")
    typed = HydraConfig.get().overrides.task
    words, sweep = ([] if config[key] is None else as_typed(config[key], key, typed) for key in ("run", "sweep"))
    if not choose_store(tracking).keeps_runs:
        raise ConfigError("tracking=none: no runs are stored, so none can be shown; choose another store")
    runs = Runs(tracking)
    shown = select_shown(words, ",".join(sweep) or None, runs)
    results = StoredResults(runs, Bench(open_store(store_settings(config))), Consent.of(config))
    with bind_socket(LOOPBACK, own.port) as listener:
        access = LoopbackAccess(format_address(listener))
        with open_apps(config, results, access) as apps:
            app = create_look_app(PageBuilder(results, own.statistics), apps, shown, Path(own.baselines), access)
            others = [run for run in list_shown(runs) if run not in shown.runs]

            def announce() -> None:
                console.announce(f"{shown.title}: open {access.url}  (press Ctrl-C to stop)")
                if others:
                    console.line(f"others: {format_runs(others, 5)}; all of them: {access.address}/runs")

            serve(app, listener, announce)
    return 0
