"""Find a quoted passage again in a document that may have been edited since.

An exact match comes first, then one that differs only in white space, then the most similar passage. Where a quote
occurs several times, the text around it decides. A passage that cannot be told from another is lost, never guessed.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal, NamedTuple

CONTEXT = 240
"""How many characters before and after a span are stored with it."""

Method = Literal["exact", "position", "moved", "context", "white space", "fuzzy", "unchecked", "lost"]
"""How a span was found. Only `exact` is certain; all others are listed. An `unchecked` span has no quote."""

_MARGIN = 0.1
"""How much more similar the best candidate must be than the second best."""
_LEAST_CONTEXT = 0.5
_LEAST_NEIGHBOURS = 80
"""How many characters next to a passage, about two lines, must be unchanged to decide alone."""
_MOST_CANDIDATES = 5

_WORD = re.compile(r"\w+|[^\w\s]")
_LINE_END = re.compile(r"\r\n|\r|\n")


class Passage(NamedTuple):
    """A range of characters, and how similar it is to a quote, from 0 to 1."""

    start: int
    end: int
    score: float


@dataclass(frozen=True)
class Anchor:
    """The place of a span in a document: characters `start` to `end`, or the reason why it is lost.

    `score` is the similarity of the passage to the quote, or of its surroundings if the quote occurs several times.
    """

    start: int
    end: int
    method: Method
    score: float = 1.0
    reason: str = ""

    @property
    def is_lost(self) -> bool:
        """Return whether the span was not found."""
        return self.method == "lost"


@dataclass(frozen=True)
class Quote:
    """The text of a span, and what is known of its place when it was recorded.

    `start` is the offset of its first character. `before` and `after` are the text around it, None if not recorded.
    `occurrences` is how often the document contained the quote, and `digest` identifies the document's text.
    """

    text: str
    start: int | None = None
    before: str | None = None
    after: str | None = None
    occurrences: int | None = None
    digest: str | None = None


def hash_text(text: str) -> str:
    """Return the digest of a document's text, 16 hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def find_lines(text: str, first: int, last: int) -> Anchor:
    """Return the characters of the lines `first` to `last`, counted from 1, without the last line's end."""
    ends = [match.span() for match in _LINE_END.finditer(text)]
    starts = [0, *(end for _, end in ends)]
    if text.endswith(("\n", "\r")):
        starts.pop()
    if last > len(starts):
        return lose(f"the document has only {len(starts)} lines")
    return Anchor(starts[first - 1], ends[last - 1][0] if last <= len(ends) else len(text), "exact")


def list_lines(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the numbers of the first and the last line of a range of characters, counted from 1."""
    first = len(_LINE_END.findall(text, 0, start)) + 1
    return first, first + len(_LINE_END.findall(text, start, end))


def find_quote(quote: Quote, text: str, least: float) -> Anchor:
    """Return the place of a quote in a text; a fuzzy match needs a similarity of at least `least`."""
    # Why not simply the first occurrence: gold at a wrong place makes every retriever that finds the right place miss
    # it, and one that finds the wrong place a hit, so recall is wrong in both directions without a sign of it. A lost
    # span is counted and listed instead. The offset is certain only while the text of the whole document is unchanged;
    # after an edit above it, the same offset may be another occurrence, so such a match is listed as `position`.
    if not quote.text.strip():
        return lose("the quote is empty")
    if quote.digest is not None and quote.start is not None and quote.digest == hash_text(text):
        end = quote.start + len(quote.text)
        if text[quote.start : end] == quote.text:
            return Anchor(quote.start, end, "exact")
    if exact := [Passage(at, at + len(quote.text), 1.0) for at in _iter_occurrences(quote.text, text)]:
        return _choose_occurrence(quote, text, exact)
    spaced = re.compile(r"\s+".join(map(re.escape, quote.text.split())))
    if passages := [Passage(*match.span(), 1.0) for match in spaced.finditer(text)]:
        return _select(quote, text, passages, "white space")
    passages = [passage for passage in _find_similar(quote.text, text) if passage.score >= least]
    if not passages:
        return lose(f"the document has no passage with a similarity of {least:g} or more")
    return _select(quote, text, passages, "fuzzy")


def find_all(quote: str, text: str) -> list[int]:
    """Return the offsets of all occurrences of a quote in a text."""
    return list(_iter_occurrences(quote, text))


def lose(reason: str) -> Anchor:
    """Return the anchor of a span that was not found, with the reason."""
    return Anchor(-1, -1, "lost", 0.0, reason)


def _iter_occurrences(quote: str, text: str) -> Iterator[int]:
    at = text.find(quote)
    while at >= 0:
        yield at
        at = text.find(quote, at + 1)


def _choose_occurrence(quote: Quote, text: str, passages: Sequence[Passage]) -> Anchor:
    """Return the recorded one of the exact occurrences of a quote."""
    has_context = quote.before is not None or quote.after is not None
    if len(passages) == 1 and quote.occurrences in (None, 1):
        only = passages[0]
        score = _score_context(quote, text, only) if has_context else 1.0
        if score >= _LEAST_CONTEXT:
            return Anchor(only.start, only.end, "exact")
        return Anchor(only.start, only.end, "moved", score, "the text around it is different")
    if has_context:
        return _select(quote, text, passages, "context")
    here = next((passage for passage in passages if passage.start == quote.start), None)
    if here is None:
        return lose(f"the quote occurs {len(passages)} times; add the text before and after it, or its offset")
    return Anchor(here.start, here.end, "position", 1.0, f"the quote occurs {len(passages)} times; its offset decided")


def _select(quote: Quote, text: str, passages: Sequence[Passage], method: Method) -> Anchor:
    """Return the passage that clearly matches best: by the text next to it, by all text around it, or by its own."""
    contexts = {passage: _score_context(quote, text, passage) for passage in passages}
    best = _select_by_neighbours(quote, text, passages)
    if best is None:
        ranked = sorted(passages, key=lambda passage: (-contexts[passage], -passage.score, passage.start))
        best, *others = ranked
        second = contexts[others[0]] if others else 0.0
        if others and (second == 1.0 or contexts[best] < min(second + _MARGIN, 1.0)):
            ranked = sorted(passages, key=lambda passage: (-passage.score, -contexts[passage], passage.start))
            best, *others = ranked
            if best.score - others[0].score < _MARGIN:
                return lose(f"{len(passages)} passages match equally well")
        if method == "context" and contexts[best] < _LEAST_CONTEXT:
            return lose("the quote occurs elsewhere, but the text around it is different")
    if method == "context" and contexts[best] == 1.0:
        return Anchor(best.start, best.end, "exact")
    score = contexts[best] if method == "context" else best.score
    return Anchor(best.start, best.end, method, score)


def _select_by_neighbours(quote: Quote, text: str, passages: Sequence[Passage]) -> Passage | None:
    """Return the passage next to which far more recorded text is unchanged than next to any other, None without one.

    At the edge of a moved block, the text on one side is new and that on the other side is unchanged. Between repeated
    lines, a new text shares many words with the recorded one by chance, but not a long beginning.
    """
    lengths = {passage: _count_neighbours(quote, text, passage) for passage in passages}
    best, *others = sorted(passages, key=lambda passage: -lengths[passage])
    second = lengths[others[0]] if others else 0
    return best if lengths[best] >= max(_LEAST_NEIGHBOURS, 2 * second) else None


def _count_neighbours(quote: Quote, text: str, passage: Passage) -> int:
    """Return the number of recorded characters directly before and after a quote that are unchanged."""
    before, after = quote.before or "", quote.after or ""
    here = text[max(0, passage.start - len(before)) : passage.start], text[passage.end : passage.end + len(after)]
    return _count_equal(before[::-1], here[0][::-1]) + _count_equal(after, here[1])


def _count_equal(one: str, other: str) -> int:
    """Return how many characters two strings share at their beginning."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))


def _score_context(quote: Quote, text: str, passage: Passage) -> float:
    """Return how much of the recorded text around a quote is still around a passage, from 0 to 1."""
    sides = []
    if quote.before is not None:
        near = text[max(0, passage.start - 2 * CONTEXT) : passage.start]
        sides.append(_score_side(quote.before[::-1], near[::-1]))
    if quote.after is not None:
        sides.append(_score_side(quote.after, text[passage.end : passage.end + 2 * CONTEXT]))
    return sum(sides) / len(sides) if sides else 0.0


def _score_side(recorded: str, near: str) -> float:
    """Return the share of recorded words that follow in a text, in order; both start next to the passage."""
    if near.startswith(recorded) and (recorded.strip() or not near.strip()):
        return 1.0
    words = _WORD.findall(recorded)
    if not words:
        return 0.0
    matcher = SequenceMatcher(None, words, _WORD.findall(near), autojunk=False)
    # Below 1, which means that nothing changed.
    return min(sum(block.size for block in matcher.get_matching_blocks()) / len(words), 0.99)


def _find_similar(quote: str, text: str) -> list[Passage]:
    """Return the passages that share most words with a quote, without overlaps, the most similar first."""
    words = _WORD.findall(quote)
    places = [match.span() for match in _WORD.finditer(text)]
    spelt = [text[start:end] for start, end in places]
    passages: list[Passage] = []
    for at in _list_windows(words, spelt):
        first, last = max(0, at - len(words) // 2 - 1), at + len(words) + len(words) // 2 + 1
        start, end, score = _align(words, spelt[first:last])
        if score:
            passages.append(Passage(places[first + start][0], places[first + end - 1][1], score))
    distinct: list[Passage] = []
    for passage in sorted(passages, key=lambda passage: (-passage.score, passage.start)):
        if all(passage.end <= other.start or passage.start >= other.end for other in distinct):
            distinct.append(passage)
    return distinct


def _list_windows(words: Sequence[str], spelt: Sequence[str]) -> list[int]:
    """Return where the windows start that share most words with a quote, as long as the quote and apart."""
    size, missing, shared = len(words), Counter(words), 0
    counts: list[int] = []
    for at, word in enumerate(spelt):
        if missing[word] > 0:
            shared += 1
        missing[word] -= 1
        if at >= size:
            left = spelt[at - size]
            missing[left] += 1
            if missing[left] > 0:
                shared -= 1
        counts.append(shared)
    windows: list[int] = []
    for at in sorted(range(len(counts)), key=lambda place: -counts[place]):
        if len(windows) == _MOST_CANDIDATES or 2 * counts[at] < size:
            break
        if all(abs(at - other) > size // 2 for other in windows):
            windows.append(at)
    return [max(0, at - size + 1) for at in windows]


def _align(words: Sequence[str], window: Sequence[str]) -> Passage:
    """Return the part of a window that is most similar to the words: 2 x shared words / all words of both."""
    blocks = [b for b in SequenceMatcher(None, words, window, autojunk=False).get_matching_blocks() if b.size]
    best = Passage(0, 0, 0.0)
    for first, opening in enumerate(blocks):
        shared = 0
        for closing in blocks[first:]:
            shared += closing.size
            end = closing.b + closing.size
            score = 2 * shared / (len(words) + end - opening.b)
            if score > best.score:
                best = Passage(opening.b, end, score)
    return best
