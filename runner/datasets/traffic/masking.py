"""Mask personal data in texts by patterns; a list of patterns finds only what they describe."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Annotated

from pydantic import AfterValidator

CARD = "card"
"""The name of the pattern whose matches must also pass the Luhn check."""

PATTERNS: Mapping[str, str] = {
    "email": r"[\w.+-]+@[\w-]+\.[\w.-]*\w",
    "key": r"\b(?:sk|pk|ghp|gho|xox[abp]|AKIA|AIza|eyJ)[-_A-Za-z0-9]{12,}(?:\.[-_A-Za-z0-9]+)*",
    CARD: r"\b\d(?:[ -]?\d){12,18}\b",
    "phone": r"(?<![\w-])(?:\+|00)[\d ()/.-]{7,18}\d\b|(?<![\w-])0\d{2,4}[ /-]\d[\d -]{4,10}\d\b",
}
"""The patterns of personal data by name, in their order."""

OwnPatterns = Mapping[str, str | None] | None
"""Patterns beside `PATTERNS`, or None for a name that is left out; None: texts are not masked."""


def build_mask(own: OwnPatterns) -> Callable[[str], str]:
    """Return a function that replaces each match of the patterns by the name of its pattern, such as <email>.

    Raises `ValueError` for an invalid pattern.
    """
    patterns = {} if own is None else {**PATTERNS, **own}
    try:
        compiled = [(re.compile(pattern), name) for name, pattern in patterns.items() if pattern is not None]
    except re.error as error:
        raise ValueError(f"{error.pattern!r} is not a regular expression ({error})") from None

    @lru_cache(maxsize=1 << 16)
    def mask(text: str) -> str:
        for pattern, name in compiled:
            if name == CARD:
                text = pattern.sub(lambda match: f"<{CARD}>" if passes_luhn(match[0]) else match[0], text)
            else:
                text = pattern.sub(f"<{name}>", text)
        return text

    return mask


def _check(own: dict[str, str | None] | None) -> dict[str, str | None] | None:
    build_mask(own)
    return own


MaskPatterns = Annotated[dict[str, str | None] | None, AfterValidator(_check)]
"""The setting for patterns of one's own."""


def passes_luhn(text: str) -> bool:
    """Return whether the digits of a text have the check digit of Luhn (ISO/IEC 7812-1), as card numbers do."""
    digits = [int(character) for character in text if character.isdecimal()][::-1]
    doubled = (digit * 2 - 9 * (digit > 4) for digit in digits[1::2])
    return (sum(digits[::2]) + sum(doubled)) % 10 == 0
