"""What a golden report says of each query, as Markdown: what was expected, what was found, how surely, how it went.

Every figure is read from the JSON document. Whatever comes from data is escaped.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from runner.features.golden.report.measures import SHORT
from runner.pages.markdown import escape, render_rows
from runner.pages.numbers import gist, number, score

Json = Mapping[str, Any]

TOP = 3
"""How many of the items that a query expects, or found, are shown."""

OUTLIER = 3
"""How many times the mean a query takes that is called an outlier."""

STATUSES = {
    "pass": "\N{CHECK MARK} PASS",
    "partial": "~ PARTIAL",
    "fail": "\N{BALLOT X} FAIL",
    "true_negative": "\N{CHECK MARK} TRUE NEGATIVE",
    "false_positive": "\N{BALLOT X} FALSE POSITIVE",
    "unjudged": "? UNJUDGED",
    "error": "\N{WARNING SIGN} ERROR",
}

_UUID = re.compile(r"([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)


def query_markdown(query: Json, average_ms: float | None, cutoff: int) -> str:
    """Return the result of one query, with its time and the mean time; `cutoff` is that of the measures shown."""
    relevance, retrieved = query["expected_relevance"], query["retrieved_items"]
    lines = [
        f'### Query: {escape(query["query_id"])} - "{escape(query["query_text"])}"',
        f"- **Type**: {escape(query['query_type']) or '(none)'}",
        f"- **Expected**: {_some([f'{_id(item)} ({word})' for item, word in relevance.items()]) or '(none)'}",
    ]
    if retrieved:
        lines += ["- **Retrieved Top-3 with Scores**:", *_list_retrieved(query)]
    else:
        lines.append("- **Retrieved**: 0 results")
    if query["score_confidence"]:
        lines.append(f"- **Score Confidence**: {query['score_confidence'].capitalize()}")
    lower = [item for item in query["relevance_alignment"] if not (item["actual_rank"] or TOP + 1) <= TOP]
    if lower and query["status"] != "error":
        lines += ["- **Expected Items Not in Top-3**:", *map(_format_alignment, lower)]
    if query["metrics"]:
        values = query["metrics"]
        rank = query["first_relevant_rank"]
        shown = [name for name in ("precision", "recall", "ndcg") if name in values]
        figures = [f"{SHORT[name]}@{cutoff}: {score(values[name].get(f'@{cutoff}'), 2)}" for name in shown]
        figures += [f"RR: {score(values['reciprocal_rank'], 2)}"] if "reciprocal_rank" in values else []
        lines += [f"- **First Relevant at Rank**: {rank or 'not retrieved'}", f"- **Metrics**: {' | '.join(figures)}"]
    lines.append(f"- **Retrieval Time**: {_time(query['retrieval_time_ms'], average_ms)}")
    if query["status"] == "false_positive":
        lines += _false_positive(query)
    lines.append(f"- **Status**: {STATUSES[query['status']]}")
    if "error" in query:
        lines.append(f"- **Error**: {escape(query['error'])}")
    return "\n".join(lines)


def query_by_query(parts: Json) -> Iterator[str]:
    """Yield the table of all queries with their results by search type."""
    yield "---\n\n## Query by Query"
    yield "The outcome of each query and the rank of its first relevant item."
    rows = [
        [escape(query["query_id"]), escape(gist(query["query_text"], 60)), escape(query["query_type"])]
        + [_outcome(part["query_results"][i]) for part in parts.values()]
        for i, query in enumerate(next(iter(parts.values()))["query_results"])
    ]
    yield render_rows(["Query", "Text", "Type", *(f"**{escape(name)}**" for name in parts)], rows)


def _outcome(query: Json) -> str:
    rank = query["first_relevant_rank"]
    return STATUSES[query["status"]].capitalize() if rank is None else f"{STATUSES[query['status']]} ({rank})"


def _list_retrieved(query: Json) -> Iterator[str]:
    gaps, relevance = query["score_gaps"], query["expected_relevance"]
    for place, item in enumerate(query["retrieved_metadata"][:TOP]):
        parts = [f"  - {place + 1}. {_id(item['item_id'])} (score: {number(item['score'])})"]
        if item["item_id"] in relevance:
            parts.append(f"[Expected: {escape(str(relevance[item['item_id']]))}] \N{CHECK MARK}")
        if place < len(gaps):
            parts.append(f"[gap: {number(gaps[place])}]")
        about = [str(value) for name, value in item.items() if name not in ("item_id", "score")]
        if about:
            *kinds, headline = about
            parts.append("- " + escape(": ".join([*kinds, f'"{gist(headline, 60)}"'])))
        yield " ".join(parts)
    if len(query["retrieved_items"]) > TOP:
        yield f"  - ... (+{len(query['retrieved_items']) - TOP} more)"


def _format_alignment(item: Json) -> str:
    rank = item["actual_rank"]
    where = "Not retrieved, score: N/A" if rank is None else f"Rank {rank}, score: {number(item['actual_score'])}"
    return f"  - {_id(item['item_id'])} ({escape(str(item['expected_relevance']))}) \N{RIGHTWARDS ARROW} {where}"


def _false_positive(query: Json) -> Iterator[str]:
    yield "- **False Positive Analysis**:"
    yield f"  - Top scores: {', '.join(map(number, query['retrieved_scores'][:TOP]))}"
    kinds = Counter(str(item["category"]) for item in query["retrieved_metadata"] if "category" in item)
    if kinds:
        yield "  - Categories: " + ", ".join(f"{escape(kind)} ({kinds[kind]})" for kind in sorted(kinds))


def _time(ms: float | None, average: float | None) -> str:
    if ms is None:
        return "not timed"
    if average and ms > OUTLIER * average:
        return f"{ms:.1f}ms \N{WARNING SIGN} (outlier - {ms / average:.1f}x average)"
    return f"{ms:.1f}ms"


def _id(item: str) -> str:
    """Return an id, a long random one by its first part."""
    match = _UUID.fullmatch(item)
    return f"{match[1]}..." if match else escape(item)


def _some(texts: Sequence[str]) -> str:
    more = f" (+{len(texts) - TOP} more)" if len(texts) > TOP else ""
    return ", ".join(texts[:TOP]) + more
