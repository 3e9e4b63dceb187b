"""Tables that store ids as one text: a million ids take two arrays, not a million objects.

Such a table is quickly made from the bytes of a file, sent to another process and written to Parquet.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from retrievers.compiled.layouts import Pieces

_LARGEST = 2**31 - 1
"""The most bytes of an Arrow column of strings."""

_ERRORS = "surrogatepass"  # Python's text may have lone surrogates


class IdTable(Sequence[str]):
    """Ids in UTF-8, one after the other: the i-th is `text[starts[i]:starts[i + 1]]` (uint8, int64).

    `pieces` is the hash table of the ids (`retrievers.pieces`), None before it is built.
    """

    __slots__ = ("pieces", "starts", "text")

    def __init__(self, text: NDArray[np.uint8], starts: NDArray[np.int64], pieces: Pieces | None = None) -> None:
        self.text, self.starts, self.pieces = text.view(), starts, pieces
        self.text.flags.writeable = False

    @staticmethod
    def of(ids: Sequence[str]) -> IdTable:
        """Return ids as a table; a table is returned unchanged."""
        if isinstance(ids, IdTable):
            return ids
        joined = "".join(ids)
        encoded: Sequence[str | bytes] = ids if joined.isascii() else [name.encode("utf-8", _ERRORS) for name in ids]
        starts = np.zeros(len(ids) + 1, dtype=np.int64)
        np.cumsum(np.fromiter(map(len, encoded), np.int64, len(ids)), out=starts[1:])
        return IdTable(np.frombuffer(joined.encode("utf-8", _ERRORS), np.uint8), starts)

    @staticmethod
    def of_arrow(column: Any) -> IdTable:  # noqa: ANN401 (pyarrow has no types)
        """Return an array of strings as a table; the text may be larger than 2 GiB."""
        import pyarrow

        _, offsets, text = column.buffers()
        kind = np.int64 if column.type == pyarrow.large_string() else np.int32
        starts = np.frombuffer(offsets or bytes(8), kind)[column.offset : column.offset + len(column) + 1]
        first = int(starts[0])
        return IdTable(np.frombuffer(text or b"", np.uint8)[first : starts[-1]], starts.astype(np.int64) - first)

    def to_arrow(self) -> Any:  # noqa: ANN401 (pyarrow has no types)
        """Return the table as an array of strings, without `pyarrow.compute`, which takes long to load.

        Raises `pyarrow.ArrowInvalid` for text that is not UTF-8, `OverflowError` above 2 GiB.
        """
        import pyarrow

        if len(self.text) > _LARGEST:
            raise OverflowError(f"the ids take {len(self.text):,} bytes; a column holds at most {_LARGEST:,}")
        text, starts = np.ascontiguousarray(self.text), self.starts.astype(np.int32)
        column = pyarrow.StringArray.from_buffers(len(self), pyarrow.py_buffer(starts), pyarrow.py_buffer(text))
        column.validate(full=True)
        return column

    def to_list(self) -> list[str]:
        """Return the ids as strings."""
        text, starts = self.text.tobytes(), self.starts.tolist()
        if text.isascii():
            characters = text.decode()
            return [characters[begin:end] for begin, end in pairwise(starts)]
        return [text[begin:end].decode("utf-8", _ERRORS) for begin, end in pairwise(starts)]

    def __len__(self) -> int:
        return len(self.starts) - 1

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> list[str]: ...

    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            return self.to_list()[place]
        place = range(len(self))[place]
        return self.text[self.starts[place] : self.starts[place + 1]].tobytes().decode("utf-8", _ERRORS)

    def __iter__(self) -> Iterator[str]:
        return iter(self.to_list())

    def __reduce__(self) -> tuple[type[IdTable], tuple[NDArray[np.uint8], NDArray[np.int64]]]:
        return IdTable, (self.text, self.starts)


def select_ids(ids: Sequence[str], is_selected: NDArray[np.bool_]) -> Sequence[str]:
    """Return the ids that a mask selects, in their order."""
    if is_selected.all():
        return ids
    names = ids.to_list() if isinstance(ids, IdTable) else ids
    return [names[place] for place in np.flatnonzero(is_selected).tolist()]
