"""What all pages have in common: colours that can be read, and plots with a name."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import pytest

from runner.pages import page
from tests.pages.reading import Page

STYLE = (Path(page.__file__).parent / "templates" / "page.css").read_text(encoding="utf-8")
LIGHT, DARK = (
    dict(re.findall(r"--([\w-]+): (#\w{6});", theme)) for theme in re.findall(r":root {(.*?)}", STYLE, re.S)[:2]
)


def luminance(color: str) -> float:
    """Return the relative luminance of a colour such as #2456d6 (WCAG 2.2)."""
    shares = (int(color[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_words_stand_out_from_what_is_behind_them(theme: dict[str, str]) -> None:
    """By 4.5 to 1, as WCAG 2.2 asks of small text (1.4.3)."""
    for text, behind in product(("ink", "muted", "good", "bad"), ("back", "card")):
        assert contrast(theme[text], theme[behind]) >= 4.5, f"{text} on {behind}"


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_what_is_drawn_stands_out_from_its_card(theme: dict[str, str]) -> None:
    """By 3 to 1, as WCAG 2.2 asks of graphics (1.4.11)."""
    series = [color for name, color in theme.items() if name.startswith("series-")]
    assert len(series) == 8
    assert min(contrast(color, theme["card"]) for color in series) >= 3


@pytest.mark.parametrize(
    ("html", "loaded"),
    [
        ('<a href="https://a.example/">a</a><p>https://b.example/ and //c.example/</p>', []),
        ('<a href="#top">top</a><svg><use href="#mark"/><g clip-path="url(#clip)"></g></svg>', []),
        ('<style>a {background: url("data:image/png;base64,AA"); clip-path: url(#clip)}</style>', []),
        ('<script src="https://a.example/x.js"></script>', ["https://a.example/x.js"]),
        ('<link rel="stylesheet" href="x.css">', ["x.css"]),
        ('<base href="//a.example/">', ["//a.example/"]),
        ('<img src="x.png" srcset="y.png 2x">', ["x.png", "y.png 2x"]),
        ('<svg><use xlink:href="x.svg#mark"/></svg>', ["x.svg#mark"]),
        ('<iframe src="page.html"></iframe>', ["page.html"]),
        ("<style>@import 'x.css'; a {src: url(//a.example/x.woff)}</style>", ["x.css", "//a.example/x.woff"]),
        ("<style>@import url('x.css');</style>", ["x.css"]),
        ('<p style="background: url(x.png)">p</p>', ["x.png"]),
        ("<script>fetch('x.json')</script>", ["fetch"]),
        ('<meta http-equiv="Refresh" content="0; url=x.html">', ["0; url=x.html"]),
    ],
)
def test_a_page_loads_what_a_browser_fetches_without_a_click(html: str, loaded: list[str]) -> None:
    assert Page(html).loaded == loaded
