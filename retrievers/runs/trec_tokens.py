"""Write ids as the words of a TREC run, without white space, and read them back.

Only a file whose tag says so has such ids: in files of other programs, `%20` is part of an id, such as an address.
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

MARK = "percent-encoded:"
"""The beginning of the tag of a run in which ids are encoded."""

_ENCODED = re.compile(r"[\s%\0-\x1f\x7f\ufeff]")


def encode_token(text: str) -> str:
    """Return an id with white space, control characters and "%" percent-encoded; "%" for an empty one."""
    return _ENCODED.sub(lambda character: quote(character[0]), text) or "%"


def decode_token(word: str) -> str:
    """Return the id of an encoded word; any other word is returned unchanged."""
    if "%" not in word:
        return word
    decoded = "" if word == "%" else unquote(word)
    return decoded if encode_token(decoded) == word else word
