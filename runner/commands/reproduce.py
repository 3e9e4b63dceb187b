"""Evaluate the configuration behind a cell of a table again, and explain a difference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from runner.config.consent import Consent
from runner.config.objects import build_settings
from runner.config.values import resolve_config
from runner.evaluation.bench import Bench
from runner.pages import console
from runner.pages.progress import Status
from runner.results.lookup import as_typed
from runner.results.reproduction import load_cell, reproduce
from runner.store.opening import open_store
from runner.store.settings import store_settings

NOT_REPRODUCED = 1
"""The exit code for a value that differs from the recorded one."""


@settings(frozen=True, config={"extra": "forbid"})
class ReproductionSettings:
    """Where the data are on this machine, and how close is close enough: see `conf/reproduce.yaml`."""

    dataset: Mapping[str, Any] = Field(default_factory=dict)
    tolerance: float = Field(default=1e-9, ge=0)


def main(cfg: DictConfig) -> int:
    """Evaluate a cell again and show what differs; return 1 if its value differs."""
    config = resolve_config(cfg)
    own = build_settings(ReproductionSettings, config)
    (word, *_) = as_typed(config["cell"], "cell", HydraConfig.get().overrides.task)
    cell = load_cell(word)
    with Status(f"evaluating {cell.record.name}"):
        outcome = reproduce(
            cell, Bench(open_store(store_settings(config))), Consent.of(config), own.dataset, own.tolerance
        )
    console.document(
        lambda: {
            "cell": cell.name,
            "measure": outcome.measure,
            "recorded": outcome.recorded,
            "value": outcome.value,
            "queries": outcome.queries,
            "changed": outcome.changed,
            "reproduced": outcome.is_same,
            "differences": list(outcome.differences),
        }
    )
    for sentence in outcome.explain():
        console.paragraph(sentence)
    return 0 if outcome.is_same else NOT_REPRODUCED
