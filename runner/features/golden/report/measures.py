"""The measures in a golden report's JSON document: which have cutoffs, what they are called, and the table of them.

Every figure is read from there. Whatever comes from data is escaped.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runner.pages.markdown import escape, render_rows
from runner.pages.numbers import score

Json = Mapping[str, Any]

TITLES = {
    "ndcg": "NDCG",
    "mrr": "MRR",
    "rr": "Reciprocal Rank",
    "map": "MAP",
    "ap": "Average Precision",
    "tn_rate": "True negative rate",
}

SHORT = {"precision": "P", "recall": "R", "ndcg": "NDCG", "rr": "RR", "ap": "AP"}
"""What measures are called where there is little room."""


def title(name: str) -> str:
    """Return what a measure without its cutoff is called."""
    return TITLES.get(name, escape(name).capitalize())


def label(name: str) -> str:
    """Return what a measure with its cutoff, if it has one, is called in a row."""
    family, at, cutoff = name.partition("@")
    return f"{SHORT.get(family, title(family))}{at}{cutoff}"


def families(values: Json) -> dict[str, Json]:
    """Return the measures that have cutoffs."""
    nested = {name: of for name, of in values.items() if isinstance(of, Mapping)}
    return {name: of for name, of in nested.items() if any(at.startswith("@") for at in of)}


def whole(values: Json) -> dict[str, float | None]:
    """Return the measures that have no cutoff."""
    return {n: v for n, v in values.items() if n != "count" and (v is None or isinstance(v, float))}


def flat(values: Json) -> dict[str, float | None]:
    """Return measures by name: precision@5, mrr."""
    return {f"{name}{at}": value for name, of in families(values).items() for at, value in of.items()} | whole(values)


def measures_table(values: Json) -> str:
    """Return the table of the measures that have cutoffs."""
    measures = families(values)
    cutoffs = sorted({at for of in measures.values() for at in of}, key=lambda at: int(at[1:]))
    rows = [[title(name), *(score(of.get(at)) for at in cutoffs)] for name, of in measures.items()]
    return render_rows(["Metric", *cutoffs], rows)
