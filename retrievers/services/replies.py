"""Turn the replies of a retriever that has its own documents into rankings: ids and scores, in its own order.

The order is kept, also among equal scores. Items that the corpus lacks keep their rank, as unknown hits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from retrievers.base import Rankings, create_empty_rankings


@dataclass(frozen=True)
class SearchReply:
    """The ids and scores of the items for a query, or an error; `figures` are counts for the diagnostics."""

    ids: Sequence[str] = ()
    scores: NDArray[np.float32] | Sequence[float] = ()
    seconds: float = float("nan")
    error: str = ""
    figures: Mapping[str, float] | None = None


def build_reply(items: Iterable[tuple[str, float]], k: int, lower_is_better: bool = False) -> SearchReply:
    """Return the first k distinct items, with scores that never rise; raises `ValueError` if one exceeds 32 bits.

    `repeated_items` counts the repetitions of items, `rising_scores` is 1 if a score was lowered to the one above it.
    """
    best: dict[str, float] = {}
    n = 0
    for n, (name, score) in enumerate(items, start=1):  # noqa: B007 (counts)
        best.setdefault(name, score)
    scores = _convert_scores(list(best.values())[:k])
    if lower_is_better:
        scores = 0 - scores
    falling = np.minimum.accumulate(scores)
    rising = float((falling != scores).any())
    return SearchReply(
        list(best)[:k], falling, figures={"repeated_items": float(n - len(best)), "rising_scores": rising}
    )


def join_replies(replies: Sequence[SearchReply], positions: Mapping[str, int], k: int) -> Rankings:
    """Return the rankings of replies, given the position of each document by its id; the diagnostics add up.

    The longest reply, of at most k items, sets the width: k may be far larger.
    """
    rankings = create_empty_rankings(len(replies), min(k, max((len(reply.ids) for reply in replies), default=0)))
    unknown: dict[str, int] = {}
    n = len(positions)
    for row, reply in enumerate(replies):
        places = [
            positions[name] if name in positions else unknown.setdefault(name, n + len(unknown)) for name in reply.ids
        ]
        rankings.documents[row, : len(places)], rankings.scores[row, : len(places)] = places, reply.scores
    diagnostics = {"unknown_items": float(np.count_nonzero(rankings.documents >= n))}
    names = (name for reply in replies for name in reply.figures or ())
    for name in dict.fromkeys(("repeated_items", "rising_scores", *names)):
        diagnostics[name] = sum((reply.figures or {}).get(name, 0.0) for reply in replies)
    return replace(
        rankings,
        seconds=np.array([reply.seconds for reply in replies], dtype=np.float32),
        errors={row: reply.error for row, reply in enumerate(replies) if reply.error} or None,
        diagnostics=diagnostics,
        unknown_ids=tuple(unknown),
    )


def _convert_scores(values: Sequence[float]) -> NDArray[np.float32]:
    try:
        with np.errstate(over="ignore"):
            scores = np.array(values, dtype=np.float64).astype(np.float32)
    except OverflowError:  # an integer of hundreds of digits
        scores = np.full(1, np.inf, dtype=np.float32)
    if not np.isfinite(scores).all():
        raise ValueError("a score does not fit in a 32-bit float")
    return scores
