"""Serve any configured retriever behind a search API, until it is stopped."""

from __future__ import annotations

from collections.abc import Mapping

from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.composed.multistage import Base
from retrievers.search import open_searcher
from runner.config.objects import ConfigError, build_settings
from runner.config.values import check_read, settle
from runner.evaluation.bench import Bench
from runner.evaluation.experiment import build_experiment
from runner.pages import console
from runner.pages.progress import Status
from runner.store.opening import open_store
from runner.store.settings import store_settings
from runner.web.search_api import RequestLimits, SearchService, create_app
from runner.web.server import bind_socket, format_address, serve


@settings(frozen=True, config={"extra": "forbid", "arbitrary_types_allowed": True})
class ServeSettings:
    """Where to listen, the limits of requests, and the search types: see `conf/serve.yaml`."""

    limits: RequestLimits
    search_types: Mapping[str, Base]
    host: str = Field(min_length=1)
    port: int = Field(ge=0, le=65535)
    threads: int = Field(ge=1)


def main(cfg: DictConfig) -> int:
    """Index the dataset's documents and answer requests; return 0 after Ctrl-C."""
    hydra = HydraConfig.get()
    if hydra.mode == RunMode.MULTIRUN:
        raise ConfigError(
            "serve cannot run a sweep; remove -m and experiment=, and add retrievers with "
            "+retriever@search_types.NAME=..."
        )
    settled = settle(cfg, hydra.runtime.choices)
    check_read(hydra.overrides.task, [settled.config])
    plugins = settled.config.get("plugins") or ()
    experiment, own = build_experiment(settled), build_settings(ServeSettings, settled.config, plugins=plugins)
    if experiment.retriever_name in own.search_types:
        raise ConfigError(
            f"search_types.{experiment.retriever_name}: already the name of the main retriever; choose another name"
        )
    with bind_socket(own.host, own.port) as listener:
        store = open_store(store_settings(settled.config))
        with Status("serve"):
            dataset = Bench(store).dataset(experiment)
            retrievers = {experiment.retriever_name: experiment.retriever, **own.search_types}
            searchers = {name: open_searcher(part, dataset.corpus, store) for name, part in retrievers.items()}
            for searcher in searchers.values():
                searcher.search(["word"], 1)  # warm up, so that the first request is as fast as later ones
        title = f"{', '.join(searchers)} over {dataset.name} ({len(dataset.corpus):,} items)"
        app = create_app(SearchService(dataset.corpus, searchers, own.limits, own.threads))
        serve(
            app,
            listener,
            lambda: console.line(f"serving {title} at {format_address(listener)}  (press Ctrl-C to stop)"),
            own.limits.request_s,
            own.limits.connections,
        )
    return 0
