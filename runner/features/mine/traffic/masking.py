"""Mask personal data in texts by patterns; a list of patterns finds only what they describe."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

CARD = "card"
"""The name of the pattern whose matches must also pass the Luhn check."""


class Masks:
    """Patterns by name, in the order in which they apply; `counts` are the matches so far.

    Raises `ValueError` for an invalid pattern.
    """

    def __init__(self, patterns: Mapping[str, str]) -> None:
        try:
            self._patterns = {name: re.compile(pattern) for name, pattern in patterns.items()}
        except re.error as error:
            raise ValueError(f"{error.pattern!r} is not a regular expression ({error})") from None
        self.counts: Counter[str] = Counter()

    def mask(self, text: str) -> str:
        """Return a text in which each match is replaced by the name of its pattern, such as <email>."""
        for name, pattern in self._patterns.items():
            text = pattern.sub(lambda match, name=name: self._replace(match[0], name), text)  # type: ignore[misc]  # bound at once
        return text

    def _replace(self, text: str, name: str) -> str:
        if name == CARD and not passes_luhn(text):
            return text
        self.counts[name] += 1
        return f"<{name}>"


def passes_luhn(text: str) -> bool:
    """Return whether the digits of a text have the check digit of Luhn (ISO/IEC 7812-1), as card numbers do."""
    digits = [int(character) for character in text if character.isdecimal()][::-1]
    doubled = (digit * 2 - 9 * (digit > 4) for digit in digits[1::2])
    return (sum(digits[::2]) + sum(doubled)) % 10 == 0
