"""What agents found as rankings, so that the measures of retrievers are theirs: a task is a query, a file a document.

A file's rank is the order in which it was first seen. Knows nothing of how a file was seen, or matched to gold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from retrievers.base import Rankings, create_empty_rankings
from runner.datasets.base import Judgments
from runner.metrics.measures import Measure
from runner.metrics.scores import Grader, Scores


@dataclass(frozen=True, eq=False)
class Ranked:
    """Rankings of tasks, the names of the files that their positions mean, and the gold made ready to score them."""

    rankings: Rankings
    files: Sequence[str]
    grader: Grader

    def scores(self, measures: Sequence[Measure]) -> Scores:
        """Return the value of each measure for each task, NaN for one without gold, or with an error."""
        return self.grader.score(self.rankings, measures)


def ranked(
    found: Sequence[Sequence[str]],
    gold: Sequence[Sequence[str]],
    depth: int | None = None,
    errors: Mapping[int, str] | None = None,
) -> Ranked:
    """Rank the files of tasks, given in order of first sight and each once, down to a depth (None for all).

    `gold` are the files that each task should find, all of the same grade; a file is known by its name. `errors` say
    of tasks, by position, why there is nothing to rank. Scores only say the rank: 0 for the first, then -1.
    """
    files = sorted({*chain.from_iterable(found), *chain.from_iterable(gold)})
    position = {name: place for place, name in enumerate(files)}
    deepest = max(map(len, found), default=0) if depth is None else depth
    rankings = replace(create_empty_rankings(len(found), deepest), errors=errors or None)
    for task, names in enumerate(found):
        n = min(len(names), deepest)
        rankings.documents[task, :n] = [position[name] for name in names[:n]]
        rankings.scores[task, :n] = -np.arange(n)
    rows = [(task, position[name], 1) for task, names in enumerate(gold) for name in sorted({*names})]
    columns = np.array(rows, dtype=np.int32).reshape(-1, 3)
    judgments = Judgments(columns[:, 0], columns[:, 1], columns[:, 2])
    return Ranked(rankings, files, Grader(judgments, len(found), len(files)))
