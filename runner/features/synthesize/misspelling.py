"""Make typing errors: a neighbouring key, two transposed letters, or a missing letter.

The keyboard is the American one; letters that it lacks are transposed or left out.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from types import MappingProxyType

_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_SHIFT = (0.0, 0.25, 0.75)
"""The shift of each row of keys to the right of the first, in keys."""

LEAST_LETTERS = 4
"""An error in a shorter word would often make another word."""


def _neighbours() -> Mapping[str, str]:
    places = {key: (row, at + _SHIFT[row]) for row, keys in enumerate(_ROWS) for at, key in enumerate(keys)}

    def near(key: str) -> str:
        row, at = places[key]
        around = (k for k, (r, x) in places.items() if k != key and abs(r - row) <= 1 and abs(x - at) <= 1)
        return "".join(around)

    return MappingProxyType({key: near(key) for key in places})


NEIGHBOURS = _neighbours()
"""The keys around each key."""


def misspell(query: str, slips: int, chance: random.Random) -> str:
    """Return a query with `slips` typing errors, each in another word; unchanged if no word is long enough.

    The first letter of a word is kept, because errors there are rare: Damerau (1964), A technique for computer
    detection and correction of spelling errors; Mitton (1996), English Spelling and the Computer. Names in code, which
    people copy, get errors only if there is no ordinary word.
    """
    parts = query.split(" ")
    able = [at for at, part in enumerate(parts) if sum(map(str.isalpha, part)) >= LEAST_LETTERS]
    plain = [at for at in able if parts[at].isalpha() and (parts[at][1:].islower() or parts[at].isupper())]
    able = plain or able
    for at in chance.sample(able, min(slips, len(able))):
        parts[at] = make_error(parts[at], chance)
    return " ".join(parts)


def make_error(word: str, chance: random.Random) -> str:
    """Return a word with one typing error, or the word itself if no error can change it."""
    places = [at for at in range(1, len(word)) if word[at].isalpha()]
    swaps = [at for at in places if at + 1 < len(word) and word[at + 1].isalpha() and word[at + 1] != word[at]]
    kinds = ["neighbour", "transposition", "deletion"]
    for kind in chance.sample(kinds, len(kinds)):
        if kind == "transposition" and swaps:
            at = chance.choice(swaps)
            return word[:at] + word[at + 1] + word[at] + word[at + 2 :]
        keys = [at for at in places if word[at].lower() in NEIGHBOURS]
        if kind == "neighbour" and keys:
            at = chance.choice(keys)
            key = chance.choice(NEIGHBOURS[word[at].lower()])
            return word[:at] + (key.upper() if word[at].isupper() else key) + word[at + 1 :]
        if kind == "deletion" and places:
            at = chance.choice(places)
            return word[:at] + word[at + 1 :]
    return word
