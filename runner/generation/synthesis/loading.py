"""Where chunks come from: files of chunks, folders of documents that are cut here, the bundled golden corpus.

What has no vectors is embedded here. It knows nothing of which chunks are good ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.base import Corpus
from retrievers.encoders.base import Encoder
from retrievers.store import Store, fingerprint_of
from runner.config.objects import ConfigError
from runner.datasets.chunk_files import ChunkTable, corpus_id, is_chunk_file, read_chunks
from runner.datasets.chunking import DOCUMENT, Chunking
from runner.datasets.folder import corpus_of_folder, is_document
from runner.datasets.golden_json import BUNDLED, GoldenJson
from runner.generation.synthesis.base import Chunks

GOLDEN = f"{BUNDLED}golden"
"""The path that means the documents of the bundled golden dataset."""


@settings(frozen=True, kw_only=True, config={"extra": "forbid", "arbitrary_types_allowed": True})
class ChunkSource:
    """A file of chunks, a folder of such files, or a folder of documents, to which `chunking` is applied.

    `format` says which of the two a folder that has both is. Chunks without vectors are embedded by `encoder`; those
    that bring vectors are to have so many `dimensions`, if given. A null path is the bundled golden corpus.
    """

    encoder: Encoder
    chunking: Chunking
    path: str | None = None
    format: Literal["chunks", "documents"] | None = None
    dimensions: int | None = Field(default=None, ge=1)


def read(source: ChunkSource) -> ChunkTable:
    """Read chunks, or cut documents into some; raises `ConfigError` or `DatasetError`, which says what is wrong."""
    if source.path in (None, GOLDEN):
        golden = GoldenJson(
            path=f"{BUNDLED}queries.json", items=f"{BUNDLED}items.jsonl", title_field="title", text_fields=("text",)
        )
        return _cut(golden.load().corpus, source.chunking)
    path = Path(source.path).expanduser()
    if not path.exists():
        raise ConfigError(f"source.path={source.path}: does not exist")
    if _kind(source, path) == "chunks":
        return read_chunks(path, source.dimensions)
    return _cut(corpus_of_folder(path), source.chunking)


def embedded(source: ChunkSource, table: ChunkTable, store: Store) -> Chunks:
    """Return chunks with a vector of length 1 each, or of length 0 where the encoder finds no direction."""
    vectors = table.vectors
    if vectors is None:
        corpus = Corpus(list(map(corpus_id, table.doc_ids, table.chunk_ids)), table.texts, table.titles)
        vectors = np.concatenate(list(source.encoder.embed(corpus, store).documents))
        if source.dimensions not in (None, vectors.shape[1]):
            raise ConfigError(
                f"source.dimensions={source.dimensions}: the encoder makes vectors of {vectors.shape[1]} dimensions"
            )
    return Chunks(table.doc_ids, table.chunk_ids, table.texts, table.titles, _directions(vectors))


def rows(chunks: Chunks, kept: NDArray[np.int64]) -> Chunks:
    """Return some of the chunks, by position."""
    columns: dict[str, Sequence[str]] = {
        name: [column[position] for position in kept.tolist()]
        for name in ("doc_ids", "chunk_ids", "texts", "titles")
        if len(column := getattr(chunks, name))
    }
    return replace(chunks, **columns, vectors=chunks.vectors[kept])


def fingerprint_of_chunks(chunks: Chunks) -> str:
    """Return a hash of all that is known of chunks, in their order."""
    titles = chunks.titles or [""] * len(chunks)
    columns = zip(chunks.doc_ids, chunks.chunk_ids, titles, chunks.texts, chunks.vectors, strict=True)
    return fingerprint_of(text for *texts, vector in columns for text in (*texts, vector.tobytes().hex()))


def _kind(source: ChunkSource, path: Path) -> Literal["chunks", "documents"]:
    """Return whether a path has chunks or documents."""
    if path.is_file():
        if is_document(path) or source.format == "documents":
            raise ConfigError(f"source.path={source.path}: is one file: name the folder that the documents are in")
        return "chunks"
    files = [file for file in path.rglob("*") if file.is_file() and not file.name.startswith(".")]
    there = {"chunks": any(map(is_chunk_file, files)), "documents": any(map(is_document, files))}
    if source.format is not None and there[source.format]:
        return source.format
    if not there["chunks"] and not there["documents"]:
        raise ConfigError(
            f"source.path={source.path}: has neither documents (.md, .txt) nor chunks (.jsonl, .parquet, .json)"
        )
    if source.format is not None:
        raise ConfigError(f"source.path={source.path}: has no {source.format}, which source.format asks for")
    if there["chunks"] and there["documents"]:
        raise ConfigError(
            f"source.path={source.path}: has files of chunks and documents: say which is meant, source.format=chunks "
            "or documents"
        )
    return "chunks" if there["chunks"] else "documents"


def _cut(corpus: Corpus, chunking: Chunking) -> ChunkTable:
    """Return the chunks of documents; a document that is not cut is a chunk, 0."""
    chunked = chunking.chunked(corpus)
    titles = list(chunked.titles) or [""] * len(chunked)
    if chunked is corpus:
        return ChunkTable(list(corpus.ids), ["0"] * len(corpus), titles, list(corpus.texts))
    documents = [str(metadata[DOCUMENT]) for metadata in chunked.metadata]
    numbers = [
        identifier.removeprefix(f"{document}#") for identifier, document in zip(chunked.ids, documents, strict=True)
    ]
    return ChunkTable(documents, numbers, titles, list(chunked.texts))


def _directions(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.ascontiguousarray(vectors / np.where(lengths > 0, lengths, 1.0), dtype=np.float32)
