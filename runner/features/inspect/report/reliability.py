"""The reliability of a dataset in words: a paragraph per question, with the numbers and what to do."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from runner.comparison.report.significance import describe_limit
from runner.features.inspect.reliability import Reliability
from runner.pages.numbers import DASH, format_signed, number, p_value, percent
from runner.pages.tables import Column, Table
from runner.statistics.reliability import FEWEST_SYSTEMS, FEWEST_UNITS
from runner.statistics.significance import SMALL_SAMPLE

STABLE_TAU = 0.9
"""Rankings with at least this tau count as the same (Voorhees 2000)."""

ODD, ENOUGH_SYSTEMS, MOST_QUERIES = -0.5, 8, 5
"""The discrimination below which a query is named, with at least this many systems, and how many are named."""


def describe_scope(reliability: Reliability) -> str:
    """Return what the reliability is about: it belongs to these systems and this measure."""
    clusters = f" in {reliability.units:,} clusters" if reliability.units != reliability.queries else ""
    return (
        f"for {len(reliability.names)} systems ({', '.join(reliability.names)}), ranked by {reliability.measure} on "
        f"{reliability.queries:,} queries with gold{clusters}. Other systems and measures give other values."
    )


def describe_reliability(reliability: Reliability) -> list[tuple[str, str]]:
    """Return a title and a paragraph for each question."""
    parts = [
        ("Stability of the ranking", _describe_stability(reliability)),
        ("Discriminative power", _describe_power(reliability)),
        ("Queries needed", _describe_needs(reliability)),
        ("Informative queries", _describe_information(reliability)),
        ("Unjudged documents", _describe_bounds(reliability)),
    ]
    return [(title, " ".join(sentences)) for title, sentences in parts]


def separations_table(reliability: Reliability) -> Table:
    """Return the neighbours in the ranking: their difference, the queries it takes, and what judgments could change."""
    names, bounds = reliability.names, list(reliability.bounds)
    rows = [
        [
            f"{names[pair.better]} - {names[pair.worse]}", pair.difference, pair.p, pair.needed,
            f"[{bounds[i].low:+.3f}, {bounds[i].high:+.3f}]" if i < len(bounds) else DASH,
        ]
        for i, pair in enumerate(reliability.separations)
    ]  # fmt: skip
    columns = [
        Column("systems", least=16),
        Column("difference", format_signed, numeric=True),
        Column("max-T p", p_value, numeric=True),
        Column("queries needed", _format_needed, numeric=True),
        Column("bounds by judgments", numeric=True),
    ]
    return Table(columns, rows)


def reliability_json(reliability: Reliability) -> dict[str, Any]:
    """Return the reliability for JSON; systems are named."""
    names, information, stability = reliability.names, reliability.information, reliability.stability
    return {
        "measure": reliability.measure,
        "systems": dict(zip(names, reliability.means, strict=True)),
        "queries": reliability.queries,
        "units": reliability.units,
        "stability": None if stability is None else vars(stability),
        "power": {
            "pairs": len(reliability.power.levels),
            "significant": reliability.power.significant,
            "corrected": reliability.power.corrected,
            "levels": reliability.power.levels,
        },
        "detectable": reliability.detectable,
        "separations": [
            {**vars(pair), "better": names[pair.better], "worse": names[pair.worse]} for pair in reliability.separations
        ],
        "information": {
            "half": information.half,
            "uninformative": information.uninformative,
            "queries": [
                {"query": i, "share": share, "discrimination": r}
                for i, share, r in zip(
                    reliability.ids, information.shares.tolist(), information.discriminations.tolist(), strict=True
                )
            ],
        },
        "bounds": [
            {**vars(pair), "better": names[pair.better], "worse": names[pair.worse]} for pair in reliability.bounds
        ],
    }


def _describe_stability(reliability: Reliability) -> Iterator[str]:
    stability, confidence = reliability.stability, f"{reliability.statistics.confidence * 100:g}%"
    if stability is None and len(reliability.names) < FEWEST_SYSTEMS:
        yield "With two systems, there is only one difference: see its p-value below."
        return
    if stability is None:
        yield f"With fewer than {FEWEST_UNITS} queries, nothing can be said about other queries."
        return
    yield (
        f"On {reliability.units:,} other queries of the same kind, the ranking is expected to agree with this one by a "
        f"Kendall's tau of {stability.tau:.2f}, and in {confidence} of cases by {stability.low:.2f} to "
        f"{stability.high:.2f} (1: the same order; 0: as many pairs swapped as kept; -1: reversed)."
    )
    yield f"The best system stays the best with a chance of {stability.same_best:.0%}."
    if stability.low >= STABLE_TAU:
        yield "The ranking is stable."
    else:
        yield (
            "Do not read the order of close systems as a result; trust the differences that are significant, or add "
            "queries."
        )
    if reliability.units < SMALL_SAMPLE:
        yield f"With fewer than {SMALL_SAMPLE} queries, the interval itself is uncertain."


def _describe_power(reliability: Reliability) -> Iterator[str]:
    power, alpha = reliability.power, f"{reliability.statistics.alpha:g}"
    pairs = len(power.levels)
    yield (
        f"The discriminative power of {reliability.measure} is {power.significant / pairs:.0%}: {power.significant} of "
        f"{pairs} pairs of systems differ significantly at {alpha}, each tested alone by the paired bootstrap."
    )
    verb = "is" if power.corrected == 1 else "are"
    yield f"When all pairs are corrected together, {power.corrected} {verb} significant."
    if power.significant / pairs < 0.5:
        yield "Most pairs cannot be told apart: add queries, or compare systems that differ more."


def _describe_needs(reliability: Reliability) -> Iterator[str]:
    shown = [f"{value:.3f} with {count:,}" for count, value in reliability.detectable.items() if not math.isnan(value)]
    unit = "clusters" if reliability.units != reliability.queries else "queries"
    if shown:
        yield (
            f"For a typical pair, the smallest difference in {reliability.measure} that a single test detects with a "
            f"chance of 80% is {', '.join(shown)} {unit}."
        )
        units, detectable = next(iter(reliability.detectable.items()))
        yield describe_limit(detectable, units, unit)
    short = [pair for pair in reliability.separations if pair.needed > reliability.units]
    if short:
        least = min(short, key=lambda pair: pair.needed)
        names = f"{reliability.names[least.better]} and {reliability.names[least.worse]}"
        if math.isinf(least.needed):
            yield f"{len(short)} neighbours in the ranking have no difference to detect."
        else:
            yield (
                f"For {len(short)} of {len(reliability.separations)} neighbours in the ranking, these {unit} are too "
                f"few for that chance; {names} ({least.difference:.4f} apart) need the fewest, "
                f"{_format_needed(least.needed)}, if their difference is as large as observed."
            )
    else:
        yield "All neighbours in the ranking are far enough apart for the queries at hand."


def _describe_information(reliability: Reliability) -> Iterator[str]:
    information = reliability.information
    unit = "clusters" if reliability.units != reliability.queries else "queries"
    yield (
        f"Half of the variance between systems comes from {information.half:,} of {reliability.units:,} {unit}, and "
        f"{information.uninformative:,} have the same score for every system and separate none."
    )
    if information.uninformative > reliability.units / 2:
        yield "Add queries that are neither too easy nor too hard for these systems."
    if len(reliability.names) < ENOUGH_SYSTEMS:
        yield (
            f"With fewer than {ENOUGH_SYSTEMS} systems, the correlation of single queries with the ranking is mostly "
            "noise and is not shown; add retrievers."
        )
        return
    odd = np.flatnonzero(np.nan_to_num(information.discriminations) <= ODD).tolist()
    odd.sort(key=lambda i: information.discriminations[i])
    if odd:
        named = ", ".join(reliability.ids[i] for i in odd[:MOST_QUERIES])
        more = f" and {len(odd) - MOST_QUERIES:,} more" if len(odd) > MOST_QUERIES else ""
        yield (
            f"{len(odd):,} {unit} favour systems that are worse on the others (item-total correlation of {ODD} or "
            f"less): {named}{more}. Read their judgments first."
        )


def _describe_bounds(reliability: Reliability) -> Iterator[str]:
    if reliability.unbounded:
        yield f"No bounds: {reliability.unbounded}."
        return
    names = reliability.names
    widest = max(reliability.bounds, key=lambda pair: pair.unjudged)
    yield (
        f"Of the documents that {names[widest.better]} and {names[widest.worse]} are judged by, "
        f"{percent(widest.unjudged)} are unjudged and count as irrelevant."
    )
    turned = [pair for pair in reliability.bounds if pair.low < 0 < pair.difference]
    if not turned:
        yield "Whatever these are judged to be, no two neighbours in the ranking change places."
        return
    pair = max(turned, key=lambda pair: pair.difference)
    yield (
        f"Judging them could reverse {len(turned)} of {len(reliability.bounds)} neighbours in the ranking. In the "
        f"worst and the best case, {names[pair.better]} minus {names[pair.worse]}, now {pair.difference:+.3f}, becomes "
        f"{pair.low:+.3f} and {pair.high:+.3f}."
    )
    yield (
        "These extremes are unlikely; to narrow them, judge the unjudged documents: python -m runner judge run=latest "
        "by=hand."
    )


def _format_needed(value: float) -> str:
    if math.isnan(value) or math.isinf(value):
        return DASH
    return number(int(value))
