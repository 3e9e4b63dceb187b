"""Build golden reports for JSON from results: one evaluation, or several search types on the same queries.

The structures are those of the golden evaluations that this program replaces, in a corrected form.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import numpy as np

from runner.comparison.comparability import ReportError, compute_depth
from runner.comparison.labels import label_results
from runner.evaluation.result import Hits, Result, count_statuses
from runner.features.golden.comparison import comparison, retrieval_times, select_sensible
from runner.metrics.formulas import find_missed_cutoff, is_of_whole_ranking
from runner.metrics.measures import REPORT_MEASURES

SHOWN = 10
"""How many retrieved items per query are described with their metadata and the gaps between their scores."""

_OF_EVALUATION = ("choices", "dataset", "metrics", "statistics")
"""The groups of recorded settings that do not decide what a search returns."""

_FAMILIES = {"P": "precision", "R": "recall"}
_MEANS = {"RR": "mrr", "AP": "map"}
_VALUES = {"RR": "reciprocal_rank", "AP": "average_precision"}


def golden_report(
    results: Sequence[Result], at: datetime, parallel: bool = False, rivals: Sequence[Result] = ()
) -> dict[str, Any]:
    """Return the report of one search type, or the comparison of several with the first, for JSON.

    `parallel` says whether they were evaluated side by side, `rivals` are the results that these were chosen from by
    their scores. Raises `ReportError` if there are no results or one has no
    rankings, `NotComparable` if they are on different data.
    """
    if not results:
        raise ReportError("a golden report needs at least one result")
    moment = at.astimezone(UTC)
    head = {"run_id": f"eval_{moment:%Y%m%d_%H%M%S}", "timestamp": moment.isoformat()}
    types, listed = dict(zip(search_types(results), results, strict=True)), _count_listed(results)
    if len(types) == 1:
        ((name, result),) = types.items()
        config = _config(results, {"search_type": name, "config_hash": result.config_hash})
        own = {"search_configuration": _search_configuration(result)}
        return {**head, "config": config, **own, **_evaluation(name, result, listed)}
    sides = {"search_types_evaluated": list(types), "parallel_execution": parallel}
    return {
        **head,
        "config": _config(results, sides),
        "results_by_search_type": {
            name: {
                "config_hash": result.config_hash,
                "search_configuration": _search_configuration(result),
                **_evaluation(name, result, listed),
            }
            for name, result in types.items()
        },
        "comparison": comparison(types, measure_names(results[0].measures), rivals),
    }


def search_types(results: Sequence[Result]) -> list[str]:
    """Return the name of each result: its search type, or a label if search types are not unique."""
    names = [result.search_type or result.retriever for result in results]
    return names if len(set(names)) == len(names) else label_results(results)


def measure_names(measures: Sequence[str]) -> dict[str, str]:
    """Return the name of each measure in a report: nDCG@10 becomes ndcg@10, RR becomes mrr."""
    split = {measure: _split(measure) for measure in _order_measures(measures)}
    return {m: f"{_family(name)}@{k}" if k else _MEANS.get(m, m.lower()) for m, (name, k) in split.items()}


def _config(results: Sequence[Result], sides: Mapping[str, Any]) -> dict[str, Any]:
    first = results[0]
    dataset, retrievers = _settings(first, "dataset"), [_settings(result, "retriever") for result in results]
    targets = [settings.get("expected_items") for settings in (dataset, *retrievers)]
    target = next((count for count in targets if count is not None), None)  # that of an API may be "corpus"
    answered = [url for result in results for url in result.addresses.values()]
    configured = [settings.get("base_url") for settings in retrievers]
    return {
        "api_base_url": next((url for url in (*answered, *configured) if url), None),
        "dataset_path": dataset.get("path") or first.dataset.name,
        **sides,
        "top_k_values": _cutoffs(first.measures),
        "depth": max(int(_settings(result, "metrics").get("depth") or 0) for result in results) or None,
        "listed_items": _count_listed(results),
        "missed_cutoff": find_missed_cutoff(first.primary),
        **({"relevance": dict(dataset["relevance"])} if dataset.get("relevance") else {}),
        "dataset_version": first.dataset.fingerprint,
        "total_queries": first.dataset.queries,
        "target_item_count": first.dataset.documents if target == "corpus" else target,
        "actual_item_count": first.dataset.documents,
    }


def _search_configuration(result: Result) -> Any:  # noqa: ANN401 (whatever a report had)
    """Return the settings that decide what a search returns, as a report that was read had them, or as recorded."""
    if (given := result.config.get("search_configuration")) is not None:
        return given
    return {name: value for name, value in result.config.items() if name not in _OF_EVALUATION}


def _cutoffs(measures: Sequence[str]) -> list[int]:
    """Return the cutoffs of measures; for a measure of the whole ranking, it is the depth of the search."""
    split = [_split(measure) for measure in measures]
    return sorted({k for name, k in split if not is_of_whole_ranking(name)} - {0})


def _count_listed(results: Sequence[Result]) -> int:
    """Return the number of listed items per query: as many as the largest cutoff needs."""
    deepest = max([SHOWN, *_cutoffs(results[0].measures)])
    return min(deepest, max(map(compute_depth, results)) or deepest)


def _evaluation(name: str, result: Result, listed: int) -> dict[str, Any]:
    if result.hits is None:
        raise ReportError(f"{name} was loaded without its rankings, which are needed for a golden report")
    times_ms = [*result.timings.each_ms, *[None] * (len(result.queries.ids) - len(result.timings.each_ms))]
    words = {grade: word for word, grade in (_settings(result, "dataset").get("relevance") or {}).items()}
    sure = _confidence(result.hits)
    measures = select_sensible(result, result.measures)
    return {
        "summary": _means(measures, result.means.get)
        | {"edge_cases": _edge_cases(result), "statuses": count_statuses(result), "errors": _errors(result)},
        "by_query_type": {
            kind: {"count": int(means["queries"]), **_means(measures, means.get)}
            for kind, means in result.by_type.items()
        },
        "query_results": [
            {
                "query_id": query,
                "query_text": result.queries.texts[i],
                "query_type": result.queries.types[i],
                "search_type": name,
                **_query(result, result.hits, i, words, listed),
                "retrieval_time_ms": times_ms[i],
                "score_confidence": sure[i],
            }
            for i, query in enumerate(result.queries.ids)
        ],
        "own_gold": list(result.own_gold),
        "timing": _timing(result),
    }


def _query(result: Result, hits: Hits, i: int, words: Mapping[int, str], listed: int) -> dict[str, Any]:
    q, ids = result.queries, hits.ids(i)
    scores = hits.rankings.scores[i, : len(ids)].tolist()
    gold = (place for place, grade in enumerate(hits.grades[i, : len(ids)].tolist(), start=1) if grade > 0)
    items = [hits.judged[document] for document in hits.rankings.documents[i, : len(ids)].tolist()]
    place = {item: rank for rank, item in reversed([*enumerate(items, start=1)])}  # the first chunk of an item counts
    grades = q.expected_grades[i] if q.expected_grades else [None] * len(q.expected[i])
    relevance = {
        item: None if grade is None else words.get(grade, str(grade))
        for item, grade in zip(q.expected[i], grades, strict=True)
    }
    reached = {item: scores[place[item] - 1] if item in place else None for item in q.expected[i]}
    best = scores[:SHOWN]
    counts = bool(q.expected[i]) and not q.errors[i]

    def value(measure: str) -> float:
        return float(result.of(measure)[i])

    return {
        "expected_items": list(q.expected[i]),
        "expected_relevance": relevance,
        "retrieved_items": ids[:listed],
        "retrieved_scores": scores[:listed],
        "metrics": _by_measure(select_sensible(result, result.measures), value, _VALUES) if counts else {},
        "first_relevant_rank": next(gold, None),
        "status": q.statuses[i],
        **({"error": q.errors[i]} if q.errors[i] else {}),
        "score_gaps": [above - below for above, below in pairwise(best)],
        "expected_item_scores": reached,
        "relevance_alignment": [
            {"item_id": item, "expected_relevance": word, "actual_rank": place.get(item), "actual_score": reached[item]}
            for item, word in relevance.items()
        ],
        "retrieved_metadata": [
            {"item_id": item, **_describe_document(hits, document), "score": score}
            for item, document, score in zip(ids, hits.rankings.documents[i].tolist(), best, strict=False)
        ],
        "score_stats": _score_stats(best),
    }


def _describe_document(hits: Hits, document: int) -> Mapping[str, Any]:
    return hits.metadata[document] if hits.metadata else {}


def _score_stats(scores: Sequence[float]) -> dict[str, float]:
    if not scores:
        return {}
    low, high = min(scores), max(scores)
    return {"min": low, "max": high, "median": float(np.median(scores)), "range": high - low}


def _confidence(hits: Hits) -> list[str | None]:
    """Return whether the gap between the first two scores of each query is in the low, medium or high third.

    Thirds are used because search types have scores on different scales. None for fewer than two retrieved items.
    """
    scores = hits.rankings.scores[:, :2]
    if scores.shape[1] < 2:
        return [None] * len(scores)
    several = np.isfinite(scores[:, 1])
    gaps = np.sort(scores[several, 0] - scores[several, 1])

    def third(gap: float) -> str:
        below = np.searchsorted(gaps, gap, side="left") + np.searchsorted(gaps, gap, side="right")
        return ("low", "medium", "high")[min(int(3 * below / (2 * len(gaps))), 2)]

    return [third(row[0] - row[1]) if there else None for row, there in zip(scores, several, strict=True)]


def _edge_cases(result: Result) -> dict[str, Any]:
    """Return the results of queries without gold: without a threshold, then by threshold."""
    abstention = result.abstention.to_dict()
    everything, *thresholds = abstention["thresholds"]
    return {
        "total": abstention["no_result"],
        **{name: everything[name] for name in ("true_negatives", "false_positives", "tn_rate", "fp_rate")},
        "answerable_rejected": everything["left_with_nothing"],
        "auroc": abstention["auroc"],
        "thresholds": thresholds,
        "recall_at": abstention["k"],
    }


def _errors(result: Result) -> list[dict[str, str]]:
    return [{"query_id": query, "error": error} for query, error in result.failures.items()]


def _timing(result: Result) -> dict[str, Any]:
    timed = sum(ms is not None for ms in result.timings.each_ms)
    return {"total_evaluation_time_s": result.timings.wall_s, **retrieval_times(result), "timed_queries": timed}


def _means(measures: Sequence[str], mean: Callable[[str], float | None]) -> dict[str, Any]:
    return _by_measure(measures, mean, _MEANS)


def _by_measure(
    measures: Sequence[str], value: Callable[[str], float | None], whole: Mapping[str, str]
) -> dict[str, Any]:
    """Return the values of measures by name, then by cutoff if they have one; None for NaN."""
    values: dict[str, Any] = {}
    for measure in _order_measures(measures):
        name, k = _split(measure)
        if k:
            values.setdefault(_family(name), {})[f"@{k}"] = _number(value(measure))
        else:
            values[whole.get(measure, measure.lower())] = _number(value(measure))
    return values


def _order_measures(measures: Sequence[str]) -> list[str]:
    """Return measures in the order of a report, whole rankings before cutoffs."""
    place = {name: i for i, name in enumerate(dict.fromkeys((*_FAMILIES, *REPORT_MEASURES)))}
    return sorted(measures, key=lambda measure: (place.get(_split(measure)[0], len(place)), _split(measure)))


def _split(measure: str) -> tuple[str, int]:
    """Return the name of a measure without its cutoff, and the cutoff, 0 if it has none."""
    name, at, cutoff = measure.rpartition("@")
    return (name, int(cutoff)) if at and cutoff.isdecimal() else (measure, 0)


def _family(name: str) -> str:
    return _FAMILIES.get(name, name.lower())


def _number(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else float(value)


def _settings(result: Result, group: str) -> Mapping[str, Any]:
    return result.config.get(group) or {}
