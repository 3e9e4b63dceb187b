"""Check the content of a format's files, sample it, and assemble the parts of a dataset.

Nothing here depends on a format.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from itertools import compress
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from retrievers.base import Corpus
from retrievers.strict_values import find_line_break, show_value
from runner.datasets.base import DatasetError, GradeInterval, Judgments, Qrel, Queries, Raw
from runner.datasets.files import PlaceTable
from runner.datasets.filtering import check_fields, check_search_fields, find_gold_outside
from runner.datasets.own_documents import ExcludeSelf, OwnIdRule, OwnIds, own_documents
from runner.datasets.variants import cluster_labels, no_query_has

if TYPE_CHECKING:
    from runner.datasets.source_settings import SourceSettings

logger = logging.getLogger("runner.datasets")

_LIST = re.compile(r"\[.*['\", ].*\]|\(['\"].*\)", re.DOTALL)
"""A list of ids as written by Python or NumPy."""

Table = TypeVar("Table", Corpus, Queries)

Parts: TypeAlias = tuple[str, str, Corpus, Queries, Judgments, ExcludeSelf, str]
"""The name, split, corpus, queries and judgments of a dataset, its setting `exclude_self`, and its reading."""


def assemble(source: SourceSettings, raw: Raw) -> Parts:
    """Check the content of a format's files, limit its size, and return it as the parts of a dataset.

    Unjudged queries are dropped, unless a setting keeps them. Raises `DatasetError`.
    """
    name = source.title
    has_documents = source.has_documents or len(raw.corpus) > 0
    if not has_documents:
        source = replace(source, unknown_judged="keep")
    elif not len(raw.corpus):
        raise DatasetError(f"{name}: the dataset has no documents")
    corpus = check_search_fields(raw.corpus, source.search_fields, raw.document_fields, name)
    corpus = check_fields(corpus, raw.queries, raw.document_fields, name, lambda query: _locate(source, query))
    raw = replace(raw, corpus=corpus, judged=tuple(raw.judged))
    tables = {"": list(raw.qrels)} | {
        kind: _replace_judgments(raw.qrels, own) for kind, own in raw.qrels_by_search_type.items()
    }
    if not has_documents:
        _check_lists(source, raw, tables.values())
    query_at = _query_positions(source, raw)
    raw, tables = _select_known(source, raw, tables, query_at)
    document_at = {identifier: position for position, identifier in enumerate(raw.corpus.ids)}
    unknown = _unknown_documents(source, raw, document_at, tables.values())
    document_at |= {identifier: len(raw.corpus) + i for i, identifier in enumerate(unknown)}
    _check_line_breaks(source, "document", document_at)
    _check_line_breaks(source, "query", query_at)
    judged = {kind: _judgments(source, raw, qrels, query_at, document_at) for kind, qrels in tables.items()}

    queries = _select_queries(source, raw, query_at, judged.values())
    if not len(raw.queries):
        raise DatasetError(f"{name}: the dataset has no queries")
    if not queries.any():
        raise DatasetError(
            f"{name}: {raw.qrels_name} contains no judgments for the {len(raw.queries)} queries; add some "
            "by dataset.extra_qrels=FILE or, to judge results by hand, set dataset.unjudged_queries=keep"
        )
    unjudged = np.flatnonzero(_find_unjudged(raw, query_at, judged.values())[queries]).tolist()
    documents = _select_documents(source, len(raw.corpus), len(unknown), queries, judged.values())
    absent = tuple(compress(unknown, documents[len(raw.corpus) :]))
    kept = {
        kind: replace(_select_judgments(own, queries, documents), unknown_documents=absent, unjudged=unjudged)
        for kind, own in judged.items()
    }
    intervals = _select_intervals(raw, query_at, document_at, queries, documents)
    judgments = replace(kept.pop(""), by_search_type=kept, intervals=intervals)
    corpus = _rows(raw.corpus, documents[: len(raw.corpus)])
    selected = _rows(_add_clusters(source, raw.queries), queries)
    _check_own_documents(name, corpus, selected, judgments, source.exclude_self)
    if outside := find_gold_outside(corpus, selected, judgments):
        logger.warning(
            "%s: %s relevant documents fail the filter of their query and cannot be found, for example %r of query %r",
            name, f"{len(outside):,}", *reversed(outside[0]),
        )  # fmt: skip
    if source.max_documents is not None and len(corpus) > source.max_documents:
        logger.warning(
            "dataset.max_documents=%s: kept %s documents, because judged documents are never dropped; to keep "
            "fewer, lower max_queries",
            f"{source.max_documents:,}", f"{len(corpus):,}",
        )  # fmt: skip
    return name, source.split, corpus, selected, judgments, source.exclude_self, raw.reading


def add_qrels(raw: Raw, extra: Sequence[Qrel], name: str) -> Raw:
    """Return the content of a dataset with further qrels, which replace those of the same pairs."""
    pairs = {(query, document) for query, document, _ in extra}

    def merge(qrels: Sequence[Qrel], added: Iterable[Qrel]) -> list[Qrel]:
        return [
            *((query, document, grade) for query, document, grade in qrels if (query, document) not in pairs),
            *added,
        ]

    by_search_type = {}
    for kind, own in raw.qrels_by_search_type.items():
        queries = {query for query, _, _ in own}
        by_search_type[kind] = merge(own, (qrel for qrel in extra if qrel[0] in queries))
    return replace(
        raw,
        qrels=merge(raw.qrels, extra),
        qrels_by_search_type=by_search_type,
        qrels_name=f"{raw.qrels_name} and {name}",
    )


def _add_clusters(source: SourceSettings, queries: Queries) -> Queries:
    """Return queries with their cluster labels, if a setting names the field; raises `DatasetError`."""
    if source.cluster_field is None:
        return queries
    try:
        return replace(queries, clusters=cluster_labels(queries.ids, queries.metadata, source.cluster_field))
    except ValueError as error:
        raise DatasetError(str(error)) from None


def _check_own_documents(name: str, corpus: Corpus, queries: Queries, judgments: Judgments, mode: ExcludeSelf) -> None:
    """Raise `DatasetError` if the setting `exclude_self` requests exclusions, but no query can be a document."""
    if mode in ("auto", "false"):
        return
    names = next(filter(None, map(OwnIds(queries, mode).names, range(len(queries)))), ())
    if isinstance(mode, OwnIdRule) and mode.field is not None and not names:
        raise DatasetError(no_query_has("exclude_self.field", mode.field, queries.metadata))
    if len(corpus) and (own_documents(corpus, queries, judgments, mode) < 0).all():
        raise DatasetError(
            f"{name}: dataset.exclude_self={mode} excludes nothing, because no query has the id of a document: "
            f"those of queries look like {next(iter(names))!r}, those of documents like {corpus.ids[0]!r}; "
            "set auto or false, or a rule such as {pattern: '-query$'} for ids with a suffix"
        )


def describe_repeated_id(source: SourceSettings, table: PlaceTable, identifier: str) -> str:
    """Return an error about a duplicate id, with its places if the format knows them."""
    first, *others = source.places(table, identifier) or [""]
    if others:
        return f"{others[0]}: the {table} id {identifier!r} is already used at {first}; ids must be unique"
    return f"{source.origin}: the {table} id {identifier!r} occurs more than once; ids must be unique"


def _check_line_breaks(source: SourceSettings, table: PlaceTable, ids: Iterable[str]) -> None:
    """Raise `DatasetError` for an id that would end a column or a line in rankings, judgments or exports."""
    for identifier in ids:
        if (character := find_line_break(identifier)) is not None:
            pair = (identifier,) if table == "query" else (None, identifier)
            place = next(iter(source.places(table, identifier) or source.places("judgment", *pair)), source.origin)
            raise DatasetError(
                f"{place}: the {table} id {show_value(identifier)} contains {character!r}, which ends a column or a "
                "line in other files; rename it"
            )


def _check_lists(source: SourceSettings, raw: Raw, tables: Iterable[Sequence[Qrel]]) -> None:
    """Raise `DatasetError` for a list as text in place of a document id, which no hit would have."""
    for query, document, _ in (qrel for qrels in tables for qrel in qrels):
        if document.startswith(("[", "(")) and _LIST.fullmatch(document):
            place = _locate_judgment(source, raw, query, document)
            raise DatasetError(
                f"{place}: query {query!r} has the document {document[:60]!r}, a list; write a judgment for "
                "each document"
            )


def _locate(source: SourceSettings, query: str) -> str:
    """Return where a query is, as FILE:LINE if the format knows it."""
    return next(iter(source.places("query", query)), f"{source.origin}: query {query!r}")


def _locate_judgment(source: SourceSettings, raw: Raw, query: str | None, document: str | None = None) -> str:
    """Return where the first judgment with these ids (None: any) is, or what the judgments are called."""
    return next(iter(source.places("judgment", query, document)), raw.qrels_name)


def _replace_judgments(qrels: Sequence[Qrel], own: Sequence[Qrel]) -> list[Qrel]:
    named = {query for query, _, _ in own}
    return [*own, *(qrel for qrel in qrels if qrel[0] not in named)]


def _query_positions(source: SourceSettings, raw: Raw) -> dict[str, int]:
    query_at: dict[str, int] = {}
    for position, identifier in enumerate(raw.queries.ids):
        if query_at.setdefault(identifier, position) != position:
            raise DatasetError(describe_repeated_id(source, "query", identifier))
    return query_at


def _select_known(
    source: SourceSettings, raw: Raw, tables: Mapping[str, Sequence[Qrel]], query_at: Mapping[str, int]
) -> tuple[Raw, dict[str, list[Qrel]]]:
    """Return the judgments of the dataset's queries; those of other queries are an error or, by a setting, dropped."""
    named = dict.fromkeys(query for qrels in tables.values() for query, _, _ in qrels) | dict.fromkeys(raw.judged)
    missing = [query for query in named if query not in query_at]
    if not missing:
        return raw, {kind: [*qrels] for kind, qrels in tables.items()}
    place = _locate_judgment(source, raw, missing[0])
    problem = (
        f"{len(missing):,} judged {'query is' if len(missing) == 1 else 'queries are'} not among the "
        f"{len(query_at):,} queries of the dataset, for example {missing[0]!r}"
    )
    if source.unknown_queries == "error":
        raise DatasetError(
            f"{place}: {problem}. If the judgments belong to other queries, correct the files; if the "
            "queries are a sample, set dataset.unknown_queries=drop"
        )
    known = {kind: [qrel for qrel in qrels if qrel[0] in query_at] for kind, qrels in tables.items()}
    dropped = sum(map(len, tables.values())) - sum(map(len, known.values()))
    logger.warning("%s: %s; %s judgments are left out", place, problem, f"{dropped:,}")
    judged = tuple(query for query in raw.judged if query in query_at)
    intervals = tuple(interval for interval in raw.grade_intervals if interval.query in query_at)
    return replace(raw, judged=judged, grade_intervals=intervals), known


def _unknown_documents(
    source: SourceSettings, raw: Raw, document_at: Mapping[str, int], tables: Iterable[Sequence[Qrel]]
) -> list[str]:
    unknown = dict.fromkeys(doc for qrels in tables for _, doc, _ in qrels if doc not in document_at)
    if unknown and source.unknown_judged == "error":
        raise DatasetError(
            f"{_locate_judgment(source, raw, None, next(iter(unknown)))}: {len(unknown)} judged "
            f"{'document is' if len(unknown) == 1 else 'documents are'} "
            f"not among the {len(document_at)} documents of the corpus, for example "
            f"{next(iter(unknown))!r}{f' ({raw.unknown_cause})' if raw.unknown_cause else ''}; "
            "correct the judgments, or set dataset.unknown_judged=drop, or dataset.unknown_judged=keep if a "
            "retriever with its own documents or rankings can return these documents"
        )
    return sorted(unknown)


def _judgments(
    source: SourceSettings,
    raw: Raw,
    qrels: list[Qrel],
    query_at: Mapping[str, int],
    document_at: Mapping[str, int],
) -> Judgments:
    queries = np.fromiter((query_at[query] for query, _, _ in qrels), np.int32, len(qrels))
    documents = np.fromiter((document_at[document] for _, document, _ in qrels), np.int32, len(qrels))
    grades = np.fromiter((grade for _, _, grade in qrels), np.int32, len(qrels))
    order = np.lexsort((documents, queries))
    queries, documents, grades = queries[order], documents[order], grades[order]
    repeats = (queries[1:] == queries[:-1]) & (documents[1:] == documents[:-1])
    conflicts = np.flatnonzero(repeats & (grades[1:] != grades[:-1]))
    if len(conflicts):
        first = conflicts[0]
        query, document, _ = qrels[order[first]]
        place, *others = source.places("judgment", query, document) or [raw.qrels_name]
        raise DatasetError(
            f"{place}: query {query!r} and document {document!r} have two grades, {grades[first]} and "
            f"{grades[first + 1]}{f' at {others[0]}' if len(others) == 1 else ''}; keep one"
        )
    new = np.concatenate((np.ones(min(len(qrels), 1), dtype=np.bool_), ~repeats))
    return Judgments(queries[new], documents[new], grades[new])


def _select_queries(
    source: SourceSettings, raw: Raw, query_at: Mapping[str, int], tables: Iterable[Judgments]
) -> NDArray[np.bool_]:
    kept = ~_find_unjudged(raw, query_at, tables)
    if source.unjudged_queries == "keep":
        kept[:] = True
    if source.unknown_judged == "drop":  # a query that lost all its gold must not pass for a true negative
        for judgments in tables:
            known = judgments.documents < len(raw.corpus)
            golds = np.bincount(judgments.queries[known & (judgments.grades > 0)], minlength=len(kept))
            kept &= (golds > 0) | (judgments.golds(len(kept)) == 0)
    return _sample(kept, source.max_queries, source.seed)


def _find_unjudged(raw: Raw, query_at: Mapping[str, int], tables: Iterable[Judgments]) -> NDArray[np.bool_]:
    """Return which queries have no judgment, and are not known to have none."""
    unjudged = np.ones(len(raw.queries), dtype=np.bool_)
    unjudged[[query_at[query] for query in raw.judged]] = False
    for judgments in tables:
        unjudged[judgments.queries] = False
    return unjudged


def _select_documents(
    source: SourceSettings, known: int, unknown: int, queries: NDArray[np.bool_], tables: Iterable[Judgments]
) -> NDArray[np.bool_]:
    used = np.zeros(known + unknown, dtype=np.bool_)
    for judgments in tables:
        used[judgments.documents[queries[judgments.queries]]] = True
    kept, others = used.copy(), ~used[:known]
    if source.max_documents is not None:
        others = _sample(others, max(source.max_documents - int(used[:known].sum()), 0), source.seed)
    kept[:known] |= others
    if source.unknown_judged == "drop":
        kept[known:] = False
    return kept


def _sample(mask: NDArray[np.bool_], most: int | None, seed: int) -> NDArray[np.bool_]:
    candidates = np.flatnonzero(mask)
    if most is None or len(candidates) <= most:
        return mask
    sample = np.zeros_like(mask)
    sample[np.random.default_rng(seed).choice(candidates, most, replace=False)] = True
    return sample


def _select_judgments(judgments: Judgments, queries: NDArray[np.bool_], documents: NDArray[np.bool_]) -> Judgments:
    rows = queries[judgments.queries] & documents[judgments.documents]
    return Judgments(
        (np.cumsum(queries, dtype=np.int32) - 1)[judgments.queries[rows]],
        (np.cumsum(documents, dtype=np.int32) - 1)[judgments.documents[rows]],
        judgments.grades[rows],
    )


def _select_intervals(
    raw: Raw,
    query_at: Mapping[str, int],
    document_at: Mapping[str, int],
    queries: NDArray[np.bool_],
    documents: NDArray[np.bool_],
) -> tuple[GradeInterval, ...]:
    """Return the intervals of the judgments that remain."""
    return tuple(
        interval
        for interval in raw.grade_intervals
        if queries[query_at[interval.query]] and documents[document_at[interval.document]]
    )


def _rows(table: Table, kept: NDArray[np.bool_]) -> Table:
    if kept.all():
        return table
    whole = ("filter_fields", "search_fields", "has_texts")
    names = [column.name for column in fields(table) if column.name not in whole]
    columns: dict[str, Any] = {name: tuple(compress(getattr(table, name), kept)) for name in names}
    return replace(table, **columns)
