"""Read rankings in JSON: a mapping of queries to hits, a list of records, or a record per line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from retrievers.base import RetrieverError
from retrievers.runs.run_columns import (
    DOCUMENT,
    LISTS,
    QUERY,
    RANK,
    SCORE,
    SCORES,
    Columns,
    collect_rows,
    find_name,
    score_ranks,
)
from retrievers.strict_values import BYTE_ORDER_MARK, parse_id, parse_json, parse_whole, show_value

_LISTED = frozenset((*LISTS, *DOCUMENT))
_DOCUMENT_OF_LIST = (*DOCUMENT, "id", "_id")


class _Hits:
    """Collects hits whose values are scores, or ranks where a query has no scores."""

    def __init__(self) -> None:
        self._kinds: dict[str, str] = {}

    def collect(self, rows: Iterable[tuple[str, str, float]]) -> Columns:
        """Return rows that this object has parsed, with a score for each rank."""
        columns = collect_rows(rows)
        ranked = np.array([self._kinds[query] != "score" for query in columns.query_ids], bool)[columns.queries]
        scores = columns.scores.copy()
        scores[ranked] = score_ranks(columns.scores[ranked])
        return Columns(columns.queries, scores, columns.query_ids, columns.documents)

    def iter_record(self, row: object, place: str) -> Iterator[tuple[str, str, float]]:
        """Yield the hits of a record: one, or those of a query in a list."""
        if not isinstance(row, dict):
            raise ValueError(f"expected a JSON object, found {show_value(row)}")
        query = _parse_id(row, QUERY, "query", place)
        lists = next((name for name, value in row.items() if type(value) in (list, dict) and name in _LISTED), None)
        if lists is None:
            yield query, *self._parse_object(query, row, None, place)
            return
        name = next((name for name in (*SCORES, *SCORE) if row.get(name) is not None), None)
        hits, scores = row[lists], None if name is None else row[name]
        if scores is not None and not isinstance(scores, list):
            raise ValueError(f"{name!r} is {show_value(scores)}, but the documents are a list; give a list of scores")
        if scores is not None and len(scores) != len(hits):
            raise ValueError(f"has {len(scores):,} scores, but {len(hits):,} documents")
        yield from self.iter_query(query, hits if scores is None else list(zip(hits, scores, strict=True)), place)

    def iter_query(self, query: str, hits: object, place: str) -> Iterator[tuple[str, str, float]]:
        """Yield the hits of a query: a mapping to scores, or a list, best first, of ids, pairs or objects."""
        if not isinstance(hits, (list, dict)):
            raise ValueError(f"the hits of query {query!r} should be a mapping or a list")
        number = 0
        try:
            for number, hit in enumerate(hits.items() if isinstance(hits, dict) else hits, start=1):
                if isinstance(hit, tuple) or (isinstance(hit, list) and len(hit) == 2):
                    self._check_kind(query, "score")
                    yield query, parse_id(hit[0]), _parse_score(hit[1])
                elif isinstance(hit, dict):
                    yield query, *self._parse_object(query, hit, number, place)
                elif isinstance(hit, list):
                    raise ValueError(f"expected an id, a pair or an object, found {show_value(hit)}")
                else:
                    self._check_kind(query, "place")
                    yield query, parse_id(hit), float(number)
        except RetrieverError:
            raise
        except ValueError as error:
            raise ValueError(f"query {query!r}, hit {number}: {error}") from None

    def _parse_object(self, query: str, hit: Mapping[str, object], number: int | None, place: str) -> tuple[str, float]:
        """Return the document and the value of an object; without a score and a rank, its place in a list."""
        document = _parse_id(hit, DOCUMENT if number is None else _DOCUMENT_OF_LIST, "document", place)
        for name in SCORE:
            if hit.get(name) is not None:
                self._check_kind(query, "score")
                return document, _parse_score(hit[name])
        for name in RANK:
            if hit.get(name) is not None:
                self._check_kind(query, "rank")
                return document, _parse_rank(hit[name])
        if number is None:
            raise ValueError(f"has neither a score nor a rank; the fields are {', '.join(hit)}")
        self._check_kind(query, "place")
        return document, float(number)

    def _check_kind(self, query: str, kind: str) -> None:
        other = self._kinds.setdefault(query, kind)
        if other != kind:
            raise ValueError(f"has a {kind}, but an earlier hit of query {query!r} a {other}; give all hits scores")


def read_json_run(content: memoryview, path: Path, is_lines: bool) -> Columns:
    """Read the hits of a JSON file, or of a file of JSON lines; raises `RetrieverError`, which names the place."""
    text, hits = bytes(content).removeprefix(BYTE_ORDER_MARK), _Hits()
    if is_lines:
        lines = text.split(b"\n" if b"\n" in text else b"\r")
        return hits.collect(_iter_lines(hits, lines, path))
    try:
        value = parse_json(text)
    except ValueError as error:
        raise RetrieverError(f"{path}: {error}") from None
    if isinstance(value, Mapping) and isinstance(value.get("run"), Mapping):  # ranxhub's file of a run with metadata
        value = value["run"]
    if isinstance(value, Mapping):
        return hits.collect(_iter_queries(hits, value, path))
    if isinstance(value, list):
        return hits.collect(_iter_records(hits, value, path))
    raise RetrieverError(f"{path}: expected a mapping of queries to hits, or a list of hits")


def _iter_lines(hits: _Hits, lines: Sequence[bytes], path: Path) -> Iterator[tuple[str, str, float]]:
    for number, line in enumerate(lines, start=1):
        try:
            if line.strip():
                yield from hits.iter_record(parse_json(line), f"{path}:{number}")
        except RetrieverError:
            raise
        except ValueError as error:
            raise RetrieverError(f"{path}:{number}: {error}") from None


def _iter_records(hits: _Hits, rows: Sequence[object], path: Path) -> Iterator[tuple[str, str, float]]:
    for number, row in enumerate(rows, start=1):
        place = f"{path}, record {number}"
        try:
            yield from hits.iter_record(row, place)
        except RetrieverError:
            raise
        except ValueError as error:
            raise RetrieverError(f"{place}: {error}") from None


def _iter_queries(hits: _Hits, queries: Mapping[str, object], path: Path) -> Iterator[tuple[str, str, float]]:
    try:
        for query, of in queries.items():
            yield from hits.iter_query(parse_id(query), of, str(path))
    except RetrieverError:
        raise
    except ValueError as error:
        raise RetrieverError(f"{path}: {error}") from None


def _parse_id(row: Mapping[str, object], names: Sequence[str], what: str, place: str) -> str:
    try:
        return parse_id(
            row[next((name for name in names if name in row), None) or find_name(names, [*row], what, place)]
        )
    except RetrieverError:
        raise
    except ValueError as error:
        raise ValueError(f"the {what} id {error}") from None


def _parse_score(value: object) -> float:
    if type(value) is float or type(value) is int:
        return float(value)
    raise ValueError(f"the score {show_value(value)} is not a number")


def _parse_rank(value: object) -> float:
    if (rank := parse_whole(value)) < 0:
        raise ValueError(f"the rank {rank} is negative; ranks count from 1, or from 0")
    return float(rank)
