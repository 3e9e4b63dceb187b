"""Write the files of mining: the dataset, its documents, the doubtful and the rejected queries, and a summary."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from runner.datasets.base import EXPECTED_ANSWER
from runner.datasets.saving import save
from runner.datasets.spans import SPANS, format_span
from runner.features.mine.base import Query
from runner.features.mine.impacts import describe_impact, iter_impact_rows
from runner.features.mine.summary import MiningSummary, summarize
from runner.features.mine.targets import Targets

SOURCE = "benchmark_mining"

DOUBTFUL, REJECTED, IMPACT = ".doubtful.jsonl", ".rejected.jsonl", ".impact.jsonl"
"""The suffixes of the files of doubtful queries, of rejected queries, and of the impact of documents."""


def write(path: Path, queries: Sequence[Query], kept: Sequence[Query], targets: Targets) -> MiningSummary:
    """Write all files next to each other, and return the summary."""
    corpus = targets.corpus
    columns = zip(corpus.ids, corpus.titles, corpus.texts, corpus.metadata, strict=True)
    documents = ({"_id": i, "title": title, "text": text, "metadata": about} for i, title, text, about in columns)

    def rows(chosen: Iterable[Query]) -> Iterable[Mapping[str, Any]]:
        return (format_row(query, targets) for query in chosen)

    files = {
        ".corpus.jsonl": documents,
        DOUBTFUL: rows(query for query in queries if query.verdict == "doubtful"),
        REJECTED: rows(query for query in queries if query.verdict == "rejected"),
        SPANS: (span for query in kept for span in _iter_spans(query, targets)),
        "": rows(kept),
    }
    if any(query.impact for query in queries):
        files = {IMPACT: iter_impact_rows(queries, targets), **files}
    summary = summarize(queries, kept, targets)
    save(path, files, summary.to_json())
    return summary


def format_row(query: Query, targets: Targets) -> dict[str, Any]:
    """Return a query as a row of the dataset."""
    case, all_ = query.case, targets.all
    metadata = {
        "difficulty": query.difficulty,
        "required_concepts": list(query.concepts),
        "suite": case.suite,
        "verdict": query.verdict,
        "reasons": [f"{objection.check}: {objection.evidence}" for objection in query.objections],
        "gold_rank": query.rank,
        "resolution": {resolution.name: resolution.way for resolution in query.resolutions},
        "golds_without_docstring": [all_[gold].id for gold in query.golds if not all_[gold].docstring],
        "near_duplicates_of_gold": [all_[i].id for i in query.near_golds],
        **({EXPECTED_ANSWER: "; ".join(dict.fromkeys(case.answers))} if case.answers else {}),
        **({"forward_check": dict(query.model_replies)} if query.model_replies else {}),
        **({"impact": describe_impact(query)} if query.impact else {}),
        **case.metadata,
    }
    negatives = [(i, True) for i in query.hard_negatives] + [(i, False) for i in query.random_negatives]
    return {
        "id": case.id,
        "source": SOURCE,
        "query": case.query,
        "positive_ctxs": [
            {"fqn": all_[gold].id, "text": all_[gold].text, "rank_relevance": rank}
            for rank, gold in enumerate(query.golds, start=1)
        ],
        "negative_ctxs": [{"fqn": all_[i].id, "text": all_[i].text, "is_hard_negative": hard} for i, hard in negatives],
        "metadata": metadata,
    }


def _iter_spans(query: Query, targets: Targets) -> Iterator[dict[str, Any]]:
    """Yield the gold documents of a query as spans, with the grades that the dataset gives them."""
    for rank, gold in enumerate(query.golds, start=1):
        target = targets.all[gold]
        grade = 2 if rank == 1 else 1
        yield format_span(query.case.id, target.id, grade, target.text, 0, len(target.text))
