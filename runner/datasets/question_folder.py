"""Read questions about a folder of documents: a table of questions in any form, and a folder in several formats."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import ClassVar

from pydantic.dataclasses import dataclass as settings

from retrievers.access import Access
from retrievers.base import Corpus
from runner.datasets.base import Raw
from runner.datasets.document_texts import READERS
from runner.datasets.files import Place, PlaceTable
from runner.datasets.folder import corpus_of_folder, describe_folder, describe_left_out
from runner.datasets.questions import QuestionColumns, QuestionTable
from runner.datasets.source import SHARED_PATHS


@settings(frozen=True, config={"extra": "forbid"})
class QuestionFolder(QuestionColumns):
    """A folder of documents, and a file of questions with the documents that answer them.

    `extensions` are those of further documents: PDF and DOCX, and others, which are read as plain text.
    """

    access: ClassVar[Access] = Access(paths=(*SHARED_PATHS, "path", "questions"))

    path: str
    questions: str
    extensions: tuple[str, ...] = ()

    def read(self) -> Raw:
        """Read the folder and the file."""
        table, corpus = self._read()
        return Raw(
            corpus,
            table.queries,
            qrels=table.qrels,
            judged=table.judged,
            qrels_name=self.questions,
            reading=f"{describe_folder(self.path, self._extensions)}; {table.reading}",
            unknown_cause=describe_left_out(self.path, self._extensions, table.unknown) or table.cause,
        )

    def iter_places(self, table: PlaceTable) -> Iterator[Place]:
        """Yield the row of each query or judgment."""
        if table == "query":
            yield from self.read_table().iter_places()
        elif table == "judgment":
            yield from self.read_table().iter_gold_places()

    @property
    def _extensions(self) -> Collection[str]:
        return (*READERS, *(f".{ending.lower().lstrip('.')}" for ending in self.extensions))

    def read_table(self) -> QuestionTable:
        """Read the questions and their gold."""
        return self._read()[0]

    def _read(self) -> tuple[QuestionTable, Corpus]:
        return self.read_questions(
            self.questions, lambda _: corpus_of_folder(self.path, "path", self._extensions), setting="questions"
        )
