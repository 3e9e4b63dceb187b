"""Convert results of other systems in needle searches to the content of a golden report.

Two forms are read. `per_question` (JSON, or a CSV file with the same columns) has, for each question, its
`target_doc_id` and the rank of that document in every system as `SYSTEM_rank`, empty if the system missed it. The
documents at other ranks are unknown and unjudged. `results` has, for each question, the chunks that one system
retrieved (`retrieved_chunks`, each with a `doc_id`), with one `needle_doc_id` for all. A document has the rank of its
first chunk.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from retrievers.strict_values import parse_id, parse_number, parse_whole

RANK, LATENCY = "_rank", "_latency_ms"
"""The suffixes of a system's field names."""

CUTOFFS = (1, 3, 5, 10, 20, 50, 100)

_IDS = ("id", "question_id")
_SHOWN = 8  # the largest number of field names in a message
_TYPES = ("type", "category", "dimension", "variant")


def is_needle_results(content: object) -> bool:
    """Tell whether the content of a JSON file has one of these forms."""
    if not isinstance(content, Mapping):
        return False
    return any(
        isinstance(rows := content.get(name), list) and rows and isinstance(rows[0], Mapping) and field in rows[0]
        for name, field in (("per_question", "target_doc_id"), ("results", "retrieved_chunks"))
    )


def describe_unknown(content: object) -> str:
    """Return what the content of a JSON file has instead of one of the known forms of results, and these forms."""
    rows = content if isinstance(content, list) else None
    if isinstance(content, Mapping):
        name, rows = next(((name, of) for name, of in content.items() if isinstance(of, list) and of), ("", None))
        has = f"an object with {_list_fields(content)}" + (f", and {_count_rows(rows)} under {name!r}" if rows else "")
    else:
        has = _count_rows(rows) if rows else f"{type(content).__name__} {content!r:.40}"
    return (
        f"unknown form of results: it has {has}. Known forms are a result record (result.json with 'version'), a "
        "golden report ('query_results' or 'results_by_search_type'), 'per_question' with 'target_doc_id' and "
        "'SYSTEM_rank', and 'results' with 'retrieved_chunks' (docs/compare.md); convert the file to one of these, "
        "or to a TREC run for retriever=run"
    )


def _count_rows(rows: Sequence[object]) -> str:
    fields = f" with {_list_fields(rows[0])}" if isinstance(rows[0], Mapping) else ""
    return f"{len(rows):,} rows{fields}"


def _list_fields(content: Mapping[str, object]) -> str:
    names = list(map(str, content))
    return ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "") if names else "no fields"


def rows_of_csv(path: Path) -> Mapping[str, Any]:
    """Return the rows of a CSV file as in JSON: empty cells are null, ranks and times are numbers.

    Raises `ValueError`, which names the line.
    """
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = csv.DictReader(file)
        return {"per_question": [_parse_row(row, number) for number, row in enumerate(rows, start=2)]}


def report_of(content: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return results as the content of a report in which each system is a search type.

    Raises `ValueError`, which names the question.
    """
    if isinstance(content.get("per_question"), list):
        rows = content["per_question"]
        k = (content.get("metadata") or {}).get("k")
        systems = list(dict.fromkeys(key.removesuffix(RANK) for row in rows for key in row if key.endswith(RANK)))
        if not systems:
            raise ValueError(f"per_question: no field ends with {RANK}, so no system has ranks")
        ranks = [row.get(f"{system}{RANK}") for row in rows for system in systems]
        depth = max([k or 0, *(rank for rank in ranks if isinstance(rank, int))])
        parts = {
            system: [_by_rank(row, number, system, depth) for number, row in _enumerate(rows)] for system in systems
        }
    else:
        rows, needle = content["results"], content.get("needle_doc_id")
        depth = max(len(row.get("retrieved_chunks") or ()) for row in rows)
        parts = {name: [_by_chunks(row, number, needle) for number, row in _enumerate(rows)]}
    cutoffs = [cutoff for cutoff in CUTOFFS if cutoff < depth]
    return {
        "run_id": name,
        "timestamp": str(content.get("benchmark_run_at") or (content.get("metadata") or {}).get("timestamp") or ""),
        "config": {"top_k_values": [*cutoffs, max(depth, 1)], "depth": max(depth, 1), "listed_items": max(depth, 1)},
        "results_by_search_type": {system: {"query_results": queries} for system, queries in parts.items()},
    }


def _enumerate(rows: Sequence[Mapping[str, Any]]) -> enumerate[Mapping[str, Any]]:
    return enumerate(rows, start=1)


def _by_rank(row: Mapping[str, Any], number: int, system: str, depth: int) -> Mapping[str, Any]:
    """Return a question with the target at its rank, between unknown items."""
    if not row.get("target_doc_id"):
        raise ValueError(f"question {number}: 'target_doc_id' is missing")
    rank, target = row.get(f"{system}{RANK}"), _parse_id(row["target_doc_id"], number)
    if rank is not None and (not isinstance(rank, int) or isinstance(rank, bool) or rank < 1):
        raise ValueError(
            f"question {number}: '{system}{RANK}' is {rank!r}; it must be null or a whole number of at least 1"
        )
    unnamed = [f"(unnamed at rank {place})" for place in range(1, depth + 1)]
    listed = unnamed if rank is None else [*unnamed[: rank - 1], target, *unnamed[rank:]]
    return _query(row, number, [target], listed, row.get(f"{system}{LATENCY}"))


def _by_chunks(row: Mapping[str, Any], number: int, needle: object) -> Mapping[str, Any]:
    """Return a question with the documents of the retrieved chunks."""
    target = row.get("target_doc_id") or row.get("doc_id") or needle
    if not target:
        raise ValueError(f"question {number}: neither needle_doc_id nor target_doc_id names its gold document")
    chunks = row.get("retrieved_chunks") or []
    if not isinstance(chunks, list) or not all(isinstance(chunk, Mapping) and chunk.get("doc_id") for chunk in chunks):
        raise ValueError(f"question {number}: 'retrieved_chunks' must be a list of chunks, each with a 'doc_id'")
    documents = [_parse_id(chunk["doc_id"], number) for chunk in chunks]
    return _query(row, number, [_parse_id(target, number)], documents, row.get("latency_ms"))


def _query(
    row: Mapping[str, Any], number: int, expected: list[str], retrieved: list[str], latency: float | None
) -> Mapping[str, Any]:
    return {
        "query_id": next((_parse_id(row[name], number) for name in _IDS if row.get(name)), f"q{number:04d}"),
        "query_text": str(row.get("question") or row.get("query") or ""),
        "query_type": next((str(row[name]) for name in _TYPES if row.get(name)), ""),
        "expected_items": expected,
        "retrieved_items": list(dict.fromkeys(retrieved)),
        "retrieval_time_ms": latency,
    }


def _parse_id(value: object, number: int) -> str:
    try:
        return parse_id(value)
    except ValueError as error:
        raise ValueError(f"question {number}: {error}") from None


def _parse_row(row: Mapping[str, str], number: int) -> Mapping[str, Any]:
    values: dict[str, Any] = {}
    for name, cell in row.items():
        try:
            is_rank = (name or "").endswith(RANK)
            is_number = is_rank or (name or "").endswith(LATENCY)
            values[name] = (
                None
                if cell in ("", None)
                else parse_whole(cell)
                if is_rank
                else parse_number(cell)
                if is_number
                else cell
            )
        except ValueError:
            raise ValueError(f"line {number}: {name!r} is {cell!r}; it must be a number") from None
    return values
