from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path

import pytest

from runner.config import CONF, hydra_internals
from runner.config.hydra_internals import TESTED_WITH

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
