"""Find the starts of words and the ends of sentences in a text. Nothing here depends on chunks."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import regex
from numpy.typing import NDArray

SPACELESS = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
"""Scripts that are written without spaces between words, for a character class of a regular expression.

Words are hard to detect in them, so each character counts as one.
"""

_PATTERNS = {
    " ": r"\s",
    "d": rf"[{SPACELESS}&&\p{{M}}]",  # marks, such as vowels above a letter
    "c": rf"[{SPACELESS}&&\w]",
    "p": rf"[{SPACELESS}]",
    "m": r"\p{M}",
    "w": r"\w",
    "'": "['’]",
    ".": r"[\s\S]",
}
_KINDS = {kind: regex.compile(pattern, regex.VERSION1) for kind, pattern in _PATTERNS.items()}

_OPENED = re.compile(r" ([.'p]+)([wmcd])")
_MARKED = re.compile(r"[cdp][dm_]+")
_JOINING = re.compile(r"'(?<=w')(?=w)")
_WORD, _CHARACTER = b"wc"

_ABBREVIATIONS = "Dr|Mr|Mrs|Ms|Prof|St|Sr|Jr|vs|cf|No|Nr|Fig|Sec|approx|ca|bzw|usw|Sra|Mme"
_END_OR_LINE = re.compile(r"[.!?…؟۔।॥。！？｡\n]")
_SENTENCE_END = regex.compile(
    rf"[.!?…؟۔।॥][\"'”’»)\]*_]{{0,4}}(?<!\b(?:\p{{L}}|{_ABBREVIATIONS})\.)\s++(?!\p{{Ll}})"  # not: J. Smith
    r"|[。！？｡][」』”’）】]{0,4}(?![」』”’）】。！？｡])"
    r"|\n[^\S\n]*\n\s*+"  # the end of a paragraph
    r"|\n(?=[^\S\n]*(?:[-*+•]|\d+[.)])\s)"  # the next item of a list
)


class _KindOf(dict[int, str]):
    """The kind of each character seen so far, by its code."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        self[code] = kind = next(kind for kind, pattern in _KINDS.items() if pattern.match(character))
        return kind


_kind_of = _KindOf()


def word_starts(text: str) -> NDArray[np.intp]:
    """Return the offsets of the words of a text, ascending.

    A word is a run of letters and digits, including apostrophes inside it; in scripts that are written without spaces,
    it is a character with its marks. An opening sign before it, such as a quotation mark or a bracket, belongs to the
    word. The text is translated to kinds of characters, which are then matched all at once.
    """
    kinds = _OPENED.sub(_as_one, f" {text.translate(_kind_of)}")
    kinds = _MARKED.sub(lambda match: match[0][0].ljust(len(match[0]), "_"), kinds)
    kinds = kinds.replace("d", "c").replace("p", "c").replace("m", "w")
    spelt = np.frombuffer(_JOINING.sub("w", kinds).encode(), dtype=np.uint8)
    here, before = spelt[1:], spelt[:-1]
    return np.flatnonzero((here == _CHARACTER) | ((here == _WORD) & (before != _WORD)))


def _as_one(opened: re.Match[str]) -> str:
    """Move a word's first character to the position of the signs that open it."""
    signs, first = opened.groups()
    return f" {first}{('w' if first in 'wm' else '_') * len(signs)}"


def sentence_ends(text: str) -> Iterator[int]:
    """Yield the ends of the sentences of a text, including white space after them; items of a list are sentences."""
    last = 0
    for sign in _END_OR_LINE.finditer(text):
        if sign.start() >= last and (end := _SENTENCE_END.match(text, sign.start())):
            last = end.end()
            yield last
