"""Builds Arrow columns from lists and NumPy arrays without `pyarrow.array`.

`pyarrow.array` imports pandas, if it is installed, to recognise its objects. This takes 50 MiB and a quarter of a
second, and this program has no such objects. The columns are equal to those of `pyarrow.array`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import accumulate, chain, count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrievers.id_table import IdTable


def build_text_column(values: Iterable[str]) -> Any:  # noqa: ANN401 (pyarrow has no types)
    """Return a column of strings; raises `pyarrow.ArrowInvalid` for lone surrogates."""
    return IdTable.of(values if isinstance(values, Sequence) else list(values)).to_arrow()


def build_number_column(values: NDArray[Any]) -> Any:  # noqa: ANN401 (pyarrow has no types)
    """Return a column of numbers or booleans, of the array's type; NaN becomes null."""
    import pyarrow as pa

    known = ~np.isnan(values)
    valid = None if known.all() else pa.py_buffer(np.packbits(known, bitorder="little"))
    packed = np.packbits(values, bitorder="little") if values.dtype == np.bool_ else np.ascontiguousarray(values)
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [valid, pa.py_buffer(packed)])


def build_coded_column(codes: NDArray[np.int32], values: Iterable[str]) -> Any:  # noqa: ANN401 (pyarrow has no types)
    """Return a dictionary-encoded column of strings; `codes` are positions in `values`, which must be distinct.

    With equal values, pyarrow writes bytes to a Parquet file that differ each time.
    """
    import pyarrow as pa

    return pa.DictionaryArray.from_arrays(build_number_column(codes), build_text_column(values))


def build_dictionary_column(values: Iterable[str], codes: NDArray[np.int32] | None = None) -> Any:  # noqa: ANN401 (pyarrow has no types)
    """Return a dictionary-encoded column of strings; distinct values are stored once, in order of first occurrence.

    `codes` are positions in `values`, by default each of them once.
    """
    numbers: defaultdict[str, int] = defaultdict(count().__next__)
    numbered = np.fromiter((numbers[value] for value in values), np.int32)
    return build_coded_column(numbered if codes is None else numbered[codes], numbers)


def build_list_column(lists: Sequence[Sequence[Any]], values: Any) -> Any:  # noqa: ANN401 (pyarrow has no types)
    """Return a column of lists; `values` is the column of all their values, concatenated."""
    import pyarrow as pa

    return pa.ListArray.from_arrays(build_number_column(_offsets(lists)), values)


def build_text_lists(lists: Sequence[Sequence[str]]) -> Any:  # noqa: ANN401 (pyarrow has no types)
    """Return a column of lists of strings."""
    return build_list_column(lists, build_text_column(chain.from_iterable(lists)))


def build_integer_lists(lists: Sequence[Sequence[int]]) -> Any:  # noqa: ANN401 (pyarrow has no types)
    """Return a column of lists of int32."""
    return build_list_column(lists, build_number_column(np.fromiter(chain.from_iterable(lists), np.int32)))


def _offsets(parts: Sequence[Sequence[Any]]) -> NDArray[np.int32]:
    """Return the offset of each part in their concatenation, and the end; raises `OverflowError` above int32."""
    return np.array(list(accumulate(map(len, parts), initial=0)), dtype=np.int32)
