"""A browser for pages, and what they wrote to its console."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = shutil.which("chromium")


@pytest.fixture(scope="session")
def axe() -> str:
    """Return the source of axe-core."""
    return gzip.decompress((Path(__file__).parent / "axe" / "axe.min.js.gz").read_bytes()).decode()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Start Debian's chromium; skip where it or playwright is not installed."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM)
        yield browser
        browser.close()


@pytest.fixture
def show(browser: Browser, tmp_path: Path) -> Iterator[Callable[..., Page]]:
    """Return a function that opens a page; it must write nothing to the console and request nothing."""
    complaints: list[str] = []
    pages: list[Page] = []

    def open_page(html: str, width: int = 1400, hash: str = "", **options: Any) -> Page:
        path = tmp_path / "report.html"
        path.write_text(html, encoding="utf-8")
        page = browser.new_page(viewport={"width": width, "height": 900}, **options)
        page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: _note_request(request.url, complaints))
        page.goto(f"{path.as_uri()}{hash}")
        pages.append(page)
        if options.get("java_script_enabled", True):
            page.wait_for_selector("html.live")
        return page

    yield open_page
    for page in pages:
        page.close()
    assert not complaints


def _note_request(address: str, complaints: list[str]) -> None:
    if not address.startswith(("file:", "data:", "blob:")):
        complaints.append(f"requested {address}")
