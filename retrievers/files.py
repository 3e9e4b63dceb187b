"""Files written whole or not at all, whatever ends the process in between."""

from __future__ import annotations

import uuid
from pathlib import Path


def write_whole(file: Path, content: bytes) -> None:
    """Write a file beside its place and rename it into it; make its folder where there is none. Raises `OSError`."""
    file.parent.mkdir(parents=True, exist_ok=True)
    aside = file.with_name(f".{file.name}.{uuid.uuid4().hex[:8]}.new")
    try:
        aside.write_bytes(content)
        aside.replace(file)
    finally:
        aside.unlink(missing_ok=True)
