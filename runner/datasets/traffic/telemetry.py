"""Traffic from production as a dataset: what users searched for, judged by people or by declared feedback."""

from __future__ import annotations

import logging
import math
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.access import Access
from retrievers.base import Corpus
from runner.datasets import files
from runner.datasets.base import DatasetError, Qrel, Queries, Raw, corpus_of
from runner.datasets.files import Place, PlaceTable
from runner.datasets.filtering import DocumentFields
from runner.datasets.qrels import iter_qrel_places, read_qrels
from runner.datasets.source import SHARED_PATHS, DatasetSource
from runner.datasets.traffic.masking import MaskPatterns
from runner.datasets.traffic.queries import (
    ATTRIBUTES,
    TrafficQuery,
    UtcTime,
    format_time,
    format_week,
    group_searches,
    hash_query,
    load_traffic,
)
from runner.datasets.traffic.searches import ServedSearch, Traffic, count_searches
from runner.datasets.traffic.served import Served
from runner.datasets.traffic.spans import (
    ID_RULES,
    Feedback,
    FeedbackKind,
    IdRule,
    parse_time,
)
from runner.datasets.trec import Trec

logger = logging.getLogger("runner.datasets")

_RANDOM_ID = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}", re.IGNORECASE)
"""A UUID of version 4."""
_GOOD = (
    "thumbs_up", "up", "good", "positive", "yes", "true", "correct", "relevant", "like", "helpful", "pass",
)  # fmt: skip
_BAD = (
    "thumbs_down", "down", "bad", "negative", "no", "false", "incorrect", "irrelevant", "dislike", "unhelpful", "fail",
)  # fmt: skip


@settings(frozen=True, config={"extra": "forbid"})
class Telemetry(DatasetSource):
    """Exported spans of searches in production: a file, a folder, a glob, or the address of an MLflow server.

    With `unit=text`, a query is a text that users searched for, and what was served is the newest ranking of it;
    with `search`, each search is a query, and those of one text are a cluster. Searches from `since` until before
    `until` count; each stands for 1 / `sampling` searches, unless its spans show how they were sampled. Personal data
    in queries is masked, with the patterns of `mask` too; with null, nothing is. `ids` are the rules by which documents
    get their ids, the first that applies: their own `id`, an id in their `metadata`, their `source` with its part, or a
    hash of their `text`. `attributes` are slices; a tenant is hashed, like users and sessions, with the key `salt`.

    `feedback` says what feedback on a search means: nothing for documents (`none`), or that its `first` document or
    `all` that were served are relevant, or not. Feedback of `feedback_kinds` with `feedback_names` (null: all) counts,
    and a value of at least `feedback_threshold` is good. `qrels` are judgments by people, by the id or the text of a
    query, and replace feedback. `documents` are those of the collection now, in a file as for `dataset=trec`; null
    stands for those that were served.
    """

    access: ClassVar[Access] = Access(paths=(*SHARED_PATHS, "path", "documents", "qrels"))

    path: str
    unit: Literal["text", "search"] = "text"
    documents: str | None = None
    qrels: str | None = None
    since: UtcTime | None = None
    until: UtcTime | None = None
    sampling: float = Field(default=1.0, gt=0, le=1)
    mask: MaskPatterns = Field(default_factory=dict)
    ids: Annotated[tuple[IdRule, ...], Field(min_length=1)] = ID_RULES
    attributes: tuple[str, ...] = ATTRIBUTES
    tenant: str | None = None
    salt: str = Field(default="", repr=False)
    feedback: Literal["none", "first", "all"] = "none"
    feedback_kinds: tuple[FeedbackKind, ...] = ("person", "api")
    feedback_names: tuple[str, ...] | None = None
    feedback_threshold: float = 0.5

    @property
    def origin(self) -> str:
        """Return the file or folder."""
        return self.path

    @property
    def served(self) -> Served:
        """Return the rankings that were served, as a retriever."""
        return Served(path=self.path, since=self.since, until=self.until, ids=self.ids, mask=self.mask)

    def read_traffic(self) -> Traffic:
        """Return all searches in the files, in the time window, by time; raises `DatasetError`."""
        traffic = load_traffic(self.path, self.ids, self.attributes, self.tenant, self.salt, self.mask)
        return traffic.select(parse_time(self.since), parse_time(self.until), self.sampling)

    def read(self) -> Raw:
        """Read the files."""
        traffic = self.read_traffic()
        queries = group_searches(traffic, self.unit == "text")
        if not queries:
            raise DatasetError(f"{self.path}: no span of a search has a query; {traffic.describe()}")
        for line in traffic.damage:
            logger.warning("%s", line)
        random = sum(_RANDOM_ID.fullmatch(name) is not None for name in traffic.documents)
        if 2 * random > len(traffic.documents):
            logger.warning(
                "%s: %s of %s served documents have random ids; if these change whenever documents are indexed, set "
                "'dataset.ids=[metadata,source,text]'",
                self.path, f"{random:,}", f"{len(traffic.documents):,}",
            )  # fmt: skip
        judged = list(self._judge_by_feedback(traffic, queries))
        by_people = self._read_qrels(queries)
        pairs = {(query, document) for query, document, _ in by_people}
        qrels = [*by_people, *(qrel for qrel in judged if qrel[:2] not in pairs)]
        table = Queries(
            [query.id for query in queries],
            [query.text for query in queries],
            [""] * len(queries),
            [self._describe_query(query) for query in queries],
            [query.text_id for query in queries] if self.unit == "search" else (),
        )
        fields = DocumentFields((), self.path, self.search_fields)
        return Raw(
            corpus=self._read_documents(traffic, fields),
            queries=table,
            qrels=qrels,
            qrels_name=self.qrels or self.path,
            document_fields=fields.names,
            reading=f"{self.path}: {traffic.describe()}{self._describe_judgments(len(by_people), len(qrels), judged)}",
        )

    def iter_places(self, table: PlaceTable) -> Iterator[Place]:
        """Yield the line of each judgment by people and of each document."""
        if table == "judgment" and self.qrels:
            yield from iter_qrel_places(files.resolve_path(self.qrels, "qrels"))
        elif table == "document" and self.documents:
            yield from Trec(topics="", qrels="", documents=self.documents).iter_places(table)

    def _read_documents(self, traffic: Traffic, fields: DocumentFields) -> Corpus:
        if self.documents is not None:
            return corpus_of(Trec(topics="", qrels="", documents=self.documents).iter_documents(fields))
        if not any(traffic.texts):
            return corpus_of(())
        return corpus_of((name, "", text) for name, text in zip(traffic.documents, traffic.texts, strict=True))

    def _read_qrels(self, queries: Sequence[TrafficQuery]) -> list[Qrel]:
        """Return the judgments of people: those of a text apply to each of its searches."""
        if self.qrels is None:
            return []
        by_text: defaultdict[str, list[str]] = defaultdict(list)
        for query in queries:
            by_text[query.text_id].append(query.id)
        rows = read_qrels(files.resolve_path(self.qrels, "qrels"))
        known = {query.id for query in queries}
        named = ((i if i in known or i in by_text else hash_query(i), i, d, g) for i, d, g in rows)
        return [
            (own, document, grade)
            for name, given, document, grade in named
            for own in ([name] if name in known else by_text.get(name, [given]))
        ]

    def _judge_by_feedback(self, traffic: Traffic, queries: Sequence[TrafficQuery]) -> Iterator[Qrel]:
        """Yield a judgment of each document that feedback is about, by the newest search with feedback."""
        if self.feedback == "none":
            return
        for query in queries:
            grades: dict[str, int] = {}
            for search in query.searches:
                value = self.read_feedback(search)
                if value is not None:
                    hits = traffic.list_hits(search)[: 1 if self.feedback == "first" else None]
                    grades |= {document: int(value >= 0.5) for document, _ in hits}
            yield from ((query.id, document, grade) for document, grade in grades.items())

    def read_feedback(self, search: ServedSearch) -> float | None:
        """Return the share of the feedback on a search that is good; None without feedback that counts."""
        values = [self._is_good(one) for one in search.feedback or ()]
        known = [value for value in values if value is not None]
        return sum(known) / len(known) if known else None

    def _is_good(self, feedback: Feedback) -> bool | None:
        if feedback.kind not in self.feedback_kinds:
            return None
        if self.feedback_names is not None and feedback.name not in self.feedback_names:
            return None
        if feedback.value is not None and not math.isnan(feedback.value):
            return feedback.value >= self.feedback_threshold
        label = feedback.label.lower()
        return True if label in _GOOD else False if label in _BAD else None

    def _describe_query(self, query: TrafficQuery) -> dict[str, Any]:
        newest, searches = query.served, query.searches
        latencies = [search.latency_ms for search in searches if search.latency_ms == search.latency_ms]
        values = [value for search in searches if (value := self.read_feedback(search)) is not None]
        about = {
            "week": format_week(newest.start_ns),
            "first": format_time(searches[0].start_ns),
            "last": format_time(searches[-1].start_ns),
            "searches": count_searches(searches),
            "failed": sum(bool(search.error) for search in searches),
            "latency_ms": round(median(latencies), 3) if latencies else None,
            "feedback": None if not values else "good" if sum(values) >= len(values) / 2 else "bad",
            "user": newest.user if len(searches) == 1 else "",
            "session": newest.session if len(searches) == 1 else "",
            **newest.slices,
        }
        return {name: value for name, value in about.items() if value not in (None, "")}

    def _describe_judgments(self, by_people: int, total: int, judged: Sequence[Qrel]) -> str:
        if self.feedback == "none":
            return ""
        scope = "first document" if self.feedback == "first" else "documents"
        replaced = len(judged) - (total - by_people)
        people = f"; {by_people:,} by people replace {replaced:,} of them" if by_people else ""
        return (
            f"; judgments from feedback of {', '.join(self.feedback_kinds)}: {len(judged):,}, as if that on "
            f"a search were on its {scope}{people}"
        )
