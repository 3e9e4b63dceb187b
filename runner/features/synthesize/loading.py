"""Load chunks from files of chunks, from folders of documents, or from the bundled golden corpus.

Documents are split into chunks, and chunks without vectors are embedded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.base import Corpus
from retrievers.encoders.base import Encoder
from retrievers.store import Store, fingerprint_texts
from runner.config.addresses import LocalPath
from runner.config.objects import ConfigError
from runner.datasets.chunk_files import ChunkTable, check_chunks, corpus_id, is_chunk_file, read_chunks
from runner.datasets.chunking import DOCUMENT, Chunking
from runner.datasets.folder import corpus_of_folder, count_skipped_text, is_document
from runner.datasets.golden_json import BUNDLED, GoldenJson
from runner.features.synthesize.base import Chunks

COLUMNS = ("doc_ids", "chunk_ids", "titles", "texts")

GOLDEN = f"{BUNDLED}golden"
"""The path of the documents of the bundled golden dataset."""


@settings(frozen=True, kw_only=True, config={"extra": "forbid", "arbitrary_types_allowed": True})
class ChunkSource:
    """One or several paths to files of chunks, folders of such files, or folders of documents to split by `chunking`.

    `format` decides what to read from a folder with both. Chunks without vectors are embedded by `encoder`; vectors in
    files must have `dimensions`, if given. A null path means the bundled golden corpus.
    """

    encoder: Encoder
    chunking: Chunking
    path: LocalPath | tuple[LocalPath, ...] | None = None
    format: Literal["chunks", "documents"] | None = None
    dimensions: int | None = Field(default=None, ge=1)

    @property
    def paths(self) -> tuple[str, ...]:
        """Return the paths to read, in order; empty for the bundled golden corpus."""
        paths = (self.path,) if isinstance(self.path, str) else self.path or ()
        return () if paths == (GOLDEN,) else paths


def read(source: ChunkSource) -> ChunkTable:
    """Read chunks, or split documents into chunks; raises `ConfigError` or `DatasetError`."""
    check_source(source)
    if not source.paths:
        golden = GoldenJson(
            path=f"{BUNDLED}queries.json", items=f"{BUNDLED}items.jsonl", title_field="title", text_fields=("text",)
        )
        return _cut(golden.load().corpus, source.chunking)
    tables = {path: _read(source, path) for path in source.paths}
    _check_alike(tables)
    if len(tables) == 1:
        return tables[source.paths[0]]
    several = tables.values()
    vectors = [table.vectors for table in several if table.vectors is not None]
    columns = {name: [row for table in several for row in getattr(table, name)] for name in COLUMNS}
    return ChunkTable(**columns, vectors=np.concatenate(vectors) if vectors else None)


def count_skipped_files(source: ChunkSource) -> Counter[str]:
    """Count the text files that are not read from folders of documents, by file extension."""
    folders = [path for name in source.paths if (path := Path(name).expanduser()).is_dir()]
    return sum((count_skipped_text(path) for path in folders if _kind(source, path) == "documents"), Counter[str]())


def check_source(source: ChunkSource) -> None:
    """Raise `ConfigError` or `DatasetError`, without reading all files, if a path has neither chunks nor documents."""
    for name in source.paths:
        path = Path(name).expanduser()
        if not path.exists():
            raise ConfigError(f"source.path={name}: no such file or folder")
        if _kind(source, path) == "chunks":
            check_chunks(path)


def _read(source: ChunkSource, name: str) -> ChunkTable:
    path = Path(name).expanduser()
    if _kind(source, path) == "chunks":
        return read_chunks(path, source.dimensions)
    return _cut(corpus_of_folder(path), source.chunking)


def _check_alike(tables: Mapping[str, ChunkTable]) -> None:
    """Raise `ConfigError` if a chunk is in two paths, or if the vectors of the paths differ in length."""
    widths = {path: 0 if table.vectors is None else table.vectors.shape[1] for path, table in tables.items()}
    first, of_first = next(iter(widths.items()))
    places: dict[tuple[str, str], str] = {}
    for path, table in tables.items():
        if widths[path] != of_first:
            raise ConfigError(
                f"source.path={path}: the vectors have {widths[path]} dimensions, but those in {first} have "
                f"{of_first} (0 means no vectors); embed all chunks with one model, or remove all vectors"
            )
        for key in zip(table.doc_ids, table.chunk_ids, strict=True):
            if (other := places.setdefault(key, path)) != path:
                raise ConfigError(
                    f"source.path={path}: the chunk {key[1]!r} of {key[0]!r} is also in {other}; each pair of ids "
                    "must be unique. For two folders of documents, name their common parent"
                )


def embed_chunks(source: ChunkSource, table: ChunkTable, store: Store) -> Chunks:
    """Return chunks with vectors of length 1, or of length 0 if the encoder has no vector for a text."""
    vectors = table.vectors
    if vectors is None:
        corpus = Corpus(list(map(corpus_id, table.doc_ids, table.chunk_ids)), table.texts, table.titles)
        vectors = np.concatenate(list(source.encoder.embed(corpus, store).documents))
        if source.dimensions not in (None, vectors.shape[1]):
            raise ConfigError(
                f"source.dimensions={source.dimensions}: the vectors of the encoder have {vectors.shape[1]} "
                "dimensions; set this number"
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


def hash_chunks(chunks: Chunks) -> str:
    """Return a hash of the ids, titles, texts and vectors of chunks, in order."""
    titles = chunks.titles or [""] * len(chunks)
    columns = zip(chunks.doc_ids, chunks.chunk_ids, titles, chunks.texts, chunks.vectors, strict=True)
    return fingerprint_texts(text for *texts, vector in columns for text in (*texts, vector.tobytes().hex()))


def _kind(source: ChunkSource, path: Path) -> Literal["chunks", "documents"]:
    """Return whether a path contains chunks or documents."""
    if path.is_file():
        if is_document(path) or source.format == "documents":
            raise ConfigError(f"source.path={path}: expected a folder of documents, found a file")
        return "chunks"
    files = [file for file in path.rglob("*") if file.is_file() and not file.name.startswith(".")]
    there = {"chunks": any(map(is_chunk_file, files)), "documents": any(map(is_document, files))}
    if source.format is not None and there[source.format]:
        return source.format
    if not there["chunks"] and not there["documents"]:
        raise ConfigError(
            f"source.path={path}: contains neither documents (.md, .txt) nor chunks (.jsonl, .parquet, .json)"
        )
    if source.format is not None:
        raise ConfigError(
            f"source.path={path}: contains no {source.format}, but source.format={source.format} requires them"
        )
    if there["chunks"] and there["documents"]:
        raise ConfigError(
            f"source.path={path}: contains both chunk files and documents; choose source.format=chunks or documents"
        )
    return "chunks" if there["chunks"] else "documents"


def _cut(corpus: Corpus, chunking: Chunking) -> ChunkTable:
    """Return the chunks of documents; a document that is not split is chunk 0."""
    chunked = chunking.split(corpus)
    titles = list(chunked.titles) or [""] * len(chunked)
    if chunked is corpus:
        return ChunkTable(list(corpus.ids), ["0"] * len(corpus), titles, list(corpus.texts))
    documents = [str(metadata[DOCUMENT]) for metadata in chunked.metadata]
    numbers = [
        identifier.removeprefix(f"{document}#") for identifier, document in zip(chunked.ids, documents, strict=True)
    ]
    return ChunkTable(documents, numbers, titles, list(chunked.texts))


def _directions(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return vectors scaled to length 1; scaling by a power of two first avoids overflow and underflow of squares."""
    _, exponents = np.frexp(np.abs(vectors).max(axis=1, keepdims=True))
    scaled = np.ldexp(vectors, -exponents)
    lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
    scaled /= np.where(lengths > 0, lengths, 1.0)
    return np.ascontiguousarray(scaled, dtype=np.float32)
