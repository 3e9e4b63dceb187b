"""Pack folders as arrays, so that a store keeps the files of an engine like any other work.

The files are mapped, not read, and copied when they are opened: an engine may write to its files, and several processes
may open the same index. Zeros at the end of a file, which engines reserve in advance, are left out.
"""

from __future__ import annotations

import json
import os
from pathlib import Path, PurePath

import numpy as np
from numpy.typing import NDArray

from retrievers.store import Arrays

_BLOCK = 1 << 20
"""How many bytes are compared with zero at a time."""


def pack_folder(folder: Path) -> Arrays:
    """Return the files of a folder as mapped arrays; the folder may be removed afterwards."""
    files = [file for file in sorted(folder.rglob("*")) if file.is_file()]
    names = json.dumps([[str(file.relative_to(folder)), file.stat().st_size] for file in files])
    contents = {f"file_{place}": _map_file(file) for place, file in enumerate(files)}
    return {"names": np.frombuffer(names.encode(), dtype=np.uint8), **contents}


def unpack_folder(arrays: Arrays, folder: Path) -> None:
    """Write packed files into a folder; raises `OSError`, and the errors of `check_folder`."""
    check_folder(arrays)
    for place, (name, size) in enumerate(json.loads(arrays["names"].tobytes())):
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        arrays[f"file_{place}"].tofile(file)
        os.truncate(file, size)


def check_folder(arrays: Arrays) -> None:
    """Raise an error, such as `ValueError`, unless arrays are files that lie in the folder where they are written."""
    for place, (name, size) in enumerate(json.loads(arrays["names"].tobytes())):
        path, content = PurePath(name), arrays[f"file_{place}"]
        if path.anchor or ".." in path.parts:
            raise ValueError(f"{name}: the stored index names a file outside its folder")
        if content.dtype != np.uint8 or content.ndim != 1 or len(content) > size:
            raise ValueError(f"{name}: the content is {content.dtype} of shape {content.shape} instead of {size} bytes")


def _map_file(file: Path) -> NDArray[np.uint8]:
    end = file.stat().st_size
    with file.open("rb") as opened:  # faster than through a mapping
        while end:
            start = max(end - _BLOCK, 0)
            opened.seek(start)
            if np.frombuffer(opened.read(end - start), dtype=np.uint8).any():
                return np.memmap(file, dtype=np.uint8, mode="r", shape=(end,)).view(np.ndarray)
            end = start
    return np.zeros(0, dtype=np.uint8)
