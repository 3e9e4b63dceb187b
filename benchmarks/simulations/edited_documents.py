"""Generated documents, gold spans in them, and edits that keep track of each line."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

WORDS = [first + last for first in ("ba", "co", "di", "fu", "ge", "ho", "ju") for last in ("lan", "mir", "nes", "pod")]


@dataclass(frozen=True)
class Line:
    """A line and what identifies it through edits: two lines may have the same text."""

    number: int
    text: str


def write_lines(seed: int, n: int, repeated: float) -> list[Line]:
    """Return lines of 6 to 12 words; a share of them repeats one of five lines."""
    rng = random.Random(seed)
    pool = [_write_line(rng) for _ in range(5)]
    return [Line(i, rng.choice(pool) if rng.random() < repeated else _write_line(rng)) for i in range(n)]


def join_lines(lines: Sequence[Line]) -> str:
    """Return the text of a document."""
    return "\n".join(line.text for line in lines) + "\n"


def locate(lines: Sequence[Line], numbers: Sequence[int]) -> tuple[int, int] | None:
    """Return the characters of lines, None if they are no longer next to each other."""
    here = [line.number for line in lines]
    if numbers[0] not in here:
        return None
    first = here.index(numbers[0])
    if here[first : first + len(numbers)] != list(numbers):
        return None
    start = sum(len(line.text) + 1 for line in lines[:first])
    return start, start + len("\n".join(line.text for line in lines[first : first + len(numbers)]))


def insert_lines(lines: Sequence[Line], seed: int) -> list[Line]:
    """Return lines with new ones, half of them copies of others, in 5 % of all places and at 70 % of the document."""
    rng = random.Random(seed)
    edited: list[Line] = []
    for place, line in enumerate(lines):
        if rng.random() < 0.05 or place == int(0.7 * len(lines)):
            text = rng.choice(lines).text if rng.random() < 0.5 else _write_line(rng)
            edited.append(Line(-1 - place, text))
        edited.append(line)
    return edited


def move_lines(lines: Sequence[Line], seed: int) -> list[Line]:
    """Return lines of which a block of 30 % stands elsewhere."""
    rng = random.Random(seed)
    size = int(0.3 * len(lines))
    first = rng.randrange(len(lines) - size)
    block, others = lines[first : first + size], [*lines[:first], *lines[first + size :]]
    place = rng.randrange(len(others))
    return [*others[:place], *block, *others[place:]]


def _write_line(rng: random.Random) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(rng.randint(6, 12)))
