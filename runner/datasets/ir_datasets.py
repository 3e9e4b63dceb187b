"""Read datasets by name from the `ir_datasets` library, such as beir/scifact/test or cranfield."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any, ClassVar, Self

from pydantic import model_validator
from pydantic.dataclasses import dataclass as settings

from retrievers.access import Access
from retrievers.extras import check_installed
from runner.datasets import files
from runner.datasets.base import DatasetError, Qrel, Queries, Raw, corpus_of
from runner.datasets.source import SHARED_PATHS, DatasetSource

EXTRA = "datasets"
"""The extra that installs the libraries for datasets by name."""


@settings(frozen=True, config={"extra": "forbid"})
class IrDatasets(DatasetSource):
    """A dataset of `ir_datasets`, which downloads its files once and then reads them from its own folder.

    The fields are those of the dataset's documents and queries in the library. Without `document_text`, the text is the
    field `text`, or else the library's default text of a document; without `query_text`, it is the library's default
    text of a query. A document's field `title` is its title.
    """

    access: ClassVar[Access] = Access("services", names=("id",), paths=SHARED_PATHS)

    id: str
    document_text: str | tuple[str, ...] | None = None
    query_text: str | None = None

    @model_validator(mode="after")
    def _check_installed(self) -> Self:
        check_installed("ir_datasets", "ir_datasets", EXTRA)
        return self

    @property
    def origin(self) -> str:
        """Return the id."""
        return self.id

    def read(self) -> Raw:
        """Read documents, queries and judgments; raises `DatasetError` for an unknown id or one without judgments."""
        import ir_datasets

        try:
            dataset = ir_datasets.load(self.id)
        except KeyError:
            close = get_close_matches(self.id, ir_datasets.registry, n=3)
            hint = f"did you mean {' or '.join(close)}?" if close else "ir-datasets.com lists the ids"
            raise DatasetError(f"dataset.id={self.id}: ir_datasets has no such dataset; {hint}") from None
        for part in ("docs", "queries", "qrels"):
            if not getattr(dataset, f"has_{part}")():
                raise DatasetError(f"dataset.id={self.id}: has no {part}; {self._suggest_subset(ir_datasets.registry)}")
        try:
            return Raw(
                corpus=corpus_of(self._iter_documents(dataset)),
                queries=self._read_queries(dataset),
                qrels=list(_iter_qrels(dataset)),
                qrels_name=self.id,
            )
        except (OSError, RuntimeError) as error:  # errors of requests are OSErrors
            raise DatasetError(f"dataset.id={self.id}: ir_datasets cannot read it: {error}") from error

    def _suggest_subset(self, registry: Any) -> str:  # noqa: ANN401 (the library has no types)
        subsets = sorted(name for name in registry if name.startswith(f"{self.id}/") and registry[name].has_qrels())
        return f"choose one of its parts: {', '.join(subsets[:5])}" if subsets else "choose another dataset"

    def _iter_documents(self, dataset: Any) -> Iterator[tuple[str, str, str]]:  # noqa: ANN401 (see above)
        chosen = self.document_text
        names = (chosen,) if isinstance(chosen, str) else chosen
        if names is None:
            names = ("text",) if "text" in dataset.docs_cls()._fields else ()
        self._check_fields("document_text", names, dataset.docs_cls()._fields)
        has_title = "title" in dataset.docs_cls()._fields and "title" not in names and bool(names)
        for document in dataset.docs_iter():
            text = "\n".join(str(getattr(document, name) or "") for name in names) if names else document.default_text()
            yield document.doc_id, (document.title or "") if has_title else "", text

    def _read_queries(self, dataset: Any) -> Queries:  # noqa: ANN401 (see above)
        fields = dataset.queries_cls()._fields
        self._check_fields("query_text", (self.query_text,) if self.query_text else (), fields)
        queries = list(dataset.queries_iter())
        metadata = [{name: getattr(query, name) for name in fields[1:] if name != "text"} for query in queries]
        records = [files.SourceRecord(self.id, number, about) for number, about in enumerate(metadata, start=1)]
        return Queries(
            ids=[query.query_id for query in queries],
            texts=[str(getattr(q, self.query_text)) if self.query_text else q.default_text() for q in queries],
            types=[""] * len(queries),
            metadata=files.with_named_fields(records, metadata, self.query_fields) if any(metadata) else (),
        )

    def _check_fields(self, setting: str, names: tuple[str, ...], fields: tuple[str, ...]) -> None:
        for name in names:
            if name not in fields:
                has = ", ".join(fields[1:])
                raise DatasetError(f"dataset.{setting}={name}: {self.id} has no such field; choose from {has}")


def _iter_qrels(dataset: Any) -> Iterator[Qrel]:  # noqa: ANN401 (see above)
    for qrel in dataset.qrels_iter():
        yield qrel.query_id, qrel.doc_id, int(qrel.relevance)
