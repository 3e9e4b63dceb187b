from __future__ import annotations

import re
from contextlib import nullcontext
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf

from runner.config import CONF, hydra_internals
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
    for file in CONF.rglob("*.yaml"):
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
    [(["retriever=bm52"], "did you mean"), (["retriever.k1=1,2"], "several values"), (["retriever.b=[1"], "syntax")],
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
