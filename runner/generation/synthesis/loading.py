"""Where chunks come from: files of chunks, folders of documents that are cut here, the bundled golden corpus.

What has no vectors is embedded here. It knows nothing of which chunks are good ones.
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
from runner.config.objects import ConfigError
from runner.datasets.chunk_files import ChunkTable, check_chunks, corpus_id, is_chunk_file, read_chunks
from runner.datasets.chunking import DOCUMENT, Chunking
from runner.datasets.folder import corpus_of_folder, count_skipped_text, is_document
from runner.datasets.golden_json import BUNDLED, GoldenJson
from runner.generation.synthesis.base import Chunks

COLUMNS = ("doc_ids", "chunk_ids", "titles", "texts")

GOLDEN = f"{BUNDLED}golden"
"""The path that means the documents of the bundled golden dataset."""


@settings(frozen=True, kw_only=True, config={"extra": "forbid", "arbitrary_types_allowed": True})
class ChunkSource:
    """A file of chunks, a folder of such files, or a folder of documents, to which `chunking` is applied; or several.

    `format` says which of the two a folder that has both is. Chunks without vectors are embedded by `encoder`; those
    that bring vectors are to have so many `dimensions`, if given. A null path is the bundled golden corpus.
    """

    encoder: Encoder
    chunking: Chunking
    path: str | tuple[str, ...] | None = None
    format: Literal["chunks", "documents"] | None = None
    dimensions: int | None = Field(default=None, ge=1)

    @property
    def paths(self) -> tuple[str, ...]:
        """Return what is read, in order; nothing where that is the bundled golden corpus."""
        paths = (self.path,) if isinstance(self.path, str) else self.path or ()
        return () if paths == (GOLDEN,) else paths


def read(source: ChunkSource) -> ChunkTable:
    """Read chunks, or cut documents into some; raises `ConfigError` or `DatasetError`, which says what is wrong."""
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


def skipped_files(source: ChunkSource) -> Counter[str]:
    """Count the text files of folders of documents that are not read, by their ending."""
    folders = [path for name in source.paths if (path := Path(name).expanduser()).is_dir()]
    return sum((count_skipped_text(path) for path in folders if _kind(source, path) == "documents"), Counter[str]())


def check_source(source: ChunkSource) -> None:
    """Raise `ConfigError` or `DatasetError`, at once, where a path has neither chunks nor documents."""
    for name in source.paths:
        path = Path(name).expanduser()
        if not path.exists():
            raise ConfigError(f"source.path={name}: does not exist")
        if _kind(source, path) == "chunks":
            check_chunks(path)


def _read(source: ChunkSource, name: str) -> ChunkTable:
    path = Path(name).expanduser()
    if _kind(source, path) == "chunks":
        return read_chunks(path, source.dimensions)
    return _cut(corpus_of_folder(path), source.chunking)


def _check_alike(tables: Mapping[str, ChunkTable]) -> None:
    """Raise `ConfigError` where a chunk of one path is in another too, or their vectors are not of one length."""
    widths = {path: 0 if table.vectors is None else table.vectors.shape[1] for path, table in tables.items()}
    first, of_first = next(iter(widths.items()))
    places: dict[tuple[str, str], str] = {}
    for path, table in tables.items():
        if widths[path] != of_first:
            raise ConfigError(
                f"source.path={path}: its vectors have {widths[path]} dimensions, and those in {first} {of_first}; "
                "0 is none: embed all of them with one model, or leave all vectors out"
            )
        for key in zip(table.doc_ids, table.chunk_ids, strict=True):
            if (other := places.setdefault(key, path)) != path:
                raise ConfigError(
                    f"source.path={path}: the chunk {key[1]!r} of {key[0]!r} is in {other} too: a pair of ids is one; "
                    "of two folders of documents, name the one that both are in"
                )


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
    return fingerprint_texts(text for *texts, vector in columns for text in (*texts, vector.tobytes().hex()))


def _kind(source: ChunkSource, path: Path) -> Literal["chunks", "documents"]:
    """Return whether a path has chunks or documents."""
    if path.is_file():
        if is_document(path) or source.format == "documents":
            raise ConfigError(f"source.path={path}: is one file: name the folder that the documents are in")
        return "chunks"
    files = [file for file in path.rglob("*") if file.is_file() and not file.name.startswith(".")]
    there = {"chunks": any(map(is_chunk_file, files)), "documents": any(map(is_document, files))}
    if source.format is not None and there[source.format]:
        return source.format
    if not there["chunks"] and not there["documents"]:
        raise ConfigError(f"source.path={path}: has neither documents (.md, .txt) nor chunks (.jsonl, .parquet, .json)")
    if source.format is not None:
        raise ConfigError(f"source.path={path}: has no {source.format}, which source.format asks for")
    if there["chunks"] and there["documents"]:
        raise ConfigError(
            f"source.path={path}: has files of chunks and documents: say which is meant, source.format=chunks "
            "or documents"
        )
    return "chunks" if there["chunks"] else "documents"


def _cut(corpus: Corpus, chunking: Chunking) -> ChunkTable:
    """Return the chunks of documents; a document that is not cut is a chunk, 0."""
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
    """Return vectors at length 1; they are scaled by a power of two before, as not every float has a square."""
    _, exponents = np.frexp(np.abs(vectors).max(axis=1, keepdims=True))
    scaled = np.ldexp(vectors, -exponents)
    lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
    scaled /= np.where(lengths > 0, lengths, 1.0)
    return np.ascontiguousarray(scaled, dtype=np.float32)
