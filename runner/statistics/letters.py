"""Show by letters which systems differ significantly: a compact letter display."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

ALPHABET = "abcdefghijklmnopqrstuvwxyz"


def letters(significant: NDArray[np.bool_], order: Sequence[int] | NDArray[np.int64]) -> list[str]:
    """Return the letters of each system: two systems differ (m x m) if and only if they share no letter (Piepho 2004).

    The systems that come first in `order` have the first letters; after "z" comes "a1".
    """
    groups = {frozenset(range(len(significant)))}
    for i, j in np.argwhere(np.triu(significant, 1)).tolist():
        both = {group for group in groups if i in group and j in group}
        if both:
            groups = (groups - both) | {group - {one} for group in both for one in (i, j)}
            groups = {group for group in groups if not any(group < other for other in groups)}
    place = {int(system): rank for rank, system in enumerate(order)}
    ordered = sorted(groups, key=lambda group: sorted(place[system] for system in group))
    names = [f"{ALPHABET[i % 26]}{i // 26 or ''}" for i in range(len(ordered))]
    return ["".join(n for n, group in zip(names, ordered, strict=True) if s in group) for s in range(len(significant))]
