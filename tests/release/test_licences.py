"""Every dependency has a licence that is allowed, and the page of licences is current."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name
from packaging.version import Version

from release.licences import Dependency, list_dependencies, list_locked, render_page

ROOT = Path(__file__).parents[2]


def test_every_installed_package_has_an_allowed_licence() -> None:
    refused = [f"{d.name} ({d.part}): {d.licence or 'none stated'}" for d in list_dependencies() if not d.is_allowed]
    assert refused == []


@pytest.mark.parametrize(
    ("licence", "part", "is_allowed"),
    [
        ("MIT", "core", True),
        ("MPL-2.0 AND (Apache-2.0 OR MIT)", "core", True),
        ("AGPL-3.0-only", "development", False),
        ("MIT AND GPL-3.0-only", "development", False),
        ("LGPL-3.0-only", "development", True),
        ("LGPL-3.0-only", "postgres", True),
        ("LGPL-3.0-only", "core", False),
        ("", "development", False),
    ],
)
def test_a_licence_is_allowed_where_all_that_it_names_is(licence: str, part: str, is_allowed: bool) -> None:
    assert Dependency("package", licence, part).is_allowed == is_allowed


def test_the_page_lists_every_locked_package_with_its_licence() -> None:
    installed = {
        canonicalize_name(package.name): Version(package.version).public for package in metadata.distributions()
    }
    if other := [f"{name} {version}" for name, version in list_locked().items() if installed.get(name) != version]:
        pytest.skip(f"other versions than those of requirements.lock are installed: not {', '.join(other)}")
    assert render_page() == (ROOT / "docs" / "licences.md").read_text(encoding="utf-8")
