"""Paths that contain `{split}` in place of the name of a split. Nothing here reads the files."""

from __future__ import annotations

import glob
import re
from pathlib import Path

SPLIT = "{split}"
"""What stands in a path for the name of a split, which has no dot and no slash."""


def list_splits(path: str) -> set[str]:
    """Return the splits for which a path names a file or a folder that is there, packed or not."""
    whole = Path(path).expanduser()
    begin, *others = map(re.escape, str(whole).split(SPLIT))
    named = re.compile(begin + "([^/.]+)" + r"\1".join(others) + r"(?:\.gz)?")
    pattern = "*".join([*map(glob.escape, str(whole.relative_to(whole.anchor)).split(SPLIT)), ""])
    there = map(str, Path(whole.anchor).glob(re.sub(r"\*+", "*", pattern)))  # two stars are folders at any depth
    return {match[1] for place in there if (match := named.fullmatch(place))}
