"""Serve any configured retriever behind a search API until stopped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from omegaconf import DictConfig
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.multistage import Base
from runner.serving.app import RequestLimits


@settings(frozen=True, config={"extra": "forbid", "arbitrary_types_allowed": True})
class ServeSettings:
    """Settings of the server: see `conf/serve.yaml`."""

    limits: RequestLimits
    search_types: Mapping[str, Base]
    host: str = Field(min_length=1)
    port: int = Field(ge=0, le=65535)
    threads: int = Field(ge=1)


def main(cfg: DictConfig) -> int:
    """Index the documents of the dataset and answer requests; return 0 after Ctrl-C."""
    from hydra.core.hydra_config import HydraConfig
    from hydra.types import RunMode

    from retrievers.search import open_searcher
    from runner.config.objects import ConfigError
    from runner.config.values import settle, store_path
    from runner.evaluation import Bench
    from runner.experiment import build_experiment
    from runner.reports import console
    from runner.serving.app import SearchService, create_app
    from runner.serving.server import bind_socket, format_address, serve
    from runner.store.opening import open_store

    hydra = HydraConfig.get()
    if hydra.mode == RunMode.MULTIRUN:
        raise ConfigError(
            "serve cannot run a sweep: remove -m and experiment=; +retriever@search_types.NAME=... adds a retriever"
        )
    settled = settle(cfg, hydra.runtime.choices)
    experiment, wanted = build_experiment(settled), _settings_of(settled.config)
    if experiment.retriever_name in wanted.search_types:
        raise ConfigError(
            f"search_types.{experiment.retriever_name}: is already the name of the main retriever; choose another name"
        )
    with bind_socket(wanted.host, wanted.port) as ours:
        store = open_store(store_path(settled.config))
        with console.Working("serve"):
            dataset = Bench(store).dataset(experiment)
            retrievers = {experiment.retriever_name: experiment.retriever, **wanted.search_types}
            searchers = {name: open_searcher(each, dataset.corpus, store) for name, each in retrievers.items()}
            for searcher in searchers.values():
                searcher.search(["word"], 1)  # prepares what the first search needs
        named = f"{', '.join(searchers)} over {dataset.name} ({len(dataset.corpus):,} items)"
        app = create_app(SearchService(dataset.corpus, searchers, wanted.limits, wanted.threads))
        serve(
            app,
            ours,
            lambda: console.line(f"serving {named} at {format_address(ours)}  (Ctrl-C stops it)"),
            wanted.limits.request_s,
            wanted.limits.connections,
        )
    return 0


def _settings_of(config: Mapping[str, Any]) -> ServeSettings:
    from runner.config.objects import ConfigError, build

    names = ("host", "port", "threads", "limits", "search_types")
    node = {name: config[name] for name in names if name in config}
    limits = {**node["limits"], "_target_": "runner.serving.app.RequestLimits"}
    try:
        return build(  # type: ignore[no-any-return]  # its _target_ says what it is
            {**node, "limits": limits, "_target_": f"{__name__}.ServeSettings"}, "serve", config.get("plugins") or ()
        )
    except ConfigError as error:  # the settings are at the top
        raise ConfigError(str(error).removeprefix("serve.")) from error
