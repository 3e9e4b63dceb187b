"""The settings of the store: the key `store` of every command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic.dataclasses import dataclass as settings

from runner.config.addresses import LocalPath, StoreAddress
from runner.config.objects import build_settings


@settings(frozen=True, config={"extra": "forbid"})
class StoreSettings:
    """Where term counts, embeddings and indexes are stored.

    `path` is a folder or the address of an object store; `copies` is the local folder for copies of its objects.
    """

    path: StoreAddress
    copies: LocalPath | None = None


def store_settings(config: Mapping[str, Any]) -> StoreSettings:
    """Return the settings of the store from a plain config; raises `ConfigError`."""
    return build_settings(StoreSettings, config.get("store"), "store")
