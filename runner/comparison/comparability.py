"""Check whether results may be compared, and by which measures: same data, and measures with the same meaning."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from retrievers.base import Rankings
from retrievers.store import fingerprint
from retrievers.strict_values import show_value
from runner.comparison.headline import GRADE, TN_RATE, UNRANKED_MEASURES
from runner.comparison.notes import describe_dataset, list_some
from runner.evaluation.result import QueryTable, Result, ResultError
from runner.metrics.formulas import is_merit
from runner.metrics.measures import parse


class ReportError(ValueError):
    """Results cannot be reported together."""


class NotComparable(ResultError):
    """Results have different data, judges or measures."""


def check_comparable(one: Result, other: Result) -> str:
    """Return a sentence on what two results share; raises `NotComparable` for different data or judges."""
    names = f"{one.name} and {other.name}"
    if one.dataset.fingerprint and other.dataset.fingerprint:
        if one.dataset.fingerprint != other.dataset.fingerprint:
            corpora = {one.dataset.corpus_fingerprint, other.dataset.corpus_fingerprint} - {""}
            what = (
                "documents"
                if len(corpora) > 1
                else _find_difference(one, other) or _name_cluster_difference(one, other)
            )
            raise NotComparable(
                f"{names} were measured on different datasets, {describe_dataset(one)} and {describe_dataset(other)}: "
                f"their {what} differ"
            )
        same = f"Measured on the same dataset, {describe_dataset(one)}."
        what = _find_query_difference(one, other)  # one may be of a part of the dataset
    else:
        same = "Measured on the same queries, types and expected items; a report does not identify the corpus."
        what = _find_difference(one, other)
    if what:
        raise NotComparable(f"{names} were measured on different datasets: their {what} differ")
    judges = [r.grades and f"{r.grades.judge}, prompt {r.grades.prompt[:8]}, k={r.grades.k}" for r in (one, other)]
    if all(judges) and judges[0] != judges[1]:
        raise NotComparable(f"{names} were graded by different judges: {judges[0]} and {judges[1]}")
    return same


def _find_difference(one: Result, other: Result) -> str:
    """Return what differs between the documents, queries or expected items of two results; "" if nothing does."""
    if 0 != one.dataset.documents != other.dataset.documents != 0:
        return f"documents ({one.dataset.documents:,} and {other.dataset.documents:,})"
    if what := _find_query_difference(one, other):
        return what
    if unlike := find_gold_differences(one, other):
        what = "grades" if _gold(one.queries, False) == _gold(other.queries, False) else "items"
        return f"expected {what} (of {list_some(unlike)})"
    return ""


def _find_query_difference(one: Result, other: Result) -> str:
    queries, others = list_texts_and_types(one.queries), list_texts_and_types(other.queries)
    if queries.keys() != others.keys():
        return f"queries ({list_some(sorted(queries.keys() ^ others.keys()))} in only one of them)"
    for place, what in enumerate(("query texts", "query types")):
        if unlike := [i for i in queries if queries[i][place] != others[i][place]]:
            return f"{what} (of {list_some(unlike)})"
    return ""


def _name_cluster_difference(one: Result, other: Result) -> str:
    """Return whether the clusters, matched by query id, differ between results with the same queries and gold."""
    clusters, others = (
        dict(zip(r.queries.ids, r.queries.clusters or [""] * len(r.queries.ids), strict=True)) for r in (one, other)
    )
    return "query clusters (dataset.cluster_field)" if clusters != others else "documents or judgments"


def find_gold_differences(one: Result, other: Result) -> list[str]:
    """Return the shared queries for which two results expect different items, or different grades of them.

    A dataset may expect different items by search type. Grades are compared only where both results have them.
    """
    if _list_gold(one.queries) == _list_gold(other.queries):  # nearly always
        return []
    graded = bool(one.queries.expected_grades and other.queries.expected_grades)
    gold, others = _gold(one.queries, graded), _gold(other.queries, graded)
    return [query for query, expected in gold.items() if query in others and expected != others[query]]


def list_texts_and_types(queries: QueryTable) -> dict[str, tuple[str, str]]:
    """Return the text and the type of each query by its id."""
    return {i: (text, kind) for i, text, kind in zip(queries.ids, queries.texts, queries.types, strict=True)}


def _list_gold(queries: QueryTable) -> tuple[Sequence[object], ...]:
    return queries.ids, queries.expected, queries.expected_grades


def _gold(queries: QueryTable, graded: bool) -> dict[str, dict[str, int]]:
    grades = queries.expected_grades if graded else [[1] * len(expected) for expected in queries.expected]
    columns = zip(queries.ids, queries.expected, grades, strict=True)
    return {query: dict(zip(expected, of, strict=True)) for query, expected, of in columns}


def reorder_queries(result: Result, ids: Sequence[str]) -> Result:
    """Return a result with only these queries, in this order; a model's grades are dropped if anything changes."""
    if list(result.queries.ids) == list(ids):
        return result
    position = {query: i for i, query in enumerate(result.queries.ids)}
    order = np.array([position[query] for query in ids])
    q = result.queries
    columns = {name: [column[i] for i in order] if (column := getattr(q, name)) else () for name in vars(q)}
    hits = result.hits
    if hits is not None:
        rankings = Rankings(hits.rankings.documents[order], hits.rankings.scores[order])
        hits = replace(hits, rankings=rankings, grades=hits.grades[order])
    losses = result.losses
    if losses is not None:
        ends = np.cumsum([0, *map(len, q.expected)])
        losses = losses.select(
            np.concatenate([np.zeros(0, np.int64), *(np.arange(ends[i], ends[i + 1]) for i in order)])
        )
    times = [*result.timings.each_ms, *[None] * (len(order) - len(result.timings.each_ms))]
    return replace(
        result,
        queries=QueryTable(**columns),
        scores=result.scores[:, order],
        outcomes={name: values[order] for name, values in result.outcomes.items()},
        hits=hits,
        losses=losses,
        grades=None,
        timings=replace(result.timings, each_ms=[times[i] for i in order]),
    )


def select_shared_queries(results: Sequence[Result]) -> tuple[list[Result], list[str]]:
    """Return results on the queries that all have, and notes on the others, if each query has documents of its own.

    Such results, those of agents on tasks, have outcomes and record no corpus: a query may be left out without changing
    what another one could retrieve. Other results are returned as they are. A shared query has the same text, type and
    gold everywhere; a note names the fields, such as the model of an agent, in which shared queries differ. Raises
    `NotComparable` if no query is shared.
    """
    if not all(result.outcomes and not result.dataset.corpus_fingerprint for result in results):
        return list(results), []
    first, *others = results
    texts = [list_texts_and_types(result.queries) for result in results]
    unlike = {query for other in others for query in find_gold_differences(first, other)}
    same = [query for query in first.queries.ids if all(query in of and of[query] == texts[0][query] for of in texts)]
    shared = [query for query in same if query not in unlike]
    if not shared:
        raise NotComparable(
            f"{first.name} and {others[0].name} have no query in common with the same gold; choose results on the "
            "same tasks"
        )
    every = dict.fromkeys(query for result in results for query in result.queries.ids)
    notes: list[str] = []
    if left_out := [query for query in every if query not in set(shared)]:
        notes = [f"without {list_some(left_out)}, because not all results have them with the same gold"]
        name = fingerprint(first.dataset.fingerprint, *sorted(shared))
        dataset = replace(first.dataset, fingerprint=name, queries=len(shared))
        results = [replace(reorder_queries(result, shared), dataset=dataset, holes=None) for result in results]
    first, *others = results
    return list(results), [*notes, *(note for other in others for note in _note_field_differences(first, other))]


def _note_field_differences(one: Result, other: Result) -> list[str]:
    """Return a note for each field in which shared queries of two results differ."""
    fields, others = (dict(zip(r.queries.ids, r.queries.fields, strict=False)) for r in (one, other))
    names = dict.fromkeys(name for table in (fields, others) for of in table.values() for name in of)
    counts = {
        name: sum(fields.get(i, {}).get(name) != others.get(i, {}).get(name) for i in one.queries.ids) for name in names
    }
    n = len(one.queries.ids)
    return [
        f"{name} of {other.name} and {one.name} is not the same for {count:,} of {n:,} queries, which may explain a "
        "difference"
        for name, count in counts.items()
        if count
    ]


def score_queries(result: Result, measure: str) -> NDArray[np.float64]:
    """Return the value of a measure for each query, NaN where it does not count; raises `ResultError`."""
    if measure == TN_RATE:
        value = {"true_negative": 1.0, "false_positive": 0.0}
        return np.array([value.get(status, math.nan) for status in result.queries.statuses])
    if measure == GRADE:
        return np.full(len(result.queries.ids), math.nan) if result.grades is None else result.grades.values
    return result.outcomes[measure] if measure in result.outcomes else result.of(measure)


def find_shared_measures(results: Sequence[Result], primary: str, notes: list[str]) -> list[str]:
    """Return the measures that mean the same in all results, the primary one first; note those left out."""
    for result in results:
        result.of(primary)
    depths = [compute_depth(result) for result in results]
    shared = [m for m in results[0].measures if all(m in r.measures for r in results) and is_merit(m)]
    if len(set(depths)) > 1:
        whole = [m for m in shared if "@" not in m]
        if primary in whole:
            raise NotComparable(
                f"{primary} depends on the depth of the rankings, which is {depths[0]} in {results[0].name} and "
                f"{next(d for d in depths if d != depths[0])} in another result; choose another measure with "
                "compare.primary=MEASURE"
            )
        if whole:
            notes.append(
                f"without {list_some(whole)}, because the depths of the rankings differ "
                f"({list_some([*map(str, dict.fromkeys(depths))])})"
            )
        shared = [m for m in shared if m not in whole]
    chunkings = _list_span_chunkings(results)
    if len(chunkings) > 1:
        if not parse(primary).needs_spans:
            raise NotComparable(explain_chunk_gold(primary, shared, chunkings, "compare.primary"))
        of_chunks = [m for m in shared if not parse(m).needs_spans]
        notes.append(f"without {list_some(of_chunks)}, because each chunking has other gold chunks (gold=spans)")
        shared = [m for m in shared if m not in of_chunks]
    unranked = [m for m in UNRANKED_MEASURES if not any(np.isnan(score_queries(r, m)).all() for r in results)]
    return [primary, *(m for m in shared if m != primary), *unranked, *_find_shared_outcomes(results)]


def _find_shared_outcomes(results: Sequence[Result]) -> list[str]:
    """Return the outcomes that some query has in all results, which have the same queries in the same order."""
    names = [name for name in results[0].outcomes if all(name in result.outcomes for result in results)]
    return [name for name in names if not np.isnan([result.outcomes[name] for result in results]).any(axis=0).all()]


def explain_chunk_gold(measure: str, measures: Sequence[str], chunkings: Sequence[str], setting: str) -> str:
    """Return an error: a measure of chunks cannot rank chunkings whose gold is spans; one of words can."""
    of_words = [name for name in measures if name.startswith("TokenR@tokens=")] or ["TokenR@tokens=1024"]
    return (
        f"{measure} cannot rank chunkings with gold=spans, because each has other gold chunks "
        f"({list_some(chunkings)}); choose a measure of words: '{setting}=\"{of_words[-1]}\"'"
    )


def _list_span_chunkings(results: Sequence[Result]) -> list[str]:
    """Return the different chunkings of results whose gold is spans."""
    datasets = [result.config.get("dataset") or {} for result in results]
    if not all(isinstance(dataset, Mapping) and dataset.get("gold") == "spans" for dataset in datasets):
        return []
    return list(dict.fromkeys(_name_chunking(dataset.get("chunking") or {}) for dataset in datasets))


def _name_chunking(chunking: Mapping[str, object]) -> str:
    kind = str(chunking.get("_target_", "whole documents")).rpartition(".")[2]
    return " ".join([kind, *(f"{key}={value}" for key, value in chunking.items() if key != "_target_")])


def compute_depth(result: Result) -> int:
    """Return how many hits each query can have; unknown documents from a service may exceed the corpus size.

    Raises `NotComparable` for a record without a number.
    """
    metrics = result.config.get("metrics") or {}
    requested = metrics.get("depth", 0) if isinstance(metrics, Mapping) else None
    if not isinstance(requested, int):
        raise NotComparable(f"{result.name}: metrics.depth of its record is not a number ({show_value(requested)})")
    searched = result.dataset.chunks or result.dataset.documents
    if not searched or (result.hits is not None and result.hits.unknown is not None):
        return requested
    return min(requested, searched)


def find_uncounted_queries(results: Sequence[Result], measure: str) -> list[str]:
    """Return the queries that count for only some of the results."""
    counted = np.array([~np.isnan(result.of(measure)) for result in results])
    return [results[0].queries.ids[i] for i in np.flatnonzero(counted.any(axis=0) & ~counted.all(axis=0)).tolist()]
