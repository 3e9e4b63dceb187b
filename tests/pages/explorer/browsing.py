"""What the tests of pages in a browser share: keys, and checks of a view."""

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


def choose_option(page: Page, label: str, option: str) -> None:
    """Choose an option of a list by keyboard; the list keeps the focus."""
    is_list = f"e.matches('select') && e.labels[0].textContent.startsWith('{label}')"
    press_until(page, "Tab", is_list)
    page.keyboard.press("Home")
    press_until(page, "ArrowDown", f"e.selectedOptions?.[0].text.includes('{option}')")
    assert page.evaluate(f"(e => {is_list})(document.activeElement)")


def check_focus(page: Page) -> None:
    """Tab through a view: each control is reached, is in the window then, and shows that it has the focus."""
    page.evaluate("document.body.tabIndex = -1, document.body.focus(), document.body.removeAttribute('tabindex')")
    problems = []
    for _ in range(400):
        page.keyboard.press("Tab")
        state = page.evaluate(_VISIT)
        if state is None:
            break
        problems += state
    else:
        raise AssertionError("the end of the page is not reached by Tab")
    missed = page.evaluate(_MISSED)
    assert not problems, problems
    assert not missed, missed


_VISIT = """() => {
  const e = document.activeElement, seen = (globalThis.visited ??= new Set());
  if (e === document.body || seen.has(e)) return null;
  seen.add(e).add(e.outerHTML); // a table draws its rows again when it scrolls
  const style = getComputedStyle(e), box = e.getBoundingClientRect(), name = e.outerHTML.slice(0, 120);
  const isShown = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0;
  const isInWindow = box.right > 0 && box.left < innerWidth && box.bottom > 0 && box.top < innerHeight && box.width > 0;
  return [...(isShown ? [] : [`no outline: ${name}`]), ...(isInWindow ? [] : [`not in the window: ${name}`])];
}"""

_MISSED = """() => {
  const controls = [...document.querySelectorAll("a[href], button, input, select, summary, [tabindex]")];
  const missed = controls.filter(e => e.tabIndex >= 0 && !e.disabled && e.checkVisibility({visibilityProperty: true})
    && !globalThis.visited.has(e) && !globalThis.visited.has(e.outerHTML));
  delete globalThis.visited;
  return missed.map(e => e.outerHTML.slice(0, 120));
}"""
