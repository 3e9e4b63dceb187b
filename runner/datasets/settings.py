"""Build a dataset's source and its chunking from settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from runner.config.objects import ConfigError, build
from runner.datasets.chunking import Chunking, Whole
from runner.datasets.source import DatasetSource

CHUNKING = "chunking"
"""The key of a dataset's settings that does not belong to the source."""


def build_dataset(
    node: Mapping[str, Any], plugins: Sequence[str] = (), key: str = "dataset"
) -> tuple[DatasetSource, Chunking]:
    """Return the source and the chunking of the settings under a key; raises `ConfigError`."""
    own = {name: value for name, value in node.items() if name != CHUNKING} if isinstance(node, Mapping) else node
    source = build(own, key, plugins)
    if not isinstance(source, DatasetSource):
        raise ConfigError(f"{key}: expected a DatasetSource, found {type(source).__name__}")
    if own is node or CHUNKING not in node:
        return source, Whole()
    chunking = build(node[CHUNKING], f"{key}.{CHUNKING}", plugins)
    if isinstance(chunking, str) or not isinstance(chunking, Chunking):  # a text has a method `split`, too
        raise ConfigError(f"{key}.{CHUNKING}: expected a Chunking, found {type(chunking).__name__}")
    return source, chunking
