"""Queries and judgments without documents, for retrievers that have their own: a search API, a run, an object."""

from __future__ import annotations

from pydantic.dataclasses import dataclass as settings

from runner.datasets import files
from runner.datasets.base import Raw, corpus_of
from runner.datasets.filtering import DocumentFields
from runner.datasets.source import DatasetSource
from runner.datasets.tabular import Tabular, is_table
from runner.datasets.trec import Trec


@settings(frozen=True, config={"extra": "forbid"})
class JudgedFiles(DatasetSource):
    """Files of queries and judgments, and perhaps of documents.

    `queries` are JSONL as in BEIR, TSV (id, text), TREC topics, or a table: CSV, Parquet, or any file of rows whose
    columns `query_id` and `query_text` name. `qrels` have three or four columns as in BEIR and TREC, or are a table
    with the columns `qrel_query`, `qrel_document` and `qrel_grade`. `documents` are read as by `Trec`; a retriever with
    its own index needs none, and their texts are only for readers.
    """

    queries: str
    qrels: str
    documents: str | None = None
    query_id: str | None = None
    query_text: str = "text"
    query_type: str | None = None
    qrel_query: str = "query_id"
    qrel_document: str = "document_id"
    qrel_grade: str | None = "grade"

    @property
    def origin(self) -> str:
        """Return the queries' file."""
        return self.queries

    def read(self) -> Raw:
        """Read the files."""
        cluster, own = self.cluster_field, self.filter_field
        lines = Trec(
            topics=self.queries, qrels=self.qrels, documents=self.documents, cluster_field=cluster, filter_field=own
        )
        table = Tabular(
            queries=self.queries, qrels=self.qrels, cluster_field=cluster, filter_field=own,
            query_id=self.query_id or "id", query_text=self.query_text, query_type=self.query_type,
            qrel_query=self.qrel_query, qrel_document=self.qrel_document, qrel_grade=self.qrel_grade,
        )  # fmt: skip
        topics, judgments = files.resolve_path(self.queries, "queries"), files.resolve_path(self.qrels, "qrels")
        in_columns = self.query_id is not None or is_table(topics)
        queries = table.read_queries()[0] if in_columns else lines.read_queries(topics)
        fields = DocumentFields(queries, self.queries)
        return Raw(
            corpus=corpus_of(lines.iter_documents(fields)),
            queries=queries,
            qrels=list(table.iter_qrels(self.qrels)) if is_table(judgments, ".jsonl") else files.qrels(judgments),
            qrels_name=self.qrels,
            document_fields=fields.names,
        )
