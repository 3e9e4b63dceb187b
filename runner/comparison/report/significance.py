"""The names of significance tests and corrections in reports, and what the queries allow a gate to tell."""

from __future__ import annotations

import math

from runner.comparison.gate import count_untestable, find_allowed_loss
from runner.evaluation.result import Result
from runner.pages.numbers import format_count
from runner.statistics.corrections import CORRECTIONS
from runner.statistics.paired_tests import PAIRED_TESTS
from runner.statistics.settings import CorrectionName, Statistics, Test


def in_brief(test: Test, correction: CorrectionName) -> str:
    """Return the correction of a p-value, after the test unless it is the default.

    Tukey's is a test and a correction in one.
    """
    label, is_own_test = CORRECTIONS[correction].label, CORRECTIONS[correction].is_own_test
    return label if is_own_test or test == Statistics().test else f"{PAIRED_TESTS[test].label}, {label}"


def p_title(correction: CorrectionName) -> str:
    """Return the title of a column that has only the corrected p-values."""
    return CORRECTIONS[correction].title


def in_words(test: Test, correction: CorrectionName) -> str:
    """Return the test and the correction of paired differences in words."""
    return f"p by {PAIRED_TESTS[test].description}, with {CORRECTIONS[correction].description}"


def describe_limit(detectable: float, units: int, unit: str) -> str:
    """Return whether data can show a loss that the default gate allows, and about how many queries (clusters) it takes.

    `detectable` is the difference that a single test detects on `units` queries (clusters).
    """
    limit = find_allowed_loss()
    if detectable <= limit:
        return f"These {unit} can detect a loss of {limit:g}, the largest that the default gate allows."
    needed = math.ceil(units * (detectable / limit) ** 2)
    return f"To detect a loss of {limit:g}, the largest that the default gate allows, takes about {needed:,} {unit}."


def describe_untestable(result: Result) -> str:
    """Return a warning about rules of a gate that cannot fail a drop, because the baseline has too few queries."""
    sizes, fewest = count_untestable(result)
    if not sizes:
        return ""
    if "" in sizes:
        return (
            f"warning: with {format_count(sizes[''], 'query', 'queries')}, no drop can be significant (at least "
            f"{fewest} are needed), so a gate never fails a drop; add queries, or set floors"
        )
    kinds = ", ".join(f"{kind} ({size})" for kind, size in sizes.items())
    return (
        f"warning: no drop can be significant with so few queries of a type (at least {fewest} are needed): {kinds}; "
        "add queries, or remove gate.drops_by_type"
    )
