"""Vectors from files, computed elsewhere: an encoder that looks documents and queries up by their ids."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic.dataclasses import dataclass as settings

from retrievers.access import Access
from retrievers.base import Corpus, RetrieverError
from retrievers.encoders.base import MAPPED_SHARD, Embedded, MappedVectors, Vectors
from retrievers.extras import check_installed
from retrievers.files import hash_file
from retrievers.store import Key, Store
from retrievers.work import LIVE_VECTORS

RESULTS_VERSION = "vector files 1"

_ID = ("id", "_id", "docid", "doc_id", "document_id", "qid", "query_id")
_VECTOR = ("vector", "embedding", "vectors", "embeddings")
"""The names of columns and tensors, in the order of preference."""


class VectorTable(NamedTuple):
    """The vectors of a file, shape (n, d), and the row of each id."""

    rows: dict[str, int]
    vectors: NDArray[Any]


@settings(frozen=True, config={"extra": "forbid"})
class VectorFiles:
    """Settings of vectors in files: one file for `documents` and one for `queries`, with a vector for each id.

    The ending is the format: `.parquet` (a column of ids and one of lists), `.npz` (arrays `ids` and `vectors`), or
    `.npy` and `.safetensors`, a matrix whose rows have their ids, one per line, in a file of the same name that ends in
    `.txt`. A `.npy` file may be larger than memory. Vectors of other ids are ignored. The identity is the content of
    the files, wherever they are.
    """

    access: ClassVar[Access] = Access(paths=("documents", "queries"))

    documents: str
    queries: str

    def __repr__(self) -> str:
        """Return the hashes of the files."""
        return (
            f"{type(self).__name__}(documents={identify_file(self.documents)}, queries={identify_file(self.queries)})"
        )

    def embed(self, corpus: Corpus, store: Store) -> Embedded:
        """Return the vectors of the corpus; raises `RetrieverError` for a document or query without one."""
        table = _load_shared(self.documents, store)
        vectors = _select(table, list(corpus.ids), self.documents, "document")
        width = table.vectors.shape[1]

        def queries(texts: Sequence[str], store: Store) -> tuple[Vectors, NDArray[np.float32]]:
            ids = [getattr(text, "id", text) for text in texts]
            selected = _select(_load_shared(self.queries, store), ids, self.queries, "query").read(slice(None))
            if width != selected.shape[1]:
                raise RetrieverError(
                    f"{self.queries}: the vectors have {selected.shape[1]:,} dimensions, but those of "
                    f"{self.documents} have {width:,}; encode both with the same model"
                )
            return selected, np.full(
                len(texts), np.nan, dtype=np.float32
            )  # nothing is known of the time to encode them

        return Embedded(vectors, queries)


def load_vectors(path: Path) -> VectorTable:
    """Load a file of vectors; raises `RetrieverError` with its name if it is missing, malformed or repeats an id."""
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise RetrieverError(f"{path}: unknown format; the file must end in {', '.join(_READERS)}")
    if not path.is_file():
        raise RetrieverError(f"{path}: no such file")
    try:
        ids, vectors = reader(path)
    except RetrieverError:
        raise
    except Exception as error:  # of several libraries, each with errors of its own
        raise RetrieverError(f"{path}: cannot be read ({' '.join(str(error).split())[:200]})") from error
    _check(path, ids, vectors)
    return VectorTable({name: row for row, name in enumerate(ids)}, vectors)


def identify_file(file: str) -> str:
    """Return a hash of a file of vectors and of its ids, if those are in a file beside it."""
    path = Path(file).expanduser()
    beside = f"+{hash_file(_ids_beside(path))}" if path.suffix.lower() in _BESIDE else ""
    return f"{hash_file(path)}{beside}"


def _load_shared(file: str, store: Store) -> VectorTable:
    path = Path(file).expanduser()
    return store.share(Key.of(LIVE_VECTORS, __name__, file=identify_file(file)), partial(load_vectors, path))


def _select(table: VectorTable, ids: Sequence[str], file: str, what: str) -> MappedVectors:
    """Return the vectors of ids, in their order."""
    missing = [name for name in ids if name not in table.rows]
    if missing:
        raise RetrieverError(
            f"{file}: {len(missing):,} of {len(ids):,} ids of {'queries' if what == 'query' else 'documents'} have no "
            f"vector, such as {missing[0]!r}; add a row for each, or choose an encoder that reads texts"
        )
    rows = np.fromiter((table.rows[name] for name in ids), dtype=np.int64, count=len(ids))
    in_order = len(rows) == len(table.vectors) and bool((rows == np.arange(len(rows))).all())
    return MappedVectors(table.vectors, None if in_order else rows)


def _check(path: Path, ids: Sequence[str], vectors: NDArray[Any]) -> None:
    if vectors.ndim != 2 or not np.issubdtype(vectors.dtype, np.number) or np.iscomplexobj(vectors):
        raise RetrieverError(
            f"{path}: expected numbers with one row per vector, found an array of {vectors.dtype} with shape "
            f"{vectors.shape}"
        )
    if len(ids) != len(vectors):
        raise RetrieverError(f"{path}: {len(vectors):,} vectors, but {len(ids):,} ids")
    if len(set(ids)) != len(ids):
        seen: set[str] = set()
        repeated = next(name for name in ids if name in seen or seen.add(name))  # type: ignore[func-returns-value]  # add() returns None
        raise RetrieverError(f"{path}: the id {repeated!r} occurs more than once")
    for start in range(0, len(vectors), MAPPED_SHARD):
        finite = np.isfinite(vectors[start : start + MAPPED_SHARD]).all(axis=1)
        if not finite.all():
            name = ids[start + int(np.argmin(finite))]
            raise RetrieverError(f"{path}: the vector of {name!r} has a value that is NaN or infinite")


def _ids_beside(path: Path) -> Path:
    return path.with_suffix(".txt")


def _read_ids(path: Path) -> list[str]:
    file = _ids_beside(path)
    if not file.is_file():
        raise RetrieverError(
            f"{path}: its ids are missing; write them to {file}, one per line in the order of the rows"
        )
    return file.read_text(encoding="utf-8").splitlines()


def _read_npy(path: Path) -> tuple[list[str], NDArray[Any]]:
    return _read_ids(path), np.load(path, mmap_mode="r", allow_pickle=False)


def _read_npz(path: Path) -> tuple[list[str], NDArray[Any]]:
    with np.load(path, allow_pickle=False) as arrays:
        names = (_find(("ids",), arrays.files, path), _find(_VECTOR, arrays.files, path))
        return [str(name) for name in arrays[names[0]].tolist()], arrays[names[1]]


def _read_parquet(path: Path) -> tuple[list[str], NDArray[Any]]:
    from pyarrow import compute, parquet

    names = parquet.ParquetFile(path).schema_arrow.names
    name, vector = _find(_ID, names, path), _find(_VECTOR, names, path)
    table = parquet.read_table(path, columns=[name, vector])
    column = table[vector].combine_chunks()
    lengths = compute.unique(compute.list_value_length(column)).to_pylist()
    if len(lengths) > 1:
        some = ", ".join("null" if length is None else f"{length:,}" for length in lengths[:5])
        raise RetrieverError(f"{path}: the vectors have different lengths: {some}")
    flat = compute.list_flatten(column).to_numpy(zero_copy_only=False)
    return [str(i) for i in table[name].to_pylist()], flat.reshape(len(column), -1)


def _read_safetensors(path: Path) -> tuple[list[str], NDArray[Any]]:
    check_installed("safetensors", "safetensors", "dense")
    from safetensors.numpy import load_file

    tensors = load_file(path)
    return _read_ids(path), next(iter(tensors.values())) if len(tensors) == 1 else tensors[
        _find(_VECTOR, tensors, path)
    ]


def _find(names: Sequence[str], there: Sequence[str] | dict[str, Any], path: Path) -> str:
    """Return the first of the names that is there; raises `RetrieverError`."""
    for name in names:
        if name in there:
            return name
    raise RetrieverError(f"{path}: has no {' or '.join(names)}, only {', '.join(there) or 'nothing'}")


_BESIDE = (".npy", ".safetensors")
_READERS = {".npy": _read_npy, ".npz": _read_npz, ".parquet": _read_parquet, ".safetensors": _read_safetensors}
