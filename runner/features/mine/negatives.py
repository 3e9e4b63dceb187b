"""Select negatives: hard ones, which a retriever ranks high although they are not answers, and random ones.

A negative is never a gold, an alias, near-duplicate or member of one, what contains one, or a target that the case may
refer to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np

from retrievers.base import NOTHING, Rankings
from retrievers.store import fingerprint
from runner.datasets.duplicates import Shingled, most_alike
from runner.features.mine.base import Mining, Objection, Query
from runner.features.mine.checks import RETRIEVABLE
from runner.features.mine.names import find_quoted_names
from runner.features.mine.targets import Targets


def add_negatives(queries: Sequence[Query], rankings: Rankings, targets: Targets, mining: Mining) -> list[Query]:
    """Return queries with the rank of their first gold and with their negatives.

    `rankings` are those of these queries. Random draws depend only on the seed and the query.
    """
    shingled = Shingled.of(target.about or target.text for target in targets.all)
    most = max(mining.random_negatives, mining.contexts)
    after = []
    for row, query in enumerate(queries):
        hits = [int(document) for document in rankings.documents[row] if document != NOTHING]
        rank = next((place for place, document in enumerate(hits, start=1) if document in query.golds), None)
        ranked = [document for document in hits if document < len(targets)]  # a service may return others
        never = _never(query, targets)

        def is_near(document: int, golds: Sequence[int] = query.golds) -> bool:
            return most_alike(shingled, document, golds) >= mining.ceiling

        def fits(document: int, never: frozenset[int] = never, near: Callable[[int], bool] = is_near) -> bool:
            return document not in never and not near(document)

        chosen = _first(ranked, mining.hard_negatives, fits) if query.golds else ()
        rng = np.random.default_rng([mining.seed, int(fingerprint(query.case.id), 16)])
        order = rng.permutation(len(targets)).tolist() if most and query.golds else []
        drawn = _first((document for document in order if document not in chosen), most, fits)
        error = (rankings.errors or {}).get(row)
        failure = (Objection(RETRIEVABLE, "doubtful", f"the retriever failed: {error}"),) if error else ()
        after.append(
            replace(
                query,
                rank=rank,
                hard_negatives=chosen,
                random_negatives=drawn[: mining.random_negatives],
                near_golds=tuple(i for i in ranked if i not in query.golds and is_near(i)),
                contexts=drawn[: mining.contexts],
                objections=(*query.objections, *failure),
            )
        )
    return after


def _never(query: Query, targets: Targets) -> frozenset[int]:
    """Return the targets that cannot be negatives: gold, those that share a name with gold, contain it or are in it.

    Those that the case may name cannot be negatives either.
    If gold was resolved by a last name only, a class that the question quotes may be the correct one.
    """
    names = [name for gold in query.golds for name in targets.all[gold].names]
    by_last_name = any(resolution.way == "name" for resolution in query.resolutions)
    quoted = find_quoted_names(query.case.query) if by_last_name else ()
    known = [*query.resolutions, *map(targets.resolve, (*names, *query.case.candidates, *quoted))]
    relatives = map(targets.find_relatives, query.golds)
    return frozenset(query.golds).union(*(resolution.targets for resolution in known), *relatives)


def _first(documents: Iterable[int], count: int, fits: Callable[[int], bool]) -> tuple[int, ...]:
    """Return the first `count` documents that fit."""
    return tuple(islice(filter(fits, documents), count))
