"""Datasets are loaded from Python as on the command line, with the same messages."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import runner
from runner.api.data import list_overrides
from runner.config.arguments import format_override
from runner.config.composing import compose_config
from runner.datasets.base import DatasetError


def test_a_dataset_has_the_overrides_of_the_command_line(data: runner.Dataset) -> None:
    assert list_overrides(data) == ["dataset=beir", "dataset.path=DIR", "dataset.split=test"]
    assert (len(data.corpus), len(data.queries), len(data.judgments)) == (4, 3, 5)


def test_a_changed_dataset_is_described_by_its_content(data: runner.Dataset) -> None:
    changed = replace(data, queries=replace(data.queries, types=["new"] * len(data.queries)))
    assert list_overrides(changed)[0] == "dataset=_given"
    assert f"dataset.content={changed.fingerprint}" in list_overrides(changed)


def test_settings_of_the_format_apply(here: Path) -> None:
    folder = here / "a folder, [with] 'marks'"
    (here / "DIR").rename(folder)
    data = runner.load_dataset("beir", path=str(folder), split="test", max_queries=2, name="2")
    assert (data.name, len(data.queries)) == ("2", 2)


@pytest.mark.parametrize(
    ("name", "settings", "kind", "message"),
    [
        ("bier", {}, ValueError, "dataset=bier: no such choice; did you mean dataset=beir?"),
        ("beir", {}, ValueError, "dataset.path: is required"),
        ("beir", {"pth": "DIR"}, ValueError, "dataset.pth: no such setting; did you mean dataset.path?"),
        ("beir", {"path": "DIR", "split": "dev"}, DatasetError, "dataset.split=dev: DIR/qrels has no such split"),
        ("beir", {"path": "DIR", "chunking": "words"}, ValueError, "chunking=words: no such choice"),
        ("beir", {"path": "DIR", "max_queries": 0}, ValueError, "dataset.max_queries=0: should be greater than"),
    ],
)
@pytest.mark.usefixtures("here")
def test_a_mistake_is_explained_in_one_line(
    name: str, settings: dict[str, object], kind: type[ValueError], message: str
) -> None:
    with pytest.raises(kind) as caught:
        runner.load_dataset(name, **settings)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "value",
    ["plain", "scifact", "a b", "it's", 'say "x"', "1", "1e5", "true", "null", "", "x,y", "[a]", "{a: b}", "a=b", "a:b",
     "../data/x.y", "~/x", "C:\\x\\y", "ü", "$x", "#", "x\\", 1, 0.5, True, None, ["a", "1"], {"a": 1}],
)  # fmt: skip
def test_any_value_survives_as_an_override(value: object) -> None:
    config, _ = compose_config("evaluate", [format_override("dataset.name", value)])
    assert config.dataset.name == value
    assert type(config.dataset.name) is type(value) or isinstance(value, (list, dict))
