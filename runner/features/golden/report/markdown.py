"""Golden reports as Markdown, from the JSON document that `runner.features.golden.document` builds.

Every figure is read from there; none is computed here. Whatever comes from data is escaped.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from runner.features.golden.comparison import TIE, winner
from runner.features.golden.report.measures import SHORT, families, flat, label, measures_table, title, whole
from runner.features.golden.report.queries import query_by_query, query_markdown
from runner.metrics.abstention import describe_status
from runner.pages.markdown import escape, render_rows
from runner.pages.numbers import DASH, difference_interval, format_count, missing, p_value, percent, score

Json = Mapping[str, Any]


def golden_markdown(report: Json) -> str:
    """Return the Markdown of a report."""
    blocks = _comparison(report) if "comparison" in report else _single(report)
    return "\n\n".join(blocks) + "\n"


def _single(report: Json) -> Iterator[str]:
    shown = {at for values in families(report["summary"]).values() for at in values}
    cutoff = _middle([k for k in report["config"]["top_k_values"] if f"@{k}" in shown])
    name = report["config"]["search_type"]
    yield "# Retrieval Evaluation Report"
    yield _head(report, f"**Search Type**: {escape(name)}", *_own_gold({name: report}))
    yield from _summary(report, cutoff)
    yield "## Detailed Results"
    yield from (
        query_markdown(query, report["timing"]["avg_retrieval_time_ms"], cutoff) for query in report["query_results"]
    )


def _head(report: Json, *sides: str) -> str:
    config = report["config"]
    target, actual = config["target_item_count"], config["actual_item_count"]
    mark = "" if target is None else " \N{CHECK MARK}" if target == actual else " \N{BALLOT X}"
    lines = [
        f"**Run ID**: {report['run_id']}",
        f"**Timestamp**: {report['timestamp']}",
        f"**API Endpoint**: {escape(config['api_base_url'] or 'none, searched in this process')}",
        *sides,
        f"**Dataset**: {escape(PurePath(config['dataset_path']).name)} ({config['total_queries']} queries)",
        f"**Target Items**: {'any' if target is None else target} | **Actual Items**: {actual}{mark}",
    ]
    return "  \n".join(lines)  # two spaces break a line


def _own_gold(parts: Json) -> Iterator[str]:
    """Yield of which search types the dataset expects other items than in general, and for how many queries."""
    texts = [
        f"{escape(name)} for {len(of['own_gold'])} of {len(of['query_results'])} queries"
        for name, of in parts.items()
        if of["own_gold"]
    ]
    if texts:
        yield f"**Gold of Its Own**: {', '.join(texts)}"


def _summary(report: Json, cutoff: int) -> Iterator[str]:
    summary = report["summary"]
    yield "## Summary Metrics"
    yield measures_table(summary)
    yield "  \n".join(f"**{title(name)}**: {score(value)}" for name, value in whole(summary).items())
    missed = report["config"]["missed_cutoff"]
    outcomes = ", ".join(f"{count} {describe_status(of, missed)}" for of, count in summary["statuses"].items())
    yield f"**Queries**: {outcomes}"
    yield from _edge_cases(summary["edge_cases"])
    if summary["errors"]:
        failed = format_count(
            len(summary["errors"]), "query raised an error and enters", "queries raised an error and enter"
        )
        yield f"### Errors\n- {failed} no mean: " + ", ".join(escape(error["query_id"]) for error in summary["errors"])
    types = report["by_query_type"]
    if types:
        names = [name for name in ("precision", "recall", "ndcg") if name in summary]
        titles = ["Type", "Count", *(f"{SHORT[name]}@{cutoff}" for name in names), "MRR"]
        rows = [
            [
                escape(kind),
                str(of["count"]),
                *(score(of[n].get(f"@{cutoff}")) for n in names),
                score(of.get("mrr")),
            ]
            for kind, of in types.items()
        ]
        yield f"### By Query Type\n\n{render_rows(titles, rows)}"
        for kind, of in types.items():
            others = ", ".join(f"{title(name)} {score(value)}" for name, value in whole(of).items())
            yield f"#### {escape(kind) or '(none)'}\n\n{measures_table(of)}\n\n{others}"


def _edge_cases(edges: Json) -> Iterator[str]:
    total = edges["total"]
    if not total:
        return
    lines = [
        "### Edge Cases (No Results Expected)",
        f"- True Negatives: {edges['true_negatives']}/{total} ({percent(edges['tn_rate'])})",
        f"- False Positives: {edges['false_positives']}/{total} ({percent(edges['fp_rate'])})",
        f"- Cost: answerable queries rejected {percent(edges['answerable_rejected'])}",
    ]
    if not missing(edges["auroc"]):
        lines.append(f"- AUROC of the best score (answerable against no-result): {score(edges['auroc'])}")
    yield "\n".join(lines)
    if edges["thresholds"]:
        titles = ["Score threshold", "True Negatives", "TN rate", f"R@{edges['recall_at']}", "Recall lost"]
        titles.append("Answerable rejected")
        rows = [
            [
                f"{at['threshold']:g}",
                f"{at['true_negatives']}/{total}",
                percent(at["tn_rate"]),
                score(at["recall"]),
                score(at["recall_lost"]),
                percent(at["left_with_nothing"]),
            ]
            for at in edges["thresholds"]
        ]
        yield render_rows(titles, rows)


def _comparison(report: Json) -> Iterator[str]:
    config, parts = report["config"], report["results_by_search_type"]
    types = config["search_types_evaluated"]
    yield "# Retrieval Evaluation Report (Multi-Search Comparison)"
    yield _head(
        report,
        f"**Search Types**: {', '.join(map(escape, types))}",
        f"**Parallel Execution**: {'Yes' if config['parallel_execution'] else 'No'}",
        *_own_gold(parts),
    )
    yield from _times(report["comparison"]["performance"])
    yield from _differences(report["comparison"], types)
    yield from _agreement(report["comparison"]["agreement"])
    yield from _edges(parts)
    yield from _by_query_type(parts)
    yield from query_by_query(parts)


def _times(performance: Json) -> Iterator[str]:
    first = next(iter(performance.values()))["median_retrieval_time_ms"]  # a mean may be that of one cold query
    titles = ["Search Type", "Avg Time (ms)", "Median (ms)", "p95 (ms)", "Min (ms)", "Max (ms)", "Relative median"]
    rows = []
    for name, of in performance.items():
        times = [of[f"{fold}_retrieval_time_ms"] for fold in ("avg", "median", "p95", "min", "max")]
        ratio = f"{times[1] / first:.1f}x" if first and times[1] is not None else DASH
        rows.append([f"**{escape(name)}**", *(score(ms, 1) for ms in times), ratio])
    yield "---\n\n## Performance Comparison"
    yield render_rows(titles, rows)


def _differences(comparison: Json, types: Sequence[str]) -> Iterator[str]:
    differences, tests = comparison["metric_differences"], comparison["tests"]
    best = "the best of the others" if len(types) > 2 else escape(types[1])
    yield "---\n\n## Summary Metrics Comparison"
    yield (
        f"\N{GREEK CAPITAL LETTER DELTA} is {best} minus {escape(types[0])}, the first. p is that of a paired test "
        f"({tests['test']}). That of {escape(tests['measure'])}, the primary measure, {_describe_primary(tests)}. All "
        f"other measures are exploratory: they are corrected ({tests['correction']}) for their {tests['exploratory']} "
        f"differences. An asterisk marks what is below {tests['alpha']:g}. "
        f"Intervals: {tests['confidence']:.0%}. Without an asterisk, nothing has won: the last column then says which "
        "search type has the highest mean, and in how many queries it is better and worse."
    )
    yield from (f"Note: {escape(note)}." for note in tests["notes"])
    sections: dict[str, list[list[str]]] = {}
    for name, of in differences.items():
        family, _, cutoff = name.partition("@")
        other = "Mean Reciprocal Rank (MRR)" if name == "mrr" else "Other Measures"
        row = _row(f"@{cutoff}" if cutoff else title(name), of, types)
        sections.setdefault(title(family) if cutoff else other, []).append(row)
    delta = "\N{GREEK CAPITAL LETTER DELTA}"
    head = ["Metric", *(f"**{escape(name)}**" for name in types), f"{delta} (abs)", f"{delta} (%)"]
    for section, rows in sections.items():
        yield f"### {section}\n\n" + render_rows([*head, "Interval", "p", "Winner"], rows)
    if len(types) > 2:
        yield f"### All Differences to {escape(types[0])}"
        yield render_rows(
            ["Metric", "Search Type", f"{delta} (abs)", f"{delta} (%)", "Interval", "p", "Wins/Ties/Losses"],
            [
                [
                    f"**{label(name)}**",
                    escape(other),
                    *_change(change),
                    f"{change['wins']}/{change['ties']}/{change['losses']}",
                ]
                for name, of in differences.items()
                for other, change in of["others"].items()
            ],
        )


def _describe_primary(tests: Json) -> str:
    if tests["among"]:
        return f"is corrected ({tests['among_correction']}) for all pairs of {tests['among']} combinations of the sweep"
    if tests["comparisons"] == 1:
        return "is one test"
    return f"is corrected ({tests['correction']}) for its {tests['comparisons']} differences"


def _row(measure: str, of: Json, types: Sequence[str]) -> list[str]:
    best = max(of["others"], key=of.__getitem__)
    means = [score(of[name]) for name in types]
    return [f"**{measure}**", *means, *_change(of["others"][best]), _verdict(of, of["others"][best], types)]


def _change(change: Json) -> list[str]:
    share = change["percent_change"]
    interval, differing = change["interval"], change["wins"] + change["losses"]
    return [
        f"{change['difference']:+.3f}",
        DASH if share is None else f"{share:+.1f}%",
        difference_interval((*(interval or (math.nan, math.nan)), differing, differing + change["ties"])),
        p_value(change["p"]) + (" *" if change["significant"] else ""),
    ]


def _verdict(of: Json, change: Json, types: Sequence[str]) -> str:
    """Return the winner if a difference is significant, else the leader and the queries that it leads in."""
    highest = _name_highest(of, types)
    if change["significant"] or of["winner"] == TIE:
        return highest
    better, worse = change["wins"], change["losses"]
    if of["winner"] == types[0]:
        better, worse = worse, better
    return f"{highest} ahead ({better} better, {worse} worse)"


def _name_highest(of: Json, types: Sequence[str]) -> str:
    leaders = of["leaders"]
    if of["winner"] != TIE:
        return escape(str(of["winner"]).upper())
    return TIE if len(leaders) == len(types) else f"{TIE}: " + ", ".join(escape(name.upper()) for name in leaders)


def _agreement(agreement: Json) -> Iterator[str]:
    yield "---\n\n## Agreement Analysis"
    yield (
        "### Rank-1 Agreement\n"
        f"- **{percent(agreement['rank_1_agreement'])}** of queries return the same top result\n"
        f"- Based on {agreement['comparable_queries']} comparable queries"
    )
    yield "### Top-K Overlap (Jaccard Similarity)\n" + "\n".join(
        f"- **Top-{k} Average**: {score(agreement[f'top_{k}_overlap'], 2)} "
        f"({agreement[f'top_{k}_overlap'] or 0:.0%} overlap in top {k} results)"
        for k in (3, 5)
    )
    best = agreement["headroom"]
    yield (
        "### Ranks and Headroom\n"
        f"- **Rank-biased overlap** (p = 0.9): {score(agreement['rbo'])}\n"
        f"- **Kendall's tau** (top 10): {score(agreement['kendall_tau'])}\n"
        f"- **Headroom**: {escape(best['measure'])} {score(best['best_mean'])} by {escape(best['best'])}, the best; "
        f"{score(best['oracle_mean'])} by an oracle that picks the better type for each query"
    )
    if len(agreement["pairs"]) > 1:
        names = ["rank_1_agreement", "top_3_overlap", "top_5_overlap", "rbo", "kendall_tau"]
        titles = ["Search Types", "Rank 1", "Jaccard@3", "Jaccard@5", "RBO", "Kendall's tau"]
        rows = [
            [", ".join(map(escape, of["search_types"])), *(score(of[n]) for n in names)] for of in agreement["pairs"]
        ]
        yield "The figures above are means of all pairs:\n\n" + render_rows(titles, rows)


def _edges(parts: Json) -> Iterator[str]:
    edges = {name: of["summary"]["edge_cases"] for name, of in parts.items()}
    if any(edge["total"] for edge in edges.values()):
        yield "---\n\n## Edge Cases (No Results Expected)"
        yield render_rows(
            [
                *("Search Type", "True Negatives", "False Positives"),
                *("TN rate", "Answerable rejected", "AUROC"),
            ],
            [
                [f"**{escape(name)}**"]
                + [f"{edge[kind]}/{edge['total']}" for kind in ("true_negatives", "false_positives")]
                + [percent(edge["tn_rate"]), percent(edge["answerable_rejected"])]
                + [score(edge["auroc"])]
                for name, edge in edges.items()
            ],
        )


def _by_query_type(parts: Json) -> Iterator[str]:
    kinds = dict.fromkeys(kind for of in parts.values() for kind in of["by_query_type"])
    if kinds:
        yield "---\n\n## By Query Type Comparison"
    for kind in kinds:
        having = {name: of["by_query_type"][kind] for name, of in parts.items() if kind in of["by_query_type"]}
        counts = ", ".join(f"{escape(name)} {of['count']}" for name, of in having.items())
        distinct = {of["count"] for of in having.values()}
        yield f"### {escape(kind)}"
        yield f"{distinct.pop()} queries" if len(distinct) == 1 and len(having) == len(parts) else f"Queries: {counts}"
        yield render_rows(
            ["Metric", *(f"**{escape(name)}**" for name in parts), "Highest"], list(_of_type(having, list(parts)))
        )


def _of_type(having: Json, types: Sequence[str]) -> Iterator[list[str]]:
    measured = {name: flat(of) for name, of in having.items()}
    for measure in next(iter(measured.values())):
        values = {name: of.get(measure) for name, of in measured.items()}
        there = {name: value for name, value in values.items() if value is not None}
        best, leaders = winner(there) if there and not measure.startswith("judged@") else ("", [])
        row = [label(measure), *(score(values.get(name)) for name in types)]
        yield [*row, _name_highest({"winner": best, "leaders": leaders}, list(there))]


def _middle(cutoffs: Sequence[int]) -> int:
    """Return the cutoff that stands for all where there is room for one: 5, or the one next to it."""
    return min(cutoffs, key=lambda k: (abs(k - 5), k), default=5)
