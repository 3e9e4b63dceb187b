"""Rows of datasets, as files hold them, and a dataset made of such rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from retrievers.base import Corpus
from runner.datasets.base import EXPECTED_ANSWER, Queries, Raw
from runner.datasets.beir import Beir
from runner.datasets.dataset import Dataset


@dataclass(frozen=True)
class Rows:
    """Titles and texts of documents and texts of queries by id, and grades by query and document."""

    documents: dict[str, tuple[str, str]]
    queries: dict[str, str]
    qrels: dict[tuple[str, str], int]

    def document_rows(self) -> list[dict[str, Any]]:
        return [{"id": i, "title": title, "text": text} for i, (title, text) in self.documents.items()]

    def query_rows(self) -> list[dict[str, Any]]:
        return [{"id": i, "text": text} for i, text in self.queries.items()]

    def qrel_rows(self) -> list[dict[str, Any]]:
        return [{"query_id": q, "document_id": d, "grade": grade} for (q, d), grade in self.qrels.items()]


def make_dataset(
    documents: dict[str, tuple[str, str]], asked: dict[str, tuple[str, str, str]], judged: dict[str, dict[str, int]]
) -> Dataset:
    """Return a dataset of documents (title, text), queries (text, type, expected answer) and grades."""
    corpus = Corpus([*documents], [text for _, text in documents.values()], [title for title, _ in documents.values()])
    metadata = [{EXPECTED_ANSWER: answer} if answer else {} for *_, answer in asked.values()]
    queries = Queries(
        [*asked], [text for text, *_ in asked.values()], [kind for _, kind, _ in asked.values()], metadata
    )
    qrels = [(query, document, grade) for query, row in judged.items() for document, grade in row.items()]
    return Beir(path="x", unknown_judged="keep").assemble(Raw(corpus, queries, qrels, judged=[*asked]))
