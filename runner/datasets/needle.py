"""Read needles in a folder of documents: questions, each with the document that answers it and the answer in words.

The needle is named for the whole file (`needle_doc_id`) or for each question (`doc_id`, `expected_docs`,
`target_doc_id`). A question may have several wordings (`human_queries`, `realistic_q1`), each of which is a query;
their metadata share its id as `question_id`.

A question may also name the passages that answer it, as `spans` or as lines of a document (`guide.md:10-20`); with
`dataset.gold=spans`, these are the gold.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from pydantic.dataclasses import dataclass as settings

from retrievers.access import Access
from runner.datasets import files
from runner.datasets.base import EXPECTED_ANSWER, DatasetError, Qrel, Queries, Raw
from runner.datasets.files import Place, PlaceTable, SourceRecord
from runner.datasets.folder import corpus_of_folder, is_document, warn_skipped
from runner.datasets.rows import read_content
from runner.datasets.source import SHARED_PATHS, DatasetSource
from runner.datasets.spans import GoldSpan, parse_span

_TYPES = ("type", "dimension", "variant", "category")
_OWN_WAYS = "human_queries"
_SPANS = "spans"
_LINES = re.compile(r"(.+\.\w+):(\d+)(?:-(\d+))?")
"""A document with the lines that answer a question."""
_QUESTION = "question_id"
"""The key in a query's metadata for the id of the question that it rewords."""

Names = tuple[str, ...]


@settings(frozen=True, config={"extra": "forbid"})
class Needle(DatasetSource):
    """A file of questions in JSON, JSON lines or YAML, and the folder of Markdown or text files with their needles.

    The names of its fields are settings. `lists` are the lists of questions at the top level of the file. A question's
    id is in `id_field`, or else its number; its text is in the first existing field of `text_fields`. Each of the
    `variant_fields` that a question has is a query of its own. `gold_fields` name the documents that answer it, and
    `answer_fields` the answer in words; the first existing one is used. `type_field` names the field of its type; null
    for the first existing one of `type`, `dimension`, `variant` and `category`.
    """

    access: ClassVar[Access] = Access(paths=(*SHARED_PATHS, "questions", "documents"))

    questions: str
    documents: str
    lists: Names = ("questions", "queries", "failed_queries", "passing_queries", "per_question")
    id_field: str = "id"
    text_fields: Names = ("question", "query", "original_query")
    variant_fields: Names = ("realistic_q1", "realistic_q2")
    gold_fields: Names = ("expected_docs", "doc_id", "target_doc_id")
    answer_fields: Names = ("expected_answer", "ground_truth_answer")
    type_field: str | None = None

    @property
    def origin(self) -> str:
        """Return the file of questions."""
        return self.questions

    def read(self) -> Raw:
        """Read the file and the folder."""
        path, records, needle = self._read_questions()
        warn_skipped(self.documents)
        ids: list[str] = []
        texts: list[str] = []
        types: list[str] = []
        metadata: list[Mapping[str, Any]] = []
        qrels: list[Qrel] = []
        for record in records:
            golds = [] if self.gold == "spans" else self._golds(record, needle)
            for query in self._ways(record):
                ids.append(query.identifier(self.id_field))
                texts.append(query.text(*self.text_fields))
                types.append(self._type(query))
                metadata.append(self._metadata(query))
                qrels += [(ids[-1], gold, 1) for gold in golds]
        if self.type_field and not any(types):
            raise DatasetError(f"dataset.type_field={self.type_field}: no question of {path} has this field")
        return Raw(
            corpus=corpus_of_folder(self.documents),
            queries=Queries(ids, texts, types, metadata),
            qrels=qrels,
            qrels_name=str(path),
        )

    def iter_places(self, table: PlaceTable) -> Iterator[Place]:
        """Yield the number of each question in its list; a judgment is where its question is."""
        _, records, needle = self._read_questions()
        for record in records if table != "document" else []:
            for query in self._ways(record):
                name = query.identifier(self.id_field)
                if table == "query":
                    yield record.location, (name,)
                else:
                    yield from ((record.location, (name, gold)) for gold in self._golds(record, needle))

    def read_spans(self) -> list[GoldSpan]:
        """Return the passages that the questions name, unless a setting names a file of spans."""
        if self.spans is not None:
            return super().read_spans()
        _, records, needle = self._read_questions()
        return [
            span
            for record in records
            for query in self._ways(record)
            for span in self._spans_of(record, query.identifier(self.id_field), needle)
        ]

    def _read_questions(self) -> tuple[Path, list[SourceRecord], str]:
        """Return the file, its questions, each with an id, and the needle that the file names for all."""
        path = files.resolve_path(self.questions, "questions")
        content = read_content(path)
        records = [
            record
            if self.id_field in record.fields
            else record._replace(fields={self.id_field: f"q{number:04d}", **record.fields})
            for number, record in enumerate(self._records(path, content), start=1)
        ]
        if not records:
            raise DatasetError(f"{path}: the file has no questions")
        return path, records, str(content.get("needle_doc_id") or "") if isinstance(content, dict) else ""

    def _spans_of(self, record: SourceRecord, query: str, needle: str) -> Iterator[GoldSpan]:
        """Yield the passages that answer a question; one without a document is in the question's gold document."""
        listed = [span.fields for span in record.objects(_SPANS)]
        if not listed:
            references = [_LINES.fullmatch(gold) for gold in self._references(record, needle)]
            listed = [
                {"doc_id": lines[1], "lines": [int(lines[2]), int(lines[3] or lines[2])]}
                for lines in references
                if lines
            ]
        if not listed:
            raise record.fault(
                f"the question names no passage; add {_SPANS!r}, or line numbers to its document, as in "
                "guide.md:10-20, or set dataset.gold=documents"
            )
        for span in listed:
            known = {"doc_id": None, **span}
            name = known["doc_id"] or known.get("document_id") or next(iter(self._golds(record, needle)))
            yield parse_span(record._replace(fields={**known, "doc_id": _name_document(str(name))}), query)

    def _records(self, path: Path, content: object) -> Iterator[SourceRecord]:
        """Yield the questions of all lists, or of a file that is itself a list."""
        if isinstance(content, list) and content:
            yield from files.json_objects(path, "question", content)
            return
        lists = [name for name in self.lists if isinstance(content, dict) and isinstance(content.get(name), list)]
        if not isinstance(content, dict) or not lists:
            raise DatasetError(
                f"{path}: expected a JSON object with a list of questions under one of the keys "
                f"{', '.join(self.lists)}; set dataset.lists to the key in this file"
            )
        for name in lists:
            yield from files.json_objects(path, name, content[name])

    def _type(self, query: SourceRecord) -> str:
        for name in [self.type_field] if self.type_field else _TYPES:
            if query.fields.get(name):
                return query.identifier(name)
        return ""

    def _golds(self, record: SourceRecord, needle: str) -> list[str]:
        """Return the documents that answer a question."""
        golds = list(dict.fromkeys(map(_name_document, self._references(record, needle))))
        if not golds or not all(golds):
            raise record.fault(
                f"the question has no gold document in {', '.join(self.gold_fields)} or in the file's needle_doc_id; "
                "add one, or set dataset.gold_fields to the field that names it"
            )
        return golds

    def _references(self, record: SourceRecord, needle: str) -> list[str]:
        """Return the documents that a question names, as written there."""
        field = next((name for name in self.gold_fields if record.fields.get(name)), "needle_doc_id")
        listed = record.fields.get(field) or needle
        listed = [listed] if isinstance(listed, str) else listed
        if not isinstance(listed, list) or not all(isinstance(gold, str) for gold in listed):
            raise record.fault(f"{field!r} is {listed!r:.60}; expected a document id or a list of them")
        return listed

    def _ways(self, record: SourceRecord) -> Iterator[SourceRecord]:
        """Yield the wordings of a question, each with the fields of the question and an id of its own."""
        ways = [way.fields for way in record.objects(_OWN_WAYS)]
        variants = [name for name in self.variant_fields if record.fields.get(name)]
        if not ways and not variants:
            yield record
            return
        text_field = self.text_fields[0]
        own = next((name for name in self.text_fields if record.fields.get(name)), "")
        every: list[Mapping[str, Any]] = [
            *([{text_field: record.text(own), "dimension": "original"}] if own else []),
            *({text_field: record.text(name), "dimension": name} for name in variants),
            *ways,
        ]
        left_out = {*self.text_fields, *self.variant_fields, _OWN_WAYS}
        known = {name: value for name, value in record.fields.items() if name not in left_out}
        identifier = record.identifier(self.id_field)
        for number, way in enumerate(every):
            yield record._replace(
                fields={_QUESTION: identifier, **known, **way, self.id_field: f"{identifier}.{number}"}
            )

    def _metadata(self, query: SourceRecord) -> dict[str, Any]:
        """Return the other fields of a question, with the expected answer under the standard key."""
        answer = next((query.text(name) for name in self.answer_fields if query.fields.get(name)), "")
        idle = {self.id_field, _OWN_WAYS, _SPANS, *self.text_fields, *self.answer_fields, *self.gold_fields}
        others = {name: value for name, value in query.fields.items() if name not in idle}
        return {**others, **({EXPECTED_ANSWER: answer} if answer else {})}


def _name_document(reference: str) -> str:
    """Return the id of a document that a question names by its file, perhaps with lines."""
    lines = _LINES.fullmatch(reference)
    name = lines[1] if lines and is_document(Path(lines[1])) else reference
    return Path(name).with_suffix("").as_posix() if is_document(Path(name)) else name
