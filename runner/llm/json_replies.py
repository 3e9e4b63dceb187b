"""Find JSON objects in the replies of language models, which often put text or a code fence around them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any


def iter_json_objects(text: str, is_wanted: Callable[[dict[str, Any]], bool]) -> Iterator[dict[str, Any]]:
    """Yield the wanted JSON objects in a text, but no objects inside these."""
    decoder, end = json.JSONDecoder(), 0
    for start in (match.start() for match in re.finditer(r"\{", text)):
        if start < end:
            continue
        try:
            content, after = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        if is_wanted(content):
            yield content
            end = after
