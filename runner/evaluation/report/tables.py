"""A result as tables and sentences, for the console, Markdown and HTML."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from retrievers.filters import SELECTIVITY
from retrievers.work import kind_of
from runner.comparison.headline import select_headline
from runner.comparison.notes import describe_unknown_hits, list_some, warn_most_holes
from runner.comparison.queries import list_hardest
from runner.evaluation.losses import CANDIDATES, CHUNKING, NOT_IN_CORPUS, NOT_OBSERVABLE, NOT_RETRIEVED
from runner.evaluation.result import Result, count_statuses
from runner.metrics.abstention import describe_status
from runner.metrics.formulas import find_formula, find_missed_cutoff, is_merit
from runner.pages.numbers import (
    duration,
    format_documents,
    gist,
    interval,
    interval_title,
    milliseconds,
    missing,
    number,
    observations,
    percent,
    score,
)
from runner.pages.tables import Column, Table, build_error_table

_LOST_BY = {
    NOT_IN_CORPUS: "not in the corpus",
    CHUNKING: "by chunking",
    NOT_RETRIEVED: "not retrieved",
    "fusion": "by fusion",
    CANDIDATES: "by the depth of the candidates",
    NOT_OBSERVABLE: "not observable",
}
"""The words for a loss by a step; other steps are `by the STEP`."""

_SHARES = ("up to 1 %", "1 to 5 %", "5 to 20 %", "over 20 %")
BANDS = {name: label for (_, name), label in zip(SELECTIVITY, _SHARES, strict=True)}
"""The shares of documents that pass a filter, by the name of the band in figures."""


def heading(result: Result) -> str:
    """Return the dataset of a result and its size."""
    d = result.dataset
    chunks = f" in {d.chunks:,} chunks" if d.chunks else ""
    n, queries = len(result.own_gold), observations(d.queries, d.clusters)
    own = f"; separate gold for {n:,} of {queries}: search type {result.search_type or result.retriever}" if n else ""
    text = f"{d.name} ({d.split}): {format_documents(d.documents)}{chunks}, {queries}, {d.judgments:,} judgments"
    return text + own


def intervals_of(result: Result) -> str:
    """Return the title of the intervals: their confidence, and whether the sample is small."""
    counted, clusters = ~np.isnan(result.of(result.primary)), result.queries.cluster_numbers
    units = np.count_nonzero(counted) if clusters is None else len(np.unique(clusters[counted]))
    return interval_title(float((result.config.get("statistics") or {}).get("confidence", 0.95)), int(units))


def measures_table(result: Result) -> Table:
    """Return the means of the measures that have cutoffs, and the hole rate, by cutoff."""
    families = by_cutoff(result.measures)
    cutoffs = sorted({cutoff for family in families.values() for cutoff in family})
    _, _, main = result.primary.rpartition("@")
    columns = [Column("measure")]
    columns += [Column(f"@{cutoff}", score, numeric=True, spare=int(str(cutoff) != main)) for cutoff in cutoffs]
    rows = [
        [name, *(result.means.get(family.get(cutoff, "")) for cutoff in cutoffs)] for name, family in families.items()
    ]
    if result.holes and result.holes.rates:
        rows.append(["hole rate", *(result.holes.rates.get(str(cutoff)) for cutoff in cutoffs)])
    return Table(columns, rows)


def describe_judged(result: Result) -> str:
    """Return the number of queries in the mean of Judged if some counted queries have no hits, else ""."""
    counted = np.count_nonzero(~np.isnan(result.of(result.primary)))
    describing = [measure for measure in result.measures if not is_merit(measure)]
    known = {m.partition("@")[0]: np.count_nonzero(~np.isnan(result.of(m))) for m in describing}
    return "; ".join(
        f"{name}: mean over {n:,} of {counted:,} queries, as the others have no hits"
        for name, n in known.items()
        if n < counted
    )


def by_cutoff(measures: Iterable[str]) -> dict[str, dict[int, str]]:
    """Return the measures that have a cutoff, by their name without it, then by it; without `Rprec@100` and its like.

    A cutoff of these is the depth of the search, and they have no other.
    """
    families: dict[str, dict[int, str]] = {}
    for measure in measures:
        name, at, cutoff = measure.rpartition("@")
        formula = find_formula(name)
        if at and cutoff.isdecimal() and (formula is None or formula.cutoff != "depth"):
            families.setdefault(name, {})[int(cutoff)] = measure
    return families


def whole_measures(result: Result) -> list[str]:
    """Return the measures that have no cutoff, or only the depth of the search."""
    families = by_cutoff(result.measures)
    return [m for m in result.measures if all(m not in family.values() for family in families.values())]


def whole_table(result: Result) -> Table:
    """Return the means of `whole_measures`, with their intervals."""
    columns = [Column("measure"), Column("mean", score, numeric=True)]
    columns.append(Column(intervals_of(result), interval, numeric=True))
    return Table(columns, [[m, result.means.get(m), result.intervals.get(m)] for m in whole_measures(result)])


def no_result_queries(result: Result, limit: int) -> Table:
    """Return the queries without gold that retrieved something, the highest score first."""
    columns = [
        Column("query", least=12),
        Column("text", gist, least=36),
        Column("top document", least=12),
        Column("score", number, numeric=True),
    ]
    q, hits = result.queries, result.hits
    wrong = [i for i, status in enumerate(q.statuses) if status == "false_positive"]
    if hits is None:
        return Table(columns, [])
    rows: list[list[Any]]
    rows = [[q.ids[i], q.texts[i], hits.ids(i, 1)[0], float(hits.rankings.scores[i, 0])] for i in wrong]
    return Table(columns, sorted(rows, key=lambda row: (-row[3], row[0]))[:limit])


def types_table(result: Result) -> Table:
    """Return the headline measures by query type, empty unless there are two types with a value."""
    measures = select_headline(result.primary, result.measures)
    rows = [
        [name or "(none)", int(means["queries"]), *(means.get(m) for m in measures)]
        for name, means in result.by_type.items()
        if not missing(means.get(result.primary))
    ]
    columns = [Column("type"), Column("queries", number, numeric=True)]
    columns += [Column(m, score, numeric=True, spare=int(m != result.primary)) for m in measures]
    return Table(columns, rows if len(rows) > 1 else [])


def outcomes_line(result: Result) -> str:
    """Return the number of queries with each status in a line."""
    return ", ".join(
        f"{count:,} {describe_outcome(result, status)}" for status, count in count_statuses(result).items()
    )


def describe_outcome(result: Result, status: str) -> str:
    """Return a status in words, with the ranks that it stands for in a result."""
    return describe_status(status, find_missed_cutoff(result.primary))


def hole_rate(result: Result) -> str:
    """Return the share of unjudged hits among the first ones; "" where there are no hits."""
    holes = result.holes
    if holes is None or not holes.hits:
        return ""
    hits = f"{holes.unjudged:,} of {holes.hits:,} hits" if holes.unjudged else f"none of {holes.hits:,} hits"
    return f"{percent(holes.rate)} ({hits} in the top {holes.cutoff} are unjudged)"


def losses_table(result: Result, most: int = 5) -> Table:
    """Return the gold documents that each step lost, with the first few queries; empty if none is missed."""
    losses = result.losses
    if losses is None or not losses.missed:
        return Table([], [])
    ids = [query for query, gold in zip(result.queries.ids, result.queries.expected, strict=True) for _ in gold]
    rows = []
    for code, (step, lost) in enumerate(losses.counts.items()):
        queries = list(dict.fromkeys(ids[place] for place in np.flatnonzero(losses.codes == code).tolist()))
        rows.append([step, lost, lost / losses.missed, len(queries), list_some(queries, most)])
    columns = [
        Column("step"),
        Column("gold lost", number, numeric=True),
        Column("share", percent, numeric=True),
        Column("queries", number, numeric=True),
        Column("such as", least=20),
    ]
    return Table(columns, [row for row in rows if row[1]])


def describe_losses(result: Result) -> str:
    """Return how many gold documents each step lost, as a sentence; "" if none is missed, and for old records."""
    losses = result.losses
    if losses is None or not losses.missed:
        return ""
    words = {**_LOST_BY, NOT_RETRIEVED: "by no part"} if "fusion" in losses.steps else _LOST_BY
    lost = ", ".join(f"{n:,} {words.get(step, f'by the {step}')}" for step, n in losses.counts.items() if n)
    documents = "gold document" if losses.missed == 1 else "gold documents"
    return f"Of {losses.missed:,} {documents} missed in the first {losses.cutoff}: {lost}."


def describe_index(result: Result) -> str:
    """Return what the index reported about itself, "" without such an index."""
    return ", ".join(f"{name} {value}" for name, value in result.index.items())


def describe_addresses(result: Result) -> str:
    """Return the addresses of the services that answered, with the parts of the retriever that queried them."""
    return ", ".join(f"{address} ({part})" if part else address for part, address in result.addresses.items())


def warnings(result: Result) -> list[str]:
    """Return remarks on the data behind the figures."""
    holes = result.holes
    first = warn_most_holes(holes.rate, holes.cutoff, result.dataset) if holes else ""
    return [*filter(None, [first, *result.warnings, describe_unknown_hits(result)])]


def no_result_title(result: Result) -> str:
    """Return the title of the table of queries without gold."""
    auroc = result.abstention.auroc
    return "Queries without gold" + ("" if missing(auroc) else f" (AUROC {score(auroc)})")


def abstention_table(result: Result) -> Table:
    """Return the results of the queries without gold by score threshold; empty without such queries."""
    figures = result.abstention
    columns = [
        Column("threshold", lambda value: "none" if value is None else f"{value:g}", numeric=True),
        Column("true negatives", numeric=True),
        Column("TN rate", percent, numeric=True),
        Column(f"R@{figures.k}", score, numeric=True),
        Column("recall lost", score, numeric=True),
        Column("answerable rejected", percent, numeric=True),
    ]
    n = figures.no_result
    rows = [
        [
            at.threshold,
            f"{at.true_negatives} of {n}",
            at.tn_rate,
            at.recall,
            None if at.threshold is None else at.recall_lost,
            at.left_with_nothing,
        ]
        for at in figures.thresholds
    ]
    return Table(columns, rows if n else [])


def hardest_table(result: Result, limit: int) -> Table:
    """Return the hardest queries."""
    columns = [
        Column("query", least=12),
        Column("text", gist, least=36),
        Column("type", spare=3),
        Column(result.primary, score, numeric=True),
        Column("first gold", number, numeric=True, spare=1),
        Column("status", spare=2),
    ]
    rows = [
        [h.id, h.text, h.type, h.values[result.primary], h.first_gold, h.status] for h in list_hardest(result, limit)
    ]
    table = Table(columns, rows)
    return table if any(result.queries.types) else table.without(columns[2])


def cost(result: Result) -> str:
    """Return in a line how long the work took."""
    t = result.timings
    median, timed = t.median_ms, len(t.each_ms) - t.each_ms.count(None)
    spread = "1 query" if timed == 1 else f"median of {timed:,}; p95 {milliseconds(t.p95_ms)} ms"
    alone = "" if median is None else f", {milliseconds(median)} ms a query ({spread})"
    reused = dict.fromkeys(kind_of(stage.kind).title for stage in t.stages if stage.reused)
    there = f"; cached: {', '.join(reused)}" if reused else ""
    return f"index {duration(t.index_s)}, search {duration(t.search_s)}{alone}; wall time {duration(t.wall_s)}{there}"


def timings_table(result: Result) -> Table:
    """Return the time of each kind of work, and the totals."""
    t = result.timings
    there = {True: "cached", False: ""}
    stages: dict[tuple[str, str], float] = {}
    for stage in t.stages:
        kind = kind_of(stage.kind).title, there[stage.reused]
        stages[kind] = stages.get(kind, 0.0) + stage.seconds
    rows: list[list[Any]] = [[name, seconds, note] for (name, note), seconds in stages.items()]
    rows += [
        ["indexing, total", t.index_s, "without the cache"],
        ["search, total", t.search_s, "without the cache"],
        ["score", t.score_s, ""],
        ["wall time", t.wall_s, ""],
    ]
    if t.mean_ms is not None:
        rows.append(["one query, mean", t.mean_ms / 1000, ""])
    if t.median_ms is not None:
        rows.append(["one query, median", t.median_ms / 1000, ""])
    if t.p95_ms is not None:
        rows.append(["one query, 95th percentile", t.p95_ms / 1000, ""])
    return Table([Column("work"), Column("time", duration, numeric=True), Column("note")], rows)


def settings_table(values: Mapping[str, Any]) -> Table:
    """Return nested values by dotted key."""

    def walk(node: Any, path: str) -> Iterable[list[Any]]:  # noqa: ANN401 (any value)
        if isinstance(node, Mapping) and node:
            for key, value in node.items():
                yield from walk(value, f"{path}.{key}" if path else str(key))
        else:
            yield [path, node]

    return Table([Column("setting"), Column("value")], list(walk(values, "")) if values else [])


def filters_table(result: Result) -> Table:
    """Return the diagnostics of queries with filters, by the share of documents that pass."""
    figures: dict[str, dict[str, float]] = {}
    for key, value in result.diagnostics.items():
        figure, _, band = key.rpartition(".")
        if band in BANDS:
            figures.setdefault(figure, {})[band] = value
    columns = [Column("passes the filter"), *(Column(name, _show_figure(name), numeric=True) for name in figures)]
    rows = [
        [label, *(figures[name].get(band) for name in figures)]
        for band, label in BANDS.items()
        if any(band in values for values in figures.values())
    ]
    return Table(columns, rows)


def _show_figure(name: str) -> Callable[[Any], str]:
    """Return how a figure of queries with filters is shown: counts as whole numbers."""
    is_count = name.rpartition(".")[2].startswith(("queries", "short_", "hits_"))
    return (lambda value: number(None if missing(value) else int(value))) if is_count else score


def diagnostics_table(result: Result) -> Table:
    """Return the diagnostics that are not in the table of filters."""
    return settings_table({k: v for k, v in result.diagnostics.items() if k.rpartition(".")[2] not in BANDS})


def fingerprints_table(result: Result) -> Table:
    """Return the fingerprints of the input."""
    d = result.dataset
    rows = [["dataset", d.fingerprint], ["corpus", d.corpus_fingerprint], ["config", result.config_hash]]
    return Table([Column("of"), Column("fingerprint")], rows)


def errors_table(result: Result) -> Table:
    """Return the queries whose search raised an error, by error."""
    groups: dict[str, list[str]] = {}
    for query, error in result.failures.items():
        groups.setdefault(error, []).append(query)
    return build_error_table("queries", groups)
