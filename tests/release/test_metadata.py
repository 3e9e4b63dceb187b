"""What is published agrees about the version, the licence and what changed."""

from __future__ import annotations

import re
import tomllib
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
