"""The shipped YAML files: each is the signature of the class that it names, and shows its defaults."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

from runner.datasets.chunking import Whole
from runner.datasets.settings import build_dataset
from tests.config.files import load_settings

CONF = Path(__file__).parents[2] / "conf" / "dataset"
FORMATS = sorted(path.stem for path in CONF.glob("[!_]*.yaml"))
LIBRARIES = {"hf", "ir_datasets"}
"""Formats that need another library, whose tests check their settings."""
WHOLE = {"_target_": "runner.datasets.chunking.Whole"}


def settings(path: Path) -> dict[str, Any]:
    """Return the settings in a file, with a value for those that are required, and no chunking chosen."""
    content = load_settings(path)
    replaced = {"???": "some/where", "${chunking}": WHOLE}
    return {key: replaced.get(value, value) if isinstance(value, str) else value for key, value in content.items()}


def test_each_file_opens_with_its_command_and_binds_to_its_class() -> None:
    for name in FORMATS:
        path = CONF / f"{name}.yaml"
        assert path.read_text(encoding="utf-8").startswith(f"# python -m runner dataset={name}")
        source, chunking = build_dataset(settings(path))
        assert callable(source.load) and chunking == Whole(), name


def test_each_file_shows_every_setting_with_its_default() -> None:
    for name in sorted({*FORMATS} - LIBRARIES - {"golden"}):  # the bundled golden_json
        source, _ = build_dataset(settings(CONF / f"{name}.yaml"))
        parameters = inspect.signature(type(source)).parameters
        required = [key for key, parameter in parameters.items() if parameter.default is parameter.empty]
        assert source == type(source)(**dict.fromkeys(required, "some/where")), name


def test_the_golden_dataset_is_ready_to_load() -> None:
    dataset = build_dataset(settings(CONF / "golden.yaml"))[0].load()
    assert dataset.name == "golden"
    assert len(dataset.corpus) and len(dataset.queries) and all(dataset.corpus.titles) and all(dataset.corpus.texts)
    assert (dataset.judgments.golds(len(dataset.queries)) == 0).any()
