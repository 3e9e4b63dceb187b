from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import nullcontext
from importlib.metadata import version
from pathlib import Path
from typing import Any

import hydra.conf
import pytest
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, ListConfig, OmegaConf

from runner.config import CONF, hydra_internals
from runner.config.composing import compose_config
from runner.config.hydra_internals import TESTED_WITH, ConfigLoaderImpl
from runner.config.launch import launch
from runner.config.objects import ConfigError

ROOT = Path(__file__).parents[2]
PRIVATE = re.compile(
    r"^\s*(?:from|import) (?:hydra|omegaconf)[\w.]*\._|\boverride\._"
    r"|\._(?:get_node|is_none|is_missing|metadata|get_flag|convert_value|get_value_element_as_str)\b",
    re.MULTILINE,
)

IMPORTS = re.compile(r"^\s*(?:from|import) (?:hydra|omegaconf)\b", re.MULTILINE)


@pytest.mark.parametrize("package", TESTED_WITH)
def test_the_installed_version_was_tested(package: str) -> None:
    assert version(package) == TESTED_WITH[package]


def test_only_one_module_uses_private_parts() -> None:
    files = [file for folder in ("runner", "retrievers", "hydra_plugins") for file in (ROOT / folder).rglob("*.py")]
    texts = {file.name: file.read_text(encoding="utf-8") for file in files}
    users = {name for name, text in texts.items() if IMPORTS.search(text) and PRIVATE.search(text)}
    assert users == {Path(hydra_internals.__file__).name}


def test_yaml_is_read_as_omegaconf_reads_it() -> None:
    loader = hydra_internals.get_yaml_loader()
    for file in (*CONF.rglob("*.yaml"), *Path(hydra.conf.__file__).parent.rglob("*.yaml")):
        text = file.read_text(encoding="utf-8")
        assert hydra_internals.load_yaml(text) == hydra_internals.yaml.load(text, Loader=loader)


@pytest.fixture
def compositions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Return the overrides of each composition from now on. The working directory is empty."""
    monkeypatch.chdir(tmp_path)
    seen: list[list[str]] = []
    compose = ConfigLoaderImpl._load_configuration_impl

    def note(self: ConfigLoaderImpl, config_name: str, overrides: list[str], *rest: Any, **named: Any) -> DictConfig:
        seen.append(list(overrides))
        return compose(self, config_name, overrides, *rest, **named)

    monkeypatch.setattr(ConfigLoaderImpl, "_load_configuration_impl", note)
    return seen


def jobs(words: list[str]) -> list[Any]:
    """Return the config of each job of a command, with that of Hydra itself."""
    found: list[Any] = []

    def task(cfg: DictConfig) -> int:
        found.append((OmegaConf.to_yaml(cfg), OmegaConf.to_yaml(HydraConfig.instance().cfg), HydraConfig.get().mode))
        return 0

    assert launch("evaluate", task, words) == 0
    return found


@pytest.mark.parametrize(
    ("words", "most"),
    [
        (["retriever=hybrid", "retriever.alpha=0.3", "hydra.job.name=x"], 1),
        (["hydra.mode=RUN", "retriever.k1=2"], 1),
        (["-m", "hydra/sweeper=basic", "retriever.k1=1,2"], 1 + 4),
        (["hydra.mode=MULTIRUN", "hydra/sweeper=basic", "retriever=bm25,dense"], 1 + 4),
        (["--config-dir=conf", "experiment=mine", "hydra/sweeper=basic", "retriever.b=0.3,0.4"], 1 + 4),
    ],
)
def test_a_command_composes_its_config_once(
    words: list[str], most: int, compositions: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "conf" / "experiment").mkdir(parents=True)
    (tmp_path / "conf" / "experiment" / "mine.yaml").write_text("# @package _global_\nhydra: {mode: MULTIRUN}\n")
    once = jobs(words)
    assert len(compositions) == most
    monkeypatch.setattr("runner.config.launch.compose_once", nullcontext)
    assert once == jobs(words)
    assert len(compositions) == 2 * most + 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["retriever=bm52"], "did you mean"),
        (["retriever.k1=1,2"], "several values"),
        (["retriever.b=[1"], "cannot be parsed"),
    ],
)
def test_a_mistake_is_composed_once_and_refused_as_before(
    words: list[str], said: str, compositions: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError, match=said) as once:
        jobs(words)
    n = len(compositions)
    monkeypatch.setattr("runner.config.launch.compose_once", nullcontext)
    with pytest.raises(ConfigError) as twice:
        jobs(words)
    assert str(once.value) == str(twice.value)
    assert len(compositions) == 2 * n + 1


def test_a_choice_that_is_missing_is_refused(compositions: list[list[str]], tmp_path: Path) -> None:
    """Hydra composes without it to learn the mode, since a sweep may choose it."""
    (tmp_path / "experiment").mkdir()
    preset = "# @package _global_\ndefaults:\n- override /retriever: ???\n"
    (tmp_path / "experiment" / "mine.yaml").write_text(preset)
    with pytest.raises(ConfigError, match="retriever"):
        jobs(["--config-dir=.", "experiment=mine"])
    assert len(compositions) >= 2


@pytest.fixture
def merges(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the files that Hydra merges into configs from now on; none was composed before."""
    merged: list[str] = []
    load = ConfigLoaderImpl._load_single_config

    def note(self: ConfigLoaderImpl, default: Any, repo: Any) -> Any:
        merged.append(default.config_path)
        return load(self, default, repo)

    monkeypatch.setattr(ConfigLoaderImpl, "_load_single_config", note)
    monkeypatch.setattr(hydra_internals, "_compositions", {})
    return merged


def walk(node: Any, path: str = "") -> Iterator[object]:
    """Yield the path, kind, types, flags and value of each node."""
    metadata = {name: value for name, value in vars(node._metadata).items() if name != "resolver_cache"}  # has the time
    yield path, type(node), metadata
    if isinstance(node, DictConfig | ListConfig) and not (node._is_none() or node._is_missing()):
        for key in node if isinstance(node, DictConfig) else range(len(node)):
            yield from walk(node._get_node(key), f"{path}.{key}")
    else:
        yield node._value()


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["retriever=hybrid", "retriever.alpha=0.3", "analyzer.stemmer=null"],
        ["experiment=tour", "dataset.max_queries=3"],
        ["dataset=beir", "dataset.path=DIR", "~dataset.split", "chunking=tokens", "hydra.job.name=x"],
    ],
)
def test_a_composition_from_memory_is_that_of_hydra(
    words: list[str], merges: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    compose_config("evaluate", words)
    first = len(merges)
    config, choices = compose_config("evaluate", words)
    assert len(merges) == first > 0
    OmegaConf.set_struct(config, False)
    config.clear()
    again, _ = compose_config("evaluate", words)
    monkeypatch.setattr("runner.config.composing.reuse_compositions", nullcontext)
    fresh, fresh_choices = compose_config("evaluate", words)
    assert len(merges) == 2 * first
    assert choices == fresh_choices
    assert list(walk(again)) == list(walk(fresh))


def test_no_file_of_hydra_is_read_by_its_slow_parser(
    merges: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delattr(OmegaConf, "load")
    assert compose_config("evaluate", ["retriever.k1=2"])[0].retriever.k1 == 2
    assert "hydra/launcher/basic" in merges


def test_values_are_set_on_copies_of_one_composition(
    merges: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    values = [compose_config("evaluate", [f"retriever.k1={k1}"])[0].retriever.k1 for k1 in (1, 2)]
    first = len(merges)
    assert [*values, compose_config("evaluate", [])[0].retriever.k1] == [1, 2, 0.9]
    assert len(merges) == first


def test_a_project_may_change_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text('[tool.retrieval-runner]\nconf = "conf"\n')
    (tmp_path / "conf" / "retriever").mkdir(parents=True)
    for k1 in (2, 3):
        (tmp_path / "conf" / "retriever" / "mine.yaml").write_text(f"defaults: [bm25, _self_]\nk1: {k1}\n")
        assert compose_config("evaluate", ["retriever=mine"])[0].retriever.k1 == k1
