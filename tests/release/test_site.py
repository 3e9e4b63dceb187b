"""The documentation site has every page, loads nothing from other servers, and is built without a warning."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from release.site import API, PAGES, list_linked_paths, locate, on_page_markdown, render_notebook, rewrite_links

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".venv-docs" / "bin" / "python"
EXTERNAL = re.compile(r"<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href)=\"?(?:https?:)?//[^\s\">]+")


def load_configuration() -> dict[str, Any]:
    """Return mkdocs.yml, without the Python objects that its tags name."""
    loader = type("Loader", (yaml.SafeLoader,), {})
    loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda *_: None)  # type: ignore[attr-defined]  # inherited
    configuration: dict[str, Any] = yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), loader)
    return configuration


def list_pages(nav: object) -> list[str]:
    """Return the pages in a part of the navigation."""
    if isinstance(nav, str):
        return [nav]
    children = nav.values() if isinstance(nav, dict) else nav
    assert not isinstance(children, (str, type(None)))
    return [page for child in children for page in list_pages(child)]  # type: ignore[attr-defined]  # iterable


def test_the_navigation_has_every_page_once() -> None:
    docs = [
        path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*") if path.suffix in (".md", ".ipynb")
    ]
    listed = list_pages(load_configuration()["nav"])
    assert sorted(listed) == sorted([*map(locate, docs), *PAGES.values(), API]), "add the page to `nav` in mkdocs.yml"


def test_fonts_are_the_readers_own() -> None:
    assert load_configuration()["theme"]["font"] is False


def test_the_group_and_the_lock_file_name_the_same_version() -> None:
    pinned = re.findall(r'^docs = \["(.+)"\]', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(pinned) <= set((ROOT / "release" / "docs.lock").read_text(encoding="utf-8").splitlines())
    assert pinned


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("ci.md", "[a](compare.md#a-gate)", "[a](compare.md#a-gate)"),
        ("ci.md", "[a](../conf/gate/default.yaml)", "[a](source/conf/gate/default.yaml.txt)"),
        ("tutorials/gate.md", "[a](../../conf/gate/default.yaml)", "[a](../source/conf/gate/default.yaml.txt)"),
        ("tutorials/gate.md", "[a](../ci.md) ![b](../report.png)", "[a](../ci.md) ![b](../report.png)"),
        ("python.md", "[a](notebooks/tour.ipynb)", "[a](notebooks/tour.md)"),
        ("api.md", "[a](docs/python.md)", "[a](python.md)"),
        ("contributing.md", "[a](docs/extending.md)", "[a](extending.md)"),
        ("ci.md", "[a](https://example.org/b) [c](#d)", "[a](https://example.org/b) [c](#d)"),
        ("ci.md", "```text\n[a](../b)\n```", "```text\n[a](../b)\n```"),
        ("ci.md", '| `"\\|"` | x |', '| `"|"` | x |'),
    ],
)
def test_links_of_the_repository_lead_to_their_place_in_the_site(name: str, text: str, expected: str) -> None:
    assert rewrite_links(text, name) == expected


@pytest.mark.parametrize(
    ("name", "meta"),
    [("coming_from/ranx.md", {"search": {"boost": 0.1}}), ("changelog.md", {"search": {"boost": 0.1}}), ("ci.md", {})],
)
def test_the_search_shows_pages_for_other_tools_after_those_about_the_subject(name: str, meta: dict[str, Any]) -> None:
    page: Any = SimpleNamespace(file=SimpleNamespace(src_uri=name), meta={})
    assert on_page_markdown("text", page, None, None) == "text"  # type: ignore[arg-type]  # neither is used
    assert page.meta == meta


def test_links_are_resolved_from_the_folder_of_their_page() -> None:
    assert list_linked_paths("[a](../../conf/x.yaml) [b](../ci.md)", "tutorials/gate.md") == {
        "conf/x.yaml",
        "docs/ci.md",
    }


def test_a_notebook_becomes_a_page_with_its_code() -> None:
    notebook = json.loads((ROOT / "docs" / "notebooks" / "tour.ipynb").read_text(encoding="utf-8"))
    page = render_notebook(notebook, "tour.ipynb")
    assert page.startswith("# A tour\n\nThis page is the notebook `docs/notebooks/tour.ipynb`.\n")
    assert page.count("```python\n") == sum(cell["cell_type"] == "code" for cell in notebook["cells"])


needs_packages = pytest.mark.skipif(not PYTHON.is_file(), reason="needs .venv-docs, which `make site` creates")


@needs_packages
def test_the_packages_that_build_the_site_have_allowed_licences() -> None:
    code = "from release.licences import list_dependencies as all; print([str(d) for d in all() if not d.is_allowed])"
    done = subprocess.run([PYTHON, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr


@needs_packages
def test_the_site_is_built_without_warnings_and_loads_nothing_from_other_servers(tmp_path: Path) -> None:
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    command = [PYTHON, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", tmp_path]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    pages = [path.read_text(encoding="utf-8") for path in tmp_path.rglob("*.html")]
    assert len(pages) > 30
    assert [match[0] for page in pages for match in EXTERNAL.finditer(page)] == []
