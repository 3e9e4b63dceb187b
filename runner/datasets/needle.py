"""Read needles in a folder of documents: questions, each with the document that answers it and the answer in words.

The needle is named for the whole file (`needle_doc_id`) or for each question (`doc_id`, `expected_docs`,
`target_doc_id`). A question may have several wordings (`human_queries`, `realistic_q1`), each of which is a query;
their metadata share its id as `question_id`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic.dataclasses import dataclass as settings

from runner.datasets import files
from runner.datasets.base import EXPECTED_ANSWER, DatasetError, Qrel, Queries, Raw
from runner.datasets.files import SourceRecord
from runner.datasets.folder import corpus_of_folder, is_document
from runner.datasets.source import DatasetSource

_TYPES = ("type", "dimension", "variant", "category")
_OWN_WAYS = "human_queries"
_QUESTION = "question_id"
"""The key in a query's metadata for the id of the question that it rewords."""

Names = tuple[str, ...]


@settings(frozen=True, config={"extra": "forbid"})
class Needle(DatasetSource):
    """A JSON file of questions, and the folder of Markdown or text files with their needles.

    The names of its fields are settings. `lists` are the lists of questions at the top level of the file. A question's
    id is in `id_field`, or else its number; its text is in the first existing field of `text_fields`. Each of the
    `variant_fields` that a question has is a query of its own. `gold_fields` name the documents that answer it, and
    `answer_fields` the answer in words; the first existing one is used. `type_field` names the field of its type; null
    for the first existing one of `type`, `dimension`, `variant` and `category`.
    """

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
        path = files.resolve_path(self.questions, "questions")
        content = files.json_content(path)
        records = list(self._records(path, content))
        if not records:
            raise DatasetError(f"{path}: the file has no questions")
        needle = str(content.get("needle_doc_id") or "") if isinstance(content, dict) else ""
        ids: list[str] = []
        texts: list[str] = []
        types: list[str] = []
        metadata: list[Mapping[str, Any]] = []
        qrels: list[Qrel] = []
        for number, record in enumerate(records, start=1):
            if self.id_field not in record.fields:
                record = record._replace(fields={self.id_field: f"q{number:04d}", **record.fields})
            golds = self._golds(record, needle)
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
        field = next((name for name in self.gold_fields if record.fields.get(name)), "needle_doc_id")
        listed = record.fields.get(field) or needle
        listed = [listed] if isinstance(listed, str) else listed
        if not isinstance(listed, list) or not all(isinstance(gold, str) for gold in listed):
            raise record.fault(f"{field!r} is {listed!r:.60}; expected a document id or a list of them")
        golds = [Path(gold).with_suffix("").as_posix() if is_document(Path(gold)) else gold for gold in listed]
        if not golds or not all(golds):
            raise record.fault(
                f"the question has no gold document, either in {', '.join(self.gold_fields)} or in the file's "
                "needle_doc_id; add one, or set dataset.gold_fields to the field that names it"
            )
        return list(dict.fromkeys(golds))

    def _ways(self, record: SourceRecord) -> Iterator[SourceRecord]:
        """Yield the wordings of a question, each with the fields of the question and an id of its own."""
        ways = record.fields.get(_OWN_WAYS) or []
        if not isinstance(ways, list) or not all(isinstance(way, dict) for way in ways):
            raise record.fault(f"{_OWN_WAYS!r} is not a list of JSON objects")
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
        idle = {self.id_field, _OWN_WAYS, *self.text_fields, *self.answer_fields, *self.gold_fields}
        others = {name: value for name, value in query.fields.items() if name not in idle}
        return {**others, **({EXPECTED_ANSWER: answer} if answer else {})}
