"""Read a synthetic ground truth: queries generated from chunks, with the chunks and documents that answer them.

Each line has `query`, `expected_doc_ids`, `context_chunks` (`doc_id`, `chunk_id`, `chunk`), `validation` with the
`query_type`, and optionally an `id`. A query without expected documents is a no-result query. Nothing here depends on
how queries are generated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar, Literal

from pydantic.dataclasses import dataclass as settings

from retrievers.access import Access
from retrievers.base import Corpus
from retrievers.runs.run_formats import strip_compression
from runner.datasets import files
from runner.datasets.base import DatasetError, Qrel, Queries, Raw, corpus_of
from runner.datasets.chunk_files import ChunkTable, corpus_id, is_chunk_file, iter_chunks, read_chunks
from runner.datasets.files import Place, PlaceTable, SourceRecord
from runner.datasets.folder import corpus_of_folder, warn_skipped
from runner.datasets.source import SHARED_PATHS, DatasetSource

BESIDE = ".chunks.jsonl"
"""The suffix of the file of chunks next to the file of queries."""


@settings(frozen=True, config={"extra": "forbid"})
class Synthetic(DatasetSource):
    """A file of queries (`path`) on a corpus: a file of chunks, a folder of such files, or a folder of documents.

    A null corpus is the file of chunks next to the queries, `PATH.chunks.jsonl`. On level `chunk`, the gold items are
    the chunks that a query was generated from; on level `document`, the documents of these chunks; null is the level of
    the corpus. With `gold=spans`, documents are joined from their chunks, and gold is the file of spans next to the
    queries.
    """

    access: ClassVar[Access] = Access(paths=(*SHARED_PATHS, "path", "corpus"))

    path: str
    corpus: str | None = None
    level: Literal["chunk", "document"] | None = None

    def read(self) -> Raw:
        """Read the queries and the corpus."""
        path = files.resolve_path(self.path, "path")
        records = list(files.json_lines(path))
        validations = [record.mapping("validation") for record in records]
        queries = Queries(
            ids=[_identify_query(record, number) for number, record in enumerate(records, start=1)],
            texts=[record.text("query") for record in records],
            types=[str(validation.get("query_type") or "") for validation in validations],
            metadata=files.with_named_fields(records, validations, self.query_fields),
        )
        corpus, has_chunks = self._corpus(path)
        golds = _golden_chunks(records, corpus) if has_chunks else map(_golden_documents, records)
        qrels: list[Qrel] = [(q, gold, 1) for q, row in zip(queries.ids, golds, strict=True) for gold in row]
        return Raw(corpus, queries, qrels, judged=queries.ids, qrels_name=str(path))

    def iter_places(self, table: PlaceTable) -> Iterator[Place]:
        """Yield the place of each chunk or query; a judgment is in the line of its query."""
        path = files.resolve_path(self.path, "path")
        if table == "document":
            for chunk in iter_chunks(self._corpus_path(path)):
                names = chunk.identifier("doc_id"), chunk.identifier("chunk_id")
                yield chunk.location, (names[0] if self._joins_chunks else corpus_id(*names),)
            return
        records = list(files.json_lines(path))
        queries = [(record.location, _identify_query(record, n)) for n, record in enumerate(records, start=1)]
        if table == "query":
            yield from ((place, (query,)) for place, query in queries)
            return
        corpus, has_chunks = self._corpus(path)
        golds = _golden_chunks(records, corpus) if has_chunks else map(_golden_documents, records)
        for (place, query), row in zip(queries, golds, strict=True):
            yield from ((place, (query, gold)) for gold in row)

    @property
    def _joins_chunks(self) -> bool:
        """Return whether chunks are joined to whole documents."""
        return self.level == "document" or self.gold == "spans"

    def _corpus_path(self, path: Path) -> Path:
        return files.resolve_path(self.corpus or path.with_name(strip_compression(path.name) + BESIDE), "corpus")

    def _corpus(self, path: Path) -> tuple[Corpus, bool]:
        """Return the corpus, and whether it consists of chunks."""
        if self.gold == "spans" and self.level == "chunk":
            raise DatasetError("dataset.level=chunk: spans are passages of whole documents; remove it, or set document")
        place = self._corpus_path(path)
        if place.is_dir() and not any(file.is_file() and is_chunk_file(file) for file in place.rglob("*")):
            if self.level == "chunk":
                raise DatasetError(
                    f"dataset.level=chunk: {place} contains documents, but the queries were generated from "
                    f"chunks; remove dataset.corpus, or name the file of chunks ({path.name}{BESIDE})"
                )
            warn_skipped(place, "corpus")
            return corpus_of_folder(place, "corpus"), False
        chunks = read_chunks(place)
        return (join_chunks(chunks)[0], False) if self._joins_chunks else (_chunks(chunks), True)


def name_query(number: int) -> str:
    """Return the id of a query that has none, by its place in the file, from 1."""
    return f"s{number:05d}"


def _identify_query(record: SourceRecord, number: int) -> str:
    return record.identifier("id") if "id" in record.fields else name_query(number)


def _chunks(chunks: ChunkTable) -> Corpus:
    """Return chunks as documents that record which document they are from."""
    metadata = [{"document_id": document} for document in chunks.doc_ids]
    ids = list(map(corpus_id, chunks.doc_ids, chunks.chunk_ids))
    return Corpus(ids, chunks.texts, chunks.titles if any(chunks.titles) else (), metadata)


def join_chunks(chunks: ChunkTable) -> tuple[Corpus, list[int]]:
    """Return documents joined from their chunks, and the offset of each chunk's text in its document.

    If a document has several chunks, their titles go into the text.
    """
    sizes, lengths, offsets = Counter(chunks.doc_ids), Counter[str](), []
    parts: dict[str, list[str]] = {}
    titles: dict[str, str] = {}
    for document, title, text in zip(chunks.doc_ids, chunks.titles, chunks.texts, strict=True):
        before = "\n\n" if document in parts else ""
        if sizes[document] == 1:
            titles[document] = title
        elif title:
            before += f"{title}\n"
        offsets.append(lengths[document] + len(before))
        lengths[document] += len(before) + len(text)
        parts.setdefault(document, []).extend((before, text))
    return corpus_of((document, titles.get(document, ""), "".join(own)) for document, own in parts.items()), offsets


def _golden_chunks(records: Sequence[SourceRecord], corpus: Corpus) -> Iterator[list[str]]:
    """Yield the chunks that each query was generated from; raises `DatasetError` if the text of one has changed."""
    texts = dict(zip(corpus.ids, corpus.texts, strict=True))
    for record in records:
        golds = []
        for chunk in record.objects("context_chunks", required=True):
            gold = corpus_id(chunk.identifier("doc_id"), chunk.identifier("chunk_id"))
            if texts.get(gold, text := chunk.text("chunk", "chunk_text")) != text:
                raise record.fault(
                    f"the text of chunk {gold!r} differs from its text in dataset.corpus; use the chunks that the "
                    "queries were generated from"
                )
            golds.append(gold)
        if not golds and record.fields.get("expected_doc_ids"):
            raise record.fault("'context_chunks' is empty, but 'expected_doc_ids' is not; set dataset.level=document")
        yield golds


def _golden_documents(record: SourceRecord) -> list[str]:
    """Return the documents that answer a query."""
    listed = record.array("expected_doc_ids", required=True)
    if not listed and record.fields.get("context_chunks"):
        raise record.fault(
            "'expected_doc_ids' is empty, but 'context_chunks' is not; add the documents of these chunks"
        )
    return [record.parse_id("expected_doc_ids", document) for document in listed]
