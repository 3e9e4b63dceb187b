"""Datasets for Python callers: loaded from a configured format, or made from values in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields

from runner.config.arguments import format_override
from runner.config.composing import compose_config
from runner.config.objects import ConfigError
from runner.config.values import settle
from runner.datasets.dataset import Dataset
from runner.datasets.settings import CHUNKING, build_dataset
from runner.evaluation.bench import LoadedDatasets

GIVEN = "_given"
"""The format of datasets that exist only in Python; lists of formats leave it out."""


@dataclass(frozen=True, eq=False)
class ConfiguredDataset(Dataset):
    """A dataset with the settings from which the command line loads it; a changed copy has none."""

    overrides: Sequence[str] = field(default=(), init=False)


def load_dataset(format: str, **settings: object) -> Dataset:
    """Return a dataset in one of the formats of `conf/dataset`, with the settings of that format.

    Settings are the same as on the command line: `load_dataset("beir", path="scifact", split="test")` reads the same
    data as `dataset=beir dataset.path=scifact dataset.split=test`. `chunking="headings"` splits documents. Raises
    `ConfigError` for unknown formats and settings, `DatasetError` for files that cannot be read.
    """
    overrides = [format_override("dataset", format)]
    overrides += [
        format_override(name if name == CHUNKING else f"dataset.{name}", value) for name, value in settings.items()
    ]
    settled = settle(*compose_config("evaluate", overrides)).config
    source, chunking = build_dataset(settled["dataset"], settled.get("plugins") or ())
    loaded = LoadedDatasets().load(source, chunking)
    dataset = ConfiguredDataset(**{field.name: getattr(loaded, field.name) for field in fields(loaded)})
    object.__setattr__(dataset, "overrides", overrides)
    return dataset


def list_overrides(dataset: Dataset) -> list[str]:
    """Return the overrides that describe a dataset; a dataset made in Python is described by a hash of its content."""
    if isinstance(dataset, ConfiguredDataset) and dataset.overrides:
        return list(dataset.overrides)
    settings = {"name": dataset.name, "split": dataset.split, "content": dataset.fingerprint}
    return [f"dataset={GIVEN}", *(format_override(f"dataset.{name}", value) for name, value in settings.items())]


def check_overrides(overrides: Sequence[str], dataset: Dataset | None, taken: Sequence[str] = ()) -> None:
    """Raise `ConfigError` for overrides of settings that are given as arguments."""
    given = {name: f"{name} is given as an argument" for name in taken}
    if dataset is not None:
        given["dataset"] = "the dataset is given as an argument; set it in load_dataset, or omit the argument"
        if dataset.whole is not None:
            given[CHUNKING] = "the documents are already split; set it in load_dataset"
    for word in overrides:
        if not isinstance(word, str):
            raise ConfigError(f"{word!r}: should be an override, such as 'retriever.k1=0.9'")
        if word in ("-m", "--multirun"):
            raise ConfigError(f"{word}: run_sweep always runs a sweep; remove it")
        root = word.lstrip("+~").partition("=")[0].partition(".")[0].partition("@")[0]
        if root in given:
            raise ConfigError(f"{word}: {given[root]}")


def locate(tracking_uri: str | None, store_path: object) -> list[str]:
    """Return the overrides for the tracking store and the store; None means the default of the command line."""
    places = {"tracking.uri": tracking_uri, "store.path": store_path}
    return [format_override(key, value) for key, value in places.items() if value is not None]
