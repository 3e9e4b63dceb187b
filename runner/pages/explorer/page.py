"""A page with its data, its script and, if it draws, Vega, in one file that loads nothing."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from runner.pages.explorer.data import encode_json, encode_scores
from runner.pages.explorer.definitions import define_measure, list_definitions
from runner.pages.explorer.place import FILE, PagePlace
from runner.pages.highlighting import COMMON_WORDS
from runner.pages.page import render
from runner.pages.sections import ReportSection

STATIC = Path(__file__).with_name("static")

SCRIPTS = (
    "decode",
    "filter",
    "table",
    "export",
    "front",
    "plots",
    "board",
    "queries",
    "markdown",
    "view",
    "tasks",
    "runs",
    "explorer",
)
"""The parts of the script, in the order in which they stand in a page. A live page also has `live`, before the last."""

NO_SCORES = np.empty((0, 0))
NO_QUERIES: Mapping[str, Any] = {"ids": [], "texts": [], "types": [], "expected": []}

LIVE_POLICY = "base-uri 'none'; object-src 'none'; frame-ancestors 'none'"
"""The content security policy that a server sends with a page, in addition to the one in the page."""


def render_explorer(
    template: Path,
    data: Mapping[str, Any],
    place: PagePlace = FILE,
    sections: Iterable[ReportSection] = (),
    scores: NDArray[np.float64] = NO_SCORES,
    **values: Any,  # noqa: ANN401 (whatever the template shows)
) -> str:
    """Return a page from a template, the data of its script and the scores of its systems (systems x queries).

    The template shows the `sections`, except for those whose figure is drawn. A page of neither runs nor queries needs
    no `columns` and `queries` in its data.
    The page has a policy by which the browser runs no other script: markup that came with the data would stay inert.
    """
    script, planes, sections = _load_script(place.live is not None), encode_scores(scores), list(sections)
    live = {} if place.live is None else {"live": place.live.to_dict()}
    plots = [*data.get("plots", ()), *(section.plot.to_dict() for section in sections if section.plot)]
    data = {"queries": NO_QUERIES, **data, "plots": plots}
    definitions = list_definitions(data)
    extra = {"columns": [_define_column(column) for column in data.get("columns", ())]}
    drawn = {plot["id"] for plot in plots}
    shape = {key: planes[key] for key in ("systems", "queries", "low", "step")}
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return render(
        template,
        **values,
        sections=[section for section in sections if section.figure not in drawn],
        script=Markup(script),  # noqa: S704 (the program's own)
        style=Markup((STATIC / "explorer.css").read_text(encoding="utf-8")),  # noqa: S704 (the program's own)
        digest=digest,
        live=place.live,
        datasets=place.datasets,
        definitions=definitions,
        with_runs="settings" in data,
        data=encode_json({**data, **extra, **live, "scores": shape, "common_words": COMMON_WORDS}),
        scores=planes["planes"],
        libraries=load_libraries() if plots else [],
    )


def _define_column(column: Mapping[str, Any]) -> dict[str, Any]:
    """Return a column with what its measure is."""
    texts = [column["definition"], define_measure(column["name"]) if column["kind"] == "measure" else ""]
    return {**column, "definition": ". ".join(filter(None, texts))}


def load_manifest() -> list[dict[str, str]]:
    """Return the vendored packages: their version, file, licence, and the SHA-256 of the file as published."""
    manifest: list[dict[str, str]] = json.loads((STATIC / "vendor" / "manifest.json").read_text(encoding="utf-8"))
    return manifest


@cache
def load_libraries() -> list[str]:
    """Return the libraries that draw, compressed, in base64, in the order in which they need each other."""
    folder = STATIC / "vendor"
    return [base64.b64encode((folder / entry["file"]).read_bytes()).decode("ascii") for entry in load_manifest()]


@cache
def _load_script(is_live: bool) -> str:
    tables = STATIC.parents[1] / "templates" / "page.js"
    names = [*SCRIPTS[:-1], *(["live"] if is_live else []), SCRIPTS[-1]]
    paths = [tables, *(STATIC / f"{name}.js" for name in names)]
    return "\n".join(["", *(path.read_text(encoding="utf-8") for path in paths)])
