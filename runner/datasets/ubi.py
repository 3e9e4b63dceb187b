"""Read click logs in the schema of OpenSearch User Behavior Insights (UBI), as judgments with intervals.

A search shows the documents of `query_response_hit_ids`, best first, or those of its `impression` events. Searches with
the same text are searches for the same query.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from retrievers.runs.run_formats import strip_compression
from runner.datasets import files
from runner.datasets.base import DatasetError, GradeInterval
from runner.datasets.clicks import ClickError, Impressions, estimate_attractiveness, fit_examination
from runner.datasets.files import Place, SourceRecord
from runner.datasets.ratings import HITS, Rating, count_reached, iter_objects, iter_records, normalise, unwrap

THRESHOLDS = (0.1, 0.3, 0.5)
"""The default attractiveness from which a pair has grade 1, 2 and 3."""


@dataclass(frozen=True)
class ClickModel:
    """How a click log is converted to grades.

    Events named in `click_actions` are clicks; those in `impression_actions` say that a document was shown.
    `examination` is the probability that each rank is examined, from rank 1, for example from an experiment with random
    orders; it is estimated if null. Ranks below `max_rank` and pairs shown fewer than `min_impressions` times are left
    out.
    """

    click_actions: tuple[str, ...]
    impression_actions: tuple[str, ...]
    examination: tuple[float, ...] | None
    max_rank: int
    min_impressions: int


@dataclass
class _Search:
    """A search in the log: its text, the rank of each document shown, and the documents clicked."""

    text: str = ""
    ranks: dict[str, int] = field(default_factory=dict)
    events: dict[str, int] = field(default_factory=dict)
    clicked: set[str] = field(default_factory=set)


def read_clicks(
    paths: Sequence[Path], model: ClickModel, thresholds: Sequence[float]
) -> tuple[list[Rating], list[GradeInterval]]:
    """Read the logs in some files; return a rating for each pair, with its uncertainty; raises `DatasetError`."""
    place = str(paths[0]) if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"
    searches = _read_searches(paths, model)
    pairs, log = _count_impressions(searches.values(), model.max_rank)
    if not pairs:
        raise DatasetError(
            f"{place}: no search has both a text (user_query) and the ids of its results (query_response_hit_ids); a "
            "log needs the indexes ubi_queries and ubi_events"
        )
    if not log.clicked.sum():
        raise DatasetError(
            f"{place}: no {' or '.join(model.click_actions)} event refers to a result of its search; name the actions "
            "that count as clicks with 'dataset.click_actions=[NAME]'"
        )
    examination = _examination(log, model, place)
    attractiveness = estimate_attractiveness(log, examination)
    shown = np.bincount(log.pairs, log.shown, len(pairs)).astype(np.int64)
    clicked = np.bincount(log.pairs, log.clicked, len(pairs)).astype(np.int64)
    ratings, intervals = [], []
    columns = (shown, clicked, attractiveness.mean, attractiveness.low, attractiveness.high)
    for (query, document), *values in sorted(zip(pairs, *(column.tolist() for column in columns), strict=True)):
        n, clicks, mean, low, high = values
        if n < model.min_impressions:
            continue
        ratings.append(Rating(SourceRecord(place, 0, {}), query, query, document, mean))
        grades = [count_reached(value, thresholds) for value in (mean, low, high)]
        intervals.append(GradeInterval(query, document, int(n), int(clicks), mean, low, high, *grades))
    if not ratings:
        raise DatasetError(
            f"{place}: no document was shown {model.min_impressions} times for a query; lower dataset.min_impressions"
        )
    return ratings, intervals


def _examination(log: Impressions, model: ClickModel, place: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    ranks = int(log.ranks.max())
    if model.examination is None:
        try:
            return fit_examination(log)
        except ClickError as error:
            guess = ",".join(f"{1 / rank:.2g}" for rank in range(1, ranks + 1))
            raise DatasetError(
                f"{place}: {error}; set the probability that each rank is examined, for example 1/rank: "
                f"'dataset.examination=[{guess}]', or dataset.max_rank to leave out lower ranks"
            ) from None
    if len(model.examination) < ranks:
        raise DatasetError(
            f"dataset.examination: has {len(model.examination)} ranks, but results were shown at rank {ranks}; "
            f"add the missing ranks, or set dataset.max_rank={len(model.examination)}"
        )
    return np.array(model.examination[:ranks])


def _read_searches(paths: Iterable[Path], model: ClickModel) -> Mapping[str, _Search]:
    """Return the searches in the log, by query id. Records of queries and events may be in any order and file."""
    searches: defaultdict[str, _Search] = defaultdict(_Search)
    for record in (record for path in paths for record in _iter_records(path)):
        search = searches[record.identifier("query_id")]
        text = record.fields.get("user_query")
        if isinstance(text, str) and not search.text:
            search.text = normalise(text)
        action = record.fields.get("action_name")
        if action is None:
            for rank, document in enumerate(_list_hits(record), start=1):
                search.ranks.setdefault(document, rank)
        elif action in model.click_actions or action in model.impression_actions:
            shown, ordinal = _event_object(record)
            if shown is not None and action in model.click_actions:
                search.clicked.add(shown)
            elif shown is not None and ordinal is not None:
                search.events.setdefault(shown, ordinal)
    return searches


def iter_shown(paths: Iterable[Path]) -> Iterator[Place]:
    """Yield where a log says that a document was shown; an event or a search without a text has the query ""."""
    for record in (record for path in paths for record in _iter_records(path)):
        documents = [_event_object(record)[0]] if record.fields.get("action_name") is not None else _list_hits(record)
        query = normalise(str(record.fields.get("user_query") or ""))
        yield from ((record.location, (query, document)) for document in documents if document is not None)


def _list_hits(record: SourceRecord) -> list[str]:
    """Return the documents that a search returned."""
    hits = next((record.fields[name] for name in HITS if record.fields.get(name)), None) or []
    if not isinstance(hits, list):
        raise record.fault(f"'query_response_hit_ids' is {str(hits)[:60]!r}; it must be a list of ids")
    return [record.parse_id("query_response_hit_ids", document) for document in hits]


def _iter_records(path: Path) -> Iterator[SourceRecord]:
    if Path(strip_compression(path.name)).suffix.lower() == ".json":
        yield from iter_objects(path, files.json_content(path))
    else:
        yield from map(unwrap, iter_records(path))


def _event_object(record: SourceRecord) -> tuple[str | None, int | None]:
    """Return the id of the document that an event is about, and its rank, if given."""
    attributes = record.mapping("event_attributes")
    about, position = attributes.get("object"), attributes.get("position")
    identifier = about.get("object_id") if isinstance(about, Mapping) else None
    ordinal = position.get("ordinal") if isinstance(position, Mapping) else None
    rank = ordinal.get("index") if isinstance(ordinal, Mapping) else ordinal
    is_rank = type(rank) is int and rank > 0
    return None if identifier in (None, "") else record.parse_id("object_id", identifier), rank if is_rank else None


def _count_impressions(searches: Iterable[_Search], max_rank: int) -> tuple[list[tuple[str, str]], Impressions]:
    """Return the pairs of query and document that were shown, and how often at each rank."""
    pairs: dict[tuple[str, str], int] = {}
    cells: defaultdict[tuple[int, int], list[int]] = defaultdict(lambda: [0, 0])
    for search in searches:
        for document, rank in (search.ranks or search.events).items():
            if search.text and rank <= max_rank:
                cell = cells[pairs.setdefault((search.text, document), len(pairs)), rank]
                cell[0] += 1
                cell[1] += document in search.clicked
    rows = np.array([(*place, *counts) for place, counts in cells.items()], dtype=np.int64).reshape(-1, 4)
    return [*pairs], Impressions(*rows.T)
