"""Read a table of questions and their gold: recognise its columns, and find the documents that the gold names.

Formats whose questions are a table share these settings; each adds where its documents come from.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Annotated, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.base import Corpus
from retrievers.filters import Filter
from runner.config.arguments import arguments
from runner.datasets import files
from runner.datasets.base import EXPECTED_ANSWER, Qrel, Queries
from runner.datasets.columns import (
    NAMES,
    find_column,
    find_first,
    find_place,
    find_prose,
    find_text_column,
    flatten,
    is_no_gold,
    is_vague,
    list_columns,
    list_less_sure,
    rank_gold_columns,
    select_only,
)
from runner.datasets.files import Place, SourceRecord
from runner.datasets.filtering import read_filters
from runner.datasets.gold import SEPARATORS, TEXTS, Locator, find_separator, spell, split
from runner.datasets.gold_reader import Gold, GoldReader
from runner.datasets.rows import RowFormat, open_table
from runner.datasets.source import DatasetSource
from runner.datasets.spans import GoldSpan

logger = logging.getLogger("runner.datasets")

AUTO: Literal["auto"] = "auto"


@dataclass(frozen=True)
class QuestionTable:
    """Questions as read from a table, with their first rows; `reading` says in one line what was understood.

    Without `gold`, the table does not say what is right. `spans` are the passages that are gold, if they are wanted.
    """

    queries: Queries
    records: Sequence[SourceRecord]
    gold: Gold | None
    spans: Sequence[GoldSpan] = ()
    reading: str = ""

    @property
    def judged(self) -> Sequence[str]:
        """Return the ids of the questions, whose gold is known to be complete; without a column of gold, none."""
        return self.queries.ids if self.gold else ()

    @property
    def qrels(self) -> Sequence[Qrel]:
        """Return the judgments."""
        return self.gold.qrels if self.gold else ()

    @property
    def unknown(self) -> Sequence[str]:
        """Return what the questions name as gold that is no document."""
        return self.gold.unknown if self.gold else ()

    @property
    def cause(self) -> str:
        """Return why the first of the unknown names is no document."""
        return self.gold.cause if self.gold else ""

    def iter_places(self) -> Iterator[Place]:
        """Yield the row of each question."""
        yield from ((row.location, (query,)) for row, query in zip(self.records, self.queries.ids, strict=True))

    def iter_gold_places(self) -> Iterator[Place]:
        """Yield the row of each judgment."""
        rows = zip(self.gold.records, self.gold.qrels, strict=True) if self.gold else ()
        yield from ((row.location, (query, document)) for row, (query, document, _) in rows)


@settings(frozen=True, kw_only=True, config={"extra": "forbid"})
class QuestionColumns(DatasetSource, ABC):
    """The columns of a table of questions; null: recognised by their names, as listed in `runner.datasets.columns`.

    Gold is an id, a file, or another name of a document, or several: a list, or text that `gold_separator` splits,
    ignoring blanks around the parts; `auto` finds the separator, and null splits nothing. If it is empty, the right
    result is an empty one. Without a column of ids, questions are numbered in the order of the file, and repeated
    questions become one. `queries_key` is the key of the questions in a JSON or YAML file with several lists.
    """

    format: RowFormat | None = None
    encoding: str | None = Field(default=None, min_length=1)
    queries_key: str | None = Field(default=None, min_length=1)
    query_id: str | None = None
    query_text: str | None = None
    query_type: str | None = None
    query_answer: str | None = None
    query_golds: str | None = None
    query_grades: str | None = None
    gold_separator: Annotated[str, Field(min_length=1)] | None = AUTO

    def read_questions(
        self,
        pattern: str,
        read_documents: Callable[[Sequence[Filter | None]], Corpus],
        has_qrels: bool = False,
        setting: str = "queries",
    ) -> tuple[QuestionTable, Corpus]:
        """Return the questions in the files that a setting names, and the documents, which are read for the filters.

        With `has_qrels`, the gold is elsewhere. Raises `DatasetError`.
        """
        records = list(self._iter_rows(pattern, setting))
        filters = read_filters(records, self.filter_field)
        corpus = read_documents(filters)
        names = list_columns(records)
        columns = self._recognise_columns(pattern, records, names, has_qrels)
        reader = None if has_qrels or not records else self._find_gold(pattern, records, names, columns, corpus)
        if reader is not None and columns["query_id"] == reader.column and self.query_id is None:
            columns["query_id"] = None  # the id of a document is not that of its question
        rows, ids, firsts = _identify(records, columns, reader is not None)
        gold = reader.read_all(rows, records) if reader else None
        if reader and gold and self.gold_separator != AUTO and self.unknown_judged == "error":
            _check_separator(gold, reader)
        text, kind, answer = str(columns["query_text"]), self.query_type, columns["query_answer"]
        queries = Queries(
            ids=ids,
            texts=[record.text(text) for record in firsts],
            types=[record.text(kind) if kind else "" for record in firsts],
            metadata=files.with_named_fields(
                firsts,
                [{EXPECTED_ANSWER: record.text(answer)} if record.fields.get(answer) else {} for record in firsts]
                if answer
                else [],
                self.query_fields,
            ),
            filters=filters if len(firsts) == len(records) else read_filters(firsts, self.filter_field),
        )
        spans = reader.read_spans(rows, records, corpus) if reader and self.gold == "spans" else ()
        table = QuestionTable(queries, firsts, gold, spans)
        return replace(table, reading=_describe(len(records), table, columns, reader)), corpus

    def read_spans(self) -> list[GoldSpan]:
        """Return the passages that the questions name as gold, unless there is a file of spans."""
        own = self.read_table() if self.spans is None and not self.spans_beside.is_file() else None
        return [*own.spans] if own and own.gold else super().read_spans()

    @abstractmethod
    def read_table(self) -> QuestionTable | None:
        """Read the questions and their gold; None if the gold is elsewhere."""

    def _iter_rows(self, pattern: str, setting: str) -> Iterator[SourceRecord]:
        named = [name for name in (self.query_id, self.query_text, self.query_golds) if name]
        for path in files.matching(pattern, setting):
            table = open_table(path, setting, self.format, named, self.queries_key, self.encoding)
            notes = 0
            for record in table.read(None):
                if record.fields and all(name.startswith("_") for name in record.fields):
                    notes += 1
                else:
                    yield flatten(record)
            if notes:
                logger.warning("%s: left out %s rows with only names such as _meta", path, f"{notes:,}")

    def _recognise_columns(
        self, pattern: str, records: Sequence[SourceRecord], names: Sequence[str], has_qrels: bool
    ) -> dict[str, str | None]:
        """Return the columns of ids, texts, types and answers; those that settings name must exist."""
        settings = ("query_id", "query_text", "query_type", "query_answer", *(() if has_qrels else ("query_golds",)))
        columns: dict[str, str | None] = {setting: getattr(self, setting) for setting in settings}
        if not records:
            return columns
        for setting, name in columns.items():
            if name is not None and name not in names:
                raise records[0].fault(describe_missing(setting, name, names))
        place = find_place(records, pattern)
        free = [n for n in names if n not in columns.values() and not isinstance(records[0].fields.get(n), dict)]
        text = columns["query_text"] or find_text_column(records, free, place)
        if text is None:
            raise records[0].fault(describe_missing("query_text", "text", names))
        free = [name for name in free if name != text]
        identifier = columns["query_id"] or find_column("query_id", free, place)
        if identifier is None and has_qrels:
            raise records[0].fault(describe_missing("query_id", "id", names))
        answers = [name for name in free if find_first(NAMES["query_answer"], [name])]
        answers = [name for name in answers if all(isinstance(r.fields.get(name), str | None) for r in records)]
        answer = columns["query_answer"] or find_first(NAMES["query_answer"], answers)
        return {**columns, "query_text": text, "query_id": identifier, "query_answer": answer}

    def _find_gold(
        self,
        pattern: str,
        records: Sequence[SourceRecord],
        names: Sequence[str],
        columns: Mapping[str, str | None],
        corpus: Corpus,
    ) -> GoldReader | None:
        """Return the reader of the column of gold: that whose name says so most surely and that names documents.

        None: there is none, and the questions are kept to be judged. Raises `DatasetError`.
        """
        locator = Locator(corpus) if len(corpus) else None
        place = find_place(records, pattern)
        grades = self.query_grades or find_column("query_grades", names, place) or _find_binary(records)
        others = {*columns.values(), grades}

        def read(column: str) -> GoldReader:
            separator = find_separator(records, column, locator) if self.gold_separator == AUTO else self.gold_separator
            return GoldReader(column, grades, separator, locator)

        if self.query_golds is not None:
            return read(self.query_golds)
        groups = [[*map(read, group)] for group in rank_gold_columns(names, others)]
        groups = [[reader for reader in group if not reader.is_empty(records)] for group in groups]
        if locator is not None:
            known = [[reader for reader in group if reader.has_documents(records)] for group in groups]
            less_sure = [r for r in map(read, list_less_sure(names, others)) if r.has_only_documents(records)]
            unknown = [[reader for reader in group if not is_vague(reader.column)] for group in groups]
            groups = [group for group in known if group] or [less_sure, *unknown]
        readers = [group for group in groups if group]
        for group in readers[:1]:
            only = select_only("query_golds", [reader.column for reader in group], place)
            return next(reader for reader in group if reader.column == only)
        identifier = columns["query_id"]
        if (
            identifier
            and locator
            and (reader := read(identifier)).has_only_documents(records)
            and _repeats(records, reader)
        ):
            return reader
        if self.unjudged_queries == "keep":
            return None
        rest = [read(name) for name in names if name not in others and not is_no_gold(name)]
        hints = [reader.column for reader in rest if locator and reader.has_documents(records)]
        answer = columns["query_answer"] or find_prose(records, [n for n in names if n != columns["query_text"]])
        raise records[0].fault(_describe_no_gold(names, answer, hints, None if locator else pattern))


def _identify(
    records: Sequence[SourceRecord], columns: Mapping[str, str | None], merge: bool
) -> tuple[list[str], list[str], list[SourceRecord]]:
    """Return the id of the question in each row, the ids of all questions, and the first row of each.

    To `merge`, rows with the same text and, if there are ids, the same id are one question. Without ids, questions are
    numbered in the order of their first rows, and always merged.
    """
    identifier, text = columns["query_id"], str(columns["query_text"])
    if identifier and not merge:
        every = [record.identifier(identifier) for record in records]
        return every, every, [*records]
    ids: dict[str, str] = {}
    rows, firsts = list[str](), list[SourceRecord]()
    for record in records:
        own = record.identifier(identifier) if identifier else f"q{len(firsts) + 1:04d}"
        key = f"{own}\0{record.text(text)}" if identifier else record.text(text).strip()
        if not key:
            raise record.fault(f"{text!r} is empty; write the question in each row, or remove the row")
        if key not in ids:
            ids[key] = own
            firsts.append(record)
        rows.append(ids[key])
    return rows, [*ids.values()], firsts


def _find_binary(records: Sequence[SourceRecord]) -> str | None:
    """Return the column `relevant` if it has only 0 and 1, which are grades and no documents."""
    values = {str(value) for record in records if (value := record.fields.get("relevant")) is not None}
    return "relevant" if values and values <= {"0", "1", "True", "False", "true", "false"} else None


def _repeats(records: Sequence[SourceRecord], reader: GoldReader) -> bool:
    """Return whether the ids of rows repeat, as those of questions never do."""
    return len({record.fields.get(reader.column) for record in records}) < len(records)


def _check_separator(gold: Gold, reader: GoldReader) -> None:
    """Raise if gold contains a separator and names no document: unsplit, it would never be found."""
    if not reader.locator or not reader.separator:
        return
    rows = zip(gold.records, gold.qrels, strict=True)
    unknown = [(record, name) for record, (_, name, _) in rows if not reader.find(name).documents]
    for (record, name), separator in product(unknown, SEPARATORS):
        known = next((part for part in split(name, separator) if reader.find(part).documents), None)
        if known is not None:
            raise record.fault(
                f"{reader.column!r} is {name!r}, which is not a document id, but {known!r} is. If it lists "
                f"several ids, set 'dataset.gold_separator=\"{separator}\"'; if it is a single id whose "
                "document is missing, set dataset.unknown_judged=keep (only a retriever with its own documents or "
                "rankings can return it) or drop"
            )


def _describe(
    n_records: int, table: QuestionTable, columns: Mapping[str, str | None], reader: GoldReader | None
) -> str:
    """Return what was understood, in one line."""
    n, gold = len(table.queries), table.gold
    parts = [f"{n:,} {'question' if n == 1 else 'questions'} from `{columns['query_text']}`"]
    if reader and gold:
        kinds = "; ".join(kind for kind in gold.kinds if kind)
        parts += [f"gold from `{reader.column}`" + (f" ({kinds})" if kinds else "")]
        parts += _describe_texts(table, gold)
        parts += [f"grades from `{reader.grades}`"] if reader.grades else []
        unknown = gold.kinds[""]
        parts += [f"{unknown:,} of {gold.kinds.total():,} without a document"] if unknown else []
        judged = {query for query, _, _ in gold.qrels}
        empty = [row for row, query in zip(table.records, table.queries.ids, strict=True) if query not in judged]
        parts += [f"{len(empty):,} without gold, the first at {empty[0].location}"] if empty else []
    elif "query_golds" in columns:
        parts += ["no gold"]
    parts += [f"answers from `{columns['query_answer']}`"] if columns["query_answer"] else []
    parts += [f"ids from `{columns['query_id']}`" if columns["query_id"] else "no ids: numbered"]
    parts += [f"{n_records:,} rows, of which repeated questions became one"] if n_records > n else []
    return ", ".join(parts)


def _describe_texts(table: QuestionTable, gold: Gold) -> list[str]:
    """Return what is gold of the texts that questions quote, and how many are in several places."""
    spelt = Counter((span.query, spell(span.quote.text)) for span in table.spans if span.quote)
    if not gold.kinds[TEXTS] and not spelt:
        return []
    several = sum(n > 1 for n in spelt.values()) if table.spans else gold.several
    whole = "each text as a whole document (dataset.gold=spans: as a passage)"
    parts = ["each text as a passage" if table.spans else whole]
    if several:
        noun, where = "text" if several == 1 else "texts", "places" if table.spans else "documents"
        parts.append(f"{several:,} {noun} in several {where}, all of them gold")
    return parts


def _describe_no_gold(names: Collection[str], answer: str | None, hints: Sequence[str], file: str | None) -> str:
    """Return a message about a table without gold, with what may be it: `hints` are columns that name documents.

    `file` is that of the questions if there are no documents: its answers may be.
    """
    ways_out = [f"if {name!r} is the gold, set {arguments({'dataset.query_golds': name})}" for name in hints]
    if answer and file:
        own = {"dataset.documents": file, "dataset.document_text": answer, "dataset.query_golds": answer}
        ways_out.append(f"to search the answers, set {arguments(own)}")
    elif answer:
        ways_out.append(f"{answer!r} has answers, not documents")
    ways_out.append("to judge the results instead, set dataset.unjudged_queries=keep")
    return f"{describe_missing('query_golds', 'gold', names)}; {'; '.join(ways_out)}"


def describe_missing(setting: str, column: str, names: Collection[str]) -> str:
    """Return a message about a missing column, and the setting to name another column."""
    judged = "set dataset.qrels to the file of judgments, or " if setting == "query_golds" else ""
    beir = "; for a folder in BEIR's format, set dataset=beir" if "_id" in names else ""
    has = ", ".join(names) or "no columns"
    return (
        f"the column {column!r} is missing; the columns are {has}; {judged}set dataset.{setting} to the right "
        f"column{beir}"
    )
