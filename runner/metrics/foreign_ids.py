"""A warning about hits whose ids are not those of the judgments, where a dataset has no documents to tell."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from operator import itemgetter
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from retrievers.base import NOTHING, Rankings
from runner.metrics.scores import Grader

NEARLY_NONE = 0.05
"""If at most this share of the queries has a judged hit, the judgments may be of other documents."""

GOLD_IN_NO_HIT = "gold_documents_in_no_hit"
"""The diagnostic that counts the gold documents that no query has among its hits."""

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
        (hit, judged, differences), n_missing = twins[0], len(list_gold_in_no_hit(grader, rankings))
        missing = f"gold documents in no hit: {n_missing:,}; " if n_missing else ""
        return [
            f"{f'{start}; ' if few else ''}{missing}hits are judged under another spelling ({len(twins):,}), which "
            f"differs in {' and '.join(differences)}: {judged!r} in the judgments, {hit!r} in the hits; write ids "
            "alike in both"
        ]
    if not few:
        return []
    hit = rankings.unknown_ids[int(rankings.documents[answered[0], 0])]
    judged = next(iter(grader.judged_ids))
    return [f"{start}: hits have ids such as {hit!r}, judgments such as {judged!r}; are they of the same documents?"]


def list_gold_in_no_hit(grader: Grader, rankings: Rankings) -> list[str]:
    """Return the gold documents that no query has among its hits; empty for a dataset with documents."""
    if grader.n_documents or grader.document_of is not None:
        return []
    gold, hits = {*np.unique(grader.judgments.documents[grader.judgments.grades > 0]).tolist()}, {*rankings.unknown_ids}
    return [name for name, place in grader.judged_ids.items() if place in gold and name not in hits]


def _iter_twins(
    grader: Grader, rankings: Rankings, queries: NDArray[np.int64]
) -> Iterator[tuple[str, str, Sequence[str]]]:
    """Yield an unjudged hit and a judged id of one query that seem to be the same, and in what they differ.

    The id was not found by this query or, if it differs in more than its look, by none.
    """
    names, everywhere = {place: name for name, place in grader.judged_ids.items()}, {*rankings.unknown_ids}
    for query in queries.tolist():
        rows = slice(*np.searchsorted(grader.judgments.queries, [query, query + 1]))
        judged = {names[place] for place in grader.judgments.documents[rows].tolist()}
        hits = [rankings.unknown_ids[place] for place in rankings.documents[query, :TOP].tolist() if place != NOTHING]
        looks = {_simplify(name): name for name in judged.difference(hits)}
        absent = judged.difference(everywhere)
        for hit in (hit for hit in hits if hit not in judged):
            if (look := _simplify(hit)) in looks:
                yield hit, looks[look], _name_differences(hit, looks[look])
            else:
                pairs = ((name, _name_place_differences(hit, name)) for name in sorted(absent))
                yield from ((hit, name, differences) for name, differences in islice(filter(itemgetter(1), pairs), 1))


_CHUNK = re.compile(r"(?:#|::|[-_:/ ](?:chunk|part|passage)[-_ ]?|[-_:])[0-9]+$")
"""The number of a chunk after the id of its document."""
_SUFFIX = re.compile(r"(?<=[^/])\.[a-z][a-z0-9]{1,7}$")


def _name_place_differences(one: str, other: str) -> list[str]:
    """Return in what the names of the same file or document differ: a chunk, a suffix, a path; empty for others."""
    names, differences = [_simplify(one), _simplify(other)], list[str]()
    if sum(bool(_CHUNK.search(name)) for name in names) == 1:
        names, differences = [_CHUNK.sub("", name) for name in names], ["the number of a chunk"]
    if len({tuple(_SUFFIX.findall(name)) for name in names}) == 2:
        names, differences = [_SUFFIX.sub("", name) for name in names], [*differences, "the suffix of the file"]
    paths = [name.split("/") for name in names]
    shared = min(map(len, paths))
    if len(paths[0]) != len(paths[1]):
        differences.append("the path before the name")
    return differences if paths[0][-shared:] == paths[1][-shared:] else []


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
