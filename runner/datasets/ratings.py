"""Read judgments in the formats of other programs: lists of ratings, Quepid, Elasticsearch and OpenSearch.

These formats name a query by its text. Click logs are read by `runner.datasets.ubi`; nothing here fits a model.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from retrievers.runs.run_formats import strip_compression
from retrievers.strict_values import parse_number
from runner.datasets import files
from runner.datasets.base import DatasetError, Qrel, Queries
from runner.datasets.columns import find_first, normalize_name
from runner.datasets.delimited import iter_csv
from runner.datasets.files import SourceRecord
from runner.datasets.qrels import DOCUMENT, GRADE, is_number
from runner.datasets.rows import open_table

logger = logging.getLogger("runner.datasets")

QrelsFormat = Literal["qrels", "table", "ratings", "quepid", "rank_eval", "opensearch", "ubi"]

_QUERY, _DOCUMENT = ("query", "query_text"), ("docid", *DOCUMENT)
_RATING = ("rating", *GRADE)
"""Columns of a list of ratings, as `normalize_name` writes them; without a rating, each column may be of a judge."""
_NOT_RATERS = re.compile(
    r"(.*_)?(id|at|on|by|count|date|time|timestamp|version|year|url)|qid|docid|query|query_text|position|pos|rank|"
    r"iteration|fold|split|weight|confidence|title|comment|notes?|clicks|views|impressions|votes|price|length"
)
"""Columns that are not those of judges."""
_JUDGE = re.compile(r"(judge|rater|annotator|assessor|expert|reviewer|evaluator|user|unknown|anonymous)s?_?\w*")
"""Names of columns of judges; so are names of people, which begin with a capital letter or contain @."""
_SCALE = (-2, 10)
"""The grades of judges whose columns only their values show: whole numbers on a common scale."""
HITS = ("query_response_hit_ids", "query_response_object_ids", "query_response_objects_ids")
"""Fields of a click log with the ids of the results that a search showed; earlier versions of UBI have the latter."""
_HIGHEST_RATING = 100
"""The highest rating of a judge; a higher number is a year or a count."""


class Rating(NamedTuple):
    """A rating of a document for a query; without a document, only the query. `record` gives its location."""

    record: SourceRecord
    query: str
    text: str
    document: str | None = None
    value: object = None


def recognise_format(path: Path) -> QrelsFormat | None:
    """Return the format of a file of judgments, by its header, its keys or the fields of its first line.

    None for qrels and for tables with columns that settings name.
    """
    ending = _ending(path)
    if ending in (".csv", ".tsv"):
        tabs = (line.split("\t") for _, line in files.text_lines(path))
        header = next(tabs, []) if ending == ".tsv" else open_table(path, "qrels").columns
        return "ratings" if find_first(_QUERY, header) and find_first(_DOCUMENT, header) else None
    if ending in (".jsonl", ".ndjson"):
        first = next(iter_records(path), None)
        return _recognise_keys(unwrap(first).fields) if first else None
    if ending == ".json":
        content = files.json_content(path)
        if isinstance(content, Mapping) and (format := _recognise_keys(content)):
            return format
        first = next(iter_objects(path, content), None)
        if first and (format := _recognise_keys(first.fields)):
            return format
        raise DatasetError(
            f"{path}: unknown format of judgments; set dataset.qrels_format=quepid, rank_eval, opensearch or ubi"
        )
    return None


def read_ratings(path: Path, format: QrelsFormat, column: str | None = "grade") -> list[Rating]:
    """Read the ratings of a file in one of the formats that name queries by text.

    In a table, `column` has the ratings if there is such a column; None: every row is relevant.
    """
    if format == "ratings":
        return list(_iter_table(path, column))
    content = files.json_content(path)
    if format == "rank_eval":
        return list(_iter_rank_eval(path, _list(path, content, "requests")))
    if format == "opensearch":
        return list(_iter_opensearch(path, content))
    return list(_iter_quepid(path, content))


def match_queries(ratings: Sequence[Rating], queries: Queries | None) -> tuple[Queries, list[Sequence[str]]]:
    """Return the queries, and the ids of the queries that each rating is about.

    Without `queries`, they are taken from the ratings. Otherwise, a rating is about the query with its id, if the
    format has ids, or about all queries with its text, ignoring differences in white space.
    """
    if queries is None:
        texts: dict[str, str] = {}
        for rating in ratings:
            if texts.setdefault(rating.query, rating.text) != rating.text:
                raise rating.record.fault(f"the query {rating.query!r} has two texts")
        return Queries([*texts], [*texts.values()], [""] * len(texts)), [[rating.query] for rating in ratings]
    ids, by_text = set(queries.ids), dict[str, list[str]]()
    for identifier, text in zip(queries.ids, queries.texts, strict=True):
        by_text.setdefault(normalise(text), []).append(identifier)
    return queries, [
        [rating.query]
        if rating.query != rating.text and rating.query in ids
        else by_text.get(rating.text, [rating.query])
        for rating in ratings
    ]


def grade_ratings(
    ratings: Sequence[Rating], matches: Sequence[Sequence[str]], thresholds: Sequence[float] | None
) -> list[Qrel]:
    """Return ratings as judgments.

    A grade is the number of `thresholds` that a rating reaches; without thresholds, ratings must be whole numbers.
    """
    return [
        (query, rating.document, _grade(rating, thresholds))
        for rating, queries in zip(ratings, matches, strict=True)
        if rating.document is not None
        for query in queries
    ]


def grade(value: object, thresholds: Sequence[float] | None) -> int:
    """Return the number of thresholds that a rating reaches, or a whole number without them; raises `ValueError`."""
    if thresholds is not None:
        return count_reached(_number(value), thresholds)
    try:
        return files.grade_of(value)
    except ValueError as error:
        more = "to convert such ratings, set for example 'dataset.grade_thresholds=[0.25,0.5,0.75]'"
        raise ValueError(f"{error}; {more}") from None


def count_reached(value: float, thresholds: Iterable[float]) -> int:
    """Return the number of thresholds that a value reaches."""
    return sum(value >= threshold for threshold in thresholds)


def normalise(text: str) -> str:
    """Return the text of a query stripped and with single spaces."""
    return " ".join(text.split())


def unwrap(record: SourceRecord) -> SourceRecord:
    """Return the document of a search hit (`_source`), as in dumps of an index, or the record itself."""
    source = record.fields.get("_source")
    return record._replace(fields=source) if isinstance(source, Mapping) else record


def iter_records(path: Path) -> Iterator[SourceRecord]:
    """Yield the objects of a JSONL file, or of the body of a `_bulk` request without the lines of its actions."""
    records = files.json_lines(path)
    for record in records:
        action = next(iter(record.fields)) if len(record.fields) == 1 else ""
        if action in ("update", "delete") and isinstance(record.fields[action], Mapping):
            raise record.fault(
                f"the action {action!r} of a _bulk request changes another record; keep only index and create"
            )
        if action not in ("index", "create") or not isinstance(record.fields[action], Mapping):
            yield record
        elif (indexed := next(records, None)) is not None:
            yield indexed
        else:
            raise record.fault("the record of this action is missing; the file may be truncated")


def iter_objects(path: Path, content: object) -> Iterator[SourceRecord]:
    """Yield the objects of a JSON file: those of a list, of the hits of a search response, or the only one."""
    if isinstance(content, Mapping) and isinstance(content.get("hits"), Mapping):
        content = content["hits"].get("hits")
    values = content if isinstance(content, list) else [content]
    yield from map(unwrap, files.json_objects(path, "object", values))


def _recognise_keys(keys: Mapping[str, Any]) -> QrelsFormat | None:
    if "requests" in keys:
        return "rank_eval"
    if "judgmentRatings" in keys:
        return "opensearch"
    if "query_doc_pairs" in keys or isinstance(keys.get("ratings"), list):
        return "quepid"
    queries = keys.get("queries")
    if isinstance(queries, list) and all(isinstance(query, Mapping) and "ratings" in query for query in queries):
        return "quepid"
    return "ubi" if {"action_name", *HITS} & keys.keys() else None


def _iter_table(path: Path, column: str | None) -> Iterator[Rating]:
    """Yield the ratings of a table; several columns of ratings are from several judges."""
    rows = list(iter_csv(path))
    for record in rows:
        query, document = find_first(_QUERY, record.fields), find_first(_DOCUMENT, record.fields)
        if query is None or document is None:
            raise record.fault(
                f"expected the columns query, docid and rating; the columns are {', '.join(record.fields)}"
            )
        if record is rows[0]:
            raters = [] if column is None else _find_raters(rows, column, query)
        values = [record.fields[rater] for rater in raters] if raters else [1]
        yield _rating(record, normalise(record.text(query)), record.fields[document], values)


def _find_raters(rows: Sequence[SourceRecord], column: str, query: str) -> Sequence[str]:
    """Return the columns of ratings: the one that a setting or its name shows, or those of judges, which are logged.

    Raises `DatasetError` for a column that may be anything else.
    """
    names = [*rows[0].fields]
    if rating := column if column in names else find_first(_RATING, names):
        return [rating]
    if column != "grade":
        raise rows[0].fault(f"the column {column!r} is missing; the columns are {', '.join(names)}")
    others = [name for name in names if not _NOT_RATERS.fullmatch(normalize_name(name))]
    people = [name for name in others if _JUDGE.fullmatch(normalize_name(name)) or "@" in name]
    if query.islower():  # or else a capital letter does not show a name
        people += [name for name in others if name[:1].isalpha() and not name[:1].islower() and name not in people]
    numeric = [name for name in others if name in people or any(is_number(row.fields[name]) for row in rows)]
    for row in rows:
        for name in numeric:
            lowest, highest = (0, _HIGHEST_RATING) if name in people else _SCALE
            text = str(row.fields[name]).strip()
            on_scale = not is_number(text) or (lowest <= float(text) <= highest)
            is_whole = not text or name in people or re.fullmatch(r"-?[0-9]+(\.0*)?", text)
            if not (on_scale and is_whole) or (len(numeric) == 1 and name not in people):
                raise row.fault(
                    f"the column {name!r} ({text}) is not clearly that of a judge; set dataset.qrel_grade to the "
                    f"column of ratings, for example dataset.qrel_grade={name}, or remove this column"
                )
    if not numeric:
        raise rows[0].fault(
            f"the column 'rating' is missing; the columns are {', '.join(names)}; if every row is relevant, set "
            "dataset.qrel_grade=null"
        )
    logger.warning(
        "%s the grade is the mean of the columns %s, one for each judge; if only one of them has grades, set "
        "dataset.qrel_grade to it",
        rows[0].place, ", ".join(map(repr, numeric)),
    )  # fmt: skip
    return numeric


def _iter_quepid(path: Path, content: object) -> Iterator[Rating]:
    """Yield the ratings of a case (its export, or the body of an import) or the judgements of a book."""
    keys = content if isinstance(content, Mapping) else {}
    if "query_doc_pairs" in keys:
        for record in files.json_objects(path, "query_doc_pairs", _list(path, content, "query_doc_pairs")):
            judges = record.objects("judgements")
            values = [judge.fields.get("rating") for judge in judges if not judge.fields.get("unrateable")]
            yield _rating(record, normalise(record.text("query_text")), record.value("doc_id"), values)
    elif "queries" in keys:
        for record in files.json_objects(path, "query", _list(path, content, "queries")):
            text, ratings = normalise(record.text("query", "query_text")), record.value("ratings")
            if not isinstance(ratings, Mapping):
                raise record.fault("'ratings' is not a JSON object of documents and ratings")
            yield Rating(record, text, text)
            for document, value in ratings.items():
                yield _rating(record, text, document, [value])
    else:
        for record in files.json_objects(path, "rating", _list(path, content, "ratings")):
            yield _rating(
                record, normalise(record.text("query_text")), record.value("doc_id"), [record.value("rating")]
            )


def _iter_rank_eval(path: Path, requests: Sequence[object]) -> Iterator[Rating]:
    for record in files.json_objects(path, "request", requests):
        identifier = record.identifier("id")
        texts = sorted(set(_find_texts(record.fields.get("params") or record.fields.get("request") or {})))
        text = normalise(texts[0]) if len(texts) == 1 else identifier
        yield Rating(record, identifier, text)
        for document in _list(f"{path}, request {record.number}", record.fields, "ratings"):
            if not isinstance(document, Mapping) or not {"_id", "rating"} <= document.keys():
                raise record.fault(f"a rating needs _id and rating; found {str(document)[:60]}")
            yield Rating(record, identifier, text, record.parse_id("_id", document["_id"]), document["rating"])


def _iter_opensearch(path: Path, content: object) -> Iterator[Rating]:
    for judgments in iter_objects(path, content):
        rows = _list(judgments.location, judgments.fields, "judgmentRatings")
        for record in files.json_objects(path, "judgmentRatings", rows):
            text = normalise(record.text("query"))
            yield Rating(record, text, text)
            for row in _list(record.location, record.fields, "ratings"):
                document = record._replace(fields=row if isinstance(row, Mapping) else {})
                yield _rating(record, text, document.value("docId"), [document.value("rating")])


def _rating(record: SourceRecord, text: str, document: object, values: Sequence[object]) -> Rating:
    """Return the rating of a document by one or several judges: the mean, rounded to whole numbers if these are."""
    if not text:
        raise record.fault("the text of the query is empty")
    given = [value for value in values if value not in (None, "")]
    if not given:
        return Rating(record, text, text)
    if len(given) == 1:
        return Rating(record, text, text, record.parse_id("document id", document), given[0])
    try:
        numbers = list(map(parse_number, given))
    except ValueError:
        raise record.fault(f"the ratings {', '.join(map(str, given))} are not numbers") from None
    mean = sum(numbers) / len(numbers)
    value = int(mean + 0.5) if all(map(float.is_integer, numbers)) else mean
    return Rating(record, text, text, record.parse_id("document id", document), value)


def _grade(rating: Rating, thresholds: Sequence[float] | None) -> int:
    try:
        return grade(rating.value, thresholds)
    except ValueError as error:
        raise rating.record.fault(str(error)) from None


def _number(value: object) -> float:
    try:
        return parse_number(value)
    except ValueError:
        raise ValueError(f"the rating {value!r} is not a number") from None


def _find_texts(node: object, key: str = "") -> Iterator[str]:
    """Yield the texts under keys named `query` or `query_string`; if a mapping has only one text, that one."""
    if isinstance(node, Mapping):
        for name, value in node.items():
            yield from _find_texts(value, str(name))
    elif isinstance(node, list):
        for value in node:
            yield from _find_texts(value, key)
    elif isinstance(node, str) and key in ("query", "query_string", "query_text"):
        yield node


def _list(place: object, content: object, key: str) -> list[Any]:
    values = content.get(key) if isinstance(content, Mapping) else None
    if not isinstance(values, list):
        raise DatasetError(f"{place}: expected a JSON object with the list {key!r}")
    return values


def _ending(path: Path) -> str:
    return Path(strip_compression(path.name)).suffix.lower()
