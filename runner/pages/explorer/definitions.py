"""Definitions of the figures on a page, so that each can lead to its own without a network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runner.metrics.formulas import FORMULAS, find_formula

_OTHERS = {
    "hole rate": "The share of unjudged documents among the first hits. Unjudged documents count as irrelevant.",
    "TN rate": "The share of queries without gold for which the result is empty, as it should be.",
    "FP rate": "The share of queries without gold for which documents are returned.",
    "AUROC": "How well the score of the first hit separates queries with gold from those without: 0.5 is chance.",
    "W/T/L": "The numbers of queries on which a system is better than, equal to, and worse than the best.",
    "overlap": "The share of the first hits that two systems have in common.",
}


@dataclass(frozen=True)
class Definition:
    """A term with its definition; `pattern` is a regular expression of the texts on a page that mean the term."""

    term: str
    text: str
    pattern: str

    @property
    def anchor(self) -> str:
        """Return the id of the definition on its page."""
        return "define-" + "".join(c if c.isalnum() else "-" for c in self.term)


def define_measure(measure: str) -> str:
    """Return what a measure is, "" for one of another package, whose name says it."""
    formula = find_formula(measure)
    return "" if formula is None else f"{formula.title}: {formula.formula}"


def list_definitions(data: Mapping[str, Any]) -> list[Definition]:
    """Return the definitions of the built-in measures, of other terms, and of the columns of a page's data."""
    definitions = [
        Definition(name, define_measure(name), rf"{name}@\d+" if formula.cutoff == "required" else rf"{name}(?:@\d+)?")
        for name, formula in FORMULAS.items()
    ]
    definitions += [Definition(term, text, term) for term, text in _OTHERS.items()]
    known = {definition.term for definition in definitions}
    columns: Sequence[Mapping[str, Any]] = data.get("columns", ())
    for column in columns:
        text, title = column["definition"], column["title"]
        if text and title not in known and column["kind"] != "measure" and len(title) > 1:
            definitions.append(Definition(title, text, ""))
    return definitions
