"""Read queries and judgments without documents, for retrievers that have their own: a search API, a run, an object."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.access import Access
from runner.datasets import files
from runner.datasets.base import DatasetError, GradeInterval, Qrel, Queries, Raw, corpus_of
from runner.datasets.beir import IDS
from runner.datasets.files import Place, PlaceTable
from runner.datasets.filtering import DocumentFields
from runner.datasets.qrels import find_qrel_columns, iter_qrel_places, read_qrels
from runner.datasets.ratings import QrelsFormat, grade, grade_ratings, match_queries, read_ratings, recognise_format
from runner.datasets.rows import is_table, open_table
from runner.datasets.source import SHARED_PATHS, DatasetSource
from runner.datasets.tabular import Tabular
from runner.datasets.trec import TEXT_TAGS, TITLE_TAGS, Format, Trec
from runner.datasets.ubi import THRESHOLDS, ClickModel, iter_shown, read_clicks

_TOTAL = re.compile(r"(grand )?totals?|sum|count|mean|average|avg|all", re.IGNORECASE)

logger = logging.getLogger("runner.datasets")


@settings(frozen=True, config={"extra": "forbid"})
class JudgedFiles(DatasetSource):
    """Files of queries and judgments and, optionally, of documents.

    `queries` are JSONL as in BEIR, TSV (id, text), TREC topics, or a table: CSV, Parquet, or any file of rows whose
    columns are named by `query_id` and `query_text`. `qrels` have columns as in BEIR and TREC, or are a
    table with the columns `qrel_query`, `qrel_document` and `qrel_grade`, or are in the format of another program: see
    `qrels_format`, which is detected if null. Such formats name queries by their text, so `queries` may be null; with
    other qrels, queries then have ids without texts, which is enough for rankings from a file.
    Ratings that are not whole numbers are converted by `grade_thresholds`. A click log is a file, a folder or a glob:
    `click_actions` and the settings after it are those of `ClickModel`. `documents` are read as by `Trec`,
    whose settings of formats, tags and fields apply to them and to topics; a retriever with its own index does not need
    them, and their texts are only for readers.
    """

    access: ClassVar[Access] = Access(paths=(*SHARED_PATHS, "qrels", "queries", "documents"))

    qrels: str
    queries: str | None = None
    documents: str | None = None
    query_id: str | None = None
    query_text: str | None = None
    query_type: str | None = None
    topics_format: Format | None = None
    topic_fields: tuple[str, ...] = ("title",)
    documents_format: Format | None = None
    title_tags: tuple[str, ...] = TITLE_TAGS
    text_tags: tuple[str, ...] = TEXT_TAGS
    qrel_query: str = "query_id"
    qrel_document: str = "document_id"
    qrel_grade: str | None = "grade"
    qrels_format: QrelsFormat | None = None
    grade_thresholds: tuple[Annotated[float, Field(gt=0)], ...] | None = None
    click_actions: tuple[str, ...] = ("click", "click_through")
    impression_actions: tuple[str, ...] = ("impression",)
    examination: tuple[Annotated[float, Field(gt=0, le=1)], ...] | None = None
    max_rank: int = Field(default=20, ge=1)
    min_impressions: int = Field(default=10, ge=1)

    @property
    def origin(self) -> str:
        """Return the file of queries, or that of judgments."""
        return self.queries or self.qrels

    def read(self) -> Raw:
        """Read the files."""
        queries = self._read_queries() if self.queries else None
        paths, format = self._find_qrels()
        intervals: Sequence[GradeInterval] = ()
        if format in ("qrels", "table"):
            convert = partial(grade, thresholds=self.grade_thresholds)
            table = self._find_columns(paths[0]) if format == "table" else None
            qrels = list(table.iter_qrels(self.qrels, convert)) if table else read_qrels(paths[0], convert)
            queries = queries or _list_queries(qrels)
        elif format == "ubi":
            queries, qrels, intervals = self._read_clicks(paths, queries)
        else:
            ratings = read_ratings(paths[0], format, self.qrel_grade)
            queries, matches = match_queries(ratings, queries)
            qrels = grade_ratings(ratings, matches, self.grade_thresholds)
        if self.queries is None:
            self._check_total(qrels)
        fields = DocumentFields(queries.filters, self.origin, self.search_fields)
        return Raw(
            corpus=corpus_of(self._lines.iter_documents(fields)),
            queries=queries,
            qrels=qrels,
            qrels_name=self.qrels,
            document_fields=fields.names,
            grade_intervals=intervals,
        )

    def iter_places(self, table: PlaceTable) -> Iterator[Place]:
        """Yield the place of each document, query or judgment in its file."""
        if table == "document":
            yield from self._lines.iter_places(table)
        elif table == "query" and self.queries:
            in_columns = self._has_columns(files.resolve_path(self.queries, "queries"))
            yield from (self._table if in_columns else self._lines).iter_places(table)
        elif table == "judgment":
            paths, format = self._find_qrels()
            if format == "table":
                yield from self._find_columns(paths[0]).iter_places(table)
            elif format == "qrels":
                yield from iter_qrel_places(paths[0])
            elif format == "ubi":
                yield from iter_shown(paths)
            else:
                ratings = read_ratings(paths[0], format, self.qrel_grade)
                _, matches = match_queries(ratings, self._read_queries() if self.queries else None)
                for rating, queries in zip(ratings, matches, strict=True):
                    yield from ((rating.record.location, (query, rating.document or "")) for query in queries)

    def _find_qrels(self) -> tuple[Sequence[Path], QrelsFormat]:
        """Return the files of judgments and their format."""
        paths = files.matching(self.qrels, "qrels")
        several = len(paths) > 1 or Path(self.qrels).expanduser().is_dir()
        return paths, self.qrels_format or ("ubi" if several else self._recognise(paths[0]))

    def _has_columns(self, queries: Path) -> bool:
        """Return whether queries are a table, whose columns have names; JSON lines with the names of BEIR are not."""
        if self.topics_format is not None or self.query_id is not None:
            return self.topics_format is None
        if is_table(queries):
            return True
        return is_table(queries, ".jsonl") and not {*IDS} & {*open_table(queries, "queries").columns}

    def _read_queries(self) -> Queries:
        topics = files.resolve_path(str(self.queries), "queries")
        return self._table.read_queries() if self._has_columns(topics) else self._lines.read_queries(topics)

    def _recognise(self, path: Path) -> QrelsFormat:
        if is_table(path) and (self.qrel_query, self.qrel_document) != ("query_id", "document_id"):
            return "table"  # settings name its columns
        return recognise_format(path) or ("table" if is_table(path, ".jsonl") else "qrels")

    def _find_columns(self, path: Path) -> Tabular:
        """Return how to read a table of judgments: by the columns that settings name, or by the names of columns."""
        columns = open_table(path, "qrels").columns
        if (self.qrel_query, self.qrel_document) != ("query_id", "document_id"):
            return self._table
        named = dict(find_qrel_columns(columns) or {})
        if self.qrel_grade != "grade":
            named["qrel_grade"] = self.qrel_grade
        return replace(self._table, **named)  # type: ignore[arg-type]  # the names of columns

    def _check_total(self, qrels: Sequence[Qrel]) -> None:
        """Raise `DatasetError` if the last judgment is a total; a file of queries would not have it."""
        query = qrels[-1][0] if qrels else ""
        if _TOTAL.fullmatch(query) and [name for name, _, _ in qrels].count(query) == 1 < len(qrels):
            raise DatasetError(
                f"{self.places('judgment', query)[-1]}: the last row seems to be a total ({query!r}); remove it, or "
                "set dataset.queries to a file with this query"
            )

    def _read_clicks(
        self, paths: Sequence[Path], queries: Queries | None
    ) -> tuple[Queries, list[Qrel], list[GradeInterval]]:
        thresholds = self.grade_thresholds or THRESHOLDS
        actions = (self.click_actions, self.impression_actions)
        model = ClickModel(*actions, self.examination, self.max_rank, self.min_impressions)
        ratings, intervals = read_clicks(paths, model, thresholds)
        queries, matches = match_queries(ratings, queries)
        known = set(queries.ids)  # a log also has queries that are not listed
        matches = [[query for query in ids if query in known] for ids in matches]
        intervals = [
            replace(interval, query=query) for interval, ids in zip(intervals, matches, strict=True) for query in ids
        ]
        uncertain = sum(interval.lowest < interval.highest for interval in intervals)
        logger.warning(
            "%s: %s grades estimated from clicks; the 95 %% interval of %s of them covers several grades. export "
            "writes the intervals",
            self.qrels, f"{len(intervals):,}", f"{uncertain:,}",
        )  # fmt: skip
        return queries, grade_ratings(ratings, matches, thresholds), intervals

    @property
    def _lines(self) -> Trec:
        return Trec(
            topics=self.queries or "", qrels=self.qrels, documents=self.documents, cluster_field=self.cluster_field,
            filter_field=self.filter_field, exclude_self=self.exclude_self, topics_format=self.topics_format,
            topic_fields=self.topic_fields, documents_format=self.documents_format, title_tags=self.title_tags,
            text_tags=self.text_tags,
        )  # fmt: skip

    @property
    def _table(self) -> Tabular:
        return Tabular(
            queries=self.queries or "", qrels=self.qrels, cluster_field=self.cluster_field,
            filter_field=self.filter_field, exclude_self=self.exclude_self, query_id=self.query_id,
            query_text=self.query_text, query_type=self.query_type, qrel_query=self.qrel_query,
            qrel_document=self.qrel_document, qrel_grade=self.qrel_grade,
        )  # fmt: skip


def _list_queries(qrels: Iterable[Qrel]) -> Queries:
    """Return the queries of judgments, in their order, without texts."""
    ids = list(dict.fromkeys(query for query, _, _ in qrels))
    return Queries(ids, [""] * len(ids), [""] * len(ids), has_texts=False)
