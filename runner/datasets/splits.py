"""Find the splits of paths that contain `{split}` in place of a split's name. Nothing here reads the files."""

from __future__ import annotations

import glob
import re
from pathlib import Path

from retrievers.runs.run_formats import COMPRESSIONS
from runner.config.addresses import SPLIT


def list_splits(path: str) -> set[str]:
    """Return the splits for which a path names an existing file or folder, compressed or not."""
    whole = Path(path).expanduser()
    begin, *others = map(re.escape, str(whole).split(SPLIT))
    named = re.compile(begin + "([^/.]+)" + r"\1".join(others) + f"(?:{'|'.join(map(re.escape, COMPRESSIONS))})?")
    pattern = "*".join([*map(glob.escape, str(whole.relative_to(whole.anchor)).split(SPLIT)), ""])
    there = map(str, Path(whole.anchor).glob(re.sub(r"\*+", "*", pattern)))  # "**" would match folders at any depth
    return {match[1] for place in there if (match := named.fullmatch(place))}
