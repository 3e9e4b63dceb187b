"""Compare the search types of a golden report: differences from the first, and agreement of the rankings."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

from runner.comparison.agreement import measure_agreement
from runner.comparison.compare import (
    NO_DIFFERENCE,
    Versus,
    compare_results,
    read_statistics,
    summarise_times,
)
from runner.comparison.headline import UNRANKED_MEASURES
from runner.evaluation.result import Result
from runner.metrics.formulas import is_of_whole_ranking

COEFFICIENTS = {
    "rank_1_agreement": "rank_1",
    "top_3_overlap": "jaccard@3",
    "top_5_overlap": "jaccard@5",
    "rbo": "rbo",
    "kendall_tau": "tau@10",
}
"""The names of the coefficients of agreement in a report."""

TIE = "tie"
"""The `winner` of a report, which has the highest mean, if several share it."""


def comparison(types: Mapping[str, Result], names: Mapping[str, str], rivals: Sequence[Result] = ()) -> dict[str, Any]:
    """Compare search types, by name, with the first; `names` are the names of their measures.

    The values are over the queries that count for all of them. `difference` and `percent_change` are those of the best
    of the others. p-values are those of `compare`: that of the primary measure is corrected for the number of search
    types, or for all pairs of the `rivals` that these were chosen from by their scores; those of all other measures are
    exploratory and corrected together. Cutoffs that include the whole corpus are left out. Raises `NotComparable` for
    results on different data.
    """
    made = compare_results(list(types.values()), read_statistics(next(iter(types.values()))), rivals=rivals)
    order = sorted(select_sensible(made.results[0], made.table), key=[*names, *UNRANKED_MEASURES].index)
    families = made.count_tests()
    return {
        "metric_differences": {
            names.get(measure, measure): _difference(dict(zip(types, made.table[measure], strict=True)))
            for measure in order
            if not math.isnan(made.table[measure][0].mean)
        },
        "tests": {
            "test": made.statistics.test,
            "correction": made.statistics.correction,
            "measure": made.primary,
            "comparisons": families["primary"],
            "among": made.among,
            "among_correction": made.choice_correction,
            "exploratory": families.get("exploratory", 0),
            "alpha": made.statistics.alpha,
            "confidence": made.statistics.confidence,
            "notes": [*made.notes, *_describe_omissions(made.results[0])],
        },
        "agreement": _agreement(types, made.primary),
        "performance": {name: retrieval_times(result) for name, result in types.items()},
    }


def select_sensible(result: Result, measures: Iterable[str]) -> list[str]:
    """Return the measures except those whose cutoff includes the whole corpus, of which every retriever finds all."""
    documents = result.dataset.documents or math.inf

    def is_sensible(measure: str) -> bool:
        name, _, cutoff = measure.rpartition("@")
        deep = not cutoff.isdecimal() or is_of_whole_ranking(name)
        return deep or int(cutoff) < documents or measure == result.primary

    return [measure for measure in measures if is_sensible(measure)]


def _describe_omissions(result: Result) -> list[str]:
    """Return a sentence on the cutoffs that `select_sensible` leaves out, if any."""
    sensible = select_sensible(result, result.measures)
    omitted = {int(m.rpartition("@")[2]) for m in result.measures if m not in sensible}
    if not omitted:
        return []
    return [
        f"without the cutoffs {', '.join(map(str, sorted(omitted)))}, which include all {result.dataset.documents:,} "
        "documents: a search that ranks all of them has a recall of 1 there, in any order"
    ]


def _agreement(types: Mapping[str, Result], primary: str) -> dict[str, Any]:
    """Return the agreement of the rankings; for more than two search types, the mean over their pairs."""
    overall, names = measure_agreement(list(types.values())), list(types)
    pairs: list[dict[str, Any]] = [
        {
            "search_types": list(pair),
            "comparable_queries": of.queries,
            **{name: _number(of.coefficients[coefficient]) for name, coefficient in COEFFICIENTS.items()},
        }
        for pair, of in zip(combinations(names, 2), overall.pairs, strict=True)
    ]
    best = overall.headroom[primary]
    return {
        **{name: _mean([pair[name] for pair in pairs]) for name in COEFFICIENTS},
        "comparable_queries": min(of.queries for of in overall.pairs),
        "pairs": pairs,
        "headroom": {
            "measure": primary,
            "best": names[best.best],
            "best_mean": _number(best.mean),
            "oracle_mean": _number(best.oracle),
        },
    }


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value


def retrieval_times(result: Result) -> dict[str, float | None]:
    """Return the times per query in ms; None if none was timed."""
    measured = summarise_times(result)
    return {
        "avg_retrieval_time_ms": measured.mean,
        "median_retrieval_time_ms": measured.median,
        "p95_retrieval_time_ms": measured.p95,
        "min_retrieval_time_ms": measured.least,
        "max_retrieval_time_ms": measured.most,
    }


def winner(values: Mapping[str, float]) -> tuple[str, list[str]]:
    """Return the name of the largest value, or `TIE`, and the names of all that share it."""
    best = max(values.values()) - NO_DIFFERENCE
    leaders = [name for name, value in values.items() if value >= best]
    return (leaders[0] if len(leaders) == 1 else TIE), leaders


def _difference(row: Mapping[str, Versus]) -> dict[str, Any]:
    _, *others = row
    means = {name: versus.mean for name, versus in row.items()}
    best = row[max(others, key=means.__getitem__)]
    name, leaders = winner(means)
    return {
        **means,
        "difference": best.difference.mean,
        "percent_change": _percent(best),
        "winner": name,
        "leaders": leaders,
        "others": {other: _other(row[other]) for other in others},
    }


def _other(versus: Versus) -> dict[str, Any]:
    own = versus.difference
    return {
        "difference": own.mean,
        "percent_change": _percent(versus),
        "interval": None if math.isnan(own.low) else [own.low, own.high],
        "p": own.corrected,
        "uncorrected_p": own.p,
        "significant": own.significant,
        "wins": own.wins,
        "ties": own.ties,
        "losses": own.losses,
    }


def _percent(versus: Versus) -> float | None:
    return None if math.isnan(versus.relative) else 100 * versus.relative
