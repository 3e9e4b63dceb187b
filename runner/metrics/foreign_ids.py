"""A warning about hits whose ids are not those of the judgments, where a dataset has no documents to tell."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from retrievers.base import NOTHING, Rankings
from runner.metrics.scores import Grader

NEARLY_NONE = 0.05
"""If at most this share of the queries has a judged hit, the judgments may be of other documents."""

TOP = 10
"""The first hits of a query, whose ids are compared with its judgments."""


def list_id_warnings(grader: Grader, rankings: Rankings) -> list[str]:
    """Return a sentence if (nearly) no hit is judged, or if hits and judgments write the same ids differently.

    Only judgments without documents are examined: a corpus knows its ids.
    """
    if grader.n_documents or grader.document_of is not None or not rankings.unknown_ids:
        return []
    answered = np.flatnonzero(grader.find_counted(rankings) & (rankings.documents != NOTHING).any(axis=1))
    if not len(answered):
        return []
    n_judged = len(np.intersect1d(grader.grade(rankings).queries, answered))
    few = n_judged <= NEARLY_NONE * len(answered)
    start = f"{n_judged:,} of {len(answered):,} queries with hits and gold have a judged hit"
    if twins := list(_iter_twins(grader, rankings, answered)):
        hit, judged = twins[0]
        return [
            f"{f'{start}; ' if few else ''}hits are judged under another spelling ({len(twins):,}), which differs in "
            f"{' and '.join(_name_differences(hit, judged))}: {judged!r} in the judgments, {hit!r} in the hits; write "
            "ids alike in both"
        ]
    if not few:
        return []
    hit = rankings.unknown_ids[int(rankings.documents[answered[0], 0])]
    judged = next(iter(grader.judged_ids))
    return [f"{start}: hits have ids such as {hit!r}, judgments such as {judged!r}; are they of the same documents?"]


def _iter_twins(grader: Grader, rankings: Rankings, queries: NDArray[np.int64]) -> Iterator[tuple[str, str]]:
    """Yield an unjudged hit and a judged id that was not found, of one query, if they differ only in how they look."""
    names = {place: name for name, place in grader.judged_ids.items()}
    for query in queries.tolist():
        rows = slice(*np.searchsorted(grader.judgments.queries, [query, query + 1]))
        judged = {names[place] for place in grader.judgments.documents[rows].tolist()}
        hits = [rankings.unknown_ids[place] for place in rankings.documents[query, :TOP].tolist() if place != NOTHING]
        looks = {_simplify(name): name for name in judged.difference(hits)}
        yield from ((hit, looks[look]) for hit in hits if hit not in judged and (look := _simplify(hit)) in looks)


def _shorten_number(text: str) -> str:
    """Return a whole number without leading zeros and decimals, and other text as it is."""
    whole, _, decimals = text.partition(".")
    is_whole = whole.isdecimal() and whole.isascii() and not decimals.strip("0")
    return (whole.lstrip("0") or "0") if is_whole else text


_LOOKS: Mapping[str, Callable[[str], str]] = {
    "percent-encoding": unquote,
    "white space at the ends": str.strip,
    "capital letters": str.casefold,
    "the format of a number": _shorten_number,
}
"""What two spellings of one id may differ in, and a function that removes it, in the order of use."""


def _simplify(name: str, but: str = "") -> str:
    """Return an id without what spellings may differ in, except for one such look."""
    for look, remove in _LOOKS.items():
        name = name if look == but else remove(name)
    return name


def _name_differences(one: str, other: str) -> list[str]:
    """Return which looks tell two ids apart."""
    return [look for look in _LOOKS if _simplify(one, look) != _simplify(other, look)]
