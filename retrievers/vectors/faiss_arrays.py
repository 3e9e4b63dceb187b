"""Take the parts of an index of FAISS apart as arrays, and put them together again.

FAISS's own format is never read: a reader of it trusts sizes and positions, and may open files that the bytes name.
Others may write to a shared store, so the arrays are checked before FAISS gets them: no position in them leads outside.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from retrievers.store import Arrays

if TYPE_CHECKING:
    import faiss


def pack_index(index: faiss.Index) -> Arrays:
    """Return the parts of an index, with a row for each vector in `codes`."""
    import faiss

    own: Any = index
    parts: dict[str, NDArray[Any]] = {}
    if hasattr(own, "invlists"):
        parts["centroids"] = faiss.downcast_index(own.quantizer).reconstruct_n(0, own.nlist)
        parts["cells"] = np.empty(own.ntotal, dtype=np.int32)
        parts["codes"] = np.empty((own.ntotal, own.code_size), dtype=np.uint8)
        for cell, ids, codes in _iter_cells(own.invlists):
            parts["cells"][ids], parts["codes"][ids] = cell, codes
    else:
        parts["codes"] = faiss.vector_to_array(_find_storage(own).codes).reshape(own.ntotal, -1)
    if (learned := _find_learned(own)) is not None:
        parts["learned"] = faiss.vector_to_array(learned)
    if hasattr(own, "hnsw"):
        parts["levels"] = faiss.vector_to_array(own.hnsw.levels)
        parts["neighbours"] = faiss.vector_to_array(own.hnsw.neighbors)
        parts["entry"] = np.array(own.hnsw.entry_point, dtype=np.int32)
    return parts


def check_parts(index: faiss.Index, n: int, parts: Arrays) -> None:
    """Raise an error unless an empty index can be filled with parts of n vectors: `ValueError`, `LookupError`."""
    own: Any = index
    storage = _find_storage(own)
    _check("codes", parts, np.uint8, (n, storage.code_size))
    if (learned := _count_learned(own)) is not None:
        _check("learned", parts, np.float32, (learned,))
    if hasattr(own, "invlists"):
        _check("centroids", parts, np.float32, (own.nlist, own.d))
        _check("cells", parts, np.int32, (n,))
        _check_range("cells", parts["cells"], 0, own.nlist)
    if hasattr(own, "hnsw"):
        _check("levels", parts, np.int32, (n,))
        _check("entry", parts, np.int32, ())
        _check_links(own.hnsw, parts)


def fill_index(index: faiss.Index, parts: Arrays) -> faiss.Index:
    """Return an empty index filled with its checked parts."""
    import faiss

    own: Any = index
    codes = np.ascontiguousarray(parts["codes"])
    if (learned := _find_learned(own)) is not None:
        faiss.copy_array_to_vector(parts["learned"], learned)
    if hasattr(own, "invlists"):
        own.quantizer.add(parts["centroids"])
        order = np.argsort(parts["cells"], kind="stable")  # in each cell, vectors are in the order of their ids
        sizes = np.bincount(parts["cells"], minlength=own.nlist)
        for cell, ids in enumerate(np.split(order, np.cumsum(sizes)[:-1])):
            if len(ids):
                members = codes[ids]
                own.invlists.add_entries(cell, len(ids), faiss.swig_ptr(ids), faiss.swig_ptr(members))
    else:
        storage = _find_storage(own)
        storage.is_trained = True
        storage.add_sa_codes(codes)
    if hasattr(own, "hnsw"):
        faiss.copy_array_to_vector(parts["levels"], own.hnsw.levels)
        faiss.copy_array_to_vector(_place_links(own.hnsw, parts["levels"]), own.hnsw.offsets)
        faiss.copy_array_to_vector(parts["neighbours"], own.hnsw.neighbors)
        own.hnsw.entry_point, own.hnsw.max_level = int(parts["entry"]), int(parts["levels"].max()) - 1
    own.is_trained, own.ntotal = True, len(codes)
    return index


def _find_storage(index: Any) -> Any:  # noqa: ANN401 (faiss's stubs lack most attributes)
    """Return the index that has the codes of vectors."""
    import faiss

    return faiss.downcast_index(index.storage) if hasattr(index, "hnsw") else index


def _find_learned(index: Any) -> Any:  # noqa: ANN401
    """Return the vector of C++ with what the codes of an index mean; None if they are the numbers themselves."""
    storage = _find_storage(index)
    if hasattr(storage, "sq"):
        return storage.sq.trained
    return storage.pq.centroids if hasattr(storage, "pq") else None


def _count_learned(index: Any) -> int | None:  # noqa: ANN401
    """Return how many numbers `_find_learned` has in a trained index."""
    storage = _find_storage(index)
    if hasattr(storage, "sq"):
        return 2 * int(storage.d)  # the least value of each dimension, and the width of its range
    return int(storage.pq.M * storage.pq.ksub * storage.pq.dsub) if hasattr(storage, "pq") else None


def _iter_cells(lists: Any) -> Iterator[tuple[int, NDArray[np.int64], NDArray[np.uint8]]]:  # noqa: ANN401
    """Yield each cell with the ids and the codes of its vectors."""
    import faiss

    for cell in range(lists.nlist):
        if n := lists.list_size(cell):
            codes = faiss.rev_swig_ptr(lists.get_codes(cell), n * lists.code_size)
            yield cell, faiss.rev_swig_ptr(lists.get_ids(cell), n), codes.reshape(n, -1)


def _place_links(hnsw: Any, levels: NDArray[np.int32]) -> NDArray[np.uint64]:  # noqa: ANN401
    """Return where the links of each vector start, and where the last ones end."""
    import faiss

    space = faiss.vector_to_array(hnsw.cum_nneighbor_per_level).astype(np.uint64)
    return np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(space[levels], dtype=np.uint64)])


def _check_links(hnsw: Any, parts: Arrays) -> None:  # noqa: ANN401
    """Raise `ValueError` unless each link leads to a vector that has links on the same level."""
    import faiss

    space = faiss.vector_to_array(hnsw.cum_nneighbor_per_level)
    levels, neighbours, entry = parts["levels"], parts["neighbours"], int(parts["entry"])
    _check_range("levels", levels, 1, len(space))
    _check_range("entry", parts["entry"], 0, len(levels))
    if levels[entry] != levels.max():
        raise ValueError("entry is not on the highest level")
    starts = _place_links(hnsw, levels).astype(np.int64)
    _check("neighbours", parts, np.int32, (int(starts[-1]),))
    _check_range("neighbours", neighbours, -1, len(levels))
    for level in range(1, int(levels.max())):
        (above,) = np.nonzero(levels > level)
        links = neighbours[starts[above][:, None] + np.arange(space[level], space[level + 1])]
        if (levels[links[links >= 0]] <= level).any():
            raise ValueError(f"neighbours has a vector that has no links on level {level}")


def _check(name: str, parts: Arrays, dtype: type, shape: tuple[int, ...]) -> None:
    """Raise `ValueError` for an array of another type or shape, or with numbers that are not finite."""
    array = parts[name]
    if array.dtype != dtype or array.shape != shape:
        raise ValueError(f"{name} is {array.dtype} of shape {array.shape} instead of {np.dtype(dtype)} of {shape}")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError(f"{name} has a number that is not finite")


def _check_range(name: str, array: NDArray[np.int32], least: int, end: int) -> None:
    """Raise `ValueError` for a number below `least`, or not below `end`."""
    if array.size and not least <= int(array.min()) <= int(array.max()) < end:
        raise ValueError(f"{name} has a number that is not from {least} to {end - 1:,}")
