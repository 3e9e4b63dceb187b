"""What the tests of pages in a browser share: keys, and a check of a view."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Page


def check_view(page: Page, axe: str) -> None:
    """Check that a view fits the window and that axe-core finds no serious fault in it."""
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.evaluate(axe)
    report: dict[str, Any] = page.evaluate("axe.run(document, {resultTypes: ['violations'], preload: false})")
    serious = [v for v in report["violations"] if v["impact"] in ("serious", "critical")]
    assert not serious, [(v["id"], [node["html"][:200] for node in v["nodes"]][:3]) for v in serious]


def press_until(page: Page, key: str, condition: str) -> None:
    """Press a key until a condition on the focused element `e` holds."""
    for _ in range(120):
        if page.evaluate(f"(e => {condition})(document.activeElement)"):
            return
        page.keyboard.press(key)
    raise AssertionError(f"{key} does not lead to {condition}")


def focus_tab(page: Page, name: str) -> None:
    """Go to a view by keyboard."""
    press_until(page, "Tab", "e.getAttribute('role') === 'tab'")
    press_until(page, "ArrowRight", f"e.textContent === '{name}'")
